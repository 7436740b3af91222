"""Nodes: their states are played again where they were not kept."""

from __future__ import annotations

from pdojo.dialect.machine import machine
from pdojo.dialect.notation import parse_notation
from pdojo.search.dojo import Dojo
from pdojo.search.evaluation import Evaluation
from pdojo.search.node import Node, States, Verdict

KERNEL = """kernel k(x) -> (y)
x f32 [32, 64] heap
y f32 [32, 64] heap
t f32 [32, 64] heap

32 64 t[{0},{1}] = exp(x[{0},{1}])
32 64 y[{0},{1}] = t[{0},{1}] + 1
"""


def chain(kept: int) -> list[tuple[Node, str]]:
    """A node per move of a game, each made from the one before, with its program."""
    dojo = Dojo(parse_notation(KERNEL)[0], machine("toy"))
    states = States(dojo, kept)
    node = None
    nodes: list[tuple[Node, str]] = []
    for number in range(6):
        if number:
            dojo = dojo.fork()
            dojo.step(dojo.moves()[number])
        moves = tuple(step.resolved for step in dojo.trace.steps)
        node = Node(number, moves, dojo.fingerprint, node, Verdict(Evaluation(1.0)), states)
        states.put(node, dojo)
        nodes.append((node, dojo.text))
    return nodes


def test_states_come_back() -> None:
    nodes = chain(kept=2)
    for node, text in (*nodes, *reversed(nodes)):
        assert node.dojo.text == text
        assert node.dojo.fingerprint == node.fingerprint
        assert tuple(step.resolved for step in node.trace.steps) == node.moves


def test_states_that_are_kept_are_the_same() -> None:
    node, _ = chain(kept=6)[3]
    assert node.dojo is node.dojo


def test_playing_again_leaves_the_other_states_alone() -> None:
    nodes = chain(kept=1)
    for node, _ in nodes:
        node.dojo.fork().undo(0) if node.moves else None
    assert [node.dojo.text for node, _ in nodes] == [text for _, text in nodes]

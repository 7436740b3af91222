"""Nodes: their states are played again where they were not kept."""

from __future__ import annotations

from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.search.contract.evaluation import Evaluation
from pdojo.search.contract.node import Node, SharedEvaluation, States
from pdojo.transforms.game import Game

KERNEL = """kernel k(x) -> (y)
x f32 [32, 64] heap
y f32 [32, 64] heap
t f32 [32, 64] heap

32 64 t[{0},{1}] = exp(x[{0},{1}])
32 64 y[{0},{1}] = t[{0},{1}] + 1
"""


def chain(most_states: int = 128, most_nodes: int = 1000) -> list[tuple[Node, str, Game]]:
    """A node per move of a game, each made from the one before, with its program and state."""
    game = Game(parse_notation(KERNEL)[0], machine("toy"))
    states = States(game, most_states, most_nodes)
    node = None
    nodes: list[tuple[Node, str, Game]] = []
    for number in range(6):
        if number:
            game = game.fork()
            game.apply(game.moves()[number])
        moves = tuple(step.resolved for step in game.trace.steps)
        node = Node(number, moves, game.fingerprint, node, SharedEvaluation(Evaluation(1.0)), states)
        states.put(node, game)
        nodes.append((node, game.text, game))
    return nodes


def test_states_come_back() -> None:
    nodes = chain(most_states=2)
    for node, text, _ in (*nodes, *reversed(nodes)):
        assert node.game.text == text
        assert node.game.fingerprint == node.fingerprint
        assert tuple(step.resolved for step in node.trace.steps) == node.moves


def test_states_that_are_kept_are_the_same() -> None:
    assert all(node.game is game for node, _, game in chain(most_states=6))


def test_states_share_programs_and_large_ones_are_not_kept() -> None:
    nodes = chain()
    programs = nodes[-1][2].programs
    sizes = [len(program.nest.scopes) + len(program.nest.leaves) for program in programs]
    assert all(node.game is game for node, _, game in chain(most_nodes=sum(sizes)))
    # One too few: the first state goes. Its program is in all the others, so that there is not more room, and they go
    # as well, but for the last one.
    *others, (last, _, kept) = chain(most_nodes=sum(sizes) - 1)
    assert last.game is kept
    assert all(node.game is not game for node, _, game in others)


def test_playing_again_leaves_the_other_states_alone() -> None:
    nodes = chain(most_states=1)
    for node, _, _ in nodes:
        node.game.fork().undo(0) if node.moves else None
    assert [node.game.text for node, _, _ in nodes] == [text for _, text, _ in nodes]

"""With the list of shortcuts empty, every verdict is the same."""

from __future__ import annotations

from random import Random

import pytest

import pdojo
from pdojo.dialect.flow.program import Program
from pdojo.dialect.flow.shortcut import is_used, shortcut_names, without
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.shortcuts import SHORTCUTS
from pdojo.errors import UsageError
from pdojo.kernels import kernel_names
from pdojo.transforms.apply import candidates
from pdojo.transforms.game import Game
from property.walks import random_texts
from qa.sizes import small_kernel
from qa.walks import Counts, draw

MACHINES = "toy", "toy-gpu", "toy-snitch"

SMALL = """
kernel small(x) -> (y)
x f32 [4] heap
y f32 [4] heap
t f32 [4] heap

4 t[{0}] = exp(x[{0}])
4 y[{0}] = t[{0}] + x[3-{0}]
"""


def verdicts(program: Program) -> list[tuple[str, bool]]:
    """Every candidate, and whether it is legal, as a new program with the same kernel decides."""
    fresh = Program(program.kernel.clone(), program.machine)
    return [(str(verdict.move), verdict.is_legal) for verdict in candidates(fresh)]


def wander(kernel: KernelOp, on: str, seed: int, length: int, *names: str) -> None:
    """Make random moves; in every state, the verdicts are the same without some shortcuts."""
    game, random = Game(kernel, machine(on)), Random(seed)
    for _ in range(length):
        expected = verdicts(game.program)
        with without(*names):
            assert verdicts(game.program) == expected, game.program.text
        move = draw(game.program, random, Counts())
        if move is not None:
            game.apply(move)


@pytest.mark.parametrize("on", MACHINES)
def test_verdicts_on_a_few_states(on: str) -> None:
    wander(parse_notation(SMALL)[0], on, 0, 2, *shortcut_names())


@pytest.mark.slow
@pytest.mark.parametrize("on", MACHINES)
def test_verdicts_on_random_kernels(on: str) -> None:
    for seed, text in enumerate(random_texts(3)):
        wander(parse_notation(text)[0], on, seed, 3, *shortcut_names())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["softmax", "layernorm", "matmul"])
def test_verdicts_on_kernels_of_the_library(name: str) -> None:
    kernel = small_kernel(name, Random(kernel_names(long=False).index(name)))
    wander(kernel, "toy", 0, 4, *shortcut_names())


@pytest.mark.slow
@pytest.mark.parametrize("shortcut", shortcut_names())
def test_verdicts_without_one_shortcut(shortcut: str) -> None:
    for seed, text in enumerate(random_texts(4)[:10]):
        wander(parse_notation(text)[0], MACHINES[seed % 3], seed, 2, shortcut)


@pytest.mark.parametrize("removed", [shortcut_names(), ("deferred conditions",), ("same nodes",)])
def test_traces_lead_to_the_same_programs(removed: tuple[str, ...]) -> None:
    """Moves one by one, in place, and replayed."""
    moves = ("join_scopes@m:0", "reuse_dims@m:0", "tile_scope@y:0{size=2}")
    texts: set[str] = set()
    for names in ((), removed):
        with without(*names):
            for place in range(2):
                game = Game(pdojo.load("softmax:4x8"), machine("x86-64-avx2"))
                if place:
                    game.at_once(lambda game=game: game.apply_all(moves))
                else:
                    game.apply_all(moves)
                again = Game(pdojo.load("softmax:4x8"), machine("x86-64-avx2"))
                assert again.replay(game.trace.steps) == []
                texts |= {game.program.text, again.program.text}
    assert len(texts) == 1


def test_a_context_restores_the_list() -> None:
    with without("memo"), without("excerpts"):
        assert not is_used("memo")
        assert not is_used("excerpts")
        assert is_used("layout")
    assert all(map(is_used, shortcut_names()))
    with pytest.raises(UsageError, match="there is no shortcut 'ring'"), without("ring"):
        pass


def test_every_shortcut_has_its_function() -> None:
    for shortcut in SHORTCUTS:
        assert bool(shortcut.kind) == bool(shortcut.home), shortcut

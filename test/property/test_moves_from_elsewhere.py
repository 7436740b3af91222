"""Moves that are made where they were not offered, as edits of traces and people make them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from random import Random

import pytest

from pdojo.dialect.attributes import Memory
from pdojo.dialect.flow.program import Program
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.rules.conditions import conditions_of
from pdojo.errors import IllegalMove, LocationError
from pdojo.kernels import kernel_names
from pdojo.search.contract.candidates import choices
from pdojo.transforms.apply import legal
from pdojo.transforms.game import Game
from pdojo.transforms.legality.faults import fault
from pdojo.transforms.legality.proofs import Proof, proof_of
from pdojo.transforms.legality.trials import rehearse
from pdojo.transforms.move import Move
from pdojo.transforms.registry import transformation_names
from qa.sizes import small_kernel
from qa.walks import Counts, draw

FEW = 5
"""Candidates of each family that are taken from a state."""

TRIED = 40
"""Moves that are tried in a state."""


def walked(name: str, on: str, random: Random) -> Game:
    """A state after a few random moves."""
    game = Game(small_kernel(name, random), machine(on))
    for _ in range(random.randrange(5)):
        move = draw(game.program, random, Counts())
        if move is not None:
            game.apply(move)
    return game


def indexing(game: Game, array: str) -> list[str]:
    """The scopes that index an array, by identifier."""
    accesses = game.program.nest.accesses.get(game.program.nest.arrays[array].buffer, [])
    return sorted({leaf.chain[v].id for leaf, a in accesses for e in a.index for v in e.variables()})


def temporaries(game: Game, random: Random) -> list[str]:
    """Some arrays of the kernel's own."""
    return [a.name for a in game.program.nest.arrays.values() if a.buffer.op is not None and random.random() < 0.7]


def try_each(game: Game, moves: Iterable[str]) -> None:
    """Make those of some moves that are legal, in order."""
    for move in moves:
        with suppress(IllegalMove):
            game.apply(move)


def with_registers(name: str, on: str, random: Random) -> Game | None:
    """A state with temporaries in registers, in which all scopes that index these are unrolled; None if it has none."""
    game = walked(name, on, random)
    for array in temporaries(game, random):
        try_each(game, [f"unroll@%{identifier}" for identifier in indexing(game, array)])
        try_each(game, [f"set_location@{array}{{location=register}}"])
    return game if any(b.memory is Memory.REGISTER for b in game.program.nest.buffers) else None


def with_copies(name: str, on: str, random: Random) -> Game | None:
    """A state with reused dimensions, of which lanes and threads have copies of their own; None if it has none."""
    game = walked(name, on, random)
    for array in temporaries(game, random):
        try_each(game, [f"tile_scope@%{identifier}{{size=4}}" for identifier in indexing(game, array)])
        families = "vectorize", "vectorize", "parallelize"
        try_each(game, [f"{random.choice(families)}@%{identifier}" for identifier in indexing(game, array)])
        dimensions = range(len(game.program.nest.arrays[array].shape))
        try_each(game, [f"reuse_dims@{array}:{dimension}" for dimension in dimensions])
    return game if any(any(b.reuse) for b in game.program.nest.buffers) else None


def candidates_of(program: Program, random: Random) -> list[Move]:
    """A few candidates of every family, by identifier."""
    found: list[Move] = []
    for family in transformation_names():
        some = choices(program, [family])
        found += [choice.move for choice in random.sample(some, min(FEW, len(some)))]
    return found


@pytest.mark.parametrize(
    ("made", "on"), [(with_registers, "toy"), (with_registers, "toy-snitch"), (with_copies, "toy")]
)
def test_checks_argue_about_moves_that_are_not_offered(
    made: Callable[[str, str, Random], Game | None], on: str
) -> None:
    """The check of a move from another state is right about the program after it, though nobody would offer it."""
    random = Random(4)
    argued = 0
    for name in kernel_names(long=False)[::2]:
        game = made(name, on, random)
        if game is None:
            continue
        program = game.program
        others = [program, game.programs[0], game.programs[len(game.programs) // 2]]
        moves = [move for other in others for move in candidates_of(other, random)]
        for move in random.sample(moves, min(TRIED, len(moves))):
            try:
                verdict = legal(program, move)
            except (IllegalMove, LocationError):
                continue
            wanted, site = verdict.transformation, verdict.site
            if proof_of(wanted, program, site) is Proof.ALL:
                argued += 1
                found = fault(wanted, conditions_of(program), rehearse(wanted, program, site))
                assert found is None, (program.text, str(verdict.move), found)
    assert argued >= 100, argued


LANES = """
kernel lanes(x) -> (y)
x f32 [4, 16] heap
y f32 [4, 8] heap
t f32 [8:N] heap

4
| 8:v t[{1}] = 0
| 2:u 8:v t[{2}] += x[{0},{1}*8+{2}]
| 8:v y[{0},{1}] = t[{1}]
"""


@pytest.mark.parametrize("move", ["stage_out@t#1:1", "stage_in@y:1"])
def test_what_each_lane_has_is_not_copied_by_a_loop(move: str) -> None:
    """The check of the move refuses it, not only the conditions of the program after it."""
    game = Game(parse_notation(LANES)[0], machine("toy"))
    with pytest.raises(IllegalMove, match="'t' would be overwritten before its last read"):
        legal(game.program, Move.parse(f"{move}{{array=t location=stack}}"))

"""Moves that are made where they were not offered, as edits of traces and people make them."""

from __future__ import annotations

from contextlib import suppress
from random import Random

import pytest

from pdojo.dialect.analysis.conditions import conditions_of
from pdojo.dialect.analysis.program import Program
from pdojo.dialect.attributes import Memory
from pdojo.dialect.machines.registry import machine
from pdojo.errors import IllegalMove, LocationError
from pdojo.kernels import kernel_names
from pdojo.search.candidates import choices
from pdojo.transforms.apply import legal
from pdojo.transforms.game import Game
from pdojo.transforms.move import Move
from pdojo.transforms.registry import transformation_names
from qa.sizes import small_kernel
from qa.walks import Counts, draw

FEW = 5
"""Candidates of each family that are taken from a state."""

TRIED = 100
"""Moves that are tried in a state."""


def with_registers(name: str, on: str, random: Random) -> Game | None:
    """A state with temporaries in registers, in which all scopes that index these are unrolled; None if it has none."""
    game = Game(small_kernel(name, random), machine(on))
    for _ in range(random.randrange(5)):
        move = draw(game.program, random, Counts())
        if move is not None:
            game.apply(move)
    for array in [a for a in game.program.nest.arrays.values() if a.buffer.op is not None and random.random() < 0.7]:
        accesses = game.program.nest.accesses.get(game.program.nest.arrays[array.name].buffer, [])
        indexing = {leaf.chain[v].id for leaf, a in accesses for e in a.index for v in e.variables()}
        for identifier in sorted(indexing):
            with suppress(IllegalMove):
                game.apply(f"unroll@%{identifier}")
        with suppress(IllegalMove):
            game.apply(f"set_location@{array.name}{{location=register}}")
    return game if any(b.memory is Memory.REGISTER for b in game.program.nest.buffers) else None


def candidates_of(program: Program, random: Random) -> list[Move]:
    """A few candidates of every family, by identifier."""
    found: list[Move] = []
    for family in transformation_names():
        some = choices(program, [family])
        found += [choice.move for choice in random.sample(some, min(FEW, len(some)))]
    return found


@pytest.mark.parametrize("on", ["toy", "toy-snitch"])
def test_checks_argue_about_moves_that_are_not_offered(on: str) -> None:
    """The check of a move from another state is right about the program after it, though nobody would offer it."""
    random = Random(4)
    argued = 0
    for name in kernel_names():
        game = with_registers(name, on, random)
        if game is None:
            continue
        program = game.program
        others = [game.programs[0], game.programs[len(game.programs) // 2]]
        moves = [move for other in others for move in candidates_of(other, random)]
        for move in random.sample(moves, min(TRIED, len(moves))):
            try:
                wanted, site = legal(program, move)
            except (IllegalMove, LocationError):
                continue
            if wanted.proves(program, site):
                argued += 1
                fault = wanted.fault(conditions_of(program), wanted.rehearse(program, site))
                assert fault is None, (program.text, str(wanted.at(program, site)), fault)
    assert argued >= 500, argued

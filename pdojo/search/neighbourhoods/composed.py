"""Classical transformations composed of several moves: unroll and jam, partial sums, scalar replacement."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from math import prod
from random import Random
from typing import NamedTuple

from pdojo.dialect.attributes import Memory
from pdojo.dialect.flow.program import Program
from pdojo.dialect.functions import byte_width
from pdojo.dialect.reason import Reason
from pdojo.dialect.view.nest import Scope
from pdojo.errors import IllegalMove, LocationError
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.common.loops import indexing, sink, straighten
from pdojo.search.contract.candidates import MoveCandidate, choices, shuffled
from pdojo.search.neighbourhoods.lengths import COPIES
from pdojo.search.neighbourhoods.sizes import lanes_of
from pdojo.transforms.copies.staging import Staging
from pdojo.transforms.game import Game
from pdojo.transforms.move import Move

WHY = "a mutation"


@dataclass(frozen=True, slots=True)
class Composed:
    """A classical transformation: its first move, and a function that makes the others."""

    first: MoveCandidate
    rest: Callable[[Game, Known], None]
    """Makes the other moves; receives the state after the first move, and the names before it."""

    def make(self, game: Game) -> None:
        """Make all moves; the first one must be legal."""
        nest = game.program.nest
        known = Known(frozenset(nest.by_id), frozenset(nest.arrays))
        game.apply(self.first.move)
        self.rest(game, known)


class Known(NamedTuple):
    """The names in a program."""

    scopes: frozenset[str]
    arrays: frozenset[str]


def jams(game: Game) -> list[Composed]:
    """Unroll and jam: cut a loop, move the pieces inwards, and unroll or vectorise them."""
    lanes = lanes_of(game)
    cuts = choices(game.program, ["tile_scope"])
    vectors = [cut for cut in cuts if _size(cut.move) in lanes]
    return [Composed(cut, partial(_inwards, "unroll")) for cut in cuts] + [
        Composed(cut, partial(_inwards, "vectorize")) for cut in vectors
    ]


def _inwards(ending: str, game: Game, known: Known) -> None:
    builder = PassBuilder(game)
    # The new scopes are the loop over tiles, then the loop inside a tile; their names depend on the taken ones.
    piece = [scope.id for scope in builder.nest.scopes if scope.id not in known.scopes][1]
    for part in sink(builder, piece, WHY):
        builder.attempt(ending, f"%{part}", WHY)


def sums(game: Game) -> list[Composed]:
    """Partial sums in registers, unrolled or vectorised."""
    lanes = lanes_of(game)
    return [
        Composed(cut, partial(_into_registers, vector, all_loops=False))
        for cut in choices(game.program, ["split_reduction"])
        for vector in (1, *(n for n in lanes if _size(cut.move) % n == 0))
    ]


def replacements(game: Game) -> list[Composed]:
    """Scalar replacement: a scope works on a copy in registers, with unrolled loops over the copy."""
    copies = choices(game.program, ["stage_in", "stage_out"])
    return [
        Composed(copy, partial(_into_registers, 1, all_loops=True)) for copy in copies if _fits_registers(game, copy)
    ]


def _fits_registers(game: Game, copy: MoveCandidate) -> bool:
    """True if a copy of several elements could fit the registers and its code is short enough."""
    staging, site = copy.transformation, copy.site
    assert isinstance(staging, Staging)
    assert isinstance(site, Scope)
    array = game.program.nest.arrays[staging.array]
    plan = staging.plan(site, array)
    if isinstance(plan, Reason) or not plan.extents:
        return False
    elements = prod(plan.extents)
    return elements <= COPIES and elements * byte_width(array.dtype) <= game.machine.register_bytes


def _into_registers(lanes: int, game: Game, known: Known, *, all_loops: bool) -> None:
    """Put new arrays into registers: reuse their dimensions, and straighten new loops that index them, or all with
    `all_loops`.
    """
    builder = PassBuilder(game)
    for array in [name for name in builder.nest.arrays if name not in known.arrays]:
        for dimension in range(len(builder.nest.arrays[array].shape)):
            builder.attempt("reuse_dims", f"{array}:{dimension}", WHY)
        for scope in indexing(builder, array):
            if all_loops or scope not in known.scopes:
                with suppress(IllegalMove, LocationError):
                    straighten(builder, scope, lanes, WHY)
        builder.attempt("set_location", array, WHY, location=Memory.REGISTER.value)


def _size(move: Move) -> int:
    size = dict(move.params)["size"]
    assert isinstance(size, int)
    return size


CLASSICAL = (jams, sums, replacements)
"""All classical transformations."""


def legal(some: Sequence[Composed], program: Program, random: Random) -> Iterator[Composed]:
    """The transformations whose first move is legal, in random order."""
    return (composed for composed in shuffled(some, random) if composed.first.is_legal(program))

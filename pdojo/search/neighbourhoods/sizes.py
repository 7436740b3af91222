"""Other sizes for the tiles, groups and blocks of a trace: those that belong together change together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2
from random import Random

from pdojo.search.dojo import Dojo
from pdojo.search.neighbourhoods.proposals import Edit
from pdojo.transforms.move import Move

BLOCKS = range(1, 17)
"""Heights of register blocks, and how many vectors may make a group."""
POWERS = tuple(2**k for k in range(1, 13))
MOST_DIVISORS = 256
"""Divisors of an extent up to this one are suggested."""


@dataclass(frozen=True, slots=True)
class Sized:
    """A move of a trace that has a size."""

    position: int
    move: Move
    size: int
    extent: int
    """Iterations, or elements, that are cut into pieces of that size."""
    family: str
    """The loops that it belongs to: those that were fused are one family, with all that was made of them."""


def other_sizes(dojo: Dojo, random: Random) -> Edit | None:
    """Another size instead of one that some moves have: all of them, or those of one family of loops.

    Where whole pieces were peeled off, as many whole pieces of the new size are, or nothing where it divides.
    """
    moves = [step.resolved for step in dojo.trace.steps]
    sized = _sized(dojo)
    if not sized:
        return None
    drawn = random.choice(sized)
    alike = [s for s in sized if s.size == drawn.size]
    related = [s for s in alike if s.family == drawn.family]
    group = random.choice((alike, related))
    peels = _peels(dojo, group, drawn.size)
    sizes = [n for n in _suggested(dojo, group) if _fits(n, group, sized, peels, moves)]
    if not sizes:
        return None
    # Twice or half the size says more than something far away.
    (size,) = random.choices(sizes, [1 / (1 + abs(log2(n / drawn.size))) for n in sizes])
    edited: list[Move | None] = list(moves)
    for s in group:
        edited[s.position] = _resized(s.move, size)
    for position, extent in peels.items():
        whole = extent // size * size
        edited[position] = Move("peel_scope", moves[position].at, (("after", whole),)) if whole < extent else None
    return Edit([move for move in edited if move is not None])


def _resized(move: Move, size: int) -> Move:
    return Move(move.name, move.at, tuple((k, size if k == "size" else v) for k, v in move.params))


class _Families:
    """Which loops were fused with which, by the identifiers that they had before they were cut."""

    def __init__(self, dojo: Dojo) -> None:
        self._parents: dict[str, str] = {}
        for place, step in zip(dojo.game.places, dojo.trace.steps, strict=True):
            if step.resolved.name == "join_scopes" and place.following:
                self._parents[self.of(place.following)] = self.of(place.loop)

    def of(self, identifier: str) -> str:
        """The family of a node."""
        name = identifier.split(".", 1)[0]
        while (parent := self._parents.get(name, name)) != name:
            name = parent
        return name


def _sized(dojo: Dojo) -> list[Sized]:
    """The moves that have a size, in order."""
    families = _Families(dojo)
    found: list[Sized] = []
    for k, (place, step) in enumerate(zip(dojo.game.places, dojo.trace.steps, strict=True)):
        move = step.resolved
        size = dict(move.params).get("size")
        if isinstance(size, int) and place.extent:
            found.append(Sized(k, move, size, place.extent, families.of(place.loop)))
    return found


def _peels(dojo: Dojo, group: Sequence[Sized], size: int) -> dict[int, int]:
    """The moves that peel off whole pieces of that size where the group cuts, with the extents before."""
    places = {s.move.at for s in group}
    found: dict[int, int] = {}
    for k, (place, step) in enumerate(zip(dojo.game.places, dojo.trace.steps, strict=True)):
        move = step.resolved
        if move.name == "peel_scope" and move.at in places:
            after = dict(move.params)["after"]
            if isinstance(after, int) and after % size == 0:
                found[k] = place.extent
    return found


def _suggested(dojo: Dojo, group: Sequence[Sized]) -> list[int]:
    """What the machine suggests instead, ascending: its vectors where the pieces become vectors, else also others."""
    lanes = lanes_of(dojo)
    pieces = {f"{s.move.at}.i" for s in group}
    if any(step.resolved.name == "vectorize" and step.resolved.at in pieces for step in dojo.trace.steps):
        return [n for n in lanes if n != group[0].size]
    found = {*BLOCKS, *POWERS, *lanes, *(n * k for n in lanes[-1:] for k in BLOCKS)}
    for extent in {s.extent for s in group}:
        found |= {n for n in range(1, min(extent, MOST_DIVISORS) + 1) if extent % n == 0}
    return sorted(found - {1, group[0].size})


def lanes_of(dojo: Dojo) -> list[int]:
    """Lengths of the machine's vectors for the types in the program, ascending."""
    dtypes = {array.dtype for array in dojo.game.program.nest.arrays.values()}
    return sorted({n for dtype in dtypes for n in dojo.machine.vector_lanes(dtype)})


def _fits(
    size: int, group: Sequence[Sized], sized: Sequence[Sized], peels: dict[int, int], moves: Sequence[Move]
) -> bool:
    """Whether pieces of that size can stand where the old ones stand: whole ones for whole ones."""
    peeled = {moves[k].at: extent for k, extent in peels.items()}
    positions = {s.position for s in group}
    for s in group:
        if size > peeled.get(s.move.at, s.extent):
            return False
        if s.move.at not in peeled and s.extent % s.size == 0 and s.extent % size:
            return False
        # What cuts the pieces further must still cut them evenly.
        inner = (t for t in sized if t.position not in positions and t.move.at.startswith(f"{s.move.at}."))
        if any(t.extent == s.size and size % t.size for t in inner):
            return False
    return True

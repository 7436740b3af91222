"""Changes of the sizes of tiles, groups and blocks in a trace: related sizes change together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2
from random import Random

from pdojo.search.neighbourhoods.proposals import Edit
from pdojo.transforms.game import Game
from pdojo.transforms.move import Move

BLOCKS = range(1, 17)
"""Suggested heights of register blocks and numbers of vectors in a group."""
POWERS = tuple(2**k for k in range(1, 13))
MOST_DIVISORS = 256
"""Greatest suggested divisor of an extent."""


@dataclass(frozen=True, slots=True)
class Sized:
    """A move with a size in a trace."""

    position: int
    move: Move
    size: int
    extent: int
    """Number of iterations or elements that are cut into pieces of the size."""
    family: str
    """The family of its loop: fused loops, and all loops cut from them, are one family."""


def other_sizes(game: Game, random: Random) -> Edit | None:
    """Replace a size in all moves that use it, or in the moves on one family of loops.

    Moves that peel off a remainder are adapted to the new size, or dropped if it divides the extent.
    """
    moves = [step.resolved for step in game.trace.steps]
    sized = _sized(game)
    if not sized:
        return None
    drawn = random.choice(sized)
    alike = [s for s in sized if s.size == drawn.size]
    related = [s for s in alike if s.family == drawn.family]
    group = random.choice((alike, related))
    peels = _peels(game, group, drawn.size)
    sizes = [n for n in _suggested(game, group) if _fits(n, group, sized, peels, moves)]
    if not sizes:
        return None
    # Sizes near the old one are more likely.
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
    """The families of fused loops, keyed by the identifiers before the loops were cut."""

    def __init__(self, game: Game) -> None:
        self._parents: dict[str, str] = {}
        for place, step in zip(game.places, game.trace.steps, strict=True):
            if step.resolved.name == "join_scopes" and place.following:
                self._parents[self.of(place.following)] = self.of(place.loop)

    def of(self, identifier: str) -> str:
        """The family of a node, by name."""
        name = identifier.split(".", 1)[0]
        while (parent := self._parents.get(name, name)) != name:
            name = parent
        return name


def _sized(game: Game) -> list[Sized]:
    """The moves with a size, in order."""
    families = _Families(game)
    found: list[Sized] = []
    for k, (place, step) in enumerate(zip(game.places, game.trace.steps, strict=True)):
        move = step.resolved
        size = dict(move.params).get("size")
        if isinstance(size, int) and place.extent:
            found.append(Sized(k, move, size, place.extent, families.of(place.loop)))
    return found


def _peels(game: Game, group: Sequence[Sized], size: int) -> dict[int, int]:
    """Positions of the moves that peel whole pieces of size `size` from the group's loops, with the extents before."""
    places = {s.move.at for s in group}
    found: dict[int, int] = {}
    for k, (place, step) in enumerate(zip(game.places, game.trace.steps, strict=True)):
        move = step.resolved
        if move.name == "peel_scope" and move.at in places:
            after = dict(move.params)["after"]
            if isinstance(after, int) and after % size == 0:
                found[k] = place.extent
    return found


def _suggested(game: Game, group: Sequence[Sized]) -> list[int]:
    """Suggested sizes, ascending: vector lengths if the pieces become vectors, else also blocks, powers, divisors."""
    lanes = lanes_of(game)
    pieces = {f"{s.move.at}.i" for s in group}
    if any(step.resolved.name == "vectorize" and step.resolved.at in pieces for step in game.trace.steps):
        return [n for n in lanes if n != group[0].size]
    found = {*BLOCKS, *POWERS, *lanes, *(n * k for n in lanes[-1:] for k in BLOCKS)}
    for extent in {s.extent for s in group}:
        found |= {n for n in range(1, min(extent, MOST_DIVISORS) + 1) if extent % n == 0}
    return sorted(found - {1, group[0].size})


def lanes_of(game: Game) -> list[int]:
    """The machine's vector lengths for the types in the program, ascending."""
    dtypes = {array.dtype for array in game.program.nest.arrays.values()}
    return sorted({n for dtype in dtypes for n in game.machine.vector_lanes(dtype)})


def _fits(
    size: int, group: Sequence[Sized], sized: Sequence[Sized], peels: dict[int, int], moves: Sequence[Move]
) -> bool:
    """True if pieces of the new size can replace the old ones without a new rest."""
    peeled = {moves[k].at: extent for k, extent in peels.items()}
    positions = {s.position for s in group}
    for s in group:
        if size > peeled.get(s.move.at, s.extent):
            return False
        if s.move.at not in peeled and s.extent % s.size == 0 and s.extent % size:
            return False
        # Tiles inside the pieces must still divide them.
        inner = (t for t in sized if t.position not in positions and t.move.at.startswith(f"{s.move.at}."))
        if any(t.extent == s.size and size % t.size for t in inner):
            return False
    return True

"""Constraints of a trace's moves on the extents of the plain program, so that the same cases occur at other sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import gcd, lcm, prod

from pdojo.dialect.view.nest import Nest
from pdojo.transforms.game import Game
from pdojo.transforms.trace import Step

_WHOLE = ("vectorize", "tensorize")
"""Moves that need the exact extent of their scope."""
MOST_TILE = 4096
"""Most iterations of a tile that stays as it is at small sizes; larger ones are shares of threads."""
_PARTS = frozenset("rgs")
"""Suffixes of scope identifiers for scopes that moves cut in two or separated."""


@dataclass(frozen=True)
class ExtentConstraint:
    """A constraint: the iterations of merged scopes, less `rest`, keep their remainder by the tile size `tile`.

    Several whole tiles stay several. A `tile` of 0 demands the exact extent.
    """

    scopes: tuple[int, ...]
    """Positions in the plain program's nest."""
    tile: int
    rest: int = 0

    def is_met(self, whole: Sequence[int], smaller: Sequence[int], least: int) -> bool:
        """True if the extents `smaller` meet the constraint as the extents `whole` do, with at least `least` tiles."""
        old, new = self._iterations(whole), self._iterations(smaller)
        if self.tile == 0:
            return old == new
        return new % self.tile == old % self.tile and self.is_enough(whole, smaller, least)

    def is_enough(self, whole: Sequence[int], smaller: Sequence[int], least: int) -> bool:
        """True if the extents `smaller` leave enough whole tiles, whatever the remainder."""
        if self.tile == 0:
            return True
        old, new = self._iterations(whole), self._iterations(smaller)
        return new > 0 and new // self.tile >= min(old // self.tile, max(least, 2 if self.tile == 1 else 1))

    def _iterations(self, extents: Sequence[int]) -> int:
        return prod(extents[k] for k in self.scopes) - self.rest

    def period(self, extents: Sequence[int], less: Sequence[int]) -> tuple[int, int]:
        """Numbers of steps that keep the remainder, if each step takes `less` off the extents.

        All of them are multiples of the first number, and all multiples of the second one are among them. Raises
        ValueError if no step keeps it.
        """
        moved = [k for k in self.scopes if less[k]]
        if not moved:
            return 1, 1
        if self.tile == 0:
            raise ValueError
        if len(moved) > 1:
            return 1, self.tile
        change = less[moved[0]] * prod(extents[k] for k in self.scopes if k not in moved)
        least = self.tile // gcd(self.tile, change)
        return least, least


@dataclass(frozen=True)
class _Follows:
    """The extent of a scope: the product of `scopes` of the plain program, less `rest`, over `tile`, rounded up."""

    scopes: tuple[int, ...]
    tile: int = 1
    rest: int = 0


def constraints_of(game: Game) -> list[ExtentConstraint]:
    """The constraints of every scope of the plain program, and of every move."""
    nest = game.initial.nest
    sizes: dict[str, _Follows | None] = {scope.id: _Follows((k,)) for k, scope in enumerate(nest.scopes)}
    demands = [ExtentConstraint((k,), 1) for k in range(len(nest.scopes))]
    for step, place in zip(game.trace.steps, game.places, strict=True):
        move, params = step.resolved, dict(step.resolved.params)
        known = _size(sizes, place.loop, nest)
        if known is None:
            # Extents inside a tile do not depend on the sizes.
            continue
        if move.name in _WHOLE:
            demands.append(ExtentConstraint(known.scopes, 0))
        elif move.name == "tile_dim":
            demands.append(ExtentConstraint(known.scopes, int(str(params["size"]))))
        elif (count := share_count(step, place.extent)) is not None:
            # Later tiles cut the shares: their extent keeps its remainder by all of these tiles.
            tile = known.tile * count * lcm(*_tiles(game))
            demands.append(ExtentConstraint(known.scopes, tile, known.rest))
            sizes[str(params.get("outer") or f"{place.loop}.o")] = None
            sizes[str(params.get("inner") or f"{place.loop}.i")] = replace(known, tile=known.tile * count)
        elif move.name in ("tile_scope", "split_reduction"):
            tile = known.tile * int(str(params["size"]))
            # Rows of merged scopes keep their positions in the tiles.
            demands += [
                ExtentConstraint(known.scopes, tile, known.rest),
                *(ExtentConstraint((k,), tile) for k in known.scopes[1:]),
            ]
            outer, inner = str(params.get("outer") or ""), str(params.get("inner") or "")
            sizes[outer or f"{place.loop}.o"] = replace(known, tile=tile)
            sizes[inner or f"{place.loop}.i"] = None
            if move.name == "split_reduction":
                sizes |= {f"{place.loop}.z": None, f"{place.loop}.f": None, place.loop: replace(known, tile=tile)}
        elif move.name == "peel_scope":
            after = int(str(params["after"]))
            if 2 * after <= place.extent:
                sizes[place.loop], sizes[f"{place.loop}.r"] = None, replace(known, rest=known.rest + after * known.tile)
                demands.append(ExtentConstraint(known.scopes, known.tile, known.rest + after * known.tile))
            else:
                rest = known.rest + (place.extent - after) * known.tile
                sizes[f"{place.loop}.r"] = None
                sizes[place.loop] = replace(known, rest=rest)
                demands.append(ExtentConstraint(known.scopes, known.tile, rest))
    return list(dict.fromkeys(demands))


def share_count(step: Step, extent: int) -> int | None:
    """The number of equal shares that a move cuts a scope of `extent` into, such as one for each thread.

    None for other moves, and for tiles of at most `MOST_TILE` iterations, which do not depend on the sizes.
    """
    size = dict(step.resolved.params).get("size")
    if step.move.name != "tile_scope" or not isinstance(size, int) or size <= MOST_TILE or extent % size:
        return None
    return extent // size


def _tiles(game: Game) -> Iterator[int]:
    """The sizes of all tiles that do not depend on the sizes of the kernel."""
    for step in game.trace.steps:
        size = dict(step.resolved.params).get("size")
        if isinstance(size, int) and 0 < size <= MOST_TILE:
            yield size


def _size(sizes: dict[str, _Follows | None], identifier: str, nest: Nest) -> _Follows | None:
    """The extent of a scope; None if it does not depend on the sizes (inside tiles, in copies).

    Moves derive identifiers from others: the longest known prefix counts if the suffixes name parts.
    """
    if not identifier:
        return None
    parts = identifier.split(".")
    for count in range(len(parts), 0, -1):
        name = ".".join(parts[:count])
        if name in sizes:
            return sizes[name] if _PARTS.issuperset(parts[count:]) else None
    positions = {scope.id: k for k, scope in enumerate(nest.scopes)}
    merged = parts[0].split("*")
    if all(name in positions for name in merged) and _PARTS.issuperset(parts[1:]):
        return _Follows(tuple(positions[name] for name in merged))
    return None

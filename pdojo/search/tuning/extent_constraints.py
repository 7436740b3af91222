"""Constraints of a trace's moves on the extents of the plain program, so that the same cases occur at other sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from pdojo.dialect.view.nest import Nest
from pdojo.transforms.game import Game

_WHOLE = ("vectorize", "tensorize")
"""Moves that need the exact extent of their scope."""
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
        old, new = (prod(extents[k] for k in self.scopes) - self.rest for extents in (whole, smaller))
        if self.tile == 0:
            return old == new
        enough = min(old // self.tile, max(least, 2 if self.tile == 1 else 1))
        return new > 0 and new % self.tile == old % self.tile and new // self.tile >= enough


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

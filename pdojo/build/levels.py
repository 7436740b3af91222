"""Long sums in levels: of parts of the terms, then of the results of the parts.

The rounding error of a sum one by one grows with its terms, up to the number of terms times half a unit in the last
place. So the meaning of a long sum is a sum of sums, whatever moves are made.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod
from typing import NamedTuple

PART = 2048
"""Most terms of a part; vectors of partial results are added up once for all of them."""
VECTORS = 64
"""Parts of a multiple of so many terms are whole vectors of all machines."""
MOST_RESULTS = 1 << 22
"""Results of all parts of a sum of products, from which parts are longer: they are written to memory."""


class Limits(NamedTuple):
    """The lengths of sums."""

    whole: int
    """Most terms of a sum that is not in parts."""
    part: int
    """Most terms of a part."""


SUMS = Limits(4096, PART)
"""The limits of sums and products of elements."""


def limits_of_products(count: int) -> Limits:
    """The limits of sums of `count` products in all, which blocks of results compute faster whole than in few parts."""
    whole = 16384
    return Limits(whole, min(whole, max(PART, count // MOST_RESULTS)))


class Level(NamedTuple):
    """The first level of a sum: one result for each part."""

    axis: int
    """The axis that is cut."""
    size: int
    """Its elements in a part; the last part may have less."""
    whole: tuple[int, ...]
    """The axes behind it of which each part has all elements."""


def level_of(extents: Sequence[int], axes: Sequence[int], limits: Limits) -> Level | None:
    """The first level of a sum along `axes`, which ascend; None if the sum is not in parts."""
    if prod(extents[axis] for axis in axes) <= limits.whole:
        return None
    *before, axis = axes
    terms = 1
    while terms * extents[axis] <= limits.part:
        terms *= extents[axis]
        axis = before.pop()
    return Level(axis, _size(extents[axis], limits.part // terms), tuple(d for d in axes if d > axis))


def _size(extent: int, most: int) -> int:
    """The elements of a part: those of equal parts that are at least half as long as allowed, if there are any."""
    equal = [size for size in range(most, most // 2, -1) if extent % size == 0]
    return max(equal, key=lambda size: (gcd(size, VECTORS), size), default=most)

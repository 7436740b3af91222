"""The greatest and the least elements, in order."""

from __future__ import annotations

from pdojo.build.array import Array, cast, iota
from pdojo.build.elementwise import where
from pdojo.build.extents import axes_of
from pdojo.build.reductions import max, neutral_of, sum
from pdojo.build.shapes import expand_dims, transpose
from pdojo.errors import UsageError


def topk(x: Array, count: int, axis: int = -1, *, largest: bool = True) -> list[Array]:
    """The `count` greatest or least elements along `axis` in order, and their indices as i64; the first of equal ones.

    The rank of each element is the number of those before it: no element moves but by a comparison.

    >>> from pdojo import build
    >>> build.topk(build.input("x", "f32", (4, 8)), 3)
    [<Array f32 [4, 3]>, <Array i64 [4, 3]>]
    """
    (axis,) = axes_of(axis, x.rank)
    lead, extent = x.shape[:axis], x.shape[axis]
    if not 0 <= count <= extent:
        raise UsageError(f"{count} elements of {extent}")
    # x[..., i, j]: the rank of element i is the number of elements j before it in the result.
    rows = transpose(x, [*(d for d in range(x.rank) if d != axis), axis])
    one, other = expand_dims(rows, -1), expand_dims(rows, -2)
    before = other > one if largest else other < one
    places = (*rows.shape, extent)
    equal_before = (one == other) & (iota(places, "i64", -1) < iota(places, "i64", -2))
    rank = sum(cast(before | equal_before, "i64"), -1)
    chosen = expand_dims(rank, -2) == iota((count, 1), "i64")
    indices = where(chosen, iota(rank.shape, "i64", -1)[..., None, :], -1)
    values = max(where(chosen, expand_dims(rows, -2), neutral_of("max", x)), -1)
    back = [*range(len(lead)), x.rank - 1, *range(len(lead), x.rank - 1)]
    return [transpose(values, back), transpose(max(indices, -1), back)]

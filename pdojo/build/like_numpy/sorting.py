"""NumPy's sorting: each element is compared with all others of its row, which moves no element."""

from __future__ import annotations

from typing import Any

from pdojo.build import reductions
from pdojo.build.array import Array, cast, constant, iota, map
from pdojo.build.elementwise import where
from pdojo.build.extents import axes_of
from pdojo.build.like_numpy.constants import of
from pdojo.build.reductions import neutral_of
from pdojo.build.shapes import expand_dims, reshape, transpose


@of("sort")
def sort(a: Array, axis: int | None = -1, kind: Any = None, *, stable: bool | None = None) -> Array:
    """The elements along `axis` in ascending order, NaN last: n^2 comparisons of rows of n elements."""
    return _sorted(a, axis)[0]


@of("argsort")
def argsort(a: Array, axis: int | None = -1, kind: Any = None, *, stable: bool | None = None) -> Array:
    """The indices of the elements in the order of `sort`, the first of equal ones first, as i64."""
    return _sorted(a, axis)[1]


def _sorted(a: Array, axis: int | None) -> tuple[Array, Array]:
    x, given = (reshape(a, (a.size,)), 0) if axis is None else (a, axis)
    (place,) = axes_of(given, x.rank)
    kept = [d for d in range(x.rank) if d != place]
    rows = transpose(cast(x, "u8") if x.dtype == "i1" else x, [*kept, place])
    # one[..., i, 1] and other[..., 1, j]: the place of element i is the number of elements j before it.
    one, other = expand_dims(rows, -1), expand_dims(rows, -2)
    before, same = other < one, other == one
    if rows.is_float:
        is_nan = map("is_nan", rows)
        nan, other_nan = expand_dims(is_nan, -1), expand_dims(is_nan, -2)
        before, same = before | (nan & ~other_nan), same | (nan & other_nan)
    pairs = (*rows.shape, rows.shape[-1])
    first = iota(pairs, "i64", -1) < iota(pairs, "i64", -2)
    rank = reductions.sum(cast(before | (same & first), "i64"), -1)
    chosen = expand_dims(rank, -2) == expand_dims(iota((rows.shape[-1],), "i64"), -1)
    values = reductions.max(where(chosen, other, constant(neutral_of("max", rows), rows.dtype)), -1)
    indices = reductions.max(where(chosen, iota(pairs, "i64", -1), -1), -1)
    back = [kept.index(d) if d != place else x.rank - 1 for d in range(x.rank)]
    return cast(transpose(values, back), x.dtype), transpose(indices, back)

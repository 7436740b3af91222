"""Reductions of windows over the spatial axes of images [N, C, *spatial]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from pdojo.build.array import Array, constant, iota, map, power
from pdojo.build.contractions import ends_of
from pdojo.build.elementwise import maximum, minimum, sqrt, where
from pdojo.build.extents import shown
from pdojo.build.pieces import Widths, pad
from pdojo.build.policy import rounded_once
from pdojo.build.reductions import neutral_of, reduce
from pdojo.build.shapes import per_axis, reshape, windows
from pdojo.dialect.element_types import is_float
from pdojo.errors import UsageError

MOST_COUNTED = 1 << 16
"""Most windows that are counted one by one, in search of a common length."""


@dataclass(frozen=True)
class _Axis:
    """The windows along an axis."""

    extent: int
    size: int
    stride: int
    dilation: int
    reach: int
    """Elements from the first to the last one of a window."""
    before: int
    after: int
    places: int

    @property
    def beyond(self) -> int:
        """Elements of the last window beyond the padding."""
        end = (self.places - 1) * self.stride + self.reach
        return max(0, end - self.before - self.extent - self.after)


def pool(
    accumulation: str,
    x: Array,
    size: Sequence[int],
    *,
    stride: int | Sequence[int] | None = None,
    padding: Widths = 0,
    dilation: int | Sequence[int] = 1,
    ceil: bool = False,
) -> Array:
    """The accumulation `max`, `min`, `+` or `*` of every window; padding is neutral.

    Shapes: `x` [N, C, *spatial], `size` for the spatial axes; the result is [N, C, *places]. `stride` None is `size`.
    In ceil mode the last windows may reach beyond the padding, but start in the image or in the padding before it; a
    window may be longer than the image by less than the stride.

    >>> from pdojo import build
    >>> build.pool("max", build.input("x", "f32", (2, 4, 9, 9)), (3, 3), stride=2, padding=1)
    <Array f32 [2, 4, 5, 5]>
    """
    axes = _axes(x, size, stride, padding, dilation, ceil=ceil)
    widths = [(0, 0), (0, 0), *[(axis.before, axis.after + axis.beyond) for axis in axes]]
    padded = pad(x, widths, neutral_of(accumulation, x))
    strides, dilations = [axis.stride for axis in axes], per_axis("dilation", dilation, len(axes))
    seen = windows(padded, [axis.size for axis in axes], strides, dilations)
    return reduce(accumulation, seen, range(x.rank, x.rank + len(axes)))


def max_pool_with_places(
    x: Array,
    size: Sequence[int],
    places: Array,
    *,
    stride: int | Sequence[int],
    padding: Widths = 0,
    dilation: int | Sequence[int] = 1,
    ceil: bool = False,
) -> tuple[Array, Array]:
    """The greatest element of every window, and the first of the `places` in the window that have it; of NaN the last.

    `places`, of the shape of `x`, are integers from 0.
    """
    most = pool("max", x, size, stride=stride, padding=padding, dilation=dilation, ceil=ceil)
    rank = x.rank - 2
    strides, dilations = per_axis("stride", stride, rank), per_axis("dilation", dilation, rank)
    rows = zip(x.shape[2:], most.shape[2:], size, strides, dilations, ends_of(padding, rank), strict=True)
    # Negative widths cut off elements that no window reaches.
    ends = [(before, (count - 1) * s + (k - 1) * d + 1 - extent - before)
            for extent, count, k, s, d, (before, _) in rows]  # fmt: skip

    def seen(array: Array, fill: float) -> Array:
        return windows(pad(array, [(0, 0), (0, 0), *ends], fill), size, strides, dilations)

    elements, outside = seen(x, neutral_of("max", x)), x.size
    axes = range(x.rank, x.rank + rank)
    at = seen(places, outside)
    first = reduce("min", where(elements == reshape(most, (*most.shape, *[1] * rank)), at, outside), axes)
    if not is_float(x.dtype):
        return most, first
    last = reduce("max", where(map("uno", elements, elements), at, -1), axes)
    return most, where(last >= 0, last, first)


def by_columns(index: Array, shape: Sequence[int]) -> Array:
    """Flat indices of images [N, C, *spatial], as if the spatial axes were stored in the reverse order."""
    total, stride, rest = constant(0, index.dtype, index.shape), 1, index
    places: list[Array] = []
    for extent in reversed(shape[2:]):
        places.append(rest % extent)
        rest = rest // extent
    for extent, place in zip(shape[2:], reversed(places), strict=True):
        total = total + place * stride
        stride *= extent
    return rest * stride + total


MOST_COMPARISONS = 1 << 26
"""Most comparisons of an index with a place in `max_unpool`: each index is compared with all places of its channel."""


def max_unpool(x: Array, indices: Array, shape: Sequence[int]) -> Array:
    """An array of zeros with the elements of each channel at flat indices; for equal indices the last element counts.

    Shapes: `x` and `indices` [N, C, *places], the result `shape` [N, C, *spatial]. Windows that overlap give one index
    several times. The notation has no indirection: each place looks for its element.
    """
    plane = prod(shape[2:])
    if x.size * plane > MOST_COMPARISONS:
        raise UsageError(
            f"each of its {x.size} indices would be compared with the {plane} places of a channel; "
            f"{MOST_COMPARISONS} comparisons are made"
        )
    elements = reshape(x, (*shape[:2], 1, -1))
    places = reshape(iota((prod(shape),), "i64"), (*shape[:2], -1, 1))
    own = iota((elements.shape[-1],), "i64")
    chosen = reshape(indices, elements.shape) == places
    last = reduce("max", where(chosen, own, -1), -1, keepdims=True)
    found = reduce("max", where(own == last, elements, neutral_of("max", x)), -1, keepdims=True)
    return reshape(where(last < 0, 0, found), shape)


@rounded_once
def lp_pool(
    x: Array,
    size: Sequence[int],
    order: float,
    *,
    stride: int | Sequence[int] | None = None,
    padding: Widths = 0,
    dilation: int | Sequence[int] = 1,
    ceil: bool = False,
) -> Array:
    """The norm of this order of every window; shapes and modes as for `pool`."""
    powers = x * x if order == 2 else power(abs(x), order)
    sums = pool("+", powers, size, stride=stride, padding=padding, dilation=dilation, ceil=ceil)
    return sqrt(sums) if order == 2 else power(sums, 1 / order)


@rounded_once
def avg_pool(
    x: Array,
    size: Sequence[int],
    *,
    stride: int | Sequence[int] | None = None,
    padding: Widths = 0,
    dilation: int | Sequence[int] = 1,
    ceil: bool = False,
    count_padding: bool = True,
    divisor: float | None = None,
) -> Array:
    """The mean of every window, with the zeros of the padding or without them; shapes and modes as for `pool`.

    With a `divisor`, the sum of every window divided by it.

    >>> from pdojo import build
    >>> build.avg_pool(build.input("x", "f32", (2, 4, 8, 8)), (2, 2))
    <Array f32 [2, 4, 4, 4]>
    """
    axes = _axes(x, size, stride, padding, dilation, ceil=ceil)
    sums = pool("+", x, size, stride=stride, padding=padding, dilation=dilation, ceil=ceil)
    if divisor is not None:
        return sums / divisor
    constant_count, counts = 1, list[Array]()
    for number, axis in enumerate(axes):
        first = 0 if count_padding else axis.before
        last = axis.before + axis.extent + (axis.after if count_padding else 0)
        common = _common_length(axis, first, last)
        if common is not None:
            constant_count *= common
            continue
        length = _lengths(axis, first, last, sums.dtype)
        counts.append(reshape(length, (-1, *[1] * (len(axes) - 1 - number))))
    for count in counts:
        sums = sums / count
    return sums if constant_count == 1 and counts else sums / constant_count


def _common_length(axis: _Axis, first: int, last: int) -> int | None:
    """The number of elements from `first` to `last` in every window; None if it differs, or may differ."""
    final = (axis.places - 1) * axis.stride
    if first <= 0 and final + axis.reach <= last:
        return axis.size
    if axis.places > MOST_COUNTED:
        return None
    lengths = {len(range(*_within(start, axis, first, last))) for start in range(0, final + 1, axis.stride)}
    return lengths.pop() if len(lengths) == 1 else None


def _within(start: int, axis: _Axis, first: int, last: int) -> tuple[int, int, int]:
    """The elements of a window from `first` to `last`, as the arguments of a range."""
    skipped = max(0, -(-(first - start) // axis.dilation))
    return start + skipped * axis.dilation, min(start + axis.reach, last), axis.dilation


def _lengths(axis: _Axis, first: int, last: int, dtype: str) -> Array:
    """The number of elements of each window from `first` to `last`."""
    if axis.dilation == 1:
        begins = iota((axis.places,), dtype, step=axis.stride)
        ends = iota((axis.places,), dtype, start=axis.size, step=axis.stride)
        return minimum(ends, last) - (maximum(begins, first) if first else begins)
    end = axis.before + axis.extent + axis.after + axis.beyond
    inside = pad(constant(1, dtype, (last - first,)), ((first, end - last),))
    return reduce("+", windows(inside, (axis.size,), axis.stride, axis.dilation)[: axis.places], 1)


def _axes(
    x: Array,
    size: Sequence[int],
    stride: int | Sequence[int] | None,
    padding: Widths,
    dilation: int | Sequence[int],
    *,
    ceil: bool,
) -> list[_Axis]:
    rank = x.rank - 2
    if rank < 1 or len(size) != rank:
        raise UsageError(f"windows {shown(size)} do not fit images [N, C, ...] of shape {shown(x.shape)}")
    sizes, dilations = per_axis("size", size, rank), per_axis("dilation", dilation, rank)
    strides = per_axis("stride", sizes if stride is None else stride, rank)
    found: list[_Axis] = []
    rows = zip(x.shape[2:], sizes, strides, dilations, ends_of(padding, rank), strict=True)
    for extent, k, s, d, (before, after) in rows:
        reach = d * (k - 1) + 1
        rest = extent + before + after - reach
        places = (-(-rest // s) if ceil else rest // s) + 1
        if places < 1:
            raise UsageError(f"a window of {reach} elements does not fit an axis of {extent + before + after}")
        if (places - 1) * s >= extent + before:
            places -= 1
        found.append(_Axis(extent, k, s, d, reach, before, after, places))
    return found

"""Reductions of windows of images [N, C, *spatial] or [C, *spatial], and their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from pdojo import build
from pdojo.build import Array
from pdojo.build.array import wide
from pdojo.build.pools import places_of_max
from pdojo.build.reductions import MOST_I32, neutral_of
from pdojo.torch.operators.convolutions import per_axis
from pdojo.torch.operators.registry import Call, aten

Numbers = int | Sequence[int]


def _numbers(value: Numbers, rank: int) -> list[int]:
    return per_axis((value,) if isinstance(value, int) else value, rank)


def _batched(x: Array, rank: int) -> Array:
    """The images as a batch."""
    return x if x.rank == rank + 2 else build.expand_dims(x, 0)


@aten("max_pool2d_with_indices.default", "max_pool3d_with_indices.default")
def max_pool(
    call: Call,
    x: Array,
    kernel_size: Numbers,
    stride: Numbers = (),
    padding: Numbers = 0,
    dilation: Numbers = 1,
    ceil_mode: bool = False,
) -> list[Array | None]:
    """The greatest element of every window, and its index in the image."""
    rank = _rank(call)
    sizes, ends, dilations = (_numbers(each, rank) for each in (kernel_size, padding, dilation))
    strides = _numbers(stride, rank) or sizes
    images = _batched(x, rank)
    found = build.pool("max", images, sizes, stride=strides, padding=ends, dilation=dilations, ceil=ceil_mode)
    if 1 not in call.read:
        return [build.reshape(found, call.shape), None]
    plane = prod(images.shape[2:])
    # Vectors of f32 have as many lanes as those of i32.
    kind = "i32" if x.size <= MOST_I32 else "i64"
    places = build.broadcast_to(build.reshape(build.iota((plane,), kind), images.shape[2:]), images.shape)
    index = places_of_max(images, places, found, sizes, stride=strides, padding=ends, dilation=dilations)
    return [build.reshape(found, call.shape), build.reshape(index, call.shape)]


@aten("max_pool2d_with_indices_backward.default", "max_pool3d_with_indices_backward.default")
def max_pool_backward(
    call: Call,
    gradient: Array,
    x: Array,
    kernel_size: Numbers,
    stride: Numbers,
    padding: Numbers,
    dilation: Numbers,
    ceil_mode: bool,
    indices: Array,
) -> Array:
    """The gradient of the greatest element of windows: each element sums those of the windows whose index it has."""
    rank = _rank(call)
    sizes, ends, dilations = (_numbers(each, rank) for each in (kernel_size, padding, dilation))
    strides = _numbers(stride, rank) or sizes
    lead, extents = x.shape[:-rank], x.shape[-rank:]
    rows = zip(extents, gradient.shape[-rank:], sizes, strides, ends, dilations, strict=True)
    tables: list[list[list[int]]] = []
    for extent, places, k, s, p, d in rows:
        parts = [range(place * s - p, place * s - p + k * d, d) for place in range(places)]
        tables.append(holding(parts, extent))
    # x[..., h, w, t, u]: the t-th window over row h, and the u-th over column w.
    most = [max(1, *(len(row) for row in table)) for table in tables]
    shape = (*lead, *extents, *most)
    at: list[Array] = [build.iota(shape, "i64", d) for d in range(len(lead))]
    flat = build.reshape(build.iota((prod(extents),), "i64"), (*extents, *[1] * rank))
    counted = None
    for axis, table in enumerate(tables):
        own = [len(table) if d == axis else 1 for d in range(2 * rank)]
        counts = build.reshape(build.table([len(row) for row in table]), own)
        own[axis + rank] = most[axis]
        at.append(build.reshape(build.table([[*row, *[0] * (most[axis] - len(row))] for row in table]), own))
        inside = build.iota((*[1] * rank, *most), "i64", axis + rank) < counts
        counted = inside if counted is None else counted & inside
    chosen = build.gather(indices, at) == flat
    chosen = chosen if counted is None else chosen & counted
    return build.sum(build.where(chosen, build.gather(wide(gradient), at), 0), range(-rank, 0))


@aten("avg_pool1d.default", "avg_pool2d.default", "avg_pool3d.default")
def avg_pool(
    call: Call,
    x: Array,
    kernel_size: Numbers,
    stride: Numbers = (),
    padding: Numbers = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Array:
    """The mean of every window, or its sum divided by a given number."""
    rank = _rank(call)
    sizes = _numbers(kernel_size, rank)
    strides, ends = _numbers(stride, rank) or sizes, _numbers(padding, rank)
    images = _batched(x, rank)
    if divisor_override is not None:
        sums = build.pool("+", wide(images), sizes, stride=strides, padding=ends, ceil=ceil_mode)
        return build.reshape(sums / divisor_override, call.shape)
    found = build.avg_pool(images, sizes, stride=strides, padding=ends, ceil=ceil_mode, count_padding=count_include_pad)
    return build.reshape(found, call.shape)


def _rank(call: Call) -> int:
    """The number of spatial axes, from the operator's name."""
    return next(rank for rank in (1, 2, 3) if f"{rank}d" in call.operator)


@aten("avg_pool2d_backward.default", "avg_pool3d_backward.default")
def avg_pool_backward(
    call: Call,
    gradient: Array,
    x: Array,
    kernel_size: Numbers,
    stride: Numbers,
    padding: Numbers,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Array:
    """The gradient of the mean of windows: that of each window, divided by its elements, goes to all of them."""
    rank = _rank(call)
    sizes = _numbers(kernel_size, rank)
    strides, ends = _numbers(stride, rank) or sizes, _numbers(padding, rank)
    found = wide(gradient)
    lead = gradient.rank - rank
    for axis in range(rank):
        extent, places = x.shape[lead + axis], gradient.shape[lead + axis]
        k, s, p = sizes[axis], strides[axis], ends[axis]
        windows = [range(place * s - p, min(place * s - p + k, extent + p)) for place in range(places)]
        inside = [range(max(0, each.start), min(extent, each.stop)) for each in windows]
        if divisor_override is None:
            found = found / along(
                lengths(windows if count_include_pad else inside), gradient.rank, lead + axis, found.dtype
            )
        found = gathered("+", found, lead + axis, holding(inside, extent))
    return found if divisor_override is None else found / divisor_override


def holding(windows: Sequence[range], extent: int) -> list[list[int]]:
    """The numbers of the windows that hold each element of an axis, ascending."""
    found: list[list[int]] = [[] for _ in range(extent)]
    for number, window in enumerate(windows):
        for element in window:
            if 0 <= element < extent:
                found[element].append(number)
    return found


def lengths(parts: Sequence[range]) -> list[int]:
    """The numbers of elements of parts."""
    return [len(part) for part in parts]


def along(numbers: Sequence[int], rank: int, axis: int, dtype: str) -> Array:
    """Numbers along an axis of an array of `rank` dimensions."""
    return build.reshape(build.cast(build.table(numbers), dtype), [-1 if d == axis else 1 for d in range(rank)])


def gathered(accumulation: str, x: Array, axis: int, sources: Sequence[Sequence[int]]) -> Array:
    """The accumulation of the elements at the places `sources[i]` of an axis, for each element i of the result."""
    most = max(len(row) for row in sources)
    # Shorter rows repeat a place; the copies do not count.
    table = [[*row, *[row[-1] if row else 0] * (most - len(row))] for row in sources]
    shape = (*x.shape[:axis], len(sources), *x.shape[axis + 1 :], most)
    column = build.reshape(build.table(table), [len(sources) if d == axis else 1 for d in range(x.rank)] + [most])
    near = build.gather(x, [column if d == axis else build.iota(shape, "i64", d) for d in range(x.rank)])
    if any(len(row) < most for row in sources):
        counts = along([len(row) for row in sources], x.rank + 1, axis, "i64")
        near = build.where(build.iota((most,), "i64") < counts, near, neutral_of(accumulation, x))
    return build.reduce(accumulation, near, -1)


def _adaptive(extent: int, places: int) -> list[range]:
    """The elements of each window of an adaptive pool."""
    return [range(place * extent // places, -(-(place + 1) * extent // places)) for place in range(places)]


def _adapted(call: Call, accumulation: str, x: Array) -> tuple[Array, list[list[range]]]:
    """The accumulation of the windows of an adaptive pool, and the windows of each spatial axis."""
    rank = _rank(call)
    extents, places = x.shape[-rank:], call.shape[-rank:]
    parts = [_adaptive(extent, count) for extent, count in zip(extents, places, strict=True)]
    if all(not extent % count for extent, count in zip(extents, places, strict=True)):
        sizes = [extent // count for extent, count in zip(extents, places, strict=True)]
        return build.reshape(build.pool(accumulation, _batched(x, rank), sizes), call.shape), parts
    found = x
    for axis, windows in zip(range(x.rank - rank, x.rank), parts, strict=True):
        found = gathered(accumulation, found, axis, windows)
    return found, parts


@aten("_adaptive_avg_pool2d.default", "_adaptive_avg_pool3d.default")
def adaptive_avg_pool(call: Call, x: Array, output_size: Sequence[int]) -> Array:
    """The means of windows that divide each axis into so many parts, which may overlap by an element."""
    found, parts = _adapted(call, "+", wide(x))
    for axis, windows in enumerate(parts, x.rank - len(parts)):
        found = found / along(lengths(windows), x.rank, axis, found.dtype)
    return found


@aten("adaptive_max_pool2d.default", "adaptive_max_pool3d.default")
def adaptive_max_pool(call: Call, x: Array, output_size: Sequence[int]) -> list[Array | None]:
    """The greatest elements of the windows of an adaptive pool."""
    if 1 in call.read:
        call.refuse("the indices of the greatest elements are read")
    return [_adapted(call, "max", x)[0], None]


@aten("_adaptive_avg_pool2d_backward.default", "_adaptive_avg_pool3d_backward.default")
def adaptive_avg_pool_backward(call: Call, gradient: Array, x: Array) -> Array:
    """The gradient of the means of the windows of an adaptive pool."""
    rank = _rank(call)
    found = wide(gradient)
    for axis in range(x.rank - rank, x.rank):
        windows = _adaptive(x.shape[axis], gradient.shape[axis])
        found = found / along(lengths(windows), x.rank, axis, found.dtype)
        found = gathered("+", found, axis, holding(windows, x.shape[axis]))
    return found

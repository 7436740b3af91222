"""Views in other shapes: they take no memory, and no statement copies them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import prod
from typing import Literal

from pdojo.build.array import Array, broadcast_to
from pdojo.build.extents import axes_of, check_shape, shown
from pdojo.build.sizes import Open, greatest, is_open
from pdojo.dialect.affine import Expr, const, floordiv, modulo, var
from pdojo.errors import UsageError


def transpose(x: Array, axes: Sequence[int] | None = None) -> Array:
    """The array with its axes in the order `axes`; None reverses them.

    >>> from pdojo import build
    >>> build.transpose(build.input("x", "f32", (2, 4, 8)), (0, 2, 1))
    <Array f32 [2, 8, 4]>
    """
    order = tuple(range(x.rank))[::-1] if axes is None else tuple(axes)
    if len(order) != x.rank or len(axes_of(order, x.rank)) != x.rank:
        raise UsageError(f"an array of {x.rank} dimensions has no order of axes {order}")
    places = {axis % x.rank: position for position, axis in enumerate(order)}
    return x.view([x.shape[axis] for axis in order], [var(places[d]) for d in range(x.rank)])


def reshape(x: Array, shape: Sequence[int]) -> Array:
    """The elements in row-major order in another shape; one extent may be -1, which the others determine.

    A statement that reads or writes it runs over the finer of both shapes, so that its indices stay affine.

    >>> from pdojo import build
    >>> build.reshape(build.input("x", "f32", (4, 6)), (2, -1, 6))
    <Array f32 [2, 2, 6]>
    """
    given = tuple(shape)
    open_axes = [d for d, extent in enumerate(given) if extent == -1]
    if open_axes:
        rest = prod(extent for extent in given if extent != -1)
        if len(open_axes) > 1 or not rest or x.size % rest:
            raise UsageError(f"shape {shown(x.shape)} cannot become {shown(given)}")
        given = tuple(x.size // rest if extent == -1 else extent for extent in given)
    extents = check_shape(given)
    if prod(extents) != x.size:
        raise UsageError(f"shape {shown(x.shape)} of {x.size} elements cannot become {shown(extents)}")
    if not x.size:
        return x.view(extents, [const(0)] * x.rank)
    index: list[Expr] = []
    for first, old, new in _groups(x.shape, extents):
        box, place = greatest(extents), const(0)
        for d, extent in enumerate(new, first):
            place = place * _inner(new, d - first) + (var(d) if extent != 1 else const(0))
        for d, extent in enumerate(old):
            stride = prod(_inner(old, k) for k in range(d + 1, len(old)))
            digit = floordiv(place, stride, box)
            index.append(digit if isinstance(extent, Open) else modulo(digit, extent, box))
    return x.view(extents, index)


def _groups(old: Sequence[int], new: Sequence[int]) -> Iterator[tuple[int, Sequence[int], Sequence[int]]]:
    """Neighbouring axes of both shapes with equally many elements; before each the number of its first new axis.

    Without sizes all axes are one group.
    """
    if not is_open((*old, *new)):
        yield 0, old, new
        return
    starts = {prod(new[:d]): d for d in range(len(new), -1, -1)}
    found = {starts[count]: d for d in range(len(old), -1, -1) if (count := prod(old[:d])) in starts}
    ends = sorted(found.items())
    ends[-1] = (len(new), len(old))
    for (start, own), (end, own_end) in pairwise(ends):
        yield start, old[own:own_end], new[start:end]


def _inner(extents: Sequence[int], d: int) -> int:
    """The extent of an axis, by which those before it step over its elements. Raises OpenExtent if it is not constant.

    The first axis is not stepped over.
    """
    if any(extent != 1 for extent in extents[:d]):
        return int(extents[d])
    return 1


def expand_dims(x: Array, axis: int | Sequence[int]) -> Array:
    """The array with new axes of extent 1, at the places `axis` of the result.

    >>> from pdojo import build
    >>> build.expand_dims(build.input("x", "f32", (4, 8)), (0, -1))
    <Array f32 [1, 4, 8, 1]>
    """
    count = 1 if isinstance(axis, int) else len(tuple(axis))
    new = axes_of(axis, x.rank + count)
    extents = iter(x.shape)
    return reshape(x, [1 if d in new else next(extents) for d in range(x.rank + count)])


def squeeze(x: Array, axis: int | Sequence[int] | None = None) -> Array:
    """The array without the axes `axis`, of extent 1; None drops all of these.

    >>> from pdojo import build
    >>> build.squeeze(build.input("x", "f32", (1, 4, 1, 8)), 0)
    <Array f32 [4, 1, 8]>
    """
    gone = [d for d, extent in enumerate(x.shape) if extent == 1] if axis is None else axes_of(axis, x.rank)
    for d in gone:
        if x.shape[d] != 1:
            raise UsageError(f"axis {d} of shape {shown(x.shape)} cannot be dropped: it has {x.shape[d]} elements")
    return reshape(x, [extent for d, extent in enumerate(x.shape) if d not in gone])


def flip(x: Array, axis: int | Sequence[int] | None = None) -> Array:
    """The elements in reverse order along `axis`; None is all axes.

    >>> from pdojo import build
    >>> build.flip(build.input("x", "f32", (4, 8)), -1)
    <Array f32 [4, 8]>
    """
    axes = axes_of(axis, x.rank)
    return x[tuple(slice(None, None, -1 if d in axes else None) for d in range(x.rank))]


def repeat(x: Array, count: int, axis: int) -> Array:
    """Every element along `axis` `count` times, one after the other.

    >>> from pdojo import build
    >>> build.repeat(build.input("x", "f32", (4, 8)), 2, axis=0)
    <Array f32 [8, 8]>
    """
    (axis,) = axes_of(axis, x.rank)
    wide = expand_dims(x, axis + 1)
    repeated = broadcast_to(wide, (*x.shape[: axis + 1], *check_shape((count,)), *x.shape[axis + 1 :]))
    return reshape(repeated, (*x.shape[:axis], x.shape[axis] * count, *x.shape[axis + 1 :]))


def tile(x: Array, counts: Sequence[int]) -> Array:
    """The array `counts[d]` times along each axis d.

    >>> from pdojo import build
    >>> build.tile(build.input("x", "f32", (4, 8)), (3, 1))
    <Array f32 [12, 8]>
    """
    times = check_shape(counts)
    if len(times) != x.rank:
        raise UsageError(f"an array of {x.rank} dimensions has a count for each, not {len(times)}")
    pairs = [extent for pair in zip(times, x.shape, strict=True) for extent in pair]
    split = reshape(x, [extent for size in x.shape for extent in (1, size)])
    return reshape(broadcast_to(split, pairs), [count * size for count, size in zip(times, x.shape, strict=True)])


def strided(x: Array, shape: Sequence[int], strides: Sequence[int], first: int = 0) -> Array:
    """The view of `shape` whose element i is element `first + i * strides` of the elements in row-major order."""
    steps = list(zip(shape, strides, strict=True))
    spans = [(extent - 1) * step for extent, step in steps]
    low, high = (first + sum(limit(0, span) for span in spans) for limit in (min, max))
    if prod(shape) and not 0 <= low <= high < x.size:
        raise UsageError(f"elements {low} to {high} are not those of an array of {x.size} elements")
    place = const(first)
    for d, (extent, step) in enumerate(steps):
        place = place + var(d) * step if extent > 1 else place
    return reshape(x, (x.size,)).view(tuple(shape), [place])


def unfold(x: Array, axis: int, size: int, step: int) -> Array:
    """The windows of an axis, `step` elements apart, with the elements of each window along a new last axis."""
    (axis,) = axes_of(axis, x.rank)
    order = [*(d for d in range(x.rank) if d != axis), axis]
    found = windows(transpose(x, order), (size,), step)
    return transpose(found, [*(order.index(d) for d in range(x.rank)), x.rank])


def depth_to_space(x: Array, size: int, *, depth_first: bool = True) -> Array:
    """Channels moved into blocks of `size` x `size` elements: [N, C, H, W] as [N, C / size^2, H size, W size].

    Channels are numbered (row of the block, column, depth) if `depth_first`, which is DCR in ONNX, and else (depth,
    row, column), as PyTorch's `pixel_shuffle` has them.
    """
    n, channels, height, width = x.shape
    if channels % (size * size):
        raise UsageError(f"{channels} channels do not fill blocks of {size} x {size} elements")
    depth = channels // (size * size)
    if depth_first:
        moved = transpose(reshape(x, (n, size, size, depth, height, width)), (0, 3, 4, 1, 5, 2))
    else:
        moved = transpose(reshape(x, (n, depth, size, size, height, width)), (0, 1, 4, 2, 5, 3))
    return reshape(moved, (n, depth, height * size, width * size))


def space_to_depth(x: Array, size: int, *, depth_first: bool = True) -> Array:
    """The inverse of `depth_to_space`: [N, C, H, W] as [N, C size^2, H / size, W / size]."""
    n, channels, height, width = x.shape
    if height % size or width % size:
        raise UsageError(f"an image of {height} x {width} elements has no blocks of {size} x {size}")
    blocks = reshape(x, (n, channels, height // size, size, width // size, size))
    moved = transpose(blocks, (0, 3, 5, 1, 2, 4) if depth_first else (0, 1, 3, 5, 2, 4))
    return reshape(moved, (n, channels * size * size, height // size, width // size))


def windows(x: Array, size: Sequence[int], stride: int | Sequence[int] = 1, dilation: int | Sequence[int] = 1) -> Array:
    """Windows over the last axes: a view of shape `[..., *places, *size]`, as `sliding_window_view` with strides.

    Element k of the window at place i is the element `i * stride + k * dilation` of the axis.

    >>> from pdojo import build
    >>> build.windows(build.input("x", "f32", (2, 3, 9, 9)), (3, 3), stride=2)
    <Array f32 [2, 3, 4, 4, 3, 3]>
    """
    sizes = check_shape(size)
    rank = len(sizes)
    if rank > x.rank:
        raise UsageError(f"windows of {rank} dimensions do not fit an array of {x.rank}")
    strides, dilations = per_axis("stride", stride, rank), per_axis("dilation", dilation, rank)
    lead = x.rank - rank
    places: list[int] = []
    for extent, k, s, d in zip(x.shape[lead:], sizes, strides, dilations, strict=True):
        reach = d * (k - 1) + 1
        if not 0 < reach <= extent:
            raise UsageError(f"a window of {reach} elements does not fit an axis of {extent}")
        places.append((extent - reach) // s + 1)
    index = [var(d) for d in range(lead)]
    index += [var(lead + d) * strides[d] + var(lead + rank + d) * dilations[d] for d in range(rank)]
    return x.view((*x.shape[:lead], *places, *sizes), index)


def per_axis(name: str, value: int | Sequence[int], rank: int, *, least: Literal[0, 1] = 1) -> tuple[int, ...]:
    """A number of at least `least` for each of `rank` axes. Raises UsageError."""
    values = (value,) * rank if isinstance(value, int) else tuple(value)
    if len(values) != rank or min((*values, least)) < least:
        kind = "positive number" if least else "number from 0"
        raise UsageError(f"{name} is a {kind}, or one for each of {rank} axes, not {value}")
    return values

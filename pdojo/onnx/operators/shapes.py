"""Other shapes of the same elements, and arrays of parts of others."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Literal

from pdojo import build
from pdojo.build import Array, indexing, shapes
from pdojo.build.array import scalar
from pdojo.build.extents import broadcast_shape
from pdojo.build.sizes import Open, OpenExtent, is_open, lesser
from pdojo.model.extents import extents_of
from pdojo.onnx.operators.arguments import axis_of, integers, integers_of, number_of, scalar_of
from pdojo.onnx.operators.registry import Known, NeedsParts, Node, Value, operator

_PADDINGS: tuple[Literal["constant", "edge", "reflect", "wrap"], ...] = ("constant", "edge", "reflect", "wrap")


@operator("Reshape")
def reshape(node: Node) -> Array:
    """The elements in another shape; 0 keeps an extent, -1 is determined by the others."""
    x, shape = node.array(0), integers_of(node, "shape", 1)
    if shape is None:
        node.refuse("it has no shape")
    if not node.attribute("allowzero", 0):
        if any(extent == 0 and d >= x.rank for d, extent in enumerate(shape)):
            node.refuse(f"shape {shape} keeps an extent that {list(x.shape)} lacks")
        shape = [x.shape[d] if extent == 0 else extent for d, extent in enumerate(shape)]
    for extent in shape:
        if isinstance(extent, Open) and extent < 1:
            raise OpenExtent(f"the extent {extent} may be one that stands for others", narrower=True)
    if -1 in shape and not x.size:
        rest = prod(extent for extent in shape if extent != -1)
        shape = [0 if extent == -1 and rest else max(extent, 0) for extent in shape]
    return build.reshape(x, shape)


@operator("Flatten")
def flatten(node: Node) -> Array:
    """The elements as a matrix; the axes from `axis` on are its columns."""
    x = node.array(0)
    axis = node.attribute("axis", 1)
    axis = axis + x.rank if axis < 0 else axis
    return build.reshape(x, (prod(x.shape[:axis]), prod(x.shape[axis:])))


@operator("Squeeze")
def squeeze(node: Node) -> Array:
    """The array without axes of one element."""
    x, axes = node.array(0), integers_of(node, "axes", 1)
    if axes is None:
        for extent in x.shape:
            if isinstance(extent, Open) and extent <= 1:
                raise OpenExtent(f"the axis of {extent} elements may have one, and then be dropped", narrower=True)
    return build.squeeze(x, axes)


@operator("Unsqueeze")
def unsqueeze(node: Node) -> Array:
    """The array with new axes of one element."""
    axes = integers_of(node, "axes", 1)
    if axes is None:
        node.refuse("it has no axes")
    return build.expand_dims(node.array(0), axes)


@operator("Transpose")
def transpose(node: Node) -> Array:
    """The array with its axes in another order."""
    return build.transpose(node.array(0), node.attribute("perm"))


@operator("Expand")
def expand(node: Node) -> Array:
    """The array, repeated to the shape that it has together with another one."""
    x = node.array(0)
    return build.broadcast_to(x, broadcast_shape(x.shape, integers(node, 1)))


@operator("Tile")
def tile_along(node: Node) -> Array:
    """The array several times along one axis."""
    x = node.array(0)
    count, axis = int(number_of(node, 1)), int(number_of(node, 2))
    return build.tile(x, [count if d == axis else 1 for d in range(x.rank)])


@operator("Tile", since=6)
def tile(node: Node) -> Array:
    """The array several times along each axis."""
    return build.tile(node.array(0), integers(node, 1))


@operator("Concat")
def concat(node: Node) -> Array:
    """The arrays one after the other along an axis."""
    arrays = [node.array(k) for k in range(len(node.inputs))]
    axis = axis_of(node, node.attribute("axis", 1), arrays[0].rank)
    return build.concatenate(arrays, axis)


@operator("Split")
def split(node: Node) -> Sequence[Array]:
    """Parts along an axis; the last of equal ones may be smaller."""
    x = node.array(0)
    axis = axis_of(node, node.attribute("axis", 0), x.rank)
    sizes = integers_of(node, "split", 1)
    if sizes is None:
        count = node.attribute("num_outputs") or len(node.outputs)
        size = -(-x.shape[axis] // count)
        sizes = [-lesser(0, -lesser(size, x.shape[axis] - k * size)) for k in range(count)]
    return build.split(x, sizes, axis)


@operator("Slice")
def slice_of_attributes(node: Node) -> Array:
    """The part between starts and ends that are attributes."""
    starts, ends = list(node.attribute("starts")), list(node.attribute("ends"))
    return _sliced(node, starts, ends, node.attribute("axes"), None)


@operator("Slice", since=10)
def slice_of_operands(node: Node) -> Array:
    """The part between starts and ends, with steps."""
    axes, steps = (integers(node, k) if node.given(k) else None for k in (3, 4))
    return _sliced(node, integers(node, 1), integers(node, 2), axes, steps)


def _sliced(
    node: Node, starts: Sequence[int], ends: Sequence[int], axes: Sequence[int] | None, steps: Sequence[int] | None
) -> Array:
    x = node.array(0)
    items = [slice(None)] * x.rank
    along = range(len(starts)) if axes is None else axes
    for start, end, axis, step in zip(starts, ends, along, steps or [1] * len(starts), strict=True):
        d = axis_of(node, axis, x.rank)
        items[d] = _within(start, end, step, x.shape[d])
    return x[tuple(items)]


def _within(start: int, end: int, step: int, extent: int) -> slice:
    """The slice of an axis of `extent` elements; backwards, a start before the axis is its first element."""
    if is_open((start, end, step, extent)):
        before = step < 0 and start < 0 and start + extent < 0
        return slice(0 if before else start, end, step)
    least, most = (0, extent) if step > 0 else (-1, extent - 1)
    first, last = (value + extent if value < 0 else value for value in (start, end))
    first, last = max(0, min(first, most)), max(least, min(last, most))
    places = range(first, last, step)
    if not extent or not places:
        return slice(0, 0)
    return slice(first, None if last < 0 else last, step)


@operator("Pad")
def pad_of_attributes(node: Node) -> Array:
    """The array with elements around it; widths and value are attributes."""
    widths = node.attribute("pads", node.attribute("paddings"))
    return _padded(node, list(widths), None, node.attribute("value", 0.0))


@operator("Pad", since=11)
def pad(node: Node) -> Array:
    """The array with elements around it."""
    widths, axes = integers(node, 1), integers(node, 3) if node.given(3) else None
    if not node.given(2) or isinstance(value := node.value(2), Array):
        return _padded(node, widths, axes, scalar_of(node, 2) if node.given(2) else 0)
    return _padded(node, widths, axes, value.reshape(-1)[0].item() if value.size else 0)


def _padded(node: Node, widths: Sequence[int], axes: Sequence[int] | None, value: float | Array) -> Array:
    x = node.array(0)
    pairs = [(0, 0)] * x.rank
    along = range(x.rank) if axes is None else axes
    count = len(along)
    if len(widths) != 2 * count:
        node.refuse(f"it has {len(widths)} widths for {count} axes, and needs two for each")
    for axis, before, after in zip(along, widths[:count], widths[count:], strict=True):
        pairs[axis_of(node, axis, x.rank)] = (before, after)
    mode = node.choice("mode", _PADDINGS)
    return build.pad(x, pairs, value, mode)


@operator("CenterCropPad")
def center_crop_pad(node: Node) -> Array:
    """The middle of the array, or the array in the middle of zeros, in given extents."""
    x = node.array(0)
    axes = node.attribute("axes") or range(x.rank)
    pairs = [(0, 0)] * x.rank
    for axis, extent in zip(axes, integers(node, 1), strict=True):
        d = axis_of(node, axis, x.rank)
        # The odd element is at the end, whether it is cut off or added.
        more = extent - x.shape[d]
        half = abs(more) // 2 * (1 if more > 0 else -1)
        pairs[d] = (half, more - half)
    return build.pad(x, pairs)


@operator("DepthToSpace")
def depth_to_space(node: Node) -> Array:
    """Channels moved into blocks of the image."""
    is_first = node.choice("mode", ("DCR", "CRD")) == "DCR"
    return shapes.depth_to_space(node.array(0), node.attribute("blocksize"), depth_first=is_first)


@operator("SpaceToDepth")
def space_to_depth(node: Node) -> Array:
    """Blocks of the image moved into channels."""
    is_first = node.choice("mode", ("DCR", "CRD")) == "DCR"
    return shapes.space_to_depth(node.array(0), node.attribute("blocksize"), depth_first=is_first)


@operator("Shape")
def shape(node: Node) -> Known:
    """The extents of a part of the axes."""
    whole = _shape(node.value(0))
    start, end = node.attribute("start", 0), node.attribute("end", len(whole))
    return extents_of(whole[slice(start, end)])


@operator("Size")
def size(node: Node) -> Known:
    """The number of elements."""
    return extents_of(prod(_shape(node.value(0))))


def _shape(value: Value) -> tuple[int, ...]:
    return tuple(value.shape)


@operator("ReverseSequence")
def reverse_sequence(node: Node) -> Array:
    """The sequences of a batch, each with its first elements in reverse order."""
    x, lengths = node.array(0), node.value(1)
    time, batch = int(node.attribute("time_axis", 0)), int(node.attribute("batch_axis", 1))
    if isinstance(lengths, Array) and lengths.dtype == "i32":
        # The places of NeedsParts; lengths are i64.
        return indexing.take_at(x, [lengths if d == time else build.iota(lengths.shape, "i64", d) for d in (0, 1)])
    if x.rank < 2 or {time, batch} != {0, 1} or tuple(lengths.shape) != (x.shape[batch],):
        shape = list(lengths.shape)
        node.contradicts(f"lengths {shape}, and axes {time} and {batch}, do not fit an array {list(x.shape)}")
    if isinstance(lengths, Array):
        # Indices are in memory before the kernel that reads at them.
        raise NeedsParts(1, lambda given: [reversed_places(given, x.shape[:2], time)])
    return indexing.reverse_sequences(x, integers(node, 1), time, batch)


def reversed_places(lengths: Array, shape: Sequence[int], time: int) -> Array:
    """The places in time from which the sequences of a batch take their elements."""
    # The place of one more element than there are is out of range, and an i32.
    least = build.minimum(build.cast(lengths, "i64"), scalar(shape[time] + 1, "i64"))
    count, place = build.expand_dims(least, time), build.iota(shape, "i64", time)
    return build.cast(build.where(place < count, count - 1 - place, place), "i32")

"""Images at places that are elements of other arrays.

The notation has no indirection: a place has a weight for every element of an axis, and all but those of its
neighbours are 0. The work grows with the size of the image.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from pdojo import build
from pdojo.build import Array
from pdojo.build.graph import Computed
from pdojo.build.reductions import reduce
from pdojo.dialect.affine import var
from pdojo.onnx.operators.arguments import integers, optional, wide_type
from pdojo.onnx.operators.registry import Node, operator
from pdojo.onnx.operators.windows import explicit, per_axis


def _cubic(ratio: Array) -> list[Array]:
    """The factors of four neighbours (Keys 1981, with -0.75)."""
    a, other, far, beyond = -0.75, 1 - ratio, ratio + 1, 2 - ratio

    def near(x: Array) -> Array:
        return (x * (a + 2) - (a + 3)) * x * x + 1

    def distant(x: Array) -> Array:
        return ((x * a - 5 * a) * x + 8 * a) * x - 4 * a

    return [distant(far), near(ratio), near(other), distant(beyond)]


def _neighbours(node: Node, places: Array, mode: str) -> list[tuple[Array, Array | None]]:
    """The indices of neighbours, and their factors; None is 1."""
    if mode == "nearest":
        return [(build.map("roundeven", places), None)]
    base = build.map("floor", places)
    ratio = places - base
    if mode in ("linear", "bilinear"):
        return [(base, 1 - ratio), (base + 1, ratio)]
    if mode in ("cubic", "bicubic"):
        return [(base + (k - 1), factor) for k, factor in enumerate(_cubic(ratio))]
    node.refuse(f"'{mode}' is no mode of interpolation")


def _reflected(index: Array, least: float, most: float) -> Array:
    """The index, reflected at the borders until it is between them."""
    span = most - least
    if not span:
        return build.constant(0, index.dtype, index.shape)
    below = index < least
    beyond = build.where(below, least - index, index - most)
    times = build.map("trunc", beyond / span)
    rest = beyond - times * span
    odd = times - build.map("floor", times * 0.5) * 2 == 1
    found = build.map("trunc", build.where(below ^ odd, rest + least, most - rest))
    return build.where(beyond > 0, found, index)


def _weights(neighbours: Sequence[tuple[Array, Array | None]], extent: int) -> Array:
    """The weights [..., extent] of all elements of an axis at places [...]."""
    first = neighbours[0][0]
    numbers = build.iota((extent,), first.dtype)
    total = None
    for index, factor in neighbours:
        hit = build.expand_dims(index, -1) == numbers
        one = build.constant(1, first.dtype) if factor is None else build.expand_dims(factor, -1)
        part = build.where(hit, one, 0)
        total = part if total is None else total + part
    assert total is not None
    return total


def _sampled(x: Array, weights: Sequence[Array]) -> Array:
    """The sums over images [n, c, *spatial] with weights [n, places, extent] of each axis: [n, c, places].

    An element whose weight is 0 counts as 0, even if it is not finite.
    """
    n, channels, places = x.shape[0], x.shape[1], weights[0].shape[1]
    shape = (n, channels, places, *x.shape[2:])
    image = x.view(shape, [var(0), var(1), *[var(3 + k) for k in range(x.rank - 2)]]).operand
    factor = None
    for k, weight in enumerate(weights):
        part = weight.view(shape, [var(0), var(2), var(3 + k)]).operand
        factor = part if factor is None else Computed("arith.mulf", (factor, part), x.storage)
    assert factor is not None
    zero = build.constant(0, x.dtype).operand
    counts = Computed("arith.cmpf.une", (factor, zero), "i1")
    value = Computed("arith.mulf", (Computed("arith.select", (counts, image, zero), x.storage), factor), x.storage)
    return reduce("+", Array(x.dtype, shape, value), range(3, len(shape)))


@operator("GridSample")
def grid_sample(node: Node) -> Array:
    """The image at the places of a grid, which are between -1 and 1 within it."""
    given, grid = node.array(0), node.array(1)
    x = build.cast(given, wide_type(given.dtype))
    grid = build.cast(grid, x.dtype)
    corners, rank = bool(node.attribute("align_corners", 0)), x.rank - 2
    mode = node.choice("mode", ("linear", "nearest", "cubic", "bilinear", "bicubic"))
    kind = node.choice("padding_mode", ("zeros", "border", "reflection"))
    rows = build.reshape(grid, (grid.shape[0], -1, rank))
    weights: list[Array] = []
    for k, extent in enumerate(x.shape[2:]):
        n = rows[:, :, rank - 1 - k]
        places = (n + 1) * 0.5 * (extent - 1) if corners else ((n + 1) * extent - 1) * 0.5
        least, most = (0.0, extent - 1.0) if corners else (-0.5, extent - 0.5)
        found: list[tuple[Array, Array | None]] = []
        for index, factor in _neighbours(node, places, mode):
            if kind == "border":
                index = build.clip(index, 0, extent - 1)
            elif kind == "reflection":
                index = _reflected(index, least, most)
            found.append((index, factor))
        weights.append(_weights(found, extent))
    sums = _sampled(x, weights)
    return build.cast(build.reshape(sums, (*x.shape[:2], *grid.shape[1:-1])), given.dtype)


@operator("DeformConv")
def deform_conv(node: Node) -> Array:
    """The convolution of elements at places that are moved by offsets."""
    given, w, offset = node.array(0), node.array(1), node.array(2)
    if given.rank != 4:
        node.refuse("only images of two dimensions are convolved at moved places")
    kind = wide_type(given.dtype)
    x, weights, offset = (build.cast(each, kind) for each in (given, w, offset))
    n, channels, height, width = x.shape
    groups, moved_groups = node.attribute("group", 1), node.attribute("offset_group", 1)
    strides, dilations = per_axis(node, "strides", 2), per_axis(node, "dilations", 2)
    ends = explicit(node, 2)
    window, places = w.shape[2:], offset.shape[2:]
    parts = build.reshape(offset, (n * moved_groups, *window, 2, *places))
    axes: list[Array] = []
    for k, extent in enumerate((height, width)):
        shape = [1, 1, 1, 1, 1]
        shape[1 + k], shape[3 + k] = window[k], places[k]
        taps = build.iota(tuple(shape), kind, 1 + k, step=dilations[k])
        at = build.iota(tuple(shape), kind, 3 + k, start=-ends[k][0], step=strides[k])
        moved = parts[:, :, :, k] + (taps + at)
        axes.append(_weights(_neighbours(node, build.reshape(moved, (n * moved_groups, -1)), "linear"), extent))
    images = build.reshape(x, (n * moved_groups, channels // moved_groups, height, width))
    sampled = build.reshape(_sampled(images, axes), (n, moved_groups, channels // moved_groups, *window, *places))
    if node.given(4):
        mask = build.reshape(build.cast(node.array(4), kind), (n, moved_groups, 1, *window, *places))
        sampled = sampled * mask
    columns = build.reshape(sampled, (n, groups, channels // groups, *window, *places))
    filters = build.reshape(weights, (groups, w.shape[0] // groups, channels // groups, *window))
    found = build.reshape(build.contract("ngchwyx,gochw->ngoyx", columns, filters), (n, w.shape[0], *places))
    bias = optional(node, 3)
    if bias is not None:
        found = found + build.reshape(build.cast(bias, kind), (-1, 1, 1))
    return build.cast(found, given.dtype)


@operator("RoiAlign")
def roi_align(node: Node) -> Array:
    """The means or maxima of samples in the bins of regions."""
    given, rois = node.array(0), node.array(1)
    samples = node.attribute("sampling_ratio", 0)
    if samples <= 0:
        node.refuse("the number of samples depends on the regions, because the attribute 'sampling_ratio' is 0")
    x = build.cast(given, wide_type(given.dtype))
    images = build.take(x, integers(node, 2), 0)
    sizes = node.attribute("output_height", 1), node.attribute("output_width", 1)
    modes = ("half_pixel", "output_half_pixel") if node.opset >= 16 else ("output_half_pixel",)
    half = node.choice("coordinate_transformation_mode", modes) == "half_pixel"
    axes: list[list[tuple[Array, Array]]] = []
    for k, bins in enumerate(sizes):
        bounds = build.cast(rois, x.dtype) * node.attribute("spatial_scale", 1.0) - (0.5 if half else 0.0)
        start, end = bounds[:, 1 - k], bounds[:, 3 - k]
        length = end - start if half else build.maximum(end - start, 1)
        step = build.expand_dims(length / bins, (1, 2))
        numbers = build.iota((1, bins, 1), x.dtype, 1)
        within = (build.iota((1, 1, samples), x.dtype, 2) + 0.5) / samples
        places = build.reshape(build.expand_dims(start, (1, 2)) + step * numbers + step * within, (rois.shape[0], -1))
        axes.append(_corners(places, x.shape[2 + k]))
    shape = (*images.shape[:2], sizes[0], samples, sizes[1], samples)
    extents = x.shape[2:]
    if node.choice("mode", ("avg", "max")) == "avg":
        weights = [_weights(each, extent) for each, extent in zip(axes, extents, strict=True)]
        found = build.mean(build.reshape(_on_grid(images, weights), shape), (3, 5))
        return build.cast(found, given.dtype)
    most = None
    for y in axes[0]:
        for z in axes[1]:
            pair = [_weights([each], extent) for each, extent in zip((y, z), extents, strict=True)]
            part = _on_grid(images, pair)
            most = part if most is None else build.maximum(most, part)
    assert most is not None
    return build.cast(build.max(build.reshape(most, shape), (3, 5)), given.dtype)


def _corners(places: Array, extent: int) -> list[tuple[Array, Array]]:
    """Both neighbours of places in an axis, and their factors, which are 0 more than one element outside of it."""
    inside = (places >= -1) & (places <= extent)
    near = build.clip(places, 0, extent - 1)
    low = build.map("floor", near)
    ratio = near - low
    factors = [build.where(inside, 1 - ratio, 0), build.where(inside, ratio, 0)]
    return [(low, factors[0]), (build.minimum(low + 1, extent - 1), factors[1])]


def _on_grid(x: Array, weights: Sequence[Array]) -> Array:
    """The sums over images [n, c, h, w] with weights [n, p, h] and [n, q, w]: [n, c, p, q]."""
    rows = build.contract("nchw,nph->ncpw", x, weights[0])
    return build.contract("ncpw,nqw->ncpq", rows, weights[1])


@operator("MaxRoiPool")
def max_roi_pool(node: Node) -> Array:
    """The greatest elements in the bins of regions [batch, left, top, right, bottom]; 0 in bins without elements."""
    x, rois = node.array(0), node.array(1)
    scale, bins = node.attribute("spatial_scale", 1.0), node.attribute("pooled_shape")
    wide = build.cast(rois, wide_type(rois.dtype))
    masks: list[Array] = []
    for k, extent in enumerate(x.shape[2:]):
        start, end = (build.map("floor", wide[:, column] * scale + 0.5) for column in (2 - k, 4 - k))
        step = build.expand_dims(build.maximum(end - start + 1, 1) / bins[k], 1)
        numbers = build.iota((1, bins[k]), wide.dtype, 1)
        first = build.map("floor", step * numbers) + build.expand_dims(start, 1)
        last = build.map("ceil", step * (numbers + 1)) + build.expand_dims(start, 1)
        at = build.iota((extent,), wide.dtype)
        masks.append((at >= build.expand_dims(first, -1)) & (at < build.expand_dims(last, -1)))
    images = build.iota((x.shape[0],), wide.dtype) == wide[:, 0:1]
    # Regions, channels, bins; image, row, column.
    inside = images[:, None, None, None, :, None, None] & masks[0][:, None, :, None, None, :, None]
    inside = inside & masks[1][:, None, None, :, None, None, :]
    elements = build.transpose(x, (1, 0, 2, 3))[None, :, None, None]
    most = build.max(build.where(inside, elements, -inf), (4, 5, 6))
    return build.where(most == -inf, 0, most)

"""Images at places that are elements of other arrays.

The notation has no indirection: a place has a weight for every element of an axis, and all but those of its
neighbours are 0. The work grows with the size of the image.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from math import inf
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdojo.build.array import Array, cast, constant, iota, map, wide
from pdojo.build.contractions import contract
from pdojo.build.elementwise import clip, maximum, minimum, where
from pdojo.build.graph import Computed
from pdojo.build.policy import of_one_type, rounded_once
from pdojo.build.reductions import max, mean, reduce
from pdojo.build.shapes import expand_dims, reshape, transpose
from pdojo.build.tables import Constants
from pdojo.dialect.affine import var
from pdojo.errors import UsageError


def _cubic(ratio: Array) -> list[Array]:
    """The factors of four neighbours (Keys 1981, with -0.75)."""
    a, other, far, beyond = -0.75, 1 - ratio, ratio + 1, 2 - ratio

    def near(x: Array) -> Array:
        return (x * (a + 2) - (a + 3)) * x * x + 1

    def distant(x: Array) -> Array:
        return ((x * a - 5 * a) * x + 8 * a) * x - 4 * a

    return [distant(far), near(ratio), near(other), distant(beyond)]


Mode: TypeAlias = Literal["nearest", "linear", "cubic"]


def _neighbours(places: Array, mode: Mode) -> list[tuple[Array, Array | None]]:
    """The indices of neighbours, and their factors; None is 1."""
    if mode == "nearest":
        return [(map("roundeven", places), None)]
    base = map("floor", places)
    ratio = places - base
    if mode == "linear":
        return [(base, 1 - ratio), (base + 1, ratio)]
    return [(base + (k - 1), factor) for k, factor in enumerate(_cubic(ratio))]


def _reflected(index: Array, least: float, most: float) -> Array:
    """The index, reflected at the borders until it is between them."""
    span = most - least
    if not span:
        return constant(0, index.dtype, index.shape)
    below = index < least
    beyond = where(below, least - index, index - most)
    times = map("trunc", beyond / span)
    rest = beyond - times * span
    odd = times - map("floor", times * 0.5) * 2 == 1
    found = map("trunc", where(below ^ odd, rest + least, most - rest))
    return where(beyond > 0, found, index)


def _weights(neighbours: Sequence[tuple[Array, Array | None]], extent: int) -> Array:
    """The weights [..., extent] of all elements of an axis at places [...]."""
    first = neighbours[0][0]
    numbers = iota((extent,), first.dtype)
    total = None
    for index, factor in neighbours:
        hit = expand_dims(index, -1) == numbers
        one = constant(1, first.dtype) if factor is None else expand_dims(factor, -1)
        part = where(hit, one, 0)
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
    zero = constant(0, x.dtype).operand
    counts = Computed("arith.cmpf.une", (factor, zero), "i1")
    value = Computed("arith.mulf", (Computed("arith.select", (counts, image, zero), x.storage), factor), x.storage)
    return reduce("+", Array(x.dtype, shape, value), range(3, len(shape)))


@rounded_once
def grid_sample(
    x: Array,
    grid: Array,
    mode: Mode = "linear",
    padding: Literal["zeros", "border", "reflection"] = "zeros",
    *,
    corners: bool = False,
) -> Array:
    """The image at the places of a grid, which are between -1 and 1 within it.

    Shapes: `x` [N, C, *spatial], `grid` [N, *places, rank] with the last axis first. `corners`: whether -1 and 1
    are the centres of the first and last elements, not their outer edges.
    """
    rank = x.rank - 2
    rows = reshape(cast(grid, x.dtype), (grid.shape[0], -1, rank))
    weights: list[Array] = []
    for k, extent in enumerate(x.shape[2:]):
        n = rows[:, :, rank - 1 - k]
        places = (n + 1) * 0.5 * (extent - 1) if corners else ((n + 1) * extent - 1) * 0.5
        least, most = (0.0, extent - 1.0) if corners else (-0.5, extent - 0.5)
        found: list[tuple[Array, Array | None]] = []
        for index, factor in _neighbours(places, mode):
            if padding == "border":
                index = clip(index, 0, extent - 1)
            elif padding == "reflection":
                index = _reflected(index, least, most)
            found.append((index, factor))
        weights.append(_weights(found, extent))
    return reshape(_sampled(x, weights), (*x.shape[:2], *grid.shape[1:-1]))


@rounded_once
def affine_grid(theta: Array, size: Sequence[int], *, constants: Constants, corners: bool = False) -> Array:
    """The places [N, *size, rank], for `grid_sample`, of a grid after affine maps [N, rank, rank + 1]."""
    rank = len(size)
    axes: list[NDArray[np.float64]] = []
    for extent in size:
        step = np.arange(extent, dtype=np.float64)
        axes.append(step * (2 / builtins.max(extent - 1, 1)) - 1 if corners else (2 * step + 1) / extent - 1)
    grid = np.stack([*reversed(np.meshgrid(*axes, indexing="ij")), np.ones(size)], -1)
    places = constants(grid.reshape(-1, rank + 1), theta.dtype)
    return reshape(contract("nij,pj->npi", theta, places), (theta.shape[0], *size, rank))


@rounded_once
@of_one_type
def deform_conv(
    x: Array,
    weights: Array,
    offset: Array,
    bias: Array | None = None,
    mask: Array | None = None,
    *,
    stride: Sequence[int],
    padding: Sequence[tuple[int, int]],
    dilation: Sequence[int],
    groups: int = 1,
    offset_groups: int = 1,
) -> Array:
    """The convolution of elements at places that are moved by offsets.

    Shapes: `x` [N, C, H, W], `weights` [O, C / groups, h, w], `offset` [N, offset_groups * h * w * 2, *places],
    `mask`, of factors of the elements, [N, offset_groups * h * w, *places].
    """
    if x.rank != 4:
        raise UsageError("only images of two dimensions are convolved at moved places")
    n, channels, height, width = x.shape
    window, places = weights.shape[2:], offset.shape[2:]
    parts = reshape(offset, (n * offset_groups, *window, 2, *places))
    axes: list[Array] = []
    for k, extent in enumerate((height, width)):
        shape = [1, 1, 1, 1, 1]
        shape[1 + k], shape[3 + k] = window[k], places[k]
        taps = iota(tuple(shape), x.dtype, 1 + k, step=dilation[k])
        at = iota(tuple(shape), x.dtype, 3 + k, start=-padding[k][0], step=stride[k])
        moved = parts[:, :, :, k] + (taps + at)
        axes.append(_weights(_neighbours(reshape(moved, (n * offset_groups, -1)), "linear"), extent))
    images = reshape(x, (n * offset_groups, channels // offset_groups, height, width))
    sampled = reshape(_sampled(images, axes), (n, offset_groups, channels // offset_groups, *window, *places))
    if mask is not None:
        sampled = sampled * reshape(mask, (n, offset_groups, 1, *window, *places))
    outputs = weights.shape[0]
    columns = reshape(sampled, (n, groups, channels // groups, *window, *places))
    by_group = reshape(weights, (groups, outputs // groups, channels // groups, *window))
    found = reshape(contract("ngchwyx,gochw->ngoyx", columns, by_group), (n, outputs, *places))
    if bias is not None:
        found = found + reshape(bias, (-1, 1, 1))
    return found


@rounded_once
def roi_align(
    x: Array,
    regions: Array,
    bins: tuple[int, int],
    samples: int,
    *,
    scale: float = 1.0,
    half_pixel: bool = True,
    reduction: Literal["mean", "max"] = "mean",
) -> Array:
    """The mean or the maximum of samples in the bins of regions.

    Shapes: `x` [R, C, H, W], one for each of the `regions` [R, (left, top, right, bottom)], which `scale` scales
    to elements; the result is [R, C, *bins]. `half_pixel`: whether the centre of the first element is 0.5.
    """
    axes: list[list[tuple[Array, Array]]] = []
    for k, count in enumerate(bins):
        bounds = cast(regions, x.dtype) * scale - (0.5 if half_pixel else 0.0)
        start, end = bounds[:, 1 - k], bounds[:, 3 - k]
        length = end - start if half_pixel else maximum(end - start, 1)
        step = expand_dims(length / count, (1, 2))
        numbers = iota((1, count, 1), x.dtype, 1)
        within = (iota((1, 1, samples), x.dtype, 2) + 0.5) / samples
        places = reshape(expand_dims(start, (1, 2)) + step * numbers + step * within, (regions.shape[0], -1))
        axes.append(_corners(places, x.shape[2 + k]))
    shape = (*x.shape[:2], bins[0], samples, bins[1], samples)
    extents = x.shape[2:]
    if reduction == "mean":
        weights = [_weights(each, extent) for each, extent in zip(axes, extents, strict=True)]
        return mean(reshape(_on_grid(x, weights), shape), (3, 5))
    most = None
    for y in axes[0]:
        for z in axes[1]:
            pair = [_weights([each], extent) for each, extent in zip((y, z), extents, strict=True)]
            part = _on_grid(x, pair)
            most = part if most is None else maximum(most, part)
    assert most is not None
    return max(reshape(most, shape), (3, 5))


def _corners(places: Array, extent: int) -> list[tuple[Array, Array]]:
    """Both neighbours of places in an axis, and their factors, which are 0 more than one element outside of it."""
    inside = (places >= -1) & (places <= extent)
    near = clip(places, 0, extent - 1)
    low = map("floor", near)
    ratio = near - low
    factors = [where(inside, 1 - ratio, 0), where(inside, ratio, 0)]
    return [(low, factors[0]), (minimum(low + 1, extent - 1), factors[1])]


def _on_grid(x: Array, weights: Sequence[Array]) -> Array:
    """The sums over images [n, c, h, w] with weights [n, p, h] and [n, q, w]: [n, c, p, q]."""
    rows = contract("nchw,nph->ncpw", x, weights[0])
    return contract("ncpw,nqw->ncpq", rows, weights[1])


def max_roi_pool(x: Array, regions: Array, bins: Sequence[int], scale: float = 1.0) -> Array:
    """The greatest elements in the bins of regions [batch, left, top, right, bottom]; 0 in bins without elements."""
    bounds = wide(regions)
    masks: list[Array] = []
    for k, extent in enumerate(x.shape[2:]):
        start, end = (map("floor", bounds[:, column] * scale + 0.5) for column in (2 - k, 4 - k))
        step = expand_dims(maximum(end - start + 1, 1) / bins[k], 1)
        numbers = iota((1, bins[k]), bounds.dtype, 1)
        first = map("floor", step * numbers) + expand_dims(start, 1)
        last = map("ceil", step * (numbers + 1)) + expand_dims(start, 1)
        at = iota((extent,), bounds.dtype)
        masks.append((at >= expand_dims(first, -1)) & (at < expand_dims(last, -1)))
    images = iota((x.shape[0],), bounds.dtype) == bounds[:, 0:1]
    # Regions, channels, bins; image, row, column.
    inside = images[:, None, None, None, :, None, None] & masks[0][:, None, :, None, None, :, None]
    inside = inside & masks[1][:, None, None, :, None, None, :]
    elements = transpose(x, (1, 0, 2, 3))[None, :, None, None]
    most = max(where(inside, elements, -inf), (4, 5, 6))
    return where(most == -inf, 0, most)

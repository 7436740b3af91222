"""Images at places that other arrays give."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import ceil, floor, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdojo.build import sampling
from pdojo.build.operator import Input, array, call, operator

Values = NDArray[Any]


def cubic(distance: float, a: float = -0.75) -> float:
    """The factor of a neighbour at a distance (Keys 1981)."""
    d = abs(distance)
    if d <= 1:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1
    return a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a if d < 2 else 0.0


def _neighbours(place: float, mode: str) -> list[tuple[int, float]]:
    if mode == "nearest":
        return [(round(place), 1.0)]
    first = floor(place)
    if mode == "linear":
        return [(first, first + 1 - place), (first + 1, place - first)]
    return [(first + k, cubic(place - first - k)) for k in (-1, 0, 1, 2)]


def _inside(index: int, extent: int, padding: str, *, corners: bool) -> int | None:
    """The element that an index reads; None is 0."""
    if padding == "border":
        return min(max(index, 0), extent - 1)
    if padding == "zeros" or 0 <= index < extent:
        return index if 0 <= index < extent else None
    period = 2 * (extent - 1) if corners else 2 * extent
    rest = index % period if period else 0
    return rest if rest < extent else period - rest - (0 if corners else 1)


def _at(image: Values, neighbours: Sequence[Sequence[tuple[int | None, float]]]) -> Values:
    """The sum of weighted elements [C] of an image [C, *spatial]."""
    found = np.zeros(len(image))
    for corner in product(*neighbours):
        factor, index = prod(f for _, f in corner), [i for i, _ in corner]
        if None not in index and factor:
            found += image[(slice(None), *index)] * factor
    return found


def _grid(text: str) -> Input:
    return array(text, low=-1.6, high=1.6)


@operator(
    sampling.grid_sample,
    call(array("2 3 4 5"), _grid("2 3 2 2")),
    call(array("1 2 4 5"), _grid("1 3 4 2"), "linear", "border", corners=True),
    call(array("1 2 4 5"), _grid("1 3 4 2"), "linear", "reflection"),
    call(array("1 2 4 5"), _grid("1 3 4 2"), "linear", "reflection", corners=True),
    call(array("1 2 4 5"), _grid("1 3 4 2"), "nearest", "reflection"),
    call(array("1 2 4 5"), _grid("1 3 4 2"), "nearest", "zeros", corners=True),
    call(array("1 2 4 5"), _grid("1 3 4 2"), "cubic", "zeros"),
    call(array("1 2 4 5"), _grid("1 3 4 2"), "cubic", "border"),
    call(array("1 2 4 5"), _grid("1 3 4 2"), "cubic", "reflection", corners=True),
    call(array("1 2 1 1"), _grid("1 2 2 2"), "linear", "reflection", corners=True),
    call(array("1 1 2 3 2"), _grid("1 2 1 2 3"), "linear", "border"),
    call(array("1 1 3 3", given=[5, *[np.inf] * 8]), array("1 1 2 2", given=[-1, -1, 1, 1]), "nearest", corners=True),
    types=("f64", "f32"),
    ulps=64,
)
def grid_sample(
    x: Values, grid: Values, mode: str = "linear", padding: str = "zeros", *, corners: bool = False
) -> Values:
    """The images at the places of grids."""
    extents = x.shape[2:]
    found = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    for n, *place in np.ndindex(*grid.shape[:-1]):
        rows: list[list[tuple[int | None, float]]] = []
        for extent, g in zip(extents, grid[(n, *place)][::-1], strict=True):
            at = (g + 1) / 2 * (extent - 1) if corners else ((g + 1) * extent - 1) / 2
            rows.append([(_inside(k, extent, padding, corners=corners), f) for k, f in _neighbours(at, mode)])
        found[(n, slice(None), *place)] = _at(x[n], rows)
    return found


@operator(
    sampling.affine_grid,
    call(array("2 2 3"), (3, 4)),
    call(array("2 2 3"), (3, 1), corners=True),
    call(array("1 3 4"), (2, 3, 2), corners=True),
    call(array("1 3 4"), (1, 3, 2)),
)
def affine_grid(theta: Values, size: Sequence[int], *, corners: bool = False) -> Values:
    """The places of grids after affine maps."""
    found = np.zeros((len(theta), *size, len(size)))
    for place in np.ndindex(*size):
        base = [2 * p / max(e - 1, 1) - 1 if corners else (2 * p + 1) / e - 1 for p, e in zip(place, size, strict=True)]
        found[(slice(None), *place)] = theta @ np.array([*base[::-1], 1.0])
    return found


def _offsets(text: str) -> Input:
    return array(text, low=-2, high=2)


@operator(
    sampling.deform_conv,
    call(array("2 4 5 4"), array("6 2 3 2"), _offsets("2 12 3 4"), array("6"), stride=(2, 1),
         padding=[(1, 1), (0, 1)], dilation=(1, 1), groups=2),
    call(array("1 4 6 5"), array("2 4 2 2"), _offsets("1 16 2 4"), None, array("1 8 2 4", low=0),
         stride=(2, 1), padding=[(0, 0), (0, 1)], dilation=(2, 2), offset_groups=2),
    call(array("1 1 1 1"), array("1 1 1 1"), _offsets("1 2 1 1"), stride=(1, 1), padding=[(0, 0), (0, 0)],
         dilation=(1, 1)),
    types=("f64", "f32"),
    ulps=64,
)  # fmt: skip
def deform_conv(
    x: Values, weights: Values, offset: Values, bias: Values | None = None, mask: Values | None = None, *,
    stride: Sequence[int], padding: Sequence[Sequence[int]], dilation: Sequence[int], groups: int = 1,
    offset_groups: int = 1,
) -> Values:  # fmt: skip
    """The convolution of elements at moved places."""
    n, channels = x.shape[:2]
    outputs, rest, h, w = weights.shape
    places = offset.shape[2:]
    moved = offset.reshape(n, offset_groups, h, w, 2, *places)
    factors = (
        np.ones((n, offset_groups, h, w, *places)) if mask is None else mask.reshape(n, offset_groups, h, w, *places)
    )
    columns = np.zeros((n, channels, h, w, *places))
    size = channels // offset_groups
    for image, g, i, j, y, z in np.ndindex(n, offset_groups, h, w, *places):
        bases = (y * stride[0] - padding[0][0] + i * dilation[0], z * stride[1] - padding[1][0] + j * dilation[1])
        rows: list[list[tuple[int | None, float]]] = []
        for base, step, extent in zip(bases, moved[image, g, i, j, :, y, z], x.shape[2:], strict=True):
            near = _neighbours(base + step, "linear")
            rows.append([(_inside(k, extent, "zeros", corners=False), f) for k, f in near])
        part = _at(x[image, g * size : (g + 1) * size], rows)
        columns[image, g * size : (g + 1) * size, i, j, y, z] = part * factors[image, g, i, j, y, z]
    grouped = columns.reshape(n, groups, rest, h, w, *places)
    filters = weights.reshape(groups, outputs // groups, rest, h, w)
    found = np.einsum("ngchwyz,gochw->ngoyz", grouped, filters).reshape(n, outputs, *places)
    return found if bias is None else found + bias.reshape(-1, 1, 1)


_REGIONS = array("3 4", given=[0.5, 1, 4, 3.5, -2, -1, 2, 9, 3, 2, 3.25, 2.5])


@operator(
    sampling.roi_align,
    call(array("3 2 5 6"), _REGIONS, (2, 3), 2),
    call(array("3 2 5 6"), _REGIONS, (2, 1), 3, scale=0.5, half_pixel=False),
    call(array("3 2 5 6"), _REGIONS, (2, 3), 1, reduction="max"),
    call(array("3 1 5 6"), _REGIONS, (1, 2), 2, scale=1.5, reduction="max"),
    call(array("3 1 1 1"), _REGIONS, (2, 2), 2),
    types=("f64", "f32"),
    ulps=64,
)
def roi_align(
    x: Values, regions: Values, bins: Sequence[int], samples: int, *, scale: float = 1.0, half_pixel: bool = True,
    reduction: str = "mean",
) -> Values:  # fmt: skip
    """The means or maxima of samples in the bins of regions."""
    found = np.zeros((*x.shape[:2], *bins))
    for region, *bin_ in np.ndindex(len(x), *bins):
        rows: list[list[list[tuple[int | None, float]]]] = []
        for k, extent in enumerate(x.shape[2:]):
            start, end = (regions[region, column] * scale - (0.5 if half_pixel else 0) for column in (1 - k, 3 - k))
            step = (end - start if half_pixel else max(end - start, 1)) / bins[k]
            rows.append([_corners(start + (bin_[k] + (s + 0.5) / samples) * step, extent) for s in range(samples)])
        parts: list[Values] = []
        for near in product(*rows):
            if reduction == "mean":
                parts.append(_at(x[region], near))
            else:
                parts += [x[(region, slice(None), *[i for i, _ in c])] * prod(f for _, f in c) for c in product(*near)]
        found[(region, slice(None), *bin_)] = np.mean(parts, 0) if reduction == "mean" else np.max(parts, 0)
    return found


def _corners(place: float, extent: int) -> list[tuple[int | None, float]]:
    if not -1 <= place <= extent:
        return [(0, 0.0), (0, 0.0)]
    near = min(max(place, 0), extent - 1)
    low = floor(near)
    return [(low, low + 1 - near), (min(low + 1, extent - 1), near - low)]


@operator(
    sampling.max_roi_pool,
    call(array("2 3 6 6"), array("3 5", given=[1, 0, 0, 3, 3, 0, 2, 1, 5, 5, 1, 4, 4, 9, 9]), (2, 2)),
    call(array("2 1 5 4"), array("2 5", given=[0, 1, 2, 7, 9, 1, 3, 3, 2, 2]), (3, 2), 0.5),
)
def max_roi_pool(x: Values, regions: Values, bins: Sequence[int], scale: float = 1.0) -> Values:
    """The greatest elements in the bins of regions; 0 in bins without elements."""
    found = np.zeros((len(regions), x.shape[1], *bins))
    for region, *bin_ in np.ndindex(len(regions), *bins):
        cut: list[slice] = []
        for k, extent in enumerate(x.shape[2:]):
            start, end = (floor(regions[region, column] * scale + 0.5) for column in (2 - k, 4 - k))
            step = max(end - start + 1, 1) / bins[k]
            first, last = floor(bin_[k] * step) + start, ceil((bin_[k] + 1) * step) + start
            cut.append(slice(min(max(first, 0), extent), min(max(last, 0), extent)))
        part = x[(int(regions[region, 0]), slice(None), *cut)]
        found[(region, slice(None), *bin_)] = part.max((1, 2)) if part.size else 0
    return found

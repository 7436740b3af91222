"""Images at other places than those of their elements: other sizes, grids, regions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdojo import build
from pdojo.build import Array
from pdojo.dialect.table import MOST_ENTRIES
from pdojo.model.element_types import numpy_type
from pdojo.onnx.operators.arguments import FLOATS, axis_of, integers, wide_type
from pdojo.onnx.operators.registry import Node, operator

_Numbers: TypeAlias = NDArray[np.float64]
_PLACES = (
    *("half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize", "pytorch_half_pixel"),
    *("half_pixel_symmetric", "tf_half_pixel_for_nn"),
)
"""Modes of coordinates."""


def _places(mode: str, count: int, extent: int, scale: float, roi: Sequence[float]) -> _Numbers:
    """The places in an axis of `extent` elements of `count` elements of the result."""
    y, width = np.arange(count, dtype=np.float64), scale * extent
    match mode:
        case "align_corners":
            return y * 0 if width == 1 else y * (extent - 1) / (width - 1)
        case "asymmetric":
            return y / scale
        case "tf_crop_and_resize":
            start, end = roi
            if width == 1:
                return y * 0 + (end - start) * (extent - 1) / 2 + start * (extent - 1)
            return y * (end - start) * (extent - 1) / (width - 1) + start * (extent - 1)
        case "pytorch_half_pixel":
            return y * 0 - 0.5 if width == 1 else (y + 0.5) / scale - 0.5
        case "half_pixel_symmetric":
            return extent / 2 * (1 - count / width) + (y + 0.5) / scale - 0.5
        case "tf_half_pixel_for_nn":
            return (y + 0.5) / scale
        case _:
            return (y + 0.5) / scale - 0.5


def _cubic(x: _Numbers, a: float) -> _Numbers:
    x = np.abs(x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    return np.where(x <= 1, near, np.where(x < 2, ((a * x - 5 * a) * x + 8 * a) * x - 4 * a, 0))


@dataclass(frozen=True)
class _Kind:
    """The interpolation of an image in another size."""

    mode: str
    places: str
    nearest: str
    cubic: float = -0.75
    antialias: bool = False
    exclude_outside: bool = False
    extrapolation: float = 0.0


def _neighbours(kind: _Kind, places: _Numbers, extent: int, scale: float) -> tuple[NDArray[np.int64], _Numbers]:
    """Indices of the elements next to each place, and their factors [results, neighbours], as in ONNX's reference."""
    whole = np.ceil(places) - 1
    ratio = places - whole  # in (0, 1]: an exact place is the right one of two neighbours
    shrunk = min(scale, 1.0) if kind.antialias else 1.0
    first = int(np.floor(-(1 if kind.mode == "linear" else 2) / shrunk) + 1)
    offsets = np.arange(first, 2 - first)
    distance = (offsets - ratio[:, None]) * shrunk
    factors = np.clip(1 - np.abs(distance), 0, 1) if kind.mode == "linear" else _cubic(distance, kind.cubic)
    indices = (whole[:, None] + offsets).astype(np.int64)
    if kind.antialias:
        factors = factors / factors.sum(-1, keepdims=True)
    if kind.exclude_outside:
        factors = np.where((indices < 0) | (indices >= extent), 0, factors)
        factors = factors / np.where((total := factors.sum(-1, keepdims=True)) == 0, 1, total)
    return np.clip(indices, 0, extent - 1), factors


def _interpolated(node: Node, x: Array, axis: int, indices: NDArray[np.int64], factors: _Numbers) -> Array:
    """The sums of neighbours along an axis; of all elements if a table of the neighbours were too large."""
    letters = "abcdefgh"[: x.rank]
    result = letters.replace(letters[axis], "z")
    kind = numpy_type(x.dtype)
    if indices.size <= MOST_ENTRIES:
        shape = (*x.shape[:axis], len(indices), *x.shape[axis + 1 :], 1)
        column = build.reshape(
            build.table(indices.tolist()), [-1 if d == axis else 1 for d in range(x.rank)] + [indices.shape[1]]
        )
        near = build.gather(x, [column if d == axis else build.iota(shape, "i64", d) for d in range(x.rank)])
        return build.contract(f"{result}t,zt->{result}", near, node.constant(factors.astype(kind)))
    matrix = np.zeros((len(indices), x.shape[axis]))
    np.add.at(matrix, (np.arange(len(indices))[:, None], indices), factors)
    return build.contract(f"{letters},z{letters[axis]}->{result}", x, node.constant(matrix.astype(kind)))


_ROUNDINGS: dict[str, Callable[[_Numbers], _Numbers]] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


def _resized(node: Node, x: Array, axis: int, count: int, scale: float, roi: Sequence[float], kind: _Kind) -> Array:
    """The array with `count` elements along an axis."""
    extent = x.shape[axis]
    places = _places(kind.places, count, extent, scale, roi)
    if kind.mode == "nearest":
        nearest = np.clip(_ROUNDINGS[kind.nearest](places), 0, extent - 1)
        found = build.take(x, [int(place) for place in nearest], axis)
    else:
        found = _interpolated(node, x, axis, *_neighbours(kind, places, extent, scale))
    outside = (places < 0) | (places > extent - 1)
    if kind.places != "tf_crop_and_resize" or not outside.any():
        return found
    mask = node.constant(outside.reshape([-1 if d == axis else 1 for d in range(x.rank)]))
    return build.where(mask, build.constant(kind.extrapolation, x.dtype), found)


def _kind(node: Node) -> _Kind:
    return _Kind(
        node.choice("mode", ("nearest", "linear", "cubic")),
        node.choice("coordinate_transformation_mode", _PLACES, "half_pixel" if node.opset > 10 else "asymmetric"),
        node.choice("nearest_mode", tuple(_ROUNDINGS), "round_prefer_floor" if node.opset > 10 else "floor"),
        node.attribute("cubic_coeff_a", -0.75),
        bool(node.attribute("antialias", 0)),
        bool(node.attribute("exclude_outside", 0)),
        node.attribute("extrapolation_value", 0.0),
    )


@operator("Resize")
def resize(node: Node) -> Array:
    """The image in another size, one axis after the other."""
    scales_at, sizes_at, roi_at = (1, 3, 2) if node.opset < 11 else (2, 3, 1)
    x = node.array(0)
    axes = [axis_of(node, axis, x.rank) for axis in node.attribute("axes") or range(x.rank)]
    extents = [x.shape[axis] for axis in axes]
    roi = [float(v) for v in node.static(roi_at).reshape(-1)] if node.given(roi_at) else []
    roi = roi or [0.0] * len(axes) + [1.0] * len(axes)
    if node.opset > 10 and node.given(sizes_at) and node.static(sizes_at).size:
        counts = integers(node, sizes_at)
        scales = [count / extent for count, extent in zip(counts, extents, strict=True)]
        policy = node.choice("keep_aspect_ratio_policy", ("stretch", "not_larger", "not_smaller"))
        if policy != "stretch":
            scale = min(scales) if policy == "not_larger" else max(scales)
            scales, counts = [scale] * len(axes), [int(scale * extent + 0.5) for extent in extents]
    else:
        scales = [float(v) for v in node.static(scales_at).reshape(-1)]
        counts = _counts(node, scales, extents)
    return _resized_along(node, axes, counts, scales, roi, _kind(node))


def _counts(node: Node, scales: Sequence[float], extents: Sequence[int]) -> list[int]:
    """The extents of an image that is scaled."""
    if len(scales) != len(extents) or not all(math.isfinite(scale) and scale > 0 for scale in scales):
        node.refuse(f"its scales are {scales}, and should be {len(extents)} positive numbers")
    return [int(scale * extent) for scale, extent in zip(scales, extents, strict=True)]


def _resized_along(
    node: Node, axes: Sequence[int], counts: Sequence[int], scales: Sequence[float], roi: Sequence[float], kind: _Kind
) -> Array:
    x = node.array(0)
    nearest = kind.mode == "nearest"
    found = x if nearest else build.cast(x, wide_type(x.dtype) if x.dtype in FLOATS else "f64")
    for k, axis in enumerate(axes):
        part = (roi[k], roi[k + len(axes)])
        if not math.isclose(scales[k], 1.0) or counts[k] != x.shape[axis] or part != (0.0, 1.0):
            found = _resized(node, found, axis, counts[k], scales[k], part, kind)
    if x.dtype not in FLOATS and not nearest:
        bits = int(x.dtype[1:])
        least = 0 if x.dtype[0] == "u" else -(1 << bits - 1)
        found = build.clip(build.map("roundeven", found), least, least + (1 << bits) - 1)
    return build.cast(found, x.dtype)


@operator("Upsample")
def upsample(node: Node) -> Array:
    """The image enlarged, each element next to its copies, or with linear interpolation."""
    x = node.array(0)
    given = node.attribute("scales")
    if given is None and node.attribute("height_scale") is not None:
        given = (1.0, 1.0, node.attribute("height_scale"), node.attribute("width_scale"))
    scales = [float(v) for v in (node.static(1).reshape(-1) if given is None else given)]
    counts = _counts(node, scales, x.shape)
    linear = node.choice("mode", ("nearest", "linear", "bilinear")) != "nearest"
    kind = _Kind("linear" if linear else "nearest", "asymmetric", "floor")
    return _resized_along(node, list(range(x.rank)), counts, scales, [0.0] * x.rank + [1.0] * x.rank, kind)


@operator("AffineGrid")
def affine_grid(node: Node) -> Array:
    """The places of a grid of an image after affine maps."""
    theta, size = node.array(0), integers(node, 1)[2:]
    corners = bool(node.attribute("align_corners", 0))
    rank = len(size)
    axes: list[_Numbers] = []
    for extent in size:
        step = np.arange(extent, dtype=np.float64)
        axes.append(step * (2 / max(extent - 1, 1)) - 1 if corners else (2 * step + 1) / extent - 1)
    grid = [*reversed(np.meshgrid(*axes, indexing="ij")), np.ones(size)]
    places = node.constant(np.stack(grid, -1).reshape(-1, rank + 1).astype(numpy_type(theta.dtype)))
    found = build.contract("nij,pj->npi", theta, places)
    return build.reshape(found, (theta.shape[0], *size, rank))

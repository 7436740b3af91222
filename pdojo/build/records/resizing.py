"""Images in other sizes."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdojo.build import resizing
from pdojo.build.operator import array, call, operator
from pdojo.build.records.sampling import cubic
from pdojo.build.resizing import Interpolation

Values = NDArray[Any]
_X = array("1 2 5 4")
_FLOOR, _CEIL = "round_prefer_floor", "round_prefer_ceil"


def _call(kind: Interpolation, counts: Sequence[int], scales: Sequence[float], **more: Any) -> Any:
    return call(_X, (2, 3), tuple(counts), tuple(scales), kind, **more)


@operator(
    resizing.resize,
    # Scales of ONNX are f32.
    _call(Interpolation("linear", "half_pixel", _FLOOR), (8, 6), (1.625, 1.5)),
    _call(Interpolation("linear", "align_corners", _FLOOR), (5, 7), (1.0, 1.75)),
    _call(Interpolation("linear", "asymmetric", _FLOOR), (7, 2), (1.5, 0.625)),
    _call(Interpolation("linear", "pytorch_half_pixel", _FLOOR), (1, 6), (0.25, 1.5)),
    _call(Interpolation("cubic", "pytorch_half_pixel", _FLOOR), (8, 1), (1.625, 0.25)),
    _call(Interpolation("linear", "half_pixel_symmetric", _FLOOR), (3, 6), (0.75, 1.625)),
    _call(Interpolation("linear", "half_pixel", _FLOOR, antialias=True), (3, 2), (0.625, 0.5)),
    _call(Interpolation("cubic", "half_pixel", _FLOOR), (8, 6), (1.625, 1.5)),
    _call(Interpolation("cubic", "half_pixel", _FLOOR, -0.5, exclude_outside=True), (3, 7), (0.625, 1.75)),
    _call(Interpolation("cubic", "align_corners", _FLOOR), (10, 4), (2.0, 1.0)),
    _call(Interpolation("cubic", "half_pixel", _FLOOR, antialias=True), (2, 3), (0.5, 0.75)),
    _call(Interpolation("nearest", "half_pixel", _FLOOR), (8, 6), (1.625, 1.5)),
    _call(Interpolation("nearest", "half_pixel", _CEIL), (8, 6), (1.625, 1.5)),
    _call(Interpolation("nearest", "asymmetric", "floor"), (10, 8), (2.0, 2.0)),
    _call(Interpolation("nearest", "align_corners", "ceil"), (5, 7), (1.0, 1.75)),
    _call(Interpolation("nearest", "tf_half_pixel_for_nn", "floor"), (8, 3), (1.625, 0.75)),
    _call(Interpolation("linear", "tf_crop_and_resize", _FLOOR, extrapolation=7.0), (5, 5), (1.0, 1.25),
          regions=((0.25, 0.875), (-0.375, 1.25))),
    _call(Interpolation("linear", "tf_crop_and_resize", _FLOOR), (1, 4), (0.25, 1.0), regions=((0.25, 0.5), (0, 1))),
    call(array("1 1 4 4"), (2, 3), (7, 2), (1.75, 0.5), Interpolation("linear", "half_pixel", _FLOOR),
         types=("u8", "i8", "i32")),
    call(array("1 1 4 4"), (2, 3), (7, 2), (1.75, 0.5), Interpolation("cubic", "half_pixel", _FLOOR),
         types=("u8", "i8", "i32")),
    call(array("1 1 1 3"), (2, 3), (2, 1), (2.0, 0.375), Interpolation("linear", "align_corners", _FLOOR)),
    ulps=16,
)  # fmt: skip
def resize(
    x: Values, axes: Sequence[int], counts: Sequence[int], scales: Sequence[float], kind: Interpolation,
    regions: Sequence[tuple[float, float]] | None = None,
) -> Values:  # fmt: skip
    """The array with `counts` elements along axes."""
    found = x.astype(np.float64)
    for axis, count, scale, region in zip(axes, counts, scales, regions or [(0, 1)] * len(axes), strict=True):
        rows = [_row(p, count, found.shape[axis], scale, region, kind) for p in range(count)]
        extent = found.shape[axis]
        parts: list[Values] = []
        for place, row in rows:
            is_outside = kind.places == "tf_crop_and_resize" and not 0 <= place <= extent - 1
            part = np.tensordot(row, found, (0, axis))
            parts.append(np.full_like(part, kind.extrapolation) if is_outside else part)
        found = np.stack(parts, axis)
    if x.dtype.kind == "f":
        return found
    least, most = np.iinfo(x.dtype).min, np.iinfo(x.dtype).max
    return np.clip(np.rint(found), least, most).astype(x.dtype)


def _row(
    place: int, count: int, extent: int, scale: float, region: tuple[float, float], kind: Interpolation
) -> tuple[float, Values]:
    """The place in an axis of an element of the result, and its factors of all elements of the axis."""
    at = _place(place, count, extent, scale, region, kind.places)
    row = np.zeros(extent)
    if kind.mode == "nearest":
        whole = {_FLOOR: ceil(at - 0.5), _CEIL: floor(at + 0.5), "floor": floor(at), "ceil": ceil(at)}[kind.nearest]
        row[min(max(whole, 0), extent - 1)] = 1
        return at, row
    shrunk = min(scale, 1.0) if kind.antialias else 1.0
    reach = ceil((1 if kind.mode == "linear" else 2) / shrunk) + 1
    near = range(floor(at) - reach, floor(at) + reach + 1)
    factors = [max(0.0, 1 - abs(k - at) * shrunk) if kind.mode == "linear" else cubic((k - at) * shrunk, kind.cubic)
               for k in near]  # fmt: skip
    if kind.exclude_outside:
        factors = [f if 0 <= k < extent else 0.0 for k, f in zip(near, factors, strict=True)]
    if kind.exclude_outside or kind.antialias:
        factors = [f / sum(factors) for f in factors]
    for k, factor in zip(near, factors, strict=True):
        row[min(max(k, 0), extent - 1)] += factor
    return at, row


def _place(p: int, count: int, extent: int, scale: float, region: tuple[float, float], mode: str) -> float:
    width, (start, end) = scale * extent, region
    match mode:
        case "align_corners":
            return 0 if width == 1 else p * (extent - 1) / (width - 1)
        case "asymmetric":
            return p / scale
        case "tf_crop_and_resize":
            if count == 1:
                return (start + end) * (extent - 1) / 2
            return start * (extent - 1) + p * (end - start) * (extent - 1) / (width - 1)
        case "pytorch_half_pixel":
            return 0 if count == 1 else (p + 0.5) / scale - 0.5
        case "half_pixel_symmetric":
            return extent / 2 * (1 - count / width) + (p + 0.5) / scale - 0.5
        case "tf_half_pixel_for_nn":
            return (p + 0.5) / scale
        case _:
            return (p + 0.5) / scale - 0.5

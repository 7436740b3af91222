"""Images in other sizes, by interpolation between their elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdojo.build.array import Array, cast, constant, iota, map, wide
from pdojo.build.contractions import contract
from pdojo.build.elementwise import clip, where
from pdojo.build.pieces import take
from pdojo.build.shapes import reshape
from pdojo.build.tables import Constants, gather, table
from pdojo.dialect.element_types import is_float
from pdojo.dialect.table import MOST_ENTRIES

_Numbers: TypeAlias = NDArray[np.float64]
PLACES = (
    *("half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize", "pytorch_half_pixel"),
    *("half_pixel_symmetric", "tf_half_pixel_for_nn"),
)
"""Modes of coordinates."""


def _places(mode: str, count: int, extent: int, scale: float, region: tuple[float, float]) -> _Numbers:
    """The positions, along an axis of `extent` elements, at which `count` elements of the result are sampled."""
    y, width = np.arange(count, dtype=np.float64), scale * extent
    match mode:
        case "align_corners":
            return y * 0 if width == 1 else y * (extent - 1) / (width - 1)
        case "asymmetric":
            return y / scale
        case "tf_crop_and_resize":
            start, end = region
            if count == 1:
                return y * 0 + (start + end) * (extent - 1) / 2
            return y * (end - start) * (extent - 1) / (width - 1) + start * (extent - 1)
        case "pytorch_half_pixel":
            return y * 0 if count == 1 else (y + 0.5) / scale - 0.5
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
class Interpolation:
    """The interpolation of an image in another size."""

    mode: str
    places: str
    nearest: str
    cubic: float = -0.75
    antialias: bool = False
    exclude_outside: bool = False
    extrapolation: float = 0.0


def _neighbours(kind: Interpolation, places: _Numbers, extent: int, scale: float) -> tuple[NDArray[np.int64], _Numbers]:
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


def _interpolated(x: Array, axis: int, indices: NDArray[np.int64], factors: _Numbers, constants: Constants) -> Array:
    """The sums of neighbours along an axis; of all elements if a table of the neighbours were too large."""
    letters = "abcdefgh"[: x.rank]
    result = letters.replace(letters[axis], "z")
    if indices.size <= MOST_ENTRIES:
        shape = (*x.shape[:axis], len(indices), *x.shape[axis + 1 :], 1)
        column = reshape(table(indices.tolist()), [-1 if d == axis else 1 for d in range(x.rank)] + [indices.shape[1]])
        near = gather(x, [column if d == axis else iota(shape, "i64", d) for d in range(x.rank)])
        return contract(f"{result}t,zt->{result}", near, constants(factors, x.dtype))
    matrix = np.zeros((len(indices), x.shape[axis]))
    np.add.at(matrix, (np.arange(len(indices))[:, None], indices), factors)
    return contract(f"{letters},z{letters[axis]}->{result}", x, constants(matrix, x.dtype))


ROUNDINGS: dict[str, Callable[[_Numbers], _Numbers]] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


def resize(
    x: Array,
    axes: Sequence[int],
    counts: Sequence[int],
    scales: Sequence[float],
    kind: Interpolation,
    regions: Sequence[tuple[float, float]] | None = None,
    *,
    constants: Constants,
) -> Array:
    """The array with `counts` elements along `axes`, one axis after the other; `scales` determine these positions.

    Axes that shrink come first; of those that grow, the last one, whose elements are read one by one.
    `regions` are the parts of the axes that `tf_crop_and_resize` reads, from 0 to 1. f16 and bf16 are computed in f32,
    integers in f64 and rounded.
    """
    is_nearest, takes_float = kind.mode == "nearest", is_float(x.dtype)
    found = x if is_nearest else wide(x) if takes_float else cast(x, "f64")
    whole = (0.0, 1.0)
    rows = [*zip(axes, counts, scales, regions or [whole] * len(axes), strict=True)]
    for axis, count, scale, region in sorted(rows, key=lambda row: (0, row[0]) if row[2] < 1 else (1, -row[0])):
        if not math.isclose(scale, 1.0) or count != x.shape[axis] or region != whole:
            found = _resized(found, axis, count, scale, region, kind, constants)
    if not takes_float and not is_nearest:
        bits = int(x.dtype[1:])
        least = 0 if x.dtype[0] == "u" else -(1 << bits - 1)
        found = clip(map("roundeven", found), least, least + (1 << bits) - 1)
    return cast(found, x.dtype)


def _resized(
    x: Array,
    axis: int,
    count: int,
    scale: float,
    region: tuple[float, float],
    kind: Interpolation,
    constants: Constants,
) -> Array:
    """The array with `count` elements along an axis."""
    extent = x.shape[axis]
    places = _places(kind.places, count, extent, scale, region)
    if kind.mode == "nearest":
        nearest = np.clip(ROUNDINGS[kind.nearest](places), 0, extent - 1)
        found = take(x, [int(place) for place in nearest], axis)
    else:
        found = _interpolated(x, axis, *_neighbours(kind, places, extent, scale), constants)
    outside = (places < 0) | (places > extent - 1)
    if kind.places != "tf_crop_and_resize" or not outside.any():
        return found
    mask = constants(outside.reshape([-1 if d == axis else 1 for d in range(x.rank)]), "i1")
    return where(mask, constant(kind.extrapolation, x.dtype), found)

"""Running accumulations, and elements in order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdojo import build
from pdojo.build.operator import FLOATS, INTEGERS, array, call, operator

Values = NDArray[Any]


@operator(
    build.cumulative,
    call("+", array("3 7")),
    call("+", array("3 1 5"), -2),
    call("+", array("4 37"), 0, reverse=True),
    call("*", array("2 5"), 1, exclusive=True),
    call("+", array("2 5"), -1, exclusive=True, reverse=True),
    call("max", array("3 7"), 1),
    call("min", array("3 7"), 0, reverse=True),
    call("+", array("2 4", given=(1, np.nan, 2, 3, np.inf, 1, -np.inf, 1)), 1, types=FLOATS),
    types=(*FLOATS, *INTEGERS),
    ulps=16,
)
def cumulative(
    accumulation: str, x: Values, axis: int = -1, *, exclusive: bool = False, reverse: bool = False
) -> Values:
    """The accumulation of the elements up to each one."""
    function = {"+": np.add, "*": np.multiply, "max": np.maximum, "min": np.minimum}[accumulation]
    rows = np.moveaxis(np.flip(x, axis) if reverse else x, axis, -1)
    found = function.accumulate(rows, -1, dtype=x.dtype)
    if exclusive:
        neutral = np.full((*rows.shape[:-1], 1), 0 if accumulation == "+" else 1, x.dtype)
        found = np.concatenate([neutral, found[..., :-1]], -1)
    found = np.moveaxis(found, -1, axis)
    return np.flip(found, axis) if reverse else found


_RUNNING = (
    call(array("3 7")),
    call(array("4 1 5"), 0),
    call(array("3 9", low=-2, high=2, whole=True), -1),
    call(array("2 4", given=(1, np.nan, 2, np.nan, -np.inf, 1, np.inf, np.inf)), 1, types=FLOATS),
)


@operator(build.cumulative_max, *_RUNNING, results=("values", "indices"), types=(*FLOATS, *INTEGERS))
def cumulative_max(x: Values, axis: int = -1) -> list[Values]:
    """The greatest element up to each one, and its last index."""
    return _running(np.maximum.accumulate(x, axis), x, axis)


@operator(build.cumulative_min, *_RUNNING, results=("values", "indices"), types=(*FLOATS, *INTEGERS))
def cumulative_min(x: Values, axis: int = -1) -> list[Values]:
    """The least element up to each one, and its last index."""
    return _running(np.minimum.accumulate(x, axis), x, axis)


def _running(found: Values, x: Values, axis: int) -> list[Values]:
    indices: Values = np.arange(int(x.shape[axis]))
    places = indices.reshape([-1 if d == axis % x.ndim else 1 for d in range(x.ndim)])
    is_new: Values = (x == found) | np.isnan(x)
    latest: Any = np.maximum
    return [found, latest.accumulate(np.where(is_new, places, 0), axis)]


@operator(
    build.topk,
    call(array("3 7"), 3),
    call(array("7 1 2"), 7, 0),
    call(array("3 9", low=-2, high=2, whole=True), 4),
    call(array("3 9", low=-2, high=2, whole=True), 4, largest=False),
    call(array("2 5 3"), 1, -2, largest=False),
    call(array("2 4", given=(1, np.inf, -np.inf, -np.inf, -np.inf, 1, -np.inf, np.inf)), 3, types=FLOATS),
    results=("values", "indices"),
    types=(*FLOATS, *INTEGERS),
)
def topk(x: Values, count: int, axis: int = -1, *, largest: bool = True) -> list[Values]:
    """The greatest or least elements in order, and their indices."""
    keys = np.unique(x, return_inverse=True)[1].reshape(x.shape)
    order = np.argsort(-keys if largest else keys, axis, kind="stable")
    places = np.take(order, np.arange(count), axis)
    return [np.take_along_axis(x, places, axis), places]

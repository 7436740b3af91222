"""Norms of vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdojo import build
from pdojo.build.operator import array, call, operator

Values = NDArray[Any]


@operator(
    build.norm,
    call(array("3 5"), 2, 1),
    call(array("3 5"), 1, -1, keepdims=True),
    call(array("3 5"), 0, 0),
    call(array("3 5 2", low=-1, high=1, whole=True), 0, (0, 2)),
    call(array("3 5"), np.inf),
    call(array("3 5"), -np.inf, 1, keepdims=True),
    call(array("2 37"), 3, 1),
    call(array("2 7"), 0.5, 1),
    call(array("2 5", low=0.1, high=2), -1, 1),
    call(array("4 1"), 2, 1),
    call(array("2 3", given=(0.0, 0.0, 0.0, np.inf, 1.0, np.nan)), 2, 1),
    ulps=24,
)
def norm(x: Values, order: float = 2, axis: Any = None, *, keepdims: bool = False) -> Values:
    """The norm of an order."""
    size = np.abs(x)
    if np.isinf(order):
        return (np.max if order > 0 else np.min)(size, axis, keepdims=keepdims)
    if order == 0:
        return (x != 0).sum(axis, keepdims=keepdims).astype(x.dtype)
    return (size**order).sum(axis, keepdims=keepdims) ** (1 / order)


@operator(
    build.normalize,
    call(array("3 5")),
    call(array("3 5 2"), 1, 1),
    call(array("3 5 2"), 2, -2),
    call(array("2 3", given=(0.0, 0.0, 0.0, 3.0, 4.0, 0.0)), 2),
    call(array("4 1"), 1),
)
def normalize(x: Values, order: float = 2, axis: Any = -1) -> Values:
    """The quotient by the norm; 0 if the norm is 0."""
    total = norm(x, order, axis, keepdims=True)
    return np.where(total == 0, 0, x / total)


@operator(
    build.distance,
    call(array("3 5"), array("3 1")),
    call(array("3 5"), array("3 5"), 1),
    call(array("2 3 5"), array("5"), np.inf, -1),
    call(array("3 5"), array("1 5"), 3, 0, keepdims=True),
    call(array("3 5", low=-1, high=1, whole=True), array("1 5", low=-1, high=1, whole=True), 0),
    ulps=24,
)
def distance(x: Values, y: Values, order: float = 2, axis: Any = None, *, keepdims: bool = False) -> Values:
    """The norm of the difference."""
    return norm(x - y, order, axis, keepdims=keepdims)


@operator(
    build.distances,
    call(array("3 5"), array("2 5")),
    call(array("2 3 5"), array("2 4 5"), 1),
    call(array("3 1"), array("1 1"), np.inf),
    call(array("3 5"), array("2 5"), 3),
    call(array("3 5", low=-1, high=1, whole=True), array("2 5", low=-1, high=1, whole=True), 0),
    ulps=24,
)
def distances(x: Values, y: Values, order: float = 2) -> Values:
    """The norms of the differences of all pairs of rows."""
    return norm(x[..., None, :] - y[..., None, :, :], order, -1)

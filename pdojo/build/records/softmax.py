"""Softmax and its relatives."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdojo import build
from pdojo.build.operator import array, call, operator
from pdojo.build.softmax import log_softmax_gradient as of_log_softmax
from pdojo.build.softmax import softmax_gradient as of_softmax

Values = NDArray[Any]
_ODD = (1.0, np.nan, 2.0, np.inf, 0.0, 1.0, -np.inf, 3.0, -np.inf, *[-np.inf] * 3)


@operator(
    build.softmax,
    call(array("3 5")),
    call(array("3 5 2"), -2),
    call(array("4 1")),
    call(array("3 1 37"), axis=0),
    call(array("2 2", given=(1000.0, -1000.0, -1000.0, -1001.0))),
    call(array("3 5"), mask=array("5", "i1", given=(1, 1, 0, 1, 0))),
    call(array("3 5"), mask=array("3 1 ", low=-2, high=0)),
    call(array("2 3", given=(0.0, -np.inf, 1.0, 2.0, np.nan, 0.0))),
)
def softmax(x: Values, axis: int = -1, *, mask: Values | None = None) -> Values:
    """`exp(x) / sum(exp(x))`, of the elements for which the mask holds."""
    x = masked(x, mask)
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def masked(x: Values, mask: Values | None) -> Values:
    """The array, -inf where a mask of booleans is false, or with a mask of numbers added."""
    if mask is None:
        return x
    return np.where(mask, x, -np.inf) if mask.dtype == np.bool_ else x + mask


_GRADIENTS = (
    call(array("3 5", low=0), array("3 5"), 1),
    call(array("3 5 2", low=0), array("3 5 2"), -2),
    call(array("3 1 7", low=0), array("3 1 7"), 0),
    call(array("4 1", low=0), array("4 1")),
    call(array("0 3"), array("0 3"), 1),
)


@operator(of_softmax, *_GRADIENTS)
def softmax_gradient(y: Values, gradient: Values, axis: int = -1) -> Values:
    """The product with the Jacobian of softmax."""
    return y * (gradient - (gradient * y).sum(axis, keepdims=True))


@operator(of_log_softmax, *_GRADIENTS)
def log_softmax_gradient(y: Values, gradient: Values, axis: int = -1) -> Values:
    """The product with the Jacobian of the logarithm of softmax."""
    return gradient - np.exp(y) * gradient.sum(axis, keepdims=True)


@operator(
    build.safe_softmax,
    call(array("3 5")),
    call(array("3 5 2"), 1),
    call(array("4 3", given=(0, -np.inf, 2, *[-np.inf] * 3, 1000, 0, 1000, 1, -1000, np.nan))),
)
def safe_softmax(x: Values, axis: int = -1) -> Values:
    """Softmax; 0 where all elements are -inf."""
    is_empty = (x == -np.inf).all(axis, keepdims=True)
    return np.where(is_empty, 0, softmax(np.where(is_empty, 0, x), axis))


@operator(build.causal_softmax, call(array("1 1")), call(array("2 4 6")), call(array("6 4")), call(array("2 1 5 5")))
def causal_softmax(x: Values) -> Values:
    """Softmax of each row up to the diagonal."""
    return softmax(x, mask=np.tri(*x.shape[-2:], dtype=np.bool_))


@operator(
    build.log_softmax,
    call(array("3 5"), 0),
    call(array("3 5 2"), -2),
    call(array("4 1")),
    call(array("2 37")),
    call(array("2 2", given=(1000.0, -1000.0, -1000.0, -1001.0))),
    call(array("2 3", given=(0.0, -np.inf, 1.0, 2.0, np.nan, 0.0))),
)
def log_softmax(x: Values, axis: int = -1) -> Values:
    """The logarithm of softmax."""
    shifted = x - x.max(axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))


@operator(
    build.logsumexp,
    call(array("3 4 5"), (0, -1)),
    call(array("3 5"), keepdims=True),
    call(array("4 1"), 1),
    call(array("2 3 7"), None),
    call(array("4 3", given=_ODD)),
    call(array("3 0 2"), 1),
    call(array("2 2", given=(1000.0, -1000.0, -1000.0, -1001.0))),
)
def logsumexp(x: Values, axis: Any = -1, *, keepdims: bool = False) -> Values:
    """The logarithm of the sum of the exponentials."""
    if not x.size:
        return np.log(x.sum(axis, keepdims=keepdims))
    most = x.max(axis, keepdims=True)
    finite = np.where(np.isinf(most), 0, most)
    found = np.log(np.exp(x - finite).sum(axis, keepdims=True)) + finite
    return found if keepdims else found.squeeze(axis)


@operator(
    build.hardmax,
    call(array("3 5")),
    call(array("3 7", low=-2, high=2, whole=True), 0),
    call(array("3 1 2"), 1),
    call(array("2 3", given=(1, 5, 5, np.nan, 7, np.nan))),
)
def hardmax(x: Values, axis: int = -1) -> Values:
    """1 for the first of the greatest elements."""
    found = np.zeros_like(x)
    np.put_along_axis(found, x.argmax(axis, keepdims=True), 1, axis)
    return found

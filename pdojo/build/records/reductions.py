"""Reductions along axes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdojo import build
from pdojo.build.operator import FLOATS, INTEGERS, array, call, operator

Values = NDArray[Any]
_MANY = (
    call(array("3 1 5"), -1),
    call(array("3 1 5"), (0, -1), keepdims=True),
    call(array("2 3 37"), 1),
    call(array("3 5")),
    call(array("3 5"), ()),
    call(array("1 1"), (0, 1)),
)
_ODD = call(array("4 3", given=(1, np.nan, 2, np.inf, 0, 1, -np.inf, 3, -np.inf, *[-np.inf] * 3)), 1, types=FLOATS)
_NONE = call(array("3 0 2"), 1)


@operator(build.sum, *_MANY, _ODD, _NONE, types=(*FLOATS, *INTEGERS))
def sum(x: Values, axis: Any = None, *, keepdims: bool = False) -> Values:
    """The sum; that of integers wraps around."""
    return x.sum(axis, dtype=x.dtype, keepdims=keepdims)


@operator(build.prod, *_MANY, _ODD, _NONE, types=(*FLOATS, *INTEGERS))
def prod(x: Values, axis: Any = None, *, keepdims: bool = False) -> Values:
    """The product; that of integers wraps around."""
    return x.prod(axis, dtype=x.dtype, keepdims=keepdims)


_TIES = call(array("3 7", low=-2, high=2, whole=True), 1)


@operator(build.max, *_MANY, _ODD, _TIES, types=(*FLOATS, *INTEGERS))
def max(x: Values, axis: Any = None, *, keepdims: bool = False) -> Values:
    """The greatest element."""
    return x.max(axis, keepdims=keepdims)


@operator(build.min, *_MANY, _ODD, _TIES, types=(*FLOATS, *INTEGERS))
def min(x: Values, axis: Any = None, *, keepdims: bool = False) -> Values:
    """The least element."""
    return x.min(axis, keepdims=keepdims)


@operator(
    build.reduce,
    call("+", array("3 1 5"), (0, -1), initial=3),
    call("*", array("2 7"), -1, keepdims=True),
    call("max", array("3 0 2"), 1, initial=-4, keepdims=True),
    call("min", array("3 5"), 0, initial=0),
    call("and", array("3 5", "i32")),
    call("or", array("3 5", "u8"), 1),
    types=(*FLOATS, *INTEGERS),
)
def reduce(accumulation: str, x: Values, axis: Any = None, *, keepdims: bool = False, initial: Any = None) -> Values:
    """A named accumulation."""
    functions = {"+": np.add, "*": np.multiply, "max": np.maximum, "min": np.minimum}
    functions |= {"and": np.bitwise_and, "or": np.bitwise_or}
    start = {} if initial is None else {"initial": initial}
    axes = tuple(range(x.ndim)) if axis is None else axis
    return functions[accumulation].reduce(x, axes, x.dtype, keepdims=keepdims, **start)


_TRUTH = (
    call(array("3 1 5", low=0, high=2, whole=True), -1),
    call(array("3 4", "i1"), (0, 1), keepdims=True),
    call(array("3 5", "i1"), ()),
    call(array("2 3", given=(0.0, -0.0, 0.0, np.nan, 0.0, 0.0)), 1, types=FLOATS),
    call(array("3 0 2"), 1),
)


@operator(build.any, *_TRUTH, types=("f32", "i32", "u8", "f64"))
def any(x: Values, axis: Any = None, *, keepdims: bool = False) -> Values:
    """Whether an element is not 0."""
    return (x != 0).any(axis, keepdims=keepdims)


@operator(build.all, *_TRUTH, types=("f32", "i32", "u8", "f64"))
def all(x: Values, axis: Any = None, *, keepdims: bool = False) -> Values:
    """Whether no element is 0."""
    return (x != 0).all(axis, keepdims=keepdims)


@operator(build.mean, *_MANY, _ODD, _NONE)
def mean(x: Values, axis: Any = None, *, keepdims: bool = False) -> Values:
    """The mean."""
    return x.mean(axis, keepdims=keepdims)


_CORRECTED = (
    *_MANY[:4],
    _ODD,
    call(array("3 5"), -1, correction=1),
    call(array("2 3 4"), (0, 2), correction=2, keepdims=True),
    call(array("2 5"), -1, correction=0.5),
    call(array("3 1 5"), 1, correction=2),
    call(array("4 1"), 1, correction=1),
)


@operator(build.var_mean, *_CORRECTED, results=("variance", "mean"))
def var_mean(x: Values, axis: Any = None, *, correction: float = 0, keepdims: bool = False) -> list[Values]:
    """The squared deviations from the mean by their number less `correction`, which is 0 at least; the mean."""
    squares = np.square(x - x.mean(axis, keepdims=True)).sum(axis, keepdims=keepdims)
    count = x.size // np.size(squares) - correction
    return [np.divide(squares, count if count > 0 else 0), x.mean(axis, keepdims=keepdims)]


@operator(build.var, *_CORRECTED[4:8])
def var(x: Values, axis: Any = None, *, correction: float = 0, keepdims: bool = False) -> Values:
    """The variance."""
    return var_mean(x, axis, correction=correction, keepdims=keepdims)[0]


@operator(build.std, *_CORRECTED[4:6], *_CORRECTED[8:])
def std(x: Values, axis: Any = None, *, correction: float = 0, keepdims: bool = False) -> Values:
    """The standard deviation."""
    return np.sqrt(var(x, axis, correction=correction, keepdims=keepdims))


@operator(build.sum_squares, *_MANY, _NONE, types=(*FLOATS, *INTEGERS))
def sum_squares(x: Values, axis: Any = None, *, keepdims: bool = False) -> Values:
    """The sum of the squares; that of integers wraps around."""
    return (x * x).sum(axis, dtype=x.dtype, keepdims=keepdims)


@operator(
    build.log_sum,
    call(array("3 1 5", low=0.1, high=2), -1),
    call(array("2 3 37", low=0.1, high=2), (0, 1), keepdims=True),
    call(array("2 2", given=(0.0, 0.0, -1.0, 0.5)), 1),
)
def log_sum(x: Values, axis: Any = None, *, keepdims: bool = False) -> Values:
    """The logarithm of the sum."""
    return np.log(x.sum(axis, keepdims=keepdims))


_PLACES = (
    call(array("3 5")),
    call(array("3 7", low=-2, high=2, whole=True), 1),
    call(array("3 7", low=-2, high=2, whole=True), -1, last=True),
    call(array("3 1 5"), 1, keepdims=True),
    call(array("5 3 2", low=0, high=2, whole=True), 0, keepdims=True, last=True),
    call(array("4 3", given=(1, np.nan, 2, np.nan, np.nan, 1, -np.inf, 3, 3, *[-np.inf] * 3)), 1, types=FLOATS),
    call(
        array("4 3", given=(1, np.nan, 2, np.nan, np.nan, 1, -np.inf, 3, 3, *[-np.inf] * 3)), 1, last=True, types=FLOATS
    ),
    call(array("2 5", "i1", given=(0, 1, 1, 0, 0, 0, 0, 0, 0, 0)), 1),
    call(array("3 7", low=-2, high=2), -1, last=True, keepdims=True, types=("i8",)),
)


@operator(build.argmax, *_PLACES, types=(*FLOATS, *INTEGERS))
def argmax(x: Values, axis: int = -1, *, keepdims: bool = False, last: bool = False) -> Values:
    """The index of the greatest element: the first of equal ones, or the last; NaN is greater than all."""
    if not last:
        return x.argmax(axis, keepdims=keepdims)
    return x.shape[axis] - 1 - np.flip(x, axis).argmax(axis, keepdims=keepdims)


@operator(build.argmin, *_PLACES, types=(*FLOATS, *INTEGERS))
def argmin(x: Values, axis: int = -1, *, keepdims: bool = False, last: bool = False) -> Values:
    """The index of the least element: the first of equal ones, or the last; NaN is less than all."""
    if not last:
        return x.argmin(axis, keepdims=keepdims)
    return x.shape[axis] - 1 - np.flip(x, axis).argmin(axis, keepdims=keepdims)

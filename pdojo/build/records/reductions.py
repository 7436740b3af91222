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


_SPREAD = (*_MANY[:4], _ODD)
_CORRECTED = (*_SPREAD, call(array("3 5"), -1, correction=1), call(array("2 3 4"), (0, 2), correction=2, keepdims=True))


@operator(build.var, *_CORRECTED, call(array("3 1 5"), 1, correction=2), call(array("4 1"), 1, correction=1))
def var(x: Values, axis: Any = None, *, correction: float = 0, keepdims: bool = False) -> Values:
    """The sum of the squared deviations from the mean by their number less `correction`, which is 0 at least."""
    squares = np.square(x - x.mean(axis, keepdims=True)).sum(axis, keepdims=keepdims)
    count = x.size // max(squares.size, 1)
    return squares / max(0, count - correction)

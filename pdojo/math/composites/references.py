"""Functions of f64 arrays that NumPy lacks, exact to some units in the last place; some need mpmath."""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Values: TypeAlias = NDArray[np.float64]


def _each(function: Callable[[float], float]) -> Callable[[Any], Values]:
    """A function of numbers as one of arrays; NaN where the function is not defined."""

    def of(number: float) -> float:
        try:
            return math.nan if math.isnan(number) else function(number)
        except (ValueError, ZeroDivisionError):
            return math.nan

    return np.vectorize(of, otypes=[np.float64])


def _mpmath(function: Callable[[Any, Any], Any], *, odd: bool = False) -> Callable[[Any], Values]:
    """A function of mpmath's context and numbers, with 40 digits; an odd one keeps the sign of 0."""

    def of(number: float) -> float:
        if odd and number == 0:
            return number
        context: Any = import_module("mpmath").mp.clone()
        context.dps = 40
        return float(function(context, context.mpf(number)))

    return _each(of)


def sigmoid(x: Any) -> Values:
    """`1 / (1 + exp(-x))`."""
    return np.asarray(1 / (1 + np.exp(-x)))


def softplus(x: Any) -> Values:
    """`log(1 + exp(x))`."""
    return np.logaddexp(x, 0)


def _lgamma(x: float) -> float:
    return math.inf if x == -math.inf or (x <= 0 and x.is_integer()) else math.lgamma(x)


def _digamma(m: Any, x: Any) -> Any:
    return m.nan if x == -m.inf or (x <= 0 and m.isint(x)) else x if x == m.inf else m.digamma(x)


def digamma(x: Any) -> Values:
    """The derivative of the logarithm of the gamma function."""
    return np.where(x == 0, np.copysign(np.inf, -x), _mpmath(_digamma)(x))


def _erfinv(m: Any, x: Any) -> Any:
    return x * m.inf if abs(x) == 1 else m.erfinv(x) if abs(x) < 1 else m.nan


def _bessel(order: int, scaled: bool) -> Callable[[Any], Values]:
    """A modified Bessel function of the first kind, perhaps times `exp(-|x|)`; NaN at infinities, as PyTorch's."""

    def of(m: Any, x: Any) -> Any:
        if m.isinf(x):
            return m.sign(x) ** order * 0 if scaled else m.nan
        return m.besseli(order, x) * (m.exp(-abs(x)) if scaled else 1)

    return _mpmath(of, odd=order == 1)


erfc = _each(math.erfc)
lgamma = _each(_lgamma)
erfinv = _mpmath(_erfinv, odd=True)
erfcx = _mpmath(lambda m, x: 0 if x == m.inf else m.inf if x < -1e5 else m.exp(x * x) * m.erfc(x))
sinc = _mpmath(lambda m, x: m.nan if m.isinf(x) else m.sincpi(x))
i0, i0e, i1, i1e = _bessel(0, False), _bessel(0, True), _bessel(1, False), _bessel(1, True)

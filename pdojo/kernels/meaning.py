"""What the library kernels mean: NumPy in float64, independent of the dialect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdojo.errors import UsageError

Array: TypeAlias = NDArray[Any]
Meaning: TypeAlias = Callable[..., list[Array]]
"""The inputs of a kernel, in order, to the arrays that it writes, in order."""

_EPSILON = 1e-5


def _add(x: Array, y: Array) -> list[Array]:
    return [x + y]


def _relu(x: Array) -> list[Array]:
    return [np.maximum(x, 0.0)]


def _reducemean(x: Array) -> list[Array]:
    return [x.mean(axis=1)]


def _matmul(a: Array, b: Array) -> list[Array]:
    return [a @ b]


def _softmax(x: Array) -> list[Array]:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return [e / e.sum(axis=1, keepdims=True)]


def _layernorm(x: Array, g: Array, b: Array) -> list[Array]:
    centred = x - x.mean(axis=1, keepdims=True)
    variance = np.square(centred).mean(axis=1, keepdims=True)
    return [centred / np.sqrt(variance + _EPSILON) * g + b]


def _rmsnorm(x: Array, w: Array) -> list[Array]:
    return [x / np.sqrt(np.square(x).mean(axis=1, keepdims=True) + _EPSILON) * w]


_MEANINGS: dict[str, Meaning] = {
    "add": _add,
    "layernorm": _layernorm,
    "matmul": _matmul,
    "reducemean": _reducemean,
    "relu": _relu,
    "rmsnorm": _rmsnorm,
    "softmax": _softmax,
}


def meaning(name: str) -> Meaning:
    """The meaning of a library kernel, on inputs of any floating-point type; the results are float64.

    Raises UsageError for a kernel whose meaning is not known.
    """
    if name not in _MEANINGS:
        raise UsageError(f"there is no NumPy meaning of '{name}'; known: {', '.join(_MEANINGS)}")
    plain = _MEANINGS[name]
    return lambda *inputs: plain(*(np.asarray(array, np.float64) for array in inputs))

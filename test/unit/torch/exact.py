"""Exact results of elementwise operators: NumPy in f64, whose odd cases do not depend on a processor's code path."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

Values = NDArray[Any]

_erf = np.vectorize(math.erf, otypes=[np.float64])


def _sigmoid(x: Values) -> Values:
    return 1 / (1 + np.exp(-x))


def _sign(x: Values) -> Values:
    """PyTorch's sign, which is 0 for NaN."""
    return (x > 0).astype(np.float64) - (x < 0)


def _between(x: Values) -> Values:
    """`x + 3` between 0 and 6."""
    return np.clip(x + 3, 0, 6)


_NAMED = "abs exp exp2 expm1 log log2 log10 log1p sqrt sin cos tan sinh cosh tanh ceil floor trunc isnan isinf signbit"

FUNCTIONS: dict[str, Callable[[Values], Values]] = {
    **{name: getattr(np, name) for name in _NAMED.split()},
    **{f"a{name}": getattr(np, f"arc{name}") for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    "neg": np.negative,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "reciprocal": lambda x: 1 / x,
    "round": np.rint,
    "sign": _sign,
    "sgn": _sign,
    "erf": _erf,
    "sigmoid": _sigmoid,
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: x * 0.5 * (1 + _erf(x / np.sqrt(2))),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "mish": lambda x: x * np.tanh(np.logaddexp(x, 0)),
    "hardswish": lambda x: x * _between(x) / 6,
    "hardsigmoid": lambda x: _between(x) / 6,
    "logical_not": np.logical_not,
}
PAIRS: dict[str, Callable[[Values, Values], Values]] = {
    **{"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "pow": np.power},
    **{"maximum": np.maximum, "minimum": np.minimum, "fmax": np.fmax, "fmin": np.fmin},
    **{"atan2": np.arctan2, "copysign": np.copysign, "hypot": np.hypot, "logical_xor": np.logical_xor},
    **{"eq": np.equal, "ne": np.not_equal, "lt": np.less, "ge": np.greater_equal},
    **{"remainder": np.remainder, "fmod": np.fmod},
    "nextafter": lambda x, y: np.nextafter(x.astype(np.float32), y.astype(np.float32)),
}


def exact(function: Callable[..., Values], *arguments: Any) -> Any:
    """The results of a function of tensors, in f64 or as truth values."""
    with np.errstate(all="ignore"):
        found = function(*[each.double().numpy() for each in arguments])
    return torch.from_numpy(found if found.dtype == np.bool_ else found.astype(np.float64))

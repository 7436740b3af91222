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


def _sign(x: Values) -> Values:
    """PyTorch's sign, which is 0 for NaN."""
    return (x > 0).astype(np.float64) - (x < 0)


_NAMED = "abs exp exp2 expm1 log log2 log1p sqrt sin cos tanh ceil floor trunc"

FUNCTIONS: dict[str, Callable[[Values], Values]] = {
    **{name: getattr(np, name) for name in _NAMED.split()},
    "atan": np.arctan,
    "neg": np.negative,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "round": np.rint,
    "sgn": _sign,
    "erf": _erf,
    "logical_not": np.logical_not,
}
PAIRS: dict[str, Callable[[Values, Values], Values]] = {
    **{"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "pow": np.power},
    **{"maximum": np.maximum, "minimum": np.minimum, "copysign": np.copysign, "logical_xor": np.logical_xor},
    **{"eq": np.equal, "ne": np.not_equal, "lt": np.less, "ge": np.greater_equal},
    "fmod": np.fmod,
    "nextafter": lambda x, y: np.nextafter(x.astype(np.float32), y.astype(np.float32)),
}


def exact(function: Callable[..., Values], *arguments: Any) -> Any:
    """The results of a function of tensors, in f64 or as truth values."""
    with np.errstate(all="ignore"):
        found = function(*[each.double().numpy() for each in arguments])
    return torch.from_numpy(found if found.dtype == np.bool_ else found.astype(np.float64))

"""Functions of the bits of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdojo.build import bits
from pdojo.build.operator import INTEGERS, array, call, operator

Values = NDArray[Any]
_ODD = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e-40, 2.0**-1022, 1e30, np.inf, -np.inf, np.nan)
_LEFT, _RIGHT = (array("144", given=[pair[k] for pair in ((a, b) for a in _ODD for b in _ODD)]) for k in (0, 1))
_TYPES = {"f64": np.float64, "f32": np.float32}


@operator(
    bits.next_after, call(array("3 1"), array("5")), call(array("3"), array("")), call(_LEFT, _RIGHT),
    types=tuple(_TYPES), ulps=0,
)  # fmt: skip
def next_after(x: Values, y: Values, *, element: str) -> Values:
    """The next number of the element type."""
    kind = _TYPES[element]
    return np.nextafter(x.astype(kind), y.astype(kind)).astype(np.float64)


@operator(
    bits.frexp, call(array("3 5")), call(array("12", given=_ODD)), call(array("4", given=[6e-8, 1e-45, 6e4, 3e38])),
    results=("result", "exponents"), types=("f32", "f16", "bf16"), ulps=0,
)  # fmt: skip
def frexp(x: Values) -> list[Values]:
    """Mantissas and exponents."""
    return [*np.frexp(x)]


_COUNTS = array("9", given=[0, 1, 5, 7, 8, 31, 63, 64, 100])


@operator(
    bits.shift,
    *(call(sign, array("9"), _COUNTS) for sign in ("<<", ">>")),
    *(
        call(sign, array("9"), array("9", given=[-1, -7, 0, 3, 1, 2, 4, 5, 6]), types=INTEGERS[:4])
        for sign in ("<<", ">>")
    ),
    call(">>", array("2 3"), array("", given=[2])),
    call("<<", array("3 1"), array("4", low=0, high=9)),
    *(call(sign, array("5"), count) for sign in ("<<", ">>") for count in (-1, 3, 64)),
    types=INTEGERS,
)
def shift(sign: str, x: Values, count: Values) -> Values:
    """The shift of the bits, by all of them if the count is no number of bits."""
    width = x.dtype.itemsize * 8
    wide = np.broadcast_arrays(x, count)
    found = [
        (int(a) << int(n) if 0 <= n < width else 0) if sign == "<<" else int(a) >> (int(n) if 0 <= n < width else width)
        for a, n in zip(*(each.reshape(-1) for each in wide), strict=True)
    ]
    return np.array([each % (1 << width) for each in found], np.uint64).astype(x.dtype).reshape(wide[0].shape)


@operator(
    bits.integer_power,
    call(array("3 1"), array("5", "u8", low=0, high=7)),
    call(array("4"), array("4", "i8", given=[0, 1, 70, -1])),
    call(array("3"), array("", "i16", given=[300])),
    types=INTEGERS,
)
def integer_power(x: Values, exponent: Values) -> Values:
    """The power modulo 2^bits."""
    base, power = np.broadcast_arrays(x, exponent)
    modulus, most = (1 << each.dtype.itemsize * 8 for each in (x, exponent))
    found = [pow(int(a), int(n) % most, modulus) for a, n in zip(base.reshape(-1), power.reshape(-1), strict=True)]
    return np.array(found, np.uint64).astype(x.dtype).reshape(base.shape)

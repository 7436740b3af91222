"""Functions of elements, as operators: those of statements, and composites (`pdojo.math.composites`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdojo import build
from pdojo.build import Array
from pdojo.build.operator import FLOATS, INTEGERS, Sample, array, call, operator
from pdojo.dialect.element_types import WIDE
from pdojo.dialect.notation.spelling import CALLS, INFIX
from pdojo.math.composites import COMPOSITES
from pdojo.math.composites.record import Precision
from pdojo.math.composites.samples import MODERATE, ODD
from pdojo.math.functions import FUNCTIONS

_SMALL, _LARGE = 1e-6, 10.0
"""The sizes of numbers whose results are judged together: errors are relative to the largest result."""


def _function(name: str, function: str, *, is_wide: bool) -> Callable[..., Array]:
    """The function of handles that `build.map` has."""

    def mapped(*operands: Array, **parameters: Any) -> Array:
        return build.map(function, *operands, **parameters)

    mapped.__name__ = name
    vars(mapped)["policy"] = WIDE if is_wide else {}
    return mapped


def _samples(
    count: int,
    numbers: Sequence[float],
    domain: tuple[float, float] = (-np.inf, np.inf),
    *,
    variants: Sequence[Mapping[str, Any]] = ({},),
    types: Sequence[str] | None = None,
) -> list[Sample]:
    """Calls with moderate numbers of the domain for all variants, and one with tiny, large and odd ones, and NaN."""
    low, high = domain
    known = [each for each in numbers if not each < low and not each > high]
    moderate = [x for x in known if x == 0 or _SMALL <= abs(x) <= _LARGE]
    odd = [each for each in known if each not in moderate]

    def made(numbers: list[float], **parameters: Any) -> Sample:
        rows = list(zip(*product(numbers, repeat=count), strict=True))
        return call(*(array(str(len(row)), given=row) for row in rows), types=types, **parameters)

    calls = [made(moderate, **parameters) for parameters in variants]
    return [*calls, made([*odd, 0.0, -0.0, *[1.0] * (low <= 1)])]


for _record in COMPOSITES.values():
    _accuracy = _record.accuracy
    # References of f64 round, too.
    _ulps = _accuracy.ulps + _accuracy.beside + 2
    # Steps of functions without an error are exact for halves only, in f64 as in other types.
    _numbers = (*(MODERATE if _accuracy.ulps else ()), *ODD, *_record.points)
    _calls = _samples(len(_record.operands), _numbers, _record.domain, variants=_record.variants)
    _types = FLOATS if _record.precision is not Precision.DOUBLE else FLOATS[1:]
    _built = _function(_record.name, _record.name, is_wide=_record.precision is not Precision.OWN)
    operator(_built, *_calls, types=_types, ulps=_ulps)(_record.exact)


def _rsqrt(x: NDArray[Any]) -> NDArray[Any]:
    return 1 / np.sqrt(x)


_NUMBERS = (*MODERATE, *ODD)
_PAIRS = (
    *(call(array("3 5"), array("3 5"), types=INTEGERS), call(array("2 1 3"), array("4 1"), types=(*INTEGERS, "f16"))),
    *(call(array("2 3"), array("")), call(array("0 3"), array("3"))),
)
"""Calls of two operands whose shapes broadcast."""


def _of_statements(function: str, reference: Callable[..., Any], name: str = "", *, integers: bool = False) -> None:
    """Give a function of statements a record: of one operand or two, of numbers or of integers too."""
    found = FUNCTIONS[(CALLS.get(function) or INFIX[function])[0]]
    calls = _samples(found.arity, _NUMBERS, types=FLOATS)
    if integers:
        calls += _PAIRS if found.arity == 2 else [call(array("3 5"), types=INTEGERS)]
    ulps = 1 if found.bound is None else found.bound.f64 + 2
    built = _function(name or function, function, is_wide=found.bound is not None)
    operator(built, *calls, types=(*FLOATS, *INTEGERS) if integers else FLOATS, ulps=ulps)(reference)


for _name in ("exp", "exp2", "expm1", "log", "log2", "log1p", "sqrt", "sin", "cos", "tanh", "ceil", "floor", "trunc"):
    _of_statements(_name, getattr(np, _name))
_of_statements("abs", np.abs, integers=True)
_of_statements("atan", np.arctan)
_of_statements("erf", np.vectorize(math.erf, otypes=[np.float64]))
_of_statements("roundeven", np.rint)
_of_statements("rsqrt", _rsqrt)
_of_statements("pow", np.power)
_of_statements("copysign", np.copysign)
_of_statements("rem", np.fmod, "fmod")
_of_statements("/", np.true_divide, "divide")
_NAMED = {
    **{"+": "add", "-": "subtract", "*": "multiply", "max": "maximum", "min": "minimum", "==": "equal"},
    **{"!=": "not_equal", "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal"},
}
for _sign, _name in _NAMED.items():
    _of_statements(_sign, getattr(np, _name), _name, integers=True)


def _of_integers(sign: str, name: str, *samples: Sample, types: Sequence[str] = INTEGERS) -> None:
    operator(_function(name, sign, is_wide=False), *samples, types=types)(getattr(np, name))


for _sign, _name in {"&": "bitwise_and", "|": "bitwise_or", "^": "bitwise_xor"}.items():
    _of_integers(_sign, _name, *_PAIRS[2:], call(array("3 5"), array("3 5")), types=(*INTEGERS, "i1"))
_COUNTS = tuple(range(8))
for _sign, _name in {"<<": "left_shift", ">>": "right_shift"}.items():
    _of_integers(_sign, _name, call(array("8"), array("8", given=_COUNTS)), call(array("2 3"), array("", given=(3,))))


@operator(
    build.where,
    call(array("3 5", "i1"), array("3 5"), array("3 5")),
    call(array("3 1", "i1"), array("5"), array("")),
    call(array("0 5", "i1"), array("5"), array("5")),
    call(array("3", "i1"), array("3", given=(np.nan, 1, np.inf)), array("3", given=(0, np.nan, np.nan)), types=FLOATS),
    types=(*FLOATS, *INTEGERS),
)
def where(condition: NDArray[Any], x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    """The elements of one of two arrays."""
    return np.where(condition, x, y)

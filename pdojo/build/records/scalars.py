"""Composite functions of elements, as operators: their records are in `pdojo.math.composites`."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

from pdojo import build
from pdojo.build import Array
from pdojo.build.operator import FLOATS, Sample, array, call, operator
from pdojo.build.policy import ROUNDED_ONCE
from pdojo.math.composites import COMPOSITES, Composite
from pdojo.math.composites.record import Precision
from pdojo.math.composites.samples import MODERATE, ODD

_SMALL, _LARGE = 1e-6, 10.0
"""The sizes of numbers whose results are judged together: errors are relative to the largest result."""


def _function(record: Composite) -> Callable[..., Array]:
    """The function of handles."""

    def function(*operands: Array, **parameters: Any) -> Array:
        return build.map(record.name, *operands, **parameters)

    function.__name__ = record.name
    vars(function)["policy"] = {} if record.precision is Precision.OWN else ROUNDED_ONCE
    return function


def _samples(record: Composite) -> list[Sample]:
    """Calls with moderate numbers for all parameters, and one with tiny and large ones, infinities and NaN."""
    count, (low, high) = len(record.operands), record.domain
    known = [each for each in (*ODD, *record.points) if not each < low and not each > high]
    # Steps of functions without an error are exact for halves only, in f64 as in other types.
    numbers = (*MODERATE, *known) if record.accuracy.ulps else known
    moderate = [x for x in numbers if low <= x <= high and (x == 0 or _SMALL <= abs(x) <= _LARGE)]
    odd = [each for each in known if each not in moderate]

    def made(numbers: list[float], **parameters: Any) -> Sample:
        rows = list(zip(*product(numbers, repeat=count), strict=True))
        return call(*(array(str(len(row)), given=row) for row in rows), **parameters)

    calls = [made(moderate, **parameters) for parameters in record.variants]
    return [*calls, made([*odd, 0.0, -0.0, *[1.0] * (low <= 1)])]


for _record in COMPOSITES.values():
    _accuracy = _record.accuracy
    # References of f64 round, too.
    _ulps = _accuracy.ulps + _accuracy.beside + 2
    _types = FLOATS if _record.precision is not Precision.DOUBLE else FLOATS[1:]
    operator(_function(_record), *_samples(_record), types=_types, ulps=_ulps)(_record.exact)

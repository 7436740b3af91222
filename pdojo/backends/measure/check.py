"""Comparison of a result with a reference, within a tolerance for rounding.

An element may differ from the reference by

    eps * (16 + 2 L) * (|reference| + mean |reference|)

where `eps` is the distance from 1 to the next value of the element type, and `L` is the number of terms of the longest
chain of rounded accumulations: sums may be reordered, and the error of a sum of n terms is at most about n eps times
the sum of their magnitudes, estimated by the mean magnitude of the array. An array computed from values of a less
precise type has the `eps` of that type: an array of f64 may hold casts of sums of f32. If the kernel permits `tf32`,
factors of products of f32 may have 11 significant bits; then sums of such products, and all values computed from them,
get 16 * 2**-10 on top of `eps * (16 + 2 L)`. Integers and booleans must be equal. NaN equals NaN, and infinities equal
themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdojo.backends.calling.arrays import Parameter
from pdojo.dialect.attributes import Numerics
from pdojo.dialect.functions import is_float
from pdojo.dialect.semantics.rounding import from_interface
from pdojo.dialect.view.nest import Leaf, Nest

EPSILON = {"f64": 2.0**-52, "f32": 2.0**-23, "f16": 2.0**-10, "bf16": 2.0**-7}
"""Distance from 1 to the next value, keyed by element type."""
_ROUNDED = ("arith.addf", "arith.mulf")
"""Accumulations whose order matters."""
_TF32 = 16 * 2.0**-10
"""Tolerance added for factors rounded to tf32."""
_CHUNK = 1 << 20
"""Elements per step of the comparison."""


@dataclass(frozen=True)
class Rounding:
    """Rounding in programs for one kernel."""

    terms: int = 0
    """Number of terms of the longest chain of rounded accumulations."""
    types: Mapping[str, str] = field(default_factory=dict[str, str])
    """The least precise type that an array is computed from, keyed by array; missing arrays have their own."""
    short: frozenset[str] = frozenset()
    """Arrays computed from sums of products whose factors may be rounded to tf32."""

    @staticmethod
    def of(nest: Nest) -> Rounding:
        """The rounding in a program."""
        return Rounding(accumulated_terms(nest), _rounded_types(nest), _short_products(nest))

    def __or__(self, other: Rounding) -> Rounding:
        """The coarser rounding of two programs."""
        names = {**self.types, **other.types}
        types = {name: _coarsest(known[name] for known in (self.types, other.types) if name in known) for name in names}
        return Rounding(max(self.terms, other.terms), types, self.short | other.short)

    def factor(self, parameter: Parameter) -> float:
        """The tolerance of an element, relative to the sum of its magnitude and the mean magnitude of its array."""
        factor = tolerance_factor(self.types.get(parameter.name, parameter.dtype), self.terms)
        return factor + _TF32 if parameter.name in self.short else factor


def _rounded_types(nest: Nest) -> dict[str, str]:
    """The least precise type among the rounded values that each array is computed from."""
    outputs = [leaf.output.array for leaf in nest.leaves]
    found = {array.name: array.dtype for array in outputs if is_float(array.dtype)}
    before: dict[str, str] | None = None
    while found != before:
        before = dict(found)
        for leaf, array in zip(nest.leaves, outputs, strict=True):
            names = (array.name, *(access.array.name for access in leaf.reads))
            if types := [found[name] for name in names if name in found]:
                found[array.name] = _coarsest(types)
    return found


def _short_products(nest: Nest) -> frozenset[str]:
    """Arrays computed from sums of products of f32, if the kernel permits factors in tf32."""
    if Numerics.TF32 not in nest.kernel.permitted:
        return frozenset()
    sums = (
        leaf.output.array for leaf in nest.leaves if leaf.accumulate == "arith.addf" and leaf.function == "arith.mulf"
    )
    found = {array.name for array in sums if array.dtype == "f32"}
    count = 0
    while count != len(found):
        count = len(found)
        readers = (leaf for leaf in nest.leaves if any(access.array.name in found for access in leaf.reads))
        found |= {leaf.output.array.name for leaf in readers}
    return frozenset(found)


def _coarsest(types: Iterable[str]) -> str:
    return max(types, key=EPSILON.__getitem__)


def accumulated_terms(nest: Nest) -> int:
    """An upper bound of the terms in a chain of rounded accumulations: the sum over all such statements."""
    return sum(_terms(leaf) for leaf in nest.leaves if leaf.accumulate in _ROUNDED)


def _terms(leaf: Leaf) -> int:
    kept = {v for e in leaf.output.index for v in e.variables()}
    return prod(s.extent for s in leaf.chain if s.depth not in kept)


def tolerance_factor(dtype: str, terms: int) -> float:
    """The tolerance of an element, relative to the sum of its magnitude and the mean magnitude of its array."""
    return EPSILON[dtype] * (16 + 2 * terms)


@dataclass(frozen=True)
class Error:
    """The largest errors of one or several arrays; infinite if a differing element or its reference is not finite."""

    fraction: float = 0.0
    """Largest error as a fraction of the tolerance."""
    absolute: float = 0.0
    relative: float = 0.0
    """Largest error as a fraction of the magnitude of the element plus the mean magnitude of its array."""

    def __or__(self, other: Error) -> Error:
        """The larger value of each kind of error."""
        return Error(
            max(self.fraction, other.fraction),
            max(self.absolute, other.absolute),
            max(self.relative, other.relative),
        )


_UNLIKE = Error(np.inf, np.inf, np.inf)


def compare(
    parameter: Parameter,
    result: NDArray[Any],
    reference: NDArray[Any],
    rounding: Rounding,
    largest: float | None = None,
) -> tuple[Error, str | None]:
    """The largest errors, and a message about the first wrong element; None if all are right.

    `result` and `reference` have the shape of the parameter; the reference may be of a wider type. A relative error
    above `largest` is wrong even if the tolerance is larger.
    """
    if reference.shape != parameter.shape:
        return _UNLIKE, (
            f"the reference of array '{parameter.name}' has shape {reference.shape}, not {parameter.shape}"
        )
    if not is_float(parameter.dtype):
        wrong = np.flatnonzero(result != reference)
        if not wrong.size:
            return Error(), None
        return _UNLIKE, _describe(parameter, result, reference, int(wrong[0]), wrong.size)
    factor = rounding.factor(parameter)
    return _compare_floats(parameter, result, reference, factor if largest is None else min(factor, largest))


def _compare_floats(
    parameter: Parameter, result: NDArray[Any], reference: NDArray[Any], factor: float
) -> tuple[Error, str | None]:
    got, want = result.reshape(-1), reference.reshape(-1)
    scale = _mean_magnitude(want, parameter.dtype)
    worst, first, count = Error(), -1, 0
    for start in range(0, want.size, _CHUNK):
        run = slice(start, start + _CHUNK)
        here = (_wide(got[run], parameter.dtype), _wide(want[run], parameter.dtype))
        absolute, relative = _errors(*here, scale)
        wrong = np.flatnonzero(relative > factor)
        if wrong.size and first < 0:
            first = start + int(wrong[0])
        count += wrong.size
        largest = float(relative.max())
        worst |= Error(largest / factor, float(absolute.max()), largest)
    if count:
        shown, expected = (_wide(a, parameter.dtype).reshape(parameter.shape) for a in (got, want))
        return worst, _describe(parameter, shown, expected, first, count)
    return worst, None


def _errors(got: NDArray[Any], want: NDArray[Any], scale: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Errors of elements, absolute and relative; infinite if values differ and one of them is not finite."""
    with np.errstate(all="ignore"):
        difference = np.abs(got - want)
        relative = np.where(difference == 0, 0.0, difference / (np.abs(want) + scale))
    finite = np.isfinite(want) & np.isfinite(got)
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    unlike = np.where(same, 0.0, np.inf)
    return np.where(finite, difference, unlike), np.where(finite, relative, unlike)


def _mean_magnitude(values: NDArray[Any], dtype: str) -> float:
    """Mean magnitude of the finite elements."""
    total, count = 0.0, 0
    for start in range(0, values.size, _CHUNK):
        chunk = np.abs(_wide(values[start : start + _CHUNK], dtype))
        chunk = chunk[np.isfinite(chunk)]
        total += float(chunk.sum())
        count += chunk.size
    return total / count if count else 0.0


def _wide(values: NDArray[Any], dtype: str) -> NDArray[np.float64]:
    """Interface values as float64; a reference may be float64 already."""
    if values.dtype == np.float64:
        return values
    return from_interface(values, dtype).astype(np.float64)


def _describe(parameter: Parameter, got: NDArray[Any], want: NDArray[Any], position: int, count: int) -> str:
    index = tuple(int(i) for i in np.unravel_index(position, parameter.shape)) if parameter.shape else ()
    place = f"{parameter.name}[{', '.join(map(str, index))}]"
    more = f" ({count} of {want.size} elements are wrong)" if want.size > 1 else ""
    return f"{place} is {got[index]}, the reference has {want[index]}{more}"


def same_bits(result: NDArray[Any], reference: NDArray[Any], dtype: str) -> bool:
    """Whether two arrays of interface values have the same bits; all NaNs count as equal."""
    reference = reference.reshape(result.shape)
    if dtype == "bf16":
        one, other = ((a & 0x7FFF) > 0x7F80 for a in (result, reference))
        return bool(np.all((result == reference) | (one & other)))
    if result.dtype.kind != "f":
        return bool(np.array_equal(result, reference))
    equal = (result == reference) & (np.signbit(result) == np.signbit(reference))
    return bool(np.all(equal | (np.isnan(result) & np.isnan(reference))))


def compare_all(
    parameters: tuple[Parameter, ...],
    results: Mapping[str, NDArray[Any]],
    references: Mapping[str, NDArray[Any]],
    rounding: Rounding,
    largest: float | None = None,
) -> tuple[Error, str | None]:
    """`compare` for every array that the kernel writes."""
    worst = Error()
    for parameter in parameters:
        if parameter.written:
            name = parameter.name
            error, wrong = compare(parameter, results[name], references[name], rounding, largest)
            if wrong is not None:
                return error, wrong
            worst |= error
    return worst, None

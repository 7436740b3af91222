"""What an accumulation means on NumPy arrays: one step, a reduction along axes, a scatter to repeated positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pdojo.dialect.rounding import CARRIERS, Values
from pdojo.dialect.semantics import apply, as_unsigned


@dataclass(frozen=True, slots=True)
class Accumulator:
    """An accumulation of one element type."""

    function: str
    dtype: str

    def combine(self, old: Values, new: Values) -> Values:
        """The old value accumulated with the new one."""
        return apply(self.function, (old, new), (self.dtype, self.dtype), self.dtype)

    def accumulate(self, old: Values, values: Values, axes: tuple[int, ...]) -> Values:
        """The old values accumulated with all values along `axes`.

        Sums and products of f64 and f32 are taken in any order; f16 and bf16 go in order and round at each step.
        """
        name = self.function.partition(".")[2]
        if self.dtype in ("f16", "bf16") and name in ("addf", "mulf"):
            kept = [a for a in range(values.ndim) if a not in axes]
            for row in values.transpose(*axes, *kept).reshape(-1, *(values.shape[a] for a in kept)):
                old = self.combine(old, row)
            return old
        return self.combine(old, self._reduce(name, values, axes) if axes else values)

    def _reduce(self, name: str, values: Values, axes: tuple[int, ...]) -> Values:
        with np.errstate(all="ignore"):
            if name in ("maximumf", "minimumf"):
                return _extremum(values, axes, largest=name == "maximumf")
            if name in _UNSIGNED_UFUNCS and self.dtype != "i1":
                reduced = _UNSIGNED_UFUNCS[name].reduce(as_unsigned(values), axis=axes)
                return np.asarray(reduced).view(CARRIERS[self.dtype])
            ufunc = _BOOLEAN_UFUNCS[name] if self.dtype == "i1" else _UFUNCS[name]
            return np.asarray(ufunc.reduce(values, axis=axes, dtype=CARRIERS[self.dtype]))

    def scatter(self, flat: Values, positions: Values, values: Values) -> None:
        """Accumulate each value into `flat` at its position, in order; positions may repeat."""
        order = np.argsort(positions, kind="stable")
        places, terms = positions[order], values[order]
        first = np.flatnonzero(np.diff(places, prepend=-1))
        rank = np.arange(len(places)) - np.repeat(first, np.diff(first, append=len(places)))
        # The k-th terms of all positions at once; ordered by rank, each round is one slice.
        rounds = np.argsort(rank, kind="stable")
        ends = np.cumsum(np.bincount(rank))
        start = 0
        for end in ends:
            chosen = rounds[start:end]
            where = places[chosen]
            flat[where] = self.combine(flat[where], terms[chosen])
            start = end


def _extremum(values: Values, axes: tuple[int, ...], *, largest: bool) -> Values:
    reduced = np.asarray((np.maximum if largest else np.minimum).reduce(values, axis=axes))
    if not (reduced == 0).any():
        return reduced
    wanted = (values == 0) & (np.signbit(values) != largest)
    found = np.any(wanted, axis=axes)
    sign = np.where(found == largest, 1, -1)
    zero = np.copysign(np.zeros((), reduced.dtype), sign)
    return np.where(reduced == 0, zero, reduced).astype(reduced.dtype)


_UFUNCS: dict[str, Any] = {
    "addf": np.add,
    "mulf": np.multiply,
    "addi": np.add,
    "muli": np.multiply,
    "maxsi": np.maximum,
    "minsi": np.minimum,
    "andi": np.bitwise_and,
    "ori": np.bitwise_or,
}
_UNSIGNED_UFUNCS: dict[str, Any] = {"maxui": np.maximum, "minui": np.minimum}
# Signed, true is -1 and less than false.
_BOOLEAN_UFUNCS: dict[str, Any] = {
    "addi": np.logical_xor,
    "muli": np.logical_and,
    "maxsi": np.logical_and,
    "minsi": np.logical_or,
    "maxui": np.logical_or,
    "minui": np.logical_and,
    "andi": np.logical_and,
    "ori": np.logical_or,
}

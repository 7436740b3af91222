"""Accumulations on NumPy arrays: one step, a reduction along axes, a scatter to repeated positions.

The *terms* of an accumulation are one array of values, or the two factors of the products of a contracted statement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np

from pdojo.dialect.semantics.functions import apply, as_unsigned
from pdojo.dialect.semantics.rounding import CARRIERS, Values
from pdojo.math.functions import FUNCTIONS, Bit

Terms: TypeAlias = tuple[Values, ...]
"""The operand of an accumulation, or the two factors of a product that is rounded once with the sum."""

_STEPS, _WIDTH = 64, 4096
"""Limits for splitting a long fused reduction: least steps of each partial sum, most numbers computed at once."""


@dataclass(frozen=True, slots=True)
class Accumulator:
    """An accumulation of one element type; a contracted one is `z += x * y` that rounds once."""

    function: str
    dtype: str
    contracted: bool = False

    def terms(self, function: str | None, operands: Sequence[Values], dtypes: Sequence[str]) -> Terms:
        """The terms of a statement that accumulates `function(operands)`."""
        return tuple(operands) if self.contracted else (apply(function, operands, dtypes, self.dtype),)

    def combine(self, old: Values, terms: Terms) -> Values:
        """The old value accumulated with the new one."""
        if self.contracted:
            return apply("math.fma", (*terms, old), (self.dtype,) * 3, self.dtype)
        return self._join(old, terms[0])

    def _join(self, first: Values, second: Values) -> Values:
        return apply(self.function, (first, second), (self.dtype, self.dtype), self.dtype)

    def accumulate(self, old: Values, terms: Terms, axes: tuple[int, ...]) -> Values:
        """The old values accumulated with the terms along `axes`; all terms have the shape of the grid.

        Sums and products of f64 and f32 are taken in any order; f16 and bf16 go in order and round at each step.
        """
        if not axes:
            return self.combine(old, terms)
        narrow = self.dtype in ("f16", "bf16") and self.function in ("arith.addf", "arith.mulf")
        if not self.contracted and not narrow:
            return self._join(old, self._reduce(terms[0], axes))
        rows = tuple(_rows(term, axes) for term in terms)
        return self._fused(old, rows) if self.contracted and not narrow else self._in_order(old, rows)

    def _in_order(self, old: Values, rows: Terms) -> Values:
        for row in zip(*rows, strict=True):
            old = self.combine(old, row)
        return old

    def _fused(self, old: Values, rows: Terms) -> Values:
        """Accumulate in order; split a long reduction to few elements into several partial sums."""
        count, kept = len(rows[0]), rows[0].shape[1:]
        parts = min(count // _STEPS, _WIDTH // max(1, prod(kept)))
        if parts < 2:
            return self._in_order(old, rows)
        whole = count - count % parts
        sums = np.full((parts, *kept), -0.0, CARRIERS[self.dtype])
        sums = self._in_order(sums, tuple(r[:whole].reshape(-1, parts, *kept) for r in rows))
        old = self._in_order(old, tuple(r[whole:] for r in rows))
        return self._join(old, self._reduce(sums, (0,)))

    def _reduce(self, values: Values, axes: tuple[int, ...]) -> Values:
        spec, carrier = FUNCTIONS[self.function], CARRIERS[self.dtype]
        assert spec.numpy is not None
        with np.errstate(all="ignore"):
            if spec.mnemonic in ("maximumf", "minimumf"):
                return _extremum(values, axes, largest=spec.mnemonic == "maximumf")
            if self.dtype == "i1":
                return np.asarray(_BOOLEAN[spec.bit].reduce(values, axis=axes, dtype=carrier))
            ufunc: Any = spec.numpy()
            if spec.unsigned:
                return np.asarray(ufunc.reduce(as_unsigned(values), axis=axes)).view(carrier)
            # -0.0 + x is x for every x; 0.0 + x is not.
            start = {"initial": -0.0} if spec.mnemonic == "addf" else {}
            return np.asarray(ufunc.reduce(values, axis=axes, dtype=carrier, **start))

    def scatter(self, flat: Values, positions: Values, terms: Terms) -> None:
        """Accumulate terms into `flat`, each at its position, in order; positions may repeat."""
        order = np.argsort(positions, kind="stable")
        places, ordered = positions[order], [term[order] for term in terms]
        first = np.flatnonzero(np.diff(places, prepend=-1))
        rank = np.arange(len(places)) - np.repeat(first, np.diff(first, append=len(places)))
        # Ordered by rank, each slice holds the k-th terms of all positions.
        rounds = np.argsort(rank, kind="stable")
        ends = np.cumsum(np.bincount(rank))
        start = 0
        for end in ends:
            chosen = rounds[start:end]
            where = places[chosen]
            flat[where] = self.combine(flat[where], tuple(term[chosen] for term in ordered))
            start = end


def _rows(values: Values, axes: tuple[int, ...]) -> Values:
    """The values with `axes` merged into the first axis, in the order of the iterations."""
    kept = [a for a in range(values.ndim) if a not in axes]
    return values.transpose(*axes, *kept).reshape(-1, *(values.shape[a] for a in kept))


def _extremum(values: Values, axes: tuple[int, ...], *, largest: bool) -> Values:
    reduced = np.asarray((np.maximum if largest else np.minimum).reduce(values, axis=axes))
    if not (reduced == 0).any():
        return reduced
    wanted = (values == 0) & (np.signbit(values) != largest)
    found = np.any(wanted, axis=axes)
    sign = np.where(found == largest, 1, -1)
    zero = np.copysign(np.zeros((), reduced.dtype), sign)
    return np.where(reduced == 0, zero, reduced).astype(reduced.dtype)


_BOOLEAN: dict[Bit | None, Any] = {Bit.AND: np.logical_and, Bit.OR: np.logical_or, Bit.XOR: np.logical_xor}

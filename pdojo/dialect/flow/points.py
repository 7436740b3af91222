"""Index expressions at many points at once, as NumPy arrays."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdojo.dialect.affine import Atom, Expr, Lookup, Size

Ints: TypeAlias = NDArray[np.int64]


def evaluate(expression: Expr, values: Ints, *, greatest: bool = False) -> Ints:
    """The values of an expression, at the `greatest` sizes; `values` has a row per induction variable."""
    found = np.full(values.shape[1], expression.constant, dtype=np.int64)
    for atom, coefficient in expression.terms:
        found += coefficient * _of_atom(atom, values, greatest=greatest)
    return found


def _of_atom(atom: Atom, values: Ints, *, greatest: bool) -> Ints | int:
    if isinstance(atom, int):
        return values[atom]
    if isinstance(atom, Size):
        return atom.high // atom.step if greatest else atom.of(())
    if isinstance(atom, Lookup):
        entries = atom.table.known.entries
        return np.take(entries, evaluate(atom.operands[0], values, greatest=greatest), mode="clip")
    return evaluate(atom.numerator, values, greatest=greatest) // atom.divisor

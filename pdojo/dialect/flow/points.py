"""Index expressions at many points at once, as NumPy arrays."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdojo.dialect.affine import Atom, Expr, Lookup, Size

Ints: TypeAlias = NDArray[np.int64]


def evaluate(expression: Expr, values: Ints) -> Ints:
    """The values of an expression; `values` has a row per induction variable."""
    found = np.full(values.shape[1], expression.constant, dtype=np.int64)
    for atom, coefficient in expression.terms:
        found += coefficient * _of_atom(atom, values)
    return found


def _of_atom(atom: Atom, values: Ints) -> Ints:
    if isinstance(atom, int):
        return values[atom]
    operand = evaluate(atom.operand, values)
    if isinstance(atom, Size):
        atom.of(0)
    if isinstance(atom, Lookup):
        return np.take(atom.table.entries, operand, mode="clip")
    return operand // atom.divisor

"""Index expressions at many points at once, as NumPy arrays."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdojo.dialect.affine import Expr

Ints: TypeAlias = NDArray[np.int64]


def evaluate(expression: Expr, values: Ints) -> Ints:
    """The values of an expression; `values` has a row per induction variable."""
    found = np.full(values.shape[1], expression.constant, dtype=np.int64)
    for atom, coefficient in expression.terms:
        found += coefficient * (
            values[atom] if isinstance(atom, int) else evaluate(atom.numerator, values) // atom.divisor
        )
    return found

"""Arguments at which composite functions are tested: odd numbers, grids, and the points of their records."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdojo.math.composites.record import Composite

ODD = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, 7.0, -7.0, 1e-40, -1e-40, 1e-20, 1e30, -1e30, 3e38, -3e38,
        math.inf, -math.inf, math.nan)  # fmt: skip
MODERATE = (0.3, -0.3, 0.1, 4.0, -4.0, 1.7)
"""Further numbers in pairs, in addition to the odd ones."""
_GRID = (*np.linspace(-6, 6, 97), *np.linspace(-0.99, 0.99, 41), *np.linspace(6, 60, 19))
_WHOLE = (0, 1, 2, 3, 7, 100, 127, -1, -2, -3, -7, -100, -128)


def samples(record: Composite, dtype: np.dtype[Any]) -> list[NDArray[Any]]:
    """One array for each operand: all tuples of odd and other numbers of the domain, or a grid for a single operand."""
    count = len(record.operands)
    if dtype.kind in "iu":
        # No whole number is divided by 0.
        rows = [row for row in product(_WHOLE, repeat=count) if min(row) >= 0 or dtype.kind == "i"]
        return [np.array(row, dtype) for row in zip(*[row for row in rows if count < 2 or row[1]], strict=True)]
    low, high = record.domain
    odd = [each for each in (*ODD, *record.points) if not each < low and not each > high]
    rows = [(each,) for each in (*odd, *_GRID)] if count == 1 else product((*odd, *MODERATE), repeat=count)
    return [np.array(row).astype(dtype) for row in zip(*rows, strict=True)]

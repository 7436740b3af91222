"""All functions of NumPy that take handles: the files that fill the table."""

from __future__ import annotations

from pdojo.build.like_numpy import elements, products, reductions, shapes, sorting, statistics, types
from pdojo.build.like_numpy.table import FUNCTIONS

__all__ = ["NAMES", "elements", "products", "reductions", "shapes", "sorting", "statistics", "types"]

NAMES = tuple(sorted(FUNCTIONS))
"""Their names behind `np.`."""

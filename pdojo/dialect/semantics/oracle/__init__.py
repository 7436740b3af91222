"""Oracles that judge whether two programs mean the same, independent of the moves' own analysis.

The exact oracle runs small programs in exact arithmetic; the integer-set oracle compares relations, at any size.
"""

from __future__ import annotations

from pdojo.dialect.semantics.oracle.compare import Difference, Oracle, check_valid, equivalent, meaning
from pdojo.dialect.semantics.oracle.integer_sets import IntegerSetOracle, Judgement, valid_by_sets
from pdojo.dialect.semantics.oracle.reduce import reduce_sizes

__all__ = [
    "Difference",
    "IntegerSetOracle",
    "Judgement",
    "Oracle",
    "check_valid",
    "equivalent",
    "meaning",
    "reduce_sizes",
    "valid_by_sets",
]

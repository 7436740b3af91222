"""The exact oracle: whether two programs mean the same, decided by running them in exact arithmetic."""

from __future__ import annotations

from pdojo.dialect.oracle.compare import Difference, Oracle, check_valid, equivalent, meaning
from pdojo.dialect.oracle.reduce import reduce_sizes

__all__ = ["Difference", "Oracle", "check_valid", "equivalent", "meaning", "reduce_sizes"]

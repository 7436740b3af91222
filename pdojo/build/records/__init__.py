"""The table of operators: `OPERATORS`, filled by the modules of this package."""

from pdojo.build.operator import OPERATORS
from pdojo.build.records import attention, contractions, lengths, norms, reductions, running, scalars, softmax

__all__ = ["OPERATORS", "attention", "contractions", "lengths", "norms", "reductions", "running", "scalars", "softmax"]

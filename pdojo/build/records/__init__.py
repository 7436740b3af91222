"""The table of operators: `OPERATORS`, filled by the modules of this package."""

from pdojo.build.operator import OPERATORS
from pdojo.build.records import convolutions, norms, pools, reductions, softmax

__all__ = ["OPERATORS", "convolutions", "norms", "pools", "reductions", "softmax"]

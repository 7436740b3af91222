"""The table of operators: `OPERATORS`, filled by the modules of this package."""

from pdojo.build.operator import OPERATORS
from pdojo.build.records import (
    convolutions,
    indexing,
    losses,
    norms,
    optimisers,
    pools,
    quantising,
    recurrent,
    reductions,
    resizing,
    sampling,
    signals,
    softmax,
)

KINDS = (
    *(convolutions, indexing, losses, norms, optimisers, pools, quantising),
    *(recurrent, reductions, resizing, sampling, signals, softmax),
)
"""The modules."""
__all__ = ["KINDS", "OPERATORS"]

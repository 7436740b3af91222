"""The table of operators: `OPERATORS`, filled by the modules of this package."""

from pdojo.build.operator import OPERATORS
from pdojo.build.records import (
    attention,
    bits,
    contractions,
    convolutions,
    indexing,
    lengths,
    losses,
    norms,
    optimisers,
    pools,
    quantising,
    recurrent,
    reductions,
    resizing,
    running,
    sampling,
    scalars,
    shapes,
    signals,
    softmax,
)

KINDS = (
    *(attention, bits, contractions, convolutions, indexing, lengths, losses, norms, optimisers, pools, quantising),
    *(recurrent, reductions, resizing, running, sampling, scalars, shapes, signals, softmax),
)
"""The modules."""
__all__ = ["KINDS", "OPERATORS"]

"""Rules of operators by topic; importing this package fills the table."""

from __future__ import annotations

from pdojo.torch.operators import (
    activations,
    attention,
    backward,
    casts,
    contractions,
    convolutions,
    creation,
    indexing,
    losses,
    normalisations,
    pointwise,
    pools,
    recurrences,
    reductions,
    views,
)

__all__ = [
    "activations",
    "attention",
    "backward",
    "casts",
    "contractions",
    "convolutions",
    "creation",
    "indexing",
    "losses",
    "normalisations",
    "pointwise",
    "pools",
    "recurrences",
    "reductions",
    "views",
]

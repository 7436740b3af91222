"""Rules of operators by topic; importing this package fills the table."""

from __future__ import annotations

from pdojo.torch.operators import (
    attention,
    backward,
    contractions,
    convolutions,
    indexing,
    losses,
    normalisations,
    pointwise,
    pools,
    reductions,
    views,
)

__all__ = [
    "attention",
    "backward",
    "contractions",
    "convolutions",
    "indexing",
    "losses",
    "normalisations",
    "pointwise",
    "pools",
    "reductions",
    "views",
]

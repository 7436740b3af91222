"""Rules of operators by topic; importing this package fills the table."""

from __future__ import annotations

from pdojo.torch.operators import (
    activations,
    casts,
    contractions,
    convolutions,
    creation,
    normalisations,
    pointwise,
    pools,
    reductions,
    views,
)

__all__ = [
    "activations",
    "casts",
    "contractions",
    "convolutions",
    "creation",
    "normalisations",
    "pointwise",
    "pools",
    "reductions",
    "views",
]

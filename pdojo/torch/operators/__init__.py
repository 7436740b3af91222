"""Rules of operators by topic; importing this package fills the table."""

from __future__ import annotations

from pdojo.torch.operators import (
    contractions,
    convolutions,
    normalisations,
    pointwise,
    pools,
    reductions,
    views,
)

__all__ = [
    "contractions",
    "convolutions",
    "normalisations",
    "pointwise",
    "pools",
    "reductions",
    "views",
]

"""Rules of operators by topic; importing this package fills the table."""

from __future__ import annotations

from pdojo.torch.operators import contractions, pointwise, reductions, views

__all__ = ["contractions", "pointwise", "reductions", "views"]

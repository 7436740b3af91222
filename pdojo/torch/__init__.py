"""PyTorch: `torch.compile(model, backend="pdojo")`. Needs PyTorch (`pip install 'pdojo[torch]'`)."""

from __future__ import annotations

from pdojo.torch.backend import backend

__all__ = ["backend"]

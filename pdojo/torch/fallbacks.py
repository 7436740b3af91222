"""The warning that PyTorch runs a part of a graph because pdojo failed."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Iterable

from torch.fx import Node


class FallbackWarning(RuntimeWarning):
    """A part of a graph runs in PyTorch, because of a limit that an option sets, or of an error in pdojo."""


def warn_of_failure(nodes: Iterable[Node], error: Exception) -> None:
    """Say that PyTorch runs some calls because no kernel could be made of them, though there should be one."""
    operators = ", ".join(sorted({str(node.target) for node in nodes if node.op == "call_function"}))
    frame = traceback.extract_tb(error.__traceback__)[-1]
    warnings.warn(
        f"pdojo failed to make kernels of {operators}, which PyTorch runs instead; please report this: "
        f"{type(error).__name__} at {frame.name}, line {frame.lineno}: {str(error)[:400]}",
        FallbackWarning,
        stacklevel=2,
    )

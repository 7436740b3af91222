"""The warning that PyTorch runs a part of a graph because pdojo failed."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Iterable, Sequence

from torch.fx import Node

from pdojo.backends.gpu.driver import DriverError, NoDevice
from pdojo.backends.gpu.resources import MissingTool
from pdojo.errors import LoweringError
from pdojo.torch.devices import device_of
from pdojo.torch.plans import Fallback


class FallbackWarning(RuntimeWarning):
    """A part of a graph runs in PyTorch, because of a limit that an option sets, or of an error in pdojo."""


def leave_to_pytorch(nodes: Sequence[Node], error: Exception) -> list[Fallback]:
    """The calls that PyTorch runs because no kernels could be compiled, with the reason, for `explain`.

    A warning says so, unless code for GPUs cannot express them. Raises the error of a device that this process can no
    longer use.
    """
    if isinstance(error, DriverError) and error.is_fatal:
        raise error
    is_expected = isinstance(error, LoweringError) and any(device_of(node).type != "cpu" for node in nodes)
    if isinstance(error, MissingTool | NoDevice | DriverError):
        warnings.warn(f"PyTorch runs regions of a graph instead of kernels: {error}", FallbackWarning, stacklevel=2)
    elif not is_expected:
        warn_of_failure(nodes, error)
        return []
    return [Fallback(node, f"no kernel could be compiled: {error}") for node in nodes]


def warn_of_failure(nodes: Iterable[Node], error: Exception) -> None:
    """Say that PyTorch runs some calls because no kernel could be made of them, though there should be one."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    warnings.warn(
        f"pdojo failed to make kernels of {_operators(nodes)}, which PyTorch runs instead; please report this: "
        f"{type(error).__name__} at {frame.name}, line {frame.lineno}: {str(error)[:400]}",
        FallbackWarning,
        stacklevel=2,
    )


def _operators(nodes: Iterable[Node]) -> str:
    return ", ".join(sorted({str(node.target) for node in nodes if node.op == "call_function"}))

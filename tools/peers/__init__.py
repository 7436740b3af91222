"""Other libraries' implementations of the library kernels, to be timed beside ours on the same arrays."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, Protocol

from numpy.typing import NDArray

from pdojo.errors import UsageError

LIBRARIES = {"torch": ("torch",), "onnxruntime": ("onnxruntime", "onnx")}
"""Libraries that can be compared with, and the packages that each needs."""

TITLES = {"torch": "PyTorch", "onnxruntime": "ONNX Runtime"}
"""What people call them."""


class Peer(Protocol):
    """An implementation bound to arrays."""

    def __call__(self) -> None:
        """Compute."""
        ...

    def finish(self) -> None:
        """Put the last result into the output arrays, where the call itself does not."""
        ...


def missing_packages(library: str) -> tuple[str, ...]:
    """The packages that are not installed of those that a library needs."""
    return tuple(package for package in LIBRARIES[library] if find_spec(package) is None)


def build(library: str, operator: str, arrays: Sequence[NDArray[Any]], threads: int) -> Peer:
    """An implementation on interface arrays in order, of a kernel with one output, the last array.

    Raises UsageError for an operator that the library is not compared on.
    """
    match library:
        case "torch":
            from pdojo_tools.peers.pytorch import TorchPeer as Implementation
        case "onnxruntime":
            from pdojo_tools.peers.onnx_runtime import OnnxPeer as Implementation
        case _:
            raise UsageError(f"unknown library '{library}'; known: {', '.join(LIBRARIES)}")
    return Implementation(operator, arrays, threads)

"""Twenty kernels that are in no library, as users write them, each at one size.

Kernels and sizes were chosen before any of them was measured, and stay, so nobody can replace a kernel that turns out
slow. `references` has their results in NumPy, `benchmarks.peers.pytorch_unseen` their expressions in PyTorch.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pdojo.errors import UsageError, did_you_mean
from pdojo.kernels import Workload

_FOLDER = Path(__file__).parent


class UnseenWorkload(Workload):
    """A kernel of this folder with sizes."""

    @property
    def path(self) -> Path:
        """The notation file."""
        return _FOLDER / f"{self.kernel}.pdojo"


def unseen_names() -> tuple[str, ...]:
    """The names of all kernels of this folder, sorted."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.pdojo")))


def unseen(name: str) -> UnseenWorkload:
    """A kernel of this folder at its size. Raises UsageError for an unknown name."""
    if name not in unseen_names():
        raise UsageError(f"unknown kernel '{name}'; {did_you_mean(name, unseen_names())}")
    return UnseenWorkload(name, label=name)


def workload_from(data: Mapping[str, Any]) -> Workload:
    """The inverse of `Workload.to_json`, for kernels of the library and of this folder."""
    return (UnseenWorkload if data["kernel"] in unseen_names() else Workload).from_json(data)

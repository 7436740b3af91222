"""Other libraries' implementations of the kernels that are compared, timed against ours on the same arrays.

A library has variants: different ways to compute a kernel, as the fastest is not known in advance. This module and
`benchmarks.peers.variants` import none of the libraries; the worker imports them in `build`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from shutil import which
from typing import Any

from numpy.typing import NDArray

from benchmarks.peers import variants as names
from benchmarks.unseen import UnseenWorkload, workload_from
from benchmarks.unseen.references import numpy_reference as unseen_reference
from pdojo.backends.measure import NamedReference, Peer
from pdojo.backends.measure.tools import PeerBuild
from pdojo.errors import UsageError
from pdojo.kernels import Workload
from pdojo.kernels.reference import numpy_reference

REFERENCE = "float64 NumPy"


@dataclass(frozen=True)
class Library:
    """A library to compare with."""

    title: str
    """The name in tables."""
    packages: tuple[str, ...]
    """The packages that must be installed."""
    variants: Callable[[str], tuple[str, ...]]
    """The variants of a kernel, by its name; empty if the library has no implementation for comparison."""
    install: str
    """The arguments of pip."""
    program: str | None = None
    """A required command; None if there is none."""

    @property
    def missing(self) -> str | None:
        """The reason why the library cannot be used; None if it can."""
        if not all(map(_is_installed, self.packages)):
            return f"it is not installed (pip install {self.install})"
        if self.program is not None and which(self.program) is None:
            return f"it needs a compiler, and there is no {self.program}"
        return None


@cache
def _is_installed(package: str) -> bool:
    return find_spec(package) is not None


LIBRARIES = {
    "torch": Library("PyTorch", ("torch",), names.torch, "torch"),
    "torch.compile": Library("torch.compile", ("torch",), names.torch_compile, "torch", "g++"),
    "onnxruntime": Library("ONNX Runtime", ("onnxruntime", "onnx"), names.onnxruntime, "onnx onnxruntime"),
    "jax": Library("JAX", ("jax",), names.jax, "jax"),
    "numpy": Library("NumPy", ("numpy",), names.numpy, "numpy"),
    "tvm": Library(
        "TVM",
        ("tvm", "xgboost", "scipy", "cloudpickle", "tornado", "psutil"),
        names.tvm,
        "'apache-tvm==0.27.*' apache-tvm-ffi==0.1.14.post1 cloudpickle psutil scipy tornado xgboost-cpu",
    ),
}
TVM_TRIALS = 64
"""Trials of MetaSchedule for each workload and number of threads."""


def peers_of(library: str, workload: Workload, trials: int = TVM_TRIALS) -> list[Peer]:
    """All variants of a library for a workload; empty if there are none. `trials` is the number of TVM's trials."""
    variants = LIBRARIES[library].variants(workload.kernel)
    if library == "tvm":
        from benchmarks.peers.tvm_cache import named

        variants = tuple(named(variant, trials) for variant in variants)
    return [Peer(library, as_text(workload), variant) for variant in variants]


def reference_of(workload: Workload) -> NamedReference:
    """The reference for results."""
    return NamedReference(REFERENCE, as_text(workload))


def as_text(workload: Workload) -> str:
    """A workload as text, for the worker."""
    return json.dumps(workload.to_json())


def reference(text: str) -> Callable[..., list[NDArray[Any]]]:
    """The meaning of a workload, for the worker."""
    found = workload_from(json.loads(text))
    return unseen_reference(found) if isinstance(found, UnseenWorkload) else numpy_reference(found)


def ranges_of(workload: Workload) -> tuple[tuple[str, float, float], ...]:
    """Ranges of inputs for which a normal distribution makes no sense."""
    match workload.kernel:
        case "cross_entropy":
            return (("t", 0, workload.sizes["C"]),)
        case "log":
            return (("x", 0.01, 10.0),)
        case _:
            return ()


def build(peer: Peer, threads: int) -> PeerBuild:
    """An implementation of a kernel whose only output is its last array.

    Raises UsageError for a kernel without an implementation in the library.
    """
    workload = workload_from(json.loads(peer.workload))
    if peer.library not in LIBRARIES:
        raise UsageError(f"unknown library '{peer.library}'; known: {', '.join(LIBRARIES)}")
    known = LIBRARIES[peer.library].variants(workload.kernel)
    if peer.library == "tvm":
        from benchmarks.peers.tvm_cache import named, trials_of

        known = tuple(named(variant, trials_of(peer.variant) or TVM_TRIALS) for variant in known)
    if peer.variant not in known:
        offered = f"its variants: {', '.join(known)}" if known else "it is not compared on it"
        raise UsageError(f"{LIBRARIES[peer.library].title} has no '{peer.variant}' of '{workload.kernel}'; {offered}")
    match peer.library:
        case "torch":
            from benchmarks.peers.pytorch import build_eager as implementation
        case "torch.compile":
            from benchmarks.peers.pytorch import build_compiled as implementation
        case "onnxruntime":
            from benchmarks.peers.onnx_runtime import build as implementation
        case "jax":
            from benchmarks.peers.jax_xla import build as implementation
        case "tvm":
            from benchmarks.peers.tvm_metaschedule import build as implementation
        case _:
            from benchmarks.peers.plain_numpy import build as implementation
    return implementation(workload, peer.variant, threads)

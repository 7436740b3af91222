"""The tools of a worker: the compiler of kernels, and other libraries' implementations and references."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar

from numpy.typing import NDArray

from pdojo.backends.measure.outcome import Outcome
from pdojo.backends.measure.request import Peer, Simulation
from pdojo.backends.measure.steady import Run
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.errors import MeasurementError

ToolT = TypeVar("ToolT")

NamedFunction = Callable[..., Sequence[NDArray[Any]]]
"""The meaning of an operator: a function from the inputs to the written arrays, both in the interface's order."""


class Compiled(Protocol):
    """The result of a compiler (`pdojo.backends.llvm.executable.Executable`)."""

    def bind(self, *arrays: NDArray[Any]) -> Run:
        """A function that runs the kernel on these arrays."""
        ...


class CompileFunction(Protocol):
    """`pdojo.backends.llvm.executable.compile`, or a stand-in."""

    def __call__(
        self, kernel: KernelOp, machine: Machine | None, *, threads: int, optimize: Literal["search", "full"]
    ) -> Compiled: ...


class Peers(Protocol):
    """Builds other libraries' implementations."""

    def __call__(self, peer: Peer, threads: int) -> PeerBuild:
        """Build a peer; raises PdojoError if the library or the operator is missing."""
        ...


class PeerBuild(Protocol):
    """Another library's implementation, which can be bound to several sets of arrays."""

    def bind(self, arrays: Sequence[NDArray[Any]]) -> PeerRun:
        """A function that runs the implementation on these arrays, which have the interface's order."""
        ...


class PeerRun(Protocol):
    """Another library's implementation, bound to arrays."""

    def __call__(self) -> None: ...

    def finish(self) -> None:
        """Copy the last result into the output arrays if the call itself does not write there."""
        ...


class SimulateFunction(Protocol):
    """Runs a program on a simulator."""

    def __call__(self, wanted: Simulation, tell: Callable[[str], None], /) -> Outcome:
        """The outcome; `tell` is called with each phase (`worker.PhaseEvent`) before it begins.

        Raises MeasurementError if the reference cannot be computed.
        """
        ...


@dataclass(frozen=True)
class Tools:
    """The settings that the worker was started with."""

    compiler: CompileFunction | None
    peers: Peers | None
    references: Callable[[str], NamedFunction] | None
    memory_limit: int | None
    simulator: SimulateFunction | None = None


def required(tool: ToolT | None, words: str) -> ToolT:
    """A tool of a worker, described by `words`. Raises MeasurementError if the worker was started without it."""
    if tool is None:
        raise MeasurementError(f"the worker was started without {words}")
    return tool

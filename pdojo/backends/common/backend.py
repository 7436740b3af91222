"""The protocol of backends, and the backends by name. A backend generates code for a kind of machine and runs it.

A machine names its backend (`Machine.backend`). A backend is a folder here, or an entry point of the group
`pdojo.backends`; both name an object with the attributes of `Backend`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Never, Protocol, Self, TypeAlias, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from pdojo.backends.measure.outcome import Outcome
from pdojo.backends.measure.request import KernelReference, MeasuredProgram, Options
from pdojo.backends.measure.worker import Listener
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.plugins import BACKENDS, find, plugins
from pdojo.dialect.view.nest import Nest
from pdojo.errors import LoweringError, PluginError, UsageError

if TYPE_CHECKING:
    from pdojo.backends.gpu.executable import GpuKernel
    from pdojo.backends.llvm.executable import Executable

CallableKernel: TypeAlias = "Executable | GpuKernel"
"""A compiled kernel, called with arrays in this process."""
Listing: TypeAlias = Callable[[KernelOp, Machine], str]
"""A function that prints a kernel's code for a machine. Raises LoweringError if there is none."""
Arrays: TypeAlias = Mapping[str, NDArray[np.generic]]


class Runs(Protocol):
    """Worker processes that run programs of a backend."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def compare(
        self,
        programs: Sequence[MeasuredProgram],
        options: Options,
        reference: KernelReference | None = None,
        listener: Listener | None = None,
        /,
    ) -> list[Outcome]:
        """Run programs on the same inputs; one outcome for each, in order.

        Raises MeasurementError if nothing could be run at all, UsageError for options that the hardware lacks.
        """
        ...

    def interrupt(self) -> None:
        """Kill the running measurement; other threads may call this."""
        ...

    def close(self) -> None:
        """End all processes; the next comparison starts new ones."""
        ...


@runtime_checkable
class Backend(Protocol):
    """Generates code for one kind of machine, and runs it."""

    @property
    def unit(self) -> str:
        """The unit of a run's cost: `s` or `cycles`."""
        ...

    @property
    def is_simulated(self) -> bool:
        """True if programs run on a simulator, whose costs are the same on every computer."""
        ...

    @property
    def listings(self) -> Mapping[str, Listing]:
        """Functions that print code, by the name of its form (for instance `asm`), machine code first.

        `pdojo-play` and reports show these forms. `pdojo-opt -t` uses xDSL's targets, which are registered with xDSL
        instead.
        """
        ...

    def check_lowers(self, nest: Nest, machine: Machine) -> None:
        """Raise LoweringError if the kernel cannot be lowered to code for the machine."""
        ...

    def check_runs_here(self, machine: Machine) -> None:
        """Raise LoweringError if this computer cannot run code for the machine."""
        ...

    def runs(self) -> Runs:
        """Worker processes that run programs; they start when needed."""
        ...

    def call(self, kernel: KernelOp, machine: Machine, inputs: Arrays) -> Arrays:
        """Run a kernel once in this process on the arrays `inputs`; returns the arrays that the kernel writes.

        `inputs` are not changed. Raises LoweringError if this computer cannot run the kernel.
        """
        ...

    def environment(self) -> Mapping[str, Any]:
        """Facts that determine costs in addition to program and machine, by name: processor, tool chain, versions."""
        ...


@runtime_checkable
class Compiles(Protocol):
    """Optional protocol of a backend: kernels as callables of this process, for `pdojo.compile`."""

    def compile(
        self, kernel: KernelOp, machine: Machine, threads: int | None, optimize: Literal["search", "full"]
    ) -> CallableKernel:
        """The kernel as a callable. Raises LoweringError if this computer cannot run the kernel."""
        ...


@runtime_checkable
class Emulates(Protocol):
    """Optional protocol of a backend: it emulates its code without the machine, to validate the code."""

    def emulate(
        self, kernel: KernelOp, machine: Machine, inputs: Arrays, notice: Callable[[], None]
    ) -> Iterator[tuple[str, Arrays]]:
        """Run a kernel's code on `inputs` in several ways; returns the name of each way with the arrays written.

        `notice` is called if the start takes long. Raises LoweringError if there is no code or this computer cannot run
        it, SimulationError if the code has undefined behaviour on the machine.
        """
        ...


class _NoBackend:
    """The backend of machines that name none: it generates no code and runs nothing."""

    unit = "s"
    is_simulated = False

    def __init__(self, name: str) -> None:
        self._why = f"no backend generates code for {name}"

    @property
    def listings(self) -> Mapping[str, Listing]:
        """No listings."""
        return {}

    def check_lowers(self, nest: Nest, machine: Machine) -> None:
        """Accept every kernel: there is no code to lower to."""

    def check_runs_here(self, machine: Machine) -> None:
        """Raise LoweringError."""
        raise LoweringError(self._why)

    def runs(self) -> Never:
        """Raise UsageError."""
        raise UsageError(self._why)

    def compilers(self, count: int | None = None) -> Never:
        """Raise UsageError."""
        raise UsageError(self._why)

    def call(self, kernel: KernelOp, machine: Machine, inputs: Arrays) -> Arrays:
        """Raise UsageError."""
        raise UsageError(self._why)

    def environment(self) -> Mapping[str, Any]:
        """No facts."""
        return {}


_OWN = {
    "cuda": "pdojo.backends.gpu.backend:CUDA",
    "hip": "pdojo.backends.gpu.backend:HIP",
    "llvm": "pdojo.backends.llvm.backend:LLVM",
    "snitch": "pdojo.backends.snitch.backend:SNITCH",
}


def backend_of(machine: Machine) -> Backend:
    """The backend of a machine. Raises UsageError for an unknown name, PluginError for a plugin that is no Backend."""
    name = machine.backend
    if not name:
        return _NoBackend(machine.name)
    found = find(BACKENDS, name, _OWN)
    if found is None:
        known = ", ".join((*_OWN, *plugins(BACKENDS, _OWN)))
        raise UsageError(f"machine '{machine.name}' names the backend '{name}'; known are {known}")
    if name in _OWN:
        # Checking attributes may import all of the backend's code generator, so only plugins are checked.
        return cast("Backend", found)
    if not isinstance(found, Backend):
        raise PluginError(f"the backend '{name}' is a {type(found).__name__}, which lacks attributes of a Backend")
    return found

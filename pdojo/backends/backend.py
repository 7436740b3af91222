"""The protocol of backends. A backend generates code for a kind of machine and runs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from pdojo.backends.calling.arguments import Outputs
from pdojo.backends.calling.arrays import AnyArray, Parameter
from pdojo.backends.measure.outcome import Outcome
from pdojo.backends.measure.request import KernelReference, MeasuredProgram, Options
from pdojo.backends.measure.worker import Listener
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.nest import Nest

Listing: TypeAlias = Callable[[KernelOp, Machine], str]
"""A function that prints a kernel's code for a machine. Raises LoweringError if there is none."""
Arrays: TypeAlias = Mapping[str, NDArray[np.generic]]


class CallableKernel(Protocol):
    """A compiled kernel, called with arrays in this process."""

    @property
    def name(self) -> str:
        """The kernel's name."""
        ...

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The interface, in order."""
        ...

    def __call__(self, /, *arrays: AnyArray, **named: AnyArray) -> Outputs:
        """Run the kernel; raises UsageError, naming the array, if one does not fit."""
        ...

    def bind(self, /, *arrays: AnyArray, **named: AnyArray) -> Callable[[], None]:
        """Check the arrays once. The returned function runs the kernel on them."""
        ...

    def bind_constants(self, /, **named: AnyArray) -> Callable[..., Outputs]:
        """Bind the constant inputs by name. Raises UsageError for a kernel without constants, and on a device."""
        ...

    def random_inputs(self, seed: int = 0) -> dict[str, NDArray[Any]]:
        """Random arrays for the kernel's inputs, keyed by name, determined by `seed`."""
        ...


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
        """Functions that print code, keyed by the name of its form (for instance `asm`), machine code first.

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
        """Facts besides program and machine that determine costs, keyed by name: processor, tool chain, versions."""
        ...


@runtime_checkable
class Compiles(Protocol):
    """Optional protocol of a backend: kernels as callables of this process, for `pdojo.compile`."""

    def compile(
        self, kernel: KernelOp, machine: Machine, threads: int | None, optimize: Literal["search", "full"]
    ) -> CallableKernel:
        """The kernel as a callable. Raises LoweringError if this computer cannot run the kernel."""
        ...


@dataclass(frozen=True)
class DeviceCode:
    """A program for a device, as files."""

    files: Mapping[str, str | bytes]
    """Contents, keyed by the ending of the file's name; the last one runs."""
    workspace_bytes: int


@runtime_checkable
class CompilesForDevices(Protocol):
    """Optional protocol of a backend: programs for devices, made without the device, for generated libraries."""

    @property
    def device_folder(self) -> str:
        """The folder of the programs in a library."""
        ...

    def compiler_version(self) -> str | None:
        """The version of the compiler of device code; None if the code needs no external tool. Raises MissingTool."""
        ...

    def device_code(self, kernel: KernelOp, machine: Machine) -> DeviceCode:
        """Compile a kernel. Raises MissingTool, and LoweringError if there is no code for the machine."""
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

"""The backend of Snitch cores: assembly, run by the simulator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from pdojo.backends.backend import Arrays, DeviceCode, Listing
from pdojo.backends.common.source_digest import RUNNING, source_digest
from pdojo.backends.measure.outcome import Outcome
from pdojo.backends.measure.pool import Workers
from pdojo.backends.measure.request import KernelReference, MeasuredProgram, Options, Simulation
from pdojo.backends.measure.worker import Listener, PhaseEvent, Worker
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.nest import Nest
from pdojo.errors import UsageError

SOURCES = (*RUNNING, "backends/snitch/**/*.py", "snitch_sim/**/*.py")
"""Files that cycles depend on."""
LONGEST = 50_000_000
"""Limit of cycles of any program."""


class SnitchWorker(Worker):
    """Runs programs on the simulator."""

    simulator = "pdojo.backends.snitch.session:simulate"


class SimulatedRuns:
    """Runs programs on simulators, one per processor."""

    def __init__(self) -> None:
        self._workers: Workers | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def compare(
        self,
        programs: Sequence[MeasuredProgram],
        options: Options,
        reference: KernelReference | None = None,
        listener: Listener | None = None,
    ) -> list[Outcome]:
        """Simulate programs on the same inputs; with `check`, also compare the bits with the interpreter's.

        Raises MeasurementError if nothing could be run, UsageError for options about caches and threads, which a core
        lacks.
        """
        _check_core(programs[0].machine, options.threads, cold=options.cold)
        if self._workers is None:
            self._workers = Workers(None, SnitchWorker)
        known = reference if options.check else None
        wanted = [Simulation(program, known, options.seed, LONGEST, exact=options.check) for program in programs]

        def tell(number: int) -> None:
            if listener is not None:
                listener(PhaseEvent(number, "simulate"))

        return self._workers.simulate_all(wanted, tell)

    def interrupt(self) -> None:
        """End the running simulations."""
        if self._workers is not None:
            self._workers.interrupt()

    def close(self) -> None:
        """End all simulators."""
        if self._workers is not None:
            self._workers.close()
            self._workers = None


class SnitchBackend:
    """Assembly through xDSL's riscv dialects, and cycles by a simulator."""

    unit = "cycles"
    is_simulated = True
    device_folder = "snitch"
    longest = LONGEST

    @property
    def listings(self) -> Mapping[str, Listing]:
        """Assembly, and C."""
        from pdojo.backends.c.targets import c_text
        from pdojo.backends.snitch.targets import snitch_text

        return {"snitch-asm": snitch_text, "c": lambda kernel, machine: c_text(kernel, machine=machine)}

    def check_lowers(self, nest: Nest, machine: Machine) -> None:
        """Raise LoweringError if the kernel cannot be lowered to code for the core."""
        from pdojo.backends.snitch.kernel_code import lower_kernel

        lower_kernel(nest, machine)

    def check_runs_here(self, machine: Machine) -> None:
        """Accept every machine: simulators run everywhere."""

    def runs(self) -> SimulatedRuns:
        """Processes that run simulators."""
        return SimulatedRuns()

    def simulators(self, count: int | None = None) -> Workers:
        """`count` processes that run simulators; None: one per processor."""
        return Workers(count, SnitchWorker)

    def call(self, kernel: KernelOp, machine: Machine, inputs: Arrays) -> Arrays:
        """Simulate a kernel once on the arrays `inputs`; returns the arrays that it writes."""
        from pdojo.backends.snitch.executable import load

        _check_core(machine, machine.threads)
        return load(kernel, machine).run(inputs).outputs

    def compiler_version(self) -> None:
        """None: pdojo makes the assembly."""

    def device_code(self, kernel: KernelOp, machine: Machine) -> DeviceCode:
        """Assembly."""
        from pdojo.backends.snitch.targets import snitch_source

        source = snitch_source(kernel, machine)
        return DeviceCode({"S": source.text}, source.workspace_bytes)

    def environment(self) -> Mapping[str, Any]:
        """The digest of the source of lowering and simulator."""
        return {"lowering and simulator": self.version()}

    def version(self) -> str:
        """Digest of the source of lowering and simulator; only cycles with equal digests are comparable."""
        return source_digest(*SOURCES)


def _check_core(machine: Machine, threads: int, *, cold: bool = False) -> None:
    if cold or threads > 1:
        raise UsageError(f"{machine.name} is simulated as one core without caches; leave out --cold and --threads")


SNITCH = SnitchBackend()

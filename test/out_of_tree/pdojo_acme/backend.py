"""Acme's backend: listings of its accumulator machine, which the interpreter of pdojo stands in for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Self

import numpy as np

from pdojo.backends.backend import Arrays, Listing
from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.measure import (
    Check,
    CompileError,
    KernelReference,
    MeasuredProgram,
    Options,
    Outcome,
    Simulated,
    Simulation,
    WrongResult,
)
from pdojo.backends.measure.arrays import random_inputs
from pdojo.backends.measure.pool import Job
from pdojo.backends.measure.worker import Listener, PhaseEvent
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.semantics.oracle.instances import count_instances
from pdojo.dialect.view.build import nest_of
from pdojo.dialect.view.nest import Leaf, Nest
from pdojo.errors import LoweringError


def assembly(nest: Nest) -> str:
    """A line for each statement. Raises LoweringError for scopes that are mapped."""
    mapped = next((s for s in nest.scopes if s.mapping.value != "seq"), None)
    if mapped is not None:
        raise LoweringError(f"Acme Two runs scopes in order; one is mapped to '{mapped.mapping.value}'")
    return "".join(f"ACC {_line(leaf)}\n" for leaf in nest.leaves)


def _line(leaf: Leaf) -> str:
    return " ".join([*(a.array.name for a in leaf.reads), "->", leaf.output.array.name])


def cycles(nest: Nest) -> int:
    """A cycle for each statement."""
    assembly(nest)
    return count_instances(nest)


class Runs:
    """Programs, one after the other, in this process."""

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
        """Interpret programs on the same inputs."""
        found: list[Outcome] = []
        for number, program in enumerate(programs):
            if listener is not None:
                listener(PhaseEvent(number, "simulate"))
            found.append(self._run(program, options, reference if options.check else None))
        return found

    def _run(self, program: MeasuredProgram, options: Options, reference: KernelReference | None) -> Outcome:
        nest = nest_of(parse_notation(program.text)[0])
        try:
            count = cycles(nest)
        except LoweringError as error:
            return CompileError(str(error))
        inputs = random_inputs(parameters_of(nest), options.seed)
        results = interpret(nest, inputs)
        check = None
        if reference is not None:
            wanted = interpret(nest_of(parse_notation(reference.text)[0]), inputs)
            if not all(np.allclose(results[name], wanted[name]) for name in wanted):
                return WrongResult("other numbers than the reference")
            check = Check("interpreter", 0.0)
        return Simulated(cycles=count, check=check)

    def interrupt(self) -> None:
        """Nothing runs apart."""

    def close(self) -> None:
        """Nothing was started."""


class Simulators(Runs):
    """Programs of searches."""

    def simulate(self, wanted: Simulation) -> Job[Outcome]:
        """Interpret a program at once."""
        options = Options(seed=wanted.seed, check=wanted.reference is not None)
        (outcome,) = self.compare([wanted.program], options, wanted.reference)
        job: Job[Outcome] = Future()
        job.set_result((outcome, 0.0))
        return job


class AcmeBackend:
    """Accumulator machines."""

    unit = "cycles"
    is_simulated = True
    longest = 1_000_000

    @property
    def listings(self) -> Mapping[str, Listing]:
        """Acme's assembly."""
        return {"acme-asm": lambda kernel, _: assembly(nest_of(kernel))}

    def check_lowers(self, nest: Nest, machine: Machine) -> None:
        """Raise LoweringError for mapped scopes."""
        assembly(nest)

    def check_runs_here(self, machine: Machine) -> None:
        """The interpreter runs everywhere."""

    def runs(self) -> Runs:
        """Runs in this process."""
        return Runs()

    def simulators(self, count: int | None = None) -> Simulators:
        """Runs in this process."""
        return Simulators()

    def call(self, kernel: KernelOp, machine: Machine, inputs: Arrays) -> Arrays:
        """Interpret a kernel once."""
        return interpret(nest_of(kernel), inputs)

    def environment(self) -> Mapping[str, Any]:
        """The version of the listings."""
        return {"acme": self.version()}

    def version(self) -> str:
        """The version of the listings."""
        return "1"


ACME = AcmeBackend()

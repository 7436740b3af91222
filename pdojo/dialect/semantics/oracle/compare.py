"""The exact oracle's answer, by execution: does a program mean the same as another?

The program before runs on its elements in order, which gives its meaning. The program after runs on its memory cells
under adversarial schedules. No dependences are used, so the oracle can judge the analysis that computes them.
"""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from pdojo.dialect.attributes import Mapping
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.oracle.execute import execute
from pdojo.dialect.semantics.oracle.flow import Flow, trace
from pdojo.dialect.semantics.oracle.instances import INSTANCE_LIMIT, Instances, enumerate_instances
from pdojo.dialect.semantics.oracle.residues import Field, Residues
from pdojo.dialect.semantics.oracle.schedule import schedule
from pdojo.dialect.view.build import nest_of
from pdojo.dialect.view.nest import Nest
from pdojo.errors import PdojoError

Program: TypeAlias = KernelOp | Nest

DEFAULT_SEEDS = 12
"""Independent seeds per prime."""

_MEANING_POISON = 1 << 40
"""Seed of unwritten memory in the reference run; no schedule has it, so unwritten values differ in every other run."""


@dataclass(frozen=True)
class Difference:
    """An array element with a wrong value at the end of a program."""

    kernel: str
    array: str
    index: tuple[int, ...]
    """The first element that differs, in row-major order."""
    elements: int
    """Number of the array's elements that differ."""
    schedule: int
    """Seed of a schedule that shows the difference."""
    lanes: int
    """Number of the `lanes_run` independent arithmetics in which this element differs."""
    lanes_run: int
    is_written: bool
    """Whether the program writes the element at all."""

    def __str__(self) -> str:
        place = f"{self.array}[{', '.join(map(str, self.index))}]"
        more = f" (and {self.elements - 1} more of its elements)" if self.elements > 1 else ""
        what = "has another value" if self.is_written else "is never written"
        return (
            f"kernel '{self.kernel}': {place}{more} {what} under schedule {self.schedule}, "
            f"in {self.lanes} of {self.lanes_run} exact arithmetics"
        )


class Oracle:
    """The meaning of a program in exact arithmetic, against which other programs are compared.

    `seed` draws the inputs and the random maps that stand for functions; `seeds` is the number of independent draws per
    prime, `limit` the largest number of statement instances. Raises PdojoError for a program too large to enumerate.
    """

    def __init__(
        self, program: Program, seed: int = 0, seeds: int = DEFAULT_SEEDS, limit: int = INSTANCE_LIMIT
    ) -> None:
        self.nest = as_nest(program)
        self.limit = limit
        instances = enumerate_instances(self.nest, "elements", lockstep=False, limit=limit)
        self.field = Field(seed, seeds)
        self.inputs = {
            name: self.field.inputs(name, int(np.prod(self.nest.arrays[name].shape)), 0)
            for name in _interface(self.nest)
        }
        self.outputs, _ = self._run(instances, None, _MEANING_POISON)
        """The final contents of every interface array, shape (elements, lanes)."""

    def run_exact(self, program: Program, schedule_seed: int) -> dict[str, Residues]:
        """The interface arrays after running a program on its cells under one schedule."""
        instances = enumerate_instances(as_nest(program), "cells", lockstep=True, limit=self.limit)
        return self._run(instances, schedule_seed, schedule_seed)[0]

    def difference(self, program: Program, *, schedules: int = 3, first: int = 0) -> Difference | None:
        """The first wrong result of a program on its cells, under schedules `first`, `first + 1`, ...; None if none is.

        Programs without threaded or streaming scopes have one schedule. Raises PdojoError if the interfaces differ.
        """
        nest = as_nest(program)
        if _interface(nest) != _interface(self.nest):
            raise PdojoError(f"kernels '{self.nest.name}' and '{nest.name}' do not have the same interface arrays")
        instances = enumerate_instances(nest, "cells", lockstep=True, limit=self.limit)
        if not any(scope.mapping.is_threaded or scope.mapping is Mapping.STREAM for scope in nest.scopes):
            schedules = min(schedules, 1)
        for seed in range(first, first + schedules):
            outputs, flow = self._run(instances, seed, seed)
            found = self._compare(instances, flow, outputs, seed)
            if found is not None:
                return found
        return None

    def _run(self, instances: Instances, seed: int | None, poison: int) -> tuple[dict[str, Residues], Flow]:
        memory = instances.memory
        contents = self.field.poison(memory.size, poison)
        for name, run in memory.interface.items():
            if _interface(instances.nest)[name][0] != "out":
                contents[run] = self.inputs[name]
        flow = trace(instances, schedule(instances, seed))
        final = execute(self.field, instances, flow, contents)
        return {name: final[run] for name, run in memory.interface.items()}, flow

    def _compare(
        self, instances: Instances, flow: Flow, outputs: MappingABC[str, Residues], seed: int
    ) -> Difference | None:
        for name, want in self.outputs.items():
            wrong = outputs[name] != want
            if not wrong.any():
                continue
            elements = np.flatnonzero(wrong.any(axis=1))
            first = int(elements[0])
            index = np.unravel_index(first, instances.nest.arrays[name].shape or (1,))
            shape = instances.nest.arrays[name].shape
            cell = instances.memory.interface[name].start + first
            return Difference(
                kernel=instances.nest.name,
                array=name,
                index=tuple(int(i) for i in index) if shape else (),
                elements=len(elements),
                schedule=seed,
                lanes=int(wrong[first].sum()),
                lanes_run=self.field.lanes,
                is_written=flow.final[cell] != cell,
            )
        return None


def as_nest(program: Program) -> Nest:
    """The nest of a kernel; a nest is returned as it is."""
    return program if isinstance(program, Nest) else nest_of(program)


def _interface(nest: Nest) -> dict[str, tuple[str, str, tuple[int, ...]]]:
    """Intent, type and shape of each interface array."""
    return {a.name: (a.intent.value, a.dtype, a.shape) for a in nest.arrays.values() if a.intent is not None}


def meaning(program: Program, seed: int = 0) -> Oracle:
    """The meaning of a program, for comparison with several others."""
    return Oracle(program, seed)


def equivalent(before: Program | Oracle, after: Program, *, schedules: int = 3, seed: int = 0) -> Difference | None:
    """A difference of `after`, on its cells and under `schedules` schedules, from the meaning of `before`; or None.

    An Oracle as `before` keeps its own seed. Raises PdojoError for programs too large to enumerate.
    """
    oracle = before if isinstance(before, Oracle) else Oracle(before, seed)
    return oracle.difference(after, schedules=schedules, first=seed)


def check_valid(program: Program, *, schedules: int = 3, seed: int = 0) -> Difference | None:
    """A difference caused by a program's own memory or mappings, or an unwritten output element; None if valid."""
    nest = as_nest(program)
    return equivalent(nest, nest, schedules=schedules, seed=seed)

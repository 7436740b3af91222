"""Models of a library: their kernels as entries, their weights, and the plan of their calls."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from pdojo.backends.calling.arrays import ALIGNMENT, parameters_of
from pdojo.backends.common.placement import rounded
from pdojo.build.sizes import Open
from pdojo.dialect.names import name_problem
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.build import nest_of
from pdojo.errors import UsageError
from pdojo.library.entries import PlannedEntry, planned_part
from pdojo.library.manifest import digest
from pdojo.library.model_plan import Block, Call, Copy, Extent, ModelPlan, Place, Weight
from pdojo.library.naming import operator_problem
from pdojo.library.records import Array
from pdojo.model.element_types import memory_of
from pdojo.model.graph import Known, Operand, Tensor, dtype_of
from pdojo.model.kernels import Step
from pdojo.model.model import Model


@dataclass(frozen=True)
class ModelSource:
    """A model for a library, and how the library has it."""

    name: str
    """The C function without the library's prefix."""
    model: Model
    is_apart: bool = False
    """Whether the weights are a file beside the library."""


@dataclass(frozen=True)
class PlannedModel:
    """A model of a library before its programs are chosen."""

    plan: ModelPlan
    """The plan, without entries of kernels."""
    kernels: tuple[PlannedEntry, ...]
    weights: bytes
    """The weights, each at its place."""

    @property
    def weights_file(self) -> bytes:
        """The file of weights, which ends with their digest."""
        return self.weights + self.plan.digest.encode()


def planned_models(sources: Iterable[ModelSource]) -> tuple[PlannedModel, ...]:
    """The models of a library, sorted by name. Raises UsageError for names that no function has, or two have."""
    found = [_Planner(each).planned() for each in sorted(sources, key=lambda each: each.name)]
    names = [each.plan.name for each in found]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"two models are called '{twice}'")
    return tuple(found)


@dataclass
class _Planner:
    source: ModelSource
    weights: list[Weight] = field(default_factory=list[Weight])
    _data: bytearray = field(default_factory=bytearray)
    _known: dict[object, int] = field(default_factory=dict[object, int])
    """The numbers of weights, by their bytes."""

    def planned(self) -> PlannedModel:
        """The model, with its kernels and weights."""
        source, model = self.source, self.source.model
        if problem := operator_problem(source.name):
            raise UsageError(f"{problem}; give the model another 'name'")
        if any(tensor.strides for tensor in model.inputs):
            raise UsageError(f"model '{source.name}' has strided inputs, and libraries take dense arrays")
        if not model.calls:
            raise UsageError(f"model '{source.name}' has no kernels: its outputs are known, or inputs in other shapes")
        names = _names([*(t.name for t in model.inputs), *(name for name, _ in model.outputs)])
        count = len(model.inputs)
        self._inputs = {tensor: number for number, tensor in enumerate(model.inputs)}
        outputs = {name: number for number, (name, _) in enumerate(model.outputs)}
        self._results = {tensor: outputs[name] for tensor, name in model.results.items()}
        self._blocks = {tensor: number for number, tensor in enumerate(model.memory.below)}
        arrays = [_array(n, tensor, "in") for n, tensor in zip(names[:count], model.inputs, strict=True)]
        arrays += [_array(n, value, "out") for n, (_, value) in zip(names[count:], model.outputs, strict=True)]
        kernels = [self._entry(kernel, number) for number, kernel in enumerate(model.kernels)]
        numbers = {kernel: number for number, kernel in enumerate(model.kernels)}
        calls = [self._call(step, numbers[step.kernel]) for step in model.calls]
        written = set(model.results.values())
        copies = [Copy(outputs[n], self._place(value)) for n, value in model.outputs if n not in written]
        blocks = [
            Block(_extent(rounded(tensor.bytes)), tuple(self._blocks[other] for other in below))
            for tensor, below in model.memory.below.items()
        ]
        weights = bytes(self._data)
        plan = ModelPlan(
            source.name,
            {size.name: size.values for size in model.sizes.values()},
            tuple(arrays),
            (),
            tuple(self.weights),
            source.is_apart,
            digest(weights),
            tuple(blocks),
            tuple(calls),
            tuple(copies),
        )
        return PlannedModel(plan, tuple(kernels), weights)

    def _entry(self, kernel: KernelOp, number: int) -> PlannedEntry:
        return planned_part(f"{self.source.name}_k{number}", kernel)

    def _call(self, step: Step, number: int) -> Call:
        parameters = parameters_of(nest_of(step.kernel))
        operands = (*step.inputs, *step.outputs)
        assert len(parameters) == len(operands), step
        return Call(number, tuple(map(self._place, operands)), tuple(map(_extent, step.sizes)))

    def _place(self, operand: Operand) -> Place:
        if not isinstance(operand, Tensor):
            return Place("weight", self._weight(operand), 0)
        whole, offset = self.source.model.memory.place(operand.memory)
        if whole in self._inputs:
            return Place("input", self._inputs[whole], _extent(offset))
        if whole in self._results:
            return Place("output", self._results[whole], _extent(offset))
        return Place("block", self._blocks[whole], _extent(offset))

    def _weight(self, value: Known) -> int:
        """The number of an array of the model; equal ones have one."""
        data = memory_of(np.ascontiguousarray(value)).tobytes()
        if data not in self._known:
            self._known[data] = len(self.weights)
            self.weights.append(Weight(len(self._data), len(data)))
            self._data += data + bytes(-len(data) % ALIGNMENT)
        return self._known[data]


def _extent(extent: int) -> Extent:
    return str(extent) if isinstance(extent, Open) else int(extent)


def _array(name: str, value: Operand, direction: Literal["in", "out"]) -> Array:
    return Array(name, dtype_of(value), tuple(map(_extent, value.shape)), direction)


def _names(given: Sequence[str]) -> list[str]:
    """Names of arrays for C: those of the model where they are names, with numbers where two would be the same."""
    found: list[str] = []
    for name in given:
        base = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in name).strip("_") or "array"
        base = base if name_problem(base) is None else f"a_{base}"
        fresh, number = base[:48], 2
        while fresh in found or name_problem(fresh) is not None:
            fresh, number = f"{base[:44]}_{number}", number + 1
        found.append(fresh)
    return found

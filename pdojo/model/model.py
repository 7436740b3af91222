"""Models: calls of kernels in order, with constants and a memory plan."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from pdojo.backends.calling.arguments import matched
from pdojo.backends.calling.arrays import Parameter
from pdojo.build.sizes import sizes_of
from pdojo.dialect.affine import Size
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.errors import UsageError
from pdojo.model.element_types import memory_of, numpy_type
from pdojo.model.graph import Graph, Known, Operand, Operation, Tensor, parameters_for
from pdojo.model.kernels import Step, step_of
from pdojo.model.layouts import in_layouts
from pdojo.model.memory import MemoryPlan, plan_memory
from pdojo.model.partition import partition
from pdojo.model.present import Present

if TYPE_CHECKING:
    from pdojo.model.compiled import CompiledModel
    from pdojo.model.sized_programs import SizedPrograms
    from pdojo.passes.scheduled_kernel import Scheduler


@dataclass(frozen=True, repr=False)
class Model:
    """A graph of kernels. `compile` makes a callable of it, `interpret` runs it slowly without compiling."""

    name: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[tuple[str, Operand], ...]
    steps: tuple[Step, ...]

    def __post_init__(self) -> None:
        self._check_order()

    @cached_property
    def memory(self) -> MemoryPlan:
        """The places of intermediates."""
        return plan_memory(self.steps, self.results)

    @cached_property
    def sizes(self) -> Mapping[str, Size]:
        """The sizes that are known when it is called, in the order in which inputs and kernels have them first."""
        shapes = [extent for tensor in self.inputs for extent in (*tensor.shape, *tensor.strides)]
        extents = [*shapes, *(extent for step in self.steps for extent in step.sizes)]
        found = dict.fromkeys(size for extent in extents for size in sizes_of(extent))
        return {size.name: size for size in found}

    def at(self, present: Present) -> Model:
        """The model for the values that its sizes have in a call; kernels keep theirs."""
        steps = [
            replace(
                step,
                inputs=tuple(map(present.operand, step.inputs)),
                outputs=tuple(map(present.tensor, step.outputs)),
                places=tuple([(present.tensor(tensor), present.number(place)) for tensor, place in step.places]),
                sizes=present.shape(step.sizes),
            )
            for step in self.steps
        ]
        outputs = [(name, present.operand(value)) for name, value in self.outputs]
        return Model(self.name, tuple(map(present.tensor, self.inputs)), tuple(outputs), tuple(steps))

    @staticmethod
    def of(graph: Graph) -> Model:
        """The model of a graph: its groups as kernels, equal ones as the same object."""
        graph = in_layouts(graph)
        groups = partition(graph)
        wanted = _wanted([group.operations for group in groups], graph)
        known: dict[Hashable, KernelOp] = {}
        steps: list[Step] = []
        for group in groups:
            step = step_of(group.operations, wanted, known)
            places = group.operations[0].pieces if group.is_in_place else ()
            steps.append(replace(step, places=places))
        return Model(graph.name, graph.inputs, graph.outputs, tuple(steps))

    def _check_order(self) -> None:
        """Raise AssertionError if something is read that is neither an input nor the result of an earlier step."""
        known = {tensor.memory for tensor in self.inputs}
        for step in self.steps:
            missing = [each for each in step.inputs if isinstance(each, Tensor) and each.memory not in known]
            if missing:
                raise AssertionError(f"no step before {step.kernel.sym_name.data} computes {missing}")
            known.update(step.outputs)
        lost = [name for name, each in self.outputs if isinstance(each, Tensor) and each.memory not in known]
        if lost:
            raise AssertionError(f"no step computes {lost}")

    @staticmethod
    def of_step(step: Step) -> Model:
        """The model of one call of a kernel."""
        inputs = dict.fromkeys(operand.memory for operand in step.inputs if isinstance(operand, Tensor))
        outputs = tuple((f"y{number}", tensor) for number, tensor in enumerate(step.outputs))
        return Model(step.kernel.sym_name.data, tuple(inputs), outputs, (replace(step, places=()),))

    @property
    def kernels(self) -> tuple[KernelOp, ...]:
        """The different kernels, in the order of their first call."""
        return tuple(dict.fromkeys(step.kernel for step in self.calls))

    @property
    def calls(self) -> tuple[Step, ...]:
        """The steps that a compiled model calls: all but those whose inputs are computed in their output."""
        return tuple(step for step in self.steps if not step.places)

    @cached_property
    def results(self) -> Mapping[Tensor, str]:
        """The tensors that kernels write into arrays of the caller, with the names of the outputs."""
        written = {tensor for step in self.steps for tensor in step.outputs}
        found: dict[Tensor, str] = {}
        for name, value in self.outputs:
            if isinstance(value, Tensor) and value.memory in written:
                found.setdefault(value.memory, name)
        return found

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The interface: inputs, then outputs, with element types as they are in memory."""
        return parameters_for(self.inputs, self.outputs)

    def compile(
        self,
        machine: Machine | str | None = None,
        *,
        tune: Literal["none", "pass"] = "pass",
        scheduler: Scheduler | None = None,
        threads: int | None = None,
        cached: bool = True,
        programs: SizedPrograms | None = None,
    ) -> CompiledModel:
        """The model as a callable for this processor.

        `machine` is a description or its name; None is this processor. With `tune="pass"`, the machine's expert pass
        makes moves on every kernel for which `scheduler` knows no program (`pdojo.search.tuning.known.best_known` makes
        schedulers); `none` compiles the kernels as they are. `threads` is the number of threads for parallel scopes.
        With `cached`, kernels that were compiled before come from the user's cache (`$XDG_CACHE_HOME/pdojo/kernels`),
        and others are added to it. `programs` are those that models of other shapes left: kernels that differ from
        theirs in sizes only share one program for a range of them; None for programs for constant sizes.

        Raises UsageError for an unknown machine or one of another kind.
        """
        from pdojo.model.compiled import compile_model

        return compile_model(
            self, machine, tune=tune, scheduler=scheduler, threads=threads, cached=cached, programs=programs
        )

    def interpret(self, /, *arrays: Known, **named: Known) -> tuple[Known, ...]:
        """The outputs, computed by the reference interpreter: slow, and independent of code generation.

        Raises UsageError for arrays that do not fit.
        """
        values = self._checked(arrays, named)
        self.interpret_steps(values)
        return tuple(_value(value, values).copy() for _, value in self.outputs)

    def interpret_steps(self, values: dict[Tensor, Known]) -> None:
        """Add the results of all kernels to the arrays of tensors, which must have those of the inputs."""
        for step in self.steps:
            names = [parameter.name for parameter in _interface(step.kernel)]
            operands = [_value(operand, values) for operand in step.inputs]
            sizes = dict(zip(step.kernel.known_sizes(), step.sizes, strict=True))
            results = interpret(step.kernel, dict(zip(names, map(memory_of, operands), strict=False)), sizes=sizes)
            for name, tensor in zip(names[len(operands) :], step.outputs, strict=True):
                values[tensor] = results[name].view(numpy_type(tensor.dtype))

    def _checked(self, arrays: Sequence[Known], named: Mapping[str, Known]) -> dict[Tensor, Known]:
        given = matched(self.name, [tensor.name for tensor in self.inputs], arrays, named)
        missing = [tensor.name for tensor in self.inputs if tensor.name not in given]
        if missing:
            raise UsageError(f"model '{self.name}' needs {', '.join(missing)}")
        for tensor in self.inputs:
            check_fits(tensor, np.asarray(given[tensor.name]))
        return {tensor: np.ascontiguousarray(given[tensor.name]).reshape(tensor.shape) for tensor in self.inputs}

    def __repr__(self) -> str:
        counts = f"{len(self.calls)} calls of {len(self.kernels)} kernels, {self.memory.bytes} bytes of intermediates"
        return f"<Model {self.name}, {counts}>"


def check_fits(tensor: Tensor, array: Known) -> None:
    """Raise UsageError for an array that is not of the element type and shape of an input."""
    wanted = numpy_type(tensor.dtype)
    if array.dtype != wanted:
        raise UsageError(f"input '{tensor.name}' has elements of type {array.dtype}, the model takes {wanted}")
    if array.shape != tensor.shape:
        raise UsageError(f"input '{tensor.name}' has shape {array.shape}, the model takes {tensor.shape}")


def folded(operation: Operation) -> tuple[Known, ...]:
    """The results of an operation whose operands are known."""
    results = operation.made
    step = step_of([operation], results, {})
    values = iter(Model.of_step(step).interpret())
    return tuple(next(values) if isinstance(result, Tensor) else cast("Known", result) for result in operation.results)


def _wanted(groups: Sequence[Sequence[Operation]], graph: Graph) -> set[Tensor]:
    """The tensors that leave the group in which they are made."""
    wanted = {value.memory for _, value in graph.outputs if isinstance(value, Tensor)}
    for operations in groups:
        made = {tensor for operation in operations for tensor in operation.made}
        used = {tensor for operation in operations for tensor in operation.tensors}
        wanted.update(tensor.memory for tensor in used - made)
    return wanted


def _value(operand: Operand, values: Mapping[Tensor, Known]) -> Known:
    if not isinstance(operand, Tensor):
        return np.ascontiguousarray(operand).reshape(operand.shape)
    return values[operand.memory].reshape(operand.shape)


def _interface(kernel: KernelOp) -> Iterator[Any]:
    from pdojo.backends.calling.arrays import parameters_of
    from pdojo.dialect.view.build import nest_of

    return iter(parameters_of(nest_of(kernel)))

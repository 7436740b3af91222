"""Plans as functions of tensors: regions run compiled kernels, PyTorch runs the calls between them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import torch
from torch._C._dynamo.guards import _empty_strided_cpu as empty_strided  # a third of the time of PyTorch's function
from torch.fx import Node

from pdojo.backends.calling.arrays import ALIGNMENT
from pdojo.build.sizes import OpenExtent, is_open, open_extent
from pdojo.dialect.affine import Size
from pdojo.model.compiled import CompiledModel
from pdojo.model.element_types import memory_of
from pdojo.model.graph import Operand, Tensor, dtype_of
from pdojo.model.model import Model
from pdojo.model.present import Present
from pdojo.model.sized_programs import NotCoveredError
from pdojo.torch.devices import CPU
from pdojo.torch.element_types import TENSORS, memory_order, strides_of
from pdojo.torch.fallbacks import leave_to_pytorch
from pdojo.torch.keys import Key, key_of, results_of, strided_order, tensor_of
from pdojo.torch.plans import Plan, Region

if TYPE_CHECKING:
    from pdojo.model.device_models import DeviceModel

Environment: TypeAlias = dict[Key, torch.Tensor]
"""The tensors of a running call."""
Compile: TypeAlias = "Callable[[Model], CompiledModel | DeviceModel]"
ProgramStep: TypeAlias = Callable[[Environment], None]
Wrap: TypeAlias = "Callable[[RegionStep, Plan], ProgramStep]"
"""A function from a region to the step that runs it."""


@dataclass(frozen=True)
class Layout:
    """The shape, the strides and the element type of a tensor."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype
    alignment: int = ALIGNMENT
    """The divisor of addresses that kernels take."""
    device: torch.device = CPU

    @staticmethod
    def of(key: Key) -> Layout:
        """The layout that PyTorch gives a tensor of the graph."""
        tensor = tensor_of(key)
        return Layout(tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype, device=tensor.device)

    def at(self, present: Present) -> Layout:
        """The layout at these values of sizes."""
        return replace(self, shape=present.shape(self.shape), strides=present.shape(self.strides))

    def new(self) -> torch.Tensor:
        """New memory."""
        return torch.empty_strided(self.shape, self.strides, dtype=self.dtype, device=self.device)


class RegionStep:
    """The kernels of a region, for all values of its sizes; `at` binds them."""

    def __init__(self, region: Region, exported: Sequence[Key], compile_: Compile) -> None:
        self.number = region.number
        self.present = Present({})
        self.model = Model.of(region.graph(exported))
        self.compiled = compile_(self.model)
        keys = dict(zip([f"x{n}" for n in range(len(region.inputs))], region.inputs, strict=True))
        self._keys = {tensor: keys[tensor.name] for tensor in self.model.inputs} | region.made
        """The tensors of the graph, keyed by the tensors of the model."""
        read = {each.memory for step in self.model.calls for each in step.inputs if isinstance(each, Tensor)}
        given = [keys[tensor.name] for tensor in self.model.inputs if tensor in read]
        self._inputs = [(key, input_layout(key)) for key in given]
        names = {name: key for (name, _), key in zip(self.model.outputs, exported, strict=True)}
        written = {names[name]: tensor for tensor, name in self.model.results.items()}
        self._outputs = [(key, Layout.of(key)) for key in written]
        self._empty = _empty_on(Layout.of(exported[0]).device)
        by_memory: dict[Tensor, Key] = {tensor: key for key, tensor in written.items()}
        by_memory |= {tensor: keys[tensor.name] for tensor in self.model.inputs}
        self._copies = [
            (names[name], Layout.of(names[name]), _source(operand, by_memory, Layout.of(names[name]).device))
            for name, operand in self.model.outputs
            if names[name] not in written
        ]

    def at(self, plan: Plan) -> RegionStep:
        """The step for the values of sizes of a plan."""
        found = copy.copy(self)
        found.present = present = plan.present
        found.compiled = self.compiled.at(
            present.shape([open_extent(each.expression) for each in self.model.sizes.values()])
        )
        found._inputs = [(key, each.at(present)) for key, each in self._inputs]
        found._outputs = [(key, each.at(present)) for key, each in self._outputs]
        found._copies = [(key, each.at(present), source) for key, each, source in self._copies]
        return found

    @property
    def keys(self) -> dict[Tensor, Key]:
        """The tensors of the graph, keyed by the tensors of the compiled model."""
        found: dict[Tensor, Key] = {}
        rows: list[tuple[Sequence[Operand], Sequence[Operand]]] = [(self.model.inputs, self.compiled.model.inputs)]
        for whole, present in zip(self.model.steps, self.compiled.model.steps, strict=True):
            rows.append(((*whole.inputs, *whole.outputs), (*present.inputs, *present.outputs)))
        for operands, known in rows:
            for operand, each in zip(operands, known, strict=True):
                if isinstance(operand, Tensor) and isinstance(each, Tensor):
                    found[each.memory] = self._keys[operand.memory.plain or operand.memory]
        return found

    @property
    def read(self) -> list[Key]:
        """The tensors that the kernels read, and those that are copied."""
        return [key for key, _ in self._inputs] + [source for *_, source in self._copies if isinstance(source, tuple)]

    def __call__(self, values: Environment) -> None:
        """Compute the results of the region."""
        # A call of a small kernel takes no longer than this code, which therefore calls no functions of Python.
        inputs: list[torch.Tensor] = []
        addresses: list[int] = []
        for key, layout in self._inputs:
            tensor = values[key]
            address = tensor.data_ptr()
            if address % layout.alignment or tensor.stride() != layout.strides or tensor.dtype != layout.dtype:
                tensor = _as_laid_out(tensor, layout)
                address = tensor.data_ptr()
            inputs.append(tensor)
            addresses.append(address)
        made: list[int] = []
        for key, layout in self._outputs:
            tensor = values[key] = self._empty(layout.shape, layout.strides, layout.dtype)
            made.append(tensor.data_ptr())
        self.compiled.run_at(addresses, made)
        for key, layout, source in self._copies:
            copy = layout.new()
            whole = (
                _as_laid_out(values[source], input_layout(source).at(self.present))
                if isinstance(source, tuple)
                else source
            )
            _flat(copy).copy_(_flat(whole))
            values[key] = copy

    def given(self, values: Environment) -> list[torch.Tensor]:
        """The inputs that kernels read, as they take them."""
        return [_as_laid_out(values[key], layout) for key, layout in self._inputs]


class TorchStep:
    """A call that PyTorch runs."""

    def __init__(self, node: Node, plan: Plan) -> None:
        self.node = node
        self.read = [key_of(each) for each in node.all_input_nodes if each not in plan.numbers]
        """The operands of the call."""
        self._arguments = _reader(node.args, plan)
        self._keywords = _reader(node.kwargs, plan)
        self._is_open = is_open([plan.numbers[each] for each in node.all_input_nodes if each in plan.numbers])

    def at(self, plan: Plan) -> TorchStep:
        """The step for the values of sizes of a plan."""
        return TorchStep(self.node, plan) if self._is_open else self

    def __call__(self, values: Environment) -> None:
        """Run the call."""
        made: Any = self.node.target(*self._arguments(values), **self._keywords(values))
        for number, each in enumerate(results_of(made)):
            values[self.node, number] = each


def _reader(argument: Any, plan: Plan) -> Callable[[Environment], Any]:
    """From the tensors of a running call to an argument in which nodes stand for them."""
    if isinstance(argument, Node):
        number = plan.numbers.get(argument)
        return itemgetter(key_of(argument)) if argument not in plan.numbers else lambda _: number
    if isinstance(argument, tuple | list):
        parts = [_reader(each, plan) for each in argument]
        whole = list if isinstance(argument, list) else tuple  # Higher-order operators tell them apart.
        return lambda values: whole([part(values) for part in parts])
    if isinstance(argument, dict):
        named = {name: _reader(each, plan) for name, each in argument.items()}
        return lambda values: {name: part(values) for name, part in named.items()}
    if isinstance(argument, slice):
        ends = _reader((argument.start, argument.stop, argument.step), plan)
        return lambda values: slice(*ends(values))
    return lambda _: argument


def input_layout(key: Key) -> Layout:
    """The layout in which kernels read an input: its own, or contiguous if they cannot read that."""
    layout = Layout.of(key)
    if strided_order(tensor_of(key)) is not None:
        return replace(layout, alignment=layout.dtype.itemsize)
    if memory_order(layout.shape, layout.strides) is None:
        layout = replace(layout, strides=tuple(strides_of(layout.shape)))
    return layout


def result_layout(key: Key, tensor: Tensor) -> Layout:
    """The layout in which kernels write a tensor of the graph that is `tensor` in the model."""
    layout = input_layout(key)
    if tensor.plain is None:
        return layout
    strides = strides_of(tensor.shape)
    return replace(layout, strides=(strides[0], strides[-1], *strides[1:-1]), alignment=ALIGNMENT)


def _as_laid_out(tensor: torch.Tensor, layout: Layout) -> torch.Tensor:
    """A tensor with the strides and the alignment that kernels take: itself, or a copy."""
    if tensor.dtype != layout.dtype:  # Dynamo says f32 and passes f64 for numbers of `random.random()`.
        return layout.new().copy_(tensor)
    strides = tensor.stride()
    if strides != layout.strides:
        rows = zip(layout.shape, strides, layout.strides, strict=True)
        if any(extent != 1 and found != wanted for extent, found, wanted in rows):
            return layout.new().copy_(tensor)
    return layout.new().copy_(tensor) if tensor.data_ptr() % layout.alignment else tensor


def _source(operand: Operand, by_memory: dict[Tensor, Key], device: torch.device) -> Key | torch.Tensor:
    """Where the elements of a result are that no kernel writes."""
    if isinstance(operand, Tensor):
        return by_memory[operand.memory]
    return torch.from_numpy(memory_of(operand)).view(TENSORS[dtype_of(operand)]).to(device)


def _empty_on(device: torch.device) -> Any:
    """A function from shape, strides and element type to new memory on a device."""
    if device.type == "cpu":
        return empty_strided
    return lambda shape, strides, dtype: torch.empty_strided(shape, strides, dtype=dtype, device=device)


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    """The elements in the order of memory."""
    return torch.as_strided(tensor, (tensor.numel(),), (1,))


def plain_region(region: RegionStep, _: Plan) -> ProgramStep:
    """A region as it is."""
    return region


class Program:
    """A plan with compiled regions, for all values of its sizes; `at` binds them."""

    def __init__(self, plan: Plan, compile_: Compile, wrap: Wrap) -> None:
        self.plan = plan
        self.regions: dict[int, RegionStep] = {}
        steps: list[RegionStep | TorchStep] = []
        made: set[Node] = set()
        for number in plan.order:
            calls = plan.calls.get(number, [])
            if number in plan.exported:
                for each, _ in plan.regions[number].inputs:
                    steps += self._views(each, made)
                try:
                    self.regions[number] = RegionStep(plan.regions[number], plan.exported[number], compile_)
                    steps.append(self.regions[number])
                except (NotCoveredError, OpenExtent):
                    raise
                except Exception as error:  # noqa: BLE001  # an error of ours must not break the user's model
                    nodes = plan.regions[number].calls
                    plan.fallbacks.extend(leave_to_pytorch(nodes, error))
                    calls = [*nodes, *calls]
            for node in calls:
                for each in node.all_input_nodes:
                    steps += self._views(each, made)
                steps.append(TorchStep(node, plan))
        for each in plan.outputs:
            if isinstance(each, Node):
                steps += self._views(each, made)
        self._wrap = wrap
        results = {key_of(each) for each in plan.outputs if isinstance(each, Node) and each not in plan.numbers}
        last = {key: number for number, step in enumerate(steps) for key in step.read if key not in results}
        self._dying = [[key for key in dict.fromkeys(step.read) if last.get(key) == n] for n, step in enumerate(steps)]
        """The tensors that no step after each needs."""
        self._bind(plan, steps)
        self._given: list[Key] = [(node, 0) for node in plan.module.graph.nodes if node.op == "placeholder"]
        self._known = {key: tensor for key, tensor in plan.static.items() if key[0].op != "placeholder"}
        given = {t.untyped_storage().data_ptr() for key, t in plan.static.items() if key[0].op == "placeholder"}
        self._fresh = {key for key, t in self._known.items() if t.untyped_storage().data_ptr() not in given}
        """The known tensors that are no views of parameters; each call returns new ones."""

    def at(self, values: Mapping[Size, int]) -> Self:
        """The program for these values of sizes."""
        plan = self.plan.at(Present(values))
        found = copy.copy(self)
        found._bind(plan, [step.at(plan) for step in self.plain_steps])
        found.regions = {step.number: step for step in found.plain_steps if isinstance(step, RegionStep)}
        return found

    def _bind(self, plan: Plan, steps: Sequence[RegionStep | TorchStep]) -> None:
        self.plan = plan
        self.plain_steps = steps
        """The regions and the calls of PyTorch, in the order of execution."""
        is_bound = plan.present.values or not plan.is_open
        self.steps = [self._wrap(step, plan) if is_bound and isinstance(step, RegionStep) else step for step in steps]
        self._schedule = list(zip(self.steps, self._dying, strict=True))
        """The steps, each with the tensors that no later step needs."""
        self._results = [_result(each, plan) for each in plan.outputs]

    def __call__(self, arguments: list[Any]) -> list[Any]:
        """The results of the graph. The list of arguments is emptied, so that tensors live no longer than needed."""
        values = self.environment(arguments)
        arguments.clear()
        for step, dying in self._schedule:
            step(values)
            for key in dying:
                del values[key]
        fresh = self._fresh
        return [
            value if key is None else values[key].clone() if key in fresh else values[key]
            for key, value in self._results
        ]

    def environment(self, arguments: Sequence[Any]) -> Environment:
        """The tensors that are there when a call begins."""
        values: Environment = dict(self._known)
        values.update(zip(self._given, arguments, strict=True))  # Some are numbers, or the token of effects.
        return values

    def _views(self, node: Node, made: set[Node]) -> list[TorchStep]:
        """The calls that make a view of PyTorch or a generated tensor, and all before it, once."""
        call = key_of(node)[0]
        if not self.plan.is_made_late(call) or call in made:
            return []
        made.add(call)
        before = [step for each in call.all_input_nodes for step in self._views(each, made)]
        return [*before, TorchStep(call, self.plan)]


def _result(each: Any, plan: Plan) -> tuple[Key | None, Any]:
    """The tensor that a result of a graph is; None, and its value, if it is no tensor."""
    if not isinstance(each, Node):
        return None, each
    return (None, plan.numbers[each]) if each in plan.numbers else (key_of(each), None)

"""Parts of a model that run one after the other: graphs of kernels, and steps that are no kernels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from threading import RLock
from typing import Any, Protocol, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from pdojo.backends.calling.arrays import ALIGNMENT, address_of, aligned, aligned_empty
from pdojo.errors import UsageError
from pdojo.model.compiled import CompiledModel
from pdojo.model.element_types import numpy_type
from pdojo.model.graph import Graph, Known, Operand, Operation, Tensor
from pdojo.model.model import Model
from pdojo.onnx.kinds import Late, kind_of
from pdojo.onnx.scope import Item

_P = TypeVar("_P", covariant=True)
Values: TypeAlias = dict[Tensor, Known]
"""The arrays of a running call, keyed by the tensors with memory of their own. Nobody writes them again."""


def value_of(operand: Operand, values: Values) -> Known:
    """The array of an operand."""
    if not isinstance(operand, Tensor):
        return operand
    return values[operand] if isinstance(operand, Late) else values[operand.memory].reshape(operand.shape)


def placed(array: NDArray[Any], *others: Known) -> Known:
    """An array as kernels take it, which shares no memory with others: itself, or a copy."""
    if array.dtype == np.dtype(object):
        return array.copy()
    fits = array.flags.c_contiguous and not address_of(array) % ALIGNMENT
    return array if fits and not any(np.may_share_memory(array, other) for other in others) else aligned(array)


@dataclass(eq=False)
class Step(ABC):
    """A part of a model that is no kernel."""

    title: str
    """The node that it stands for."""
    reason: str
    """Why the node is no kernel."""
    tensors: Sequence[Tensor]
    """The tensors that it reads."""
    results: Sequence[Item]
    """The results; None for those that nobody wants. Those without elements are known."""

    @property
    def made(self) -> Sequence[Tensor]:
        """The results that are not known."""
        return [each for each in self.results if isinstance(each, Tensor)]

    @abstractmethod
    def run(self, values: Values, engine: Engine) -> None:
        """Compute the results."""

    def store(self, arrays: Sequence[Known | None], values: Values) -> None:
        """Add the results. Raises UsageError for one of another type or shape than was inferred."""
        for result, array in zip(self.results, arrays, strict=True):
            if not isinstance(result, Tensor):
                continue
            assert array is not None
            found = (kind_of(array.dtype), array.shape)
            if not isinstance(result, Late) and found != (result.dtype, result.shape):
                wanted = f"{result.dtype}{list(result.shape)}"
                raise UsageError(f"{self.title}: its result is {found[0]}{list(found[1])}, and {wanted} was inferred")
            values[result] = array


@dataclass(frozen=True, eq=False)
class Region:
    """A graph of kernels between steps."""

    model: Model


Part: TypeAlias = "Region | Step"


class Waiting(Protocol[_P]):
    """The later stages of a graph."""

    @property
    def reason(self) -> str:
        """The shapes and values that they wait for."""
        ...

    def next(self, values: Values) -> _P:
        """The next stage for the arrays that are there."""
        ...


class Engine(ABC):
    """A way to run the parts of a model."""

    @abstractmethod
    def kernels(self, region: Region, values: Values) -> None:
        """Run the kernels of a region."""

    def run(self, part: Part, values: Values) -> None:
        """Run a part."""
        if isinstance(part, Region):
            self.kernels(part, values)
        else:
            part.run(values, self)

    def stage(self, rest: Waiting[_P], values: Values) -> _P:
        """The next stage of a graph, which is made for the shapes or values that there are."""
        return rest.next(values)


class Interpreter(Engine):
    """The reference interpreter of kernels."""

    def kernels(self, region: Region, values: Values) -> None:
        """Run the kernels of a region."""
        region.model.interpret_steps(values)


class Compiler(Engine):
    """Compiled kernels; several threads may use them at once."""

    def __init__(self, compile_: Callable[[Model], CompiledModel]) -> None:
        self._compile = compile_
        self._compiled: WeakKeyDictionary[Region, CompiledModel] = WeakKeyDictionary()
        self._lock = RLock()

    def compiled(self, region: Region) -> CompiledModel:
        """The kernels of a region, compiled when they are first asked for."""
        with self._lock:
            if region not in self._compiled:
                self._compiled[region] = self._compile(region.model)
            return self._compiled[region]

    @property
    def values(self) -> list[CompiledModel]:
        """The regions that are compiled."""
        with self._lock:
            return list(self._compiled.values())

    def kernels(self, region: Region, values: Values) -> None:
        """Run the kernels of a region."""
        compiled = self.compiled(region)
        inputs = [values[tensor] for tensor in compiled.inputs_read]
        made = {tensor: aligned_empty(tensor.shape, numpy_type(tensor.dtype)) for tensor in region.model.results}
        compiled.run_at([*map(address_of, inputs)], [*map(address_of, made.values())])
        values.update(made)


def parts_of(name: str, nodes: Sequence[Operation | Step], wanted: Iterable[Tensor]) -> tuple[Part, ...]:
    """The parts that compute the wanted tensors, from operations and steps in an order of execution.

    An operation is in the region after the last step that it depends on. Tensors that no node makes are there already.
    """
    ends = list(wanted)
    kept = _needed(nodes, ends)
    levels: dict[Tensor, int] = {}
    regions: dict[int, list[Operation]] = {}
    steps: dict[int, list[Step]] = {}
    for node in kept:
        level = max((levels.get(each, 0) for tensor in node.tensors for each in (tensor, tensor.memory)), default=0)
        if isinstance(node, Step):
            steps.setdefault(level, []).append(node)
        else:
            regions.setdefault(level, []).append(node)
        levels.update(dict.fromkeys(node.made, level + isinstance(node, Step)))
    outside = [*ends, *(tensor for each in steps.values() for step in each for tensor in step.tensors)]
    found: list[Part] = []
    for level in sorted({*regions, *steps}):
        others = [t for n, each in regions.items() if n != level for operation in each for t in operation.tensors]
        found += _region(f"{name}.{level}", regions.get(level, []), [*outside, *others])
        found += steps.get(level, [])
    return tuple(found)


def _needed(nodes: Sequence[Operation | Step], ends: Sequence[Tensor]) -> list[Operation | Step]:
    """The nodes that some tensors need."""
    wanted = set(ends) | {tensor.memory for tensor in ends}
    kept: list[Operation | Step] = []
    for node in reversed(nodes):
        if wanted.isdisjoint(node.made):
            continue
        wanted.update(each for tensor in node.tensors for each in (tensor, tensor.memory))
        if isinstance(node, Operation):
            results = tuple(r if isinstance(r, Tensor) and r in wanted else None for r in node.results)
            node = replace(node, results=results)
        kept.append(node)
    return kept[::-1]


def _region(name: str, operations: Sequence[Operation], outside: Sequence[Tensor]) -> list[Region]:
    """The region of some operations whose results others read; empty if nobody does."""
    made = {tensor for operation in operations for tensor in operation.made}
    outputs = [memory for memory in dict.fromkeys(tensor.memory for tensor in outside) if memory in made]
    read = dict.fromkeys(tensor.memory for operation in operations for tensor in operation.tensors)
    inputs = tuple(memory for memory in read if memory not in made)
    if not outputs:
        return []
    named = tuple((f"y{number}", tensor) for number, tensor in enumerate(outputs))
    return [Region(Model.of(Graph(name, inputs, named, list(operations))))]

"""Graphs of operations on tensors, whose shapes are known or depend on sizes, as frontends make them.

An operation is lowered to handles of `pdojo.build`. It is lowered once by itself, which gives the shapes of its
results, and again in the kernel of its group.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdojo import build
from pdojo.backends.calling.arrays import Parameter
from pdojo.build.graph import Definition, Read
from pdojo.build.numbers import storage_of
from pdojo.build.plan import index_ranges
from pdojo.build.sizes import OpenExtent, expression_of, greatest, is_open
from pdojo.dialect.attributes import Intent
from pdojo.dialect.functions import byte_width
from pdojo.model.classify import (
    Kind,
    depends_on_sizes,
    kind_of,
    longest_row,
    moved,
    pieces_of,
    read_by_windows,
    read_with_channels_last,
)
from pdojo.model.element_types import element_type, numpy_type
from pdojo.model.extents import is_extents

Known: TypeAlias = NDArray[Any]
"""A value that is known before the model runs."""
Value: TypeAlias = build.Array | Known
"""An operand or a result of a lowering."""


@dataclass(eq=False)
class Tensor:
    """A value that the model computes or gets, compared by identity."""

    name: str
    dtype: str
    """The element type of handles."""
    shape: tuple[int, ...]
    """The extents: numbers, or polynomials of sizes (`pdojo.build.size`)."""
    sources: frozenset[str]
    """Names of the model's inputs that it depends on."""
    base: Tensor | None = None
    """The tensor with the same memory in another shape; None if it has its own memory."""
    strides: tuple[int, ...] = ()
    """The strides of all dimensions but the last one, which is contiguous, of an input that is not dense."""
    plain: Tensor | None = None
    """The tensor of the frontend's graph whose elements it has with channels last; None if it is one itself."""

    @property
    def memory(self) -> Tensor:
        """The tensor in whose memory it lives."""
        return self if self.base is None else self.base.memory

    @property
    def bytes(self) -> int:
        """The size of its memory."""
        return prod(self.shape) * byte_width(storage_of(self.dtype))

    def input(self, name: str) -> build.Array:
        """A new input of a kernel, for this tensor."""
        return build.input(name, self.dtype, self.shape, strided=bool(self.strides))

    def __repr__(self) -> str:
        return f"<Tensor {self.name} {self.dtype}{list(self.shape)}>"


Operand: TypeAlias = Tensor | Known
"""An operand or a result of an operation."""


def dtype_of(value: Operand) -> str:
    """The element type of handles of an operand."""
    return value.dtype if isinstance(value, Tensor) else element_type(value.dtype)


@dataclass(frozen=True)
class Lowered:
    """An operation as handles."""

    results: tuple[Value, ...]
    constants: tuple[tuple[build.Array, Known], ...] = ()
    """Inputs of the kernel that the model binds, with their values."""


Lower: TypeAlias = Callable[[tuple[Value | None, ...], str], Lowered]
"""A lowering: from operands, None for absent ones, and a prefix for the names of constants."""


@dataclass(eq=False)
class Operation:
    """A function of tensors."""

    name: str
    """The operator, for names of kernels."""
    lower: Lower
    operands: tuple[Operand | None, ...]
    results: tuple[Operand | None, ...]
    """The results; None for results that nothing needs."""
    kind: Kind
    row: int
    """The largest number of elements that are reduced to one."""
    moved: frozenset[Tensor] = frozenset()
    """Operands that are read at other indices than the results are written."""
    indices: frozenset[Tensor] = frozenset()
    """Operands whose elements are indices, which must be in memory."""
    pieces: tuple[tuple[Tensor, int], ...] = ()
    """The operands that lie side by side in the only result, with their places in bytes; empty for other results."""
    images: frozenset[Tensor] = frozenset()
    """Operands [N, C, ...] of which it reads a copy with channels last."""
    windows: frozenset[Tensor] = frozenset()
    """Operands of whose windows it sums up products, each by itself: convolutions by channels."""
    is_copy: bool = False
    """Whether its results are in memory, even if kernels could read through it."""

    @property
    def tensors(self) -> list[Tensor]:
        """The operands that are not known."""
        return [operand for operand in self.operands if isinstance(operand, Tensor)]

    @property
    def made(self) -> list[Tensor]:
        """The results that are not known."""
        return [result for result in self.results if isinstance(result, Tensor)]


@dataclass
class Graph:
    """Operations in an order of execution."""

    name: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[tuple[str, Operand], ...]
    operations: list[Operation]


@dataclass
class GraphBuilder:
    """A graph while a frontend makes it."""

    fold: Callable[[Operation], tuple[Known, ...]]
    """The values of an operation that depends neither on tensors nor on sizes."""
    inputs: list[Tensor] = field(default_factory=list[Tensor])
    operations: list[Operation] = field(default_factory=list[Operation])

    def input(self, name: str, dtype: str, shape: Sequence[int], strides: Sequence[int] = ()) -> Operand:
        """An input of the model (`Tensor.strides`); one without elements is a known value."""
        if not prod(shape):
            return np.empty(tuple(shape), numpy_type(dtype))
        tensor = Tensor(name, dtype, tuple(shape), frozenset((name,)), strides=tuple(strides))
        self.inputs.append(tensor)
        return tensor

    def apply(
        self,
        name: str,
        lower: Lower,
        operands: Sequence[Operand | None],
        titles: Sequence[str] = (),
        *,
        is_copy: bool = False,
    ) -> tuple[Operand, ...]:
        """The results of an operation, which joins the graph unless all of them are known.

        `titles` are names of the results, for messages. The errors are those of `lower`. `is_copy`: `Operation`.
        """
        inputs = {t: t.input(f"x{n}") for n, t in enumerate(_tensors(operands))}
        given = [inputs[each] if isinstance(each, Tensor) else each for each in operands]
        lowered = lower(tuple(given), "w")
        sources = frozenset[str]().union(*(tensor.sources for tensor in inputs))
        results: list[Operand] = []
        for position, value in enumerate(lowered.results):
            title = titles[position] if position < len(titles) else name
            results.append(_result(value, title, sources, inputs))
        handles = [value for value in lowered.results if isinstance(value, build.Array) and value.size]
        places = moved(handles)
        tensors = {handle.operand.definition: t for t, handle in inputs.items() if isinstance(handle.operand, Read)}
        others = frozenset(tensor for definition, tensor in tensors.items() if definition in places)
        kind, row, pieces = kind_of(handles), longest_row(handles), _pieces(handles, tensors)
        ranges = index_ranges([each.operand for each in handles])
        indices = frozenset(tensor for definition, tensor in tensors.items() if definition in ranges)
        copied = read_with_channels_last(handles)
        single = read_by_windows(handles) if kind is Kind.CONTRACTION else ()
        images = frozenset(tensor for definition, tensor in tensors.items() if definition in copied)
        by_windows = frozenset(tensor for definition, tensor in tensors.items() if definition in single)
        operation = Operation(
            name,
            lower,
            tuple(operands),
            tuple(results),
            kind,
            row,
            others,
            indices,
            pieces,
            images,
            by_windows,
            is_copy,
        )
        if operation.made and not inputs and not depends_on_sizes(handles):
            return self.fold(operation)
        if operation.made:
            self.operations.append(operation)
        return tuple(results)

    def finish(self, name: str, outputs: Sequence[tuple[str, Operand]]) -> Graph:
        """The graph of the operations that the outputs need."""
        wanted = {value for _, value in outputs if isinstance(value, Tensor)}
        kept: list[Operation] = []
        for operation in reversed(self.operations):
            if wanted.intersection(operation.made):
                wanted.update(operation.tensors)
                results = tuple(r if isinstance(r, Tensor) and r in wanted else None for r in operation.results)
                kept.append(replace(operation, results=results))
        return Graph(name, tuple(self.inputs), tuple(outputs), kept[::-1])


def _tensors(operands: Sequence[Operand | None]) -> list[Tensor]:
    return list(dict.fromkeys(operand for operand in operands if isinstance(operand, Tensor)))


def _result(value: Value, title: str, sources: frozenset[str], inputs: dict[Tensor, build.Array]) -> Operand:
    """The result of an operation for what its lowering returned: a tensor, or a value that is known."""
    if not isinstance(value, build.Array):
        known = np.asarray(value)
        if not is_extents(known):
            element_type(known.dtype)
        return known
    if not value.size:
        return np.empty(value.shape, numpy_type(value.dtype))
    base = next((t for t, handle in inputs.items() if not t.strides and _is_reshaped(value, handle)), None)
    return Tensor(title, value.dtype, value.shape, sources, base)


def _pieces(handles: Sequence[build.Array], tensors: Mapping[Definition, Tensor]) -> tuple[tuple[Tensor, int], ...]:
    """The operands that lie side by side in the only result, with their places in bytes; empty for other results."""
    pieces = pieces_of(handles)
    if not all(source in tensors for source, _ in pieces):
        return ()
    return tuple((tensors[source], place * byte_width(source.dtype)) for source, place in pieces)


def _is_reshaped(value: build.Array, handle: build.Array) -> bool:
    """Whether a handle has the elements of an input in their order."""
    if value.dtype != handle.dtype or value.size != handle.size:
        return False
    try:
        return build.reshape(handle, value.shape).operand == value.operand
    except OpenExtent:
        return False


def parameters_for(inputs: Sequence[Tensor], outputs: Sequence[tuple[str, Operand]]) -> tuple[Parameter, ...]:
    """The interface of a model: inputs, then outputs, with element types as they are in memory."""
    rows: list[tuple[str, Operand, Intent]] = [(tensor.name, tensor, Intent.IN) for tensor in inputs]
    rows += [(name, value, Intent.OUT) for name, value in outputs]
    return tuple(
        Parameter(
            name,
            storage_of(dtype_of(value)),
            greatest(value.shape),
            intent,
            1,
            extents=tuple(map(expression_of, value.shape)) if is_open(value.shape) else (),
        )
        for name, value, intent in rows
    )

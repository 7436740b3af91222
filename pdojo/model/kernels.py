"""The kernels of groups, and the tensors and constants that they are called with."""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass

from pdojo import build
from pdojo.build.graph import Definition, Read, reads
from pdojo.build.kernel import kernel_with_repeats, repeated_inputs
from pdojo.build.plan import needed
from pdojo.build.signature import signature
from pdojo.build.sizes import open_extent
from pdojo.dialect.notation import print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.model.classify import Kind
from pdojo.model.graph import Known, Operand, Operation, Tensor, Value, dtype_of

_LONGEST = 48
"""Most characters of a kernel's name."""


@dataclass(frozen=True)
class Step:
    """A call of a kernel."""

    kernel: KernelOp
    inputs: tuple[Operand, ...]
    outputs: tuple[Tensor, ...]
    places: tuple[tuple[Tensor, int], ...] = ()
    """If the inputs are computed side by side in the only output: their places there, in bytes.

    The kernel then need not run, as the output is complete.
    """
    sizes: tuple[int, ...] = ()
    """The values of the kernel's sizes, in order."""


def step_of(operations: Sequence[Operation], wanted: Collection[Tensor], known: dict[Hashable, KernelOp]) -> Step:
    """The kernel for the `wanted` tensors that the operations compute.

    `known` has kernels by their signatures and by their texts; new ones are added.
    """
    made = _Lowering()
    for operation in operations:
        made.add(operation)
    outputs = [t for t in made.values if t in wanted and t not in made.inputs.values()]
    handles = {f"y{number or ''}": made.handle(tensor) for number, tensor in enumerate(outputs)}
    read = {read.definition for handle in handles.values() for read in reads(handle.operand)}
    operands = {**made.inputs, **made.constants}
    used = [handle for handle in operands if _definition(handle) in {*needed(read)}]
    given = {_definition(handle): operands[handle] for handle in used}
    inputs = [given[each] for each in (*given, *repeated_inputs([*handles.values()]))]
    name = _name(operations)
    key = signature(name, used, handles)
    if key not in known:
        kernel = kernel_with_repeats(name, used, handles, numerics=_numerics(operations))
        known[key] = known.setdefault(print_notation(kernel), kernel)
    sizes = [open_extent(size.expression) for size in known[key].known_sizes().values()]
    return Step(known[key], tuple(inputs), tuple(outputs), sizes=tuple(sizes))


_BF16 = ("contract", "flush", "reassociate")
"""Permissions of products of bf16: the processors' instructions take denormal factors for zero, and so do the libraries
that PyTorch and ONNX Runtime call."""


def _numerics(operations: Sequence[Operation]) -> tuple[str, ...] | None:
    """The permitted classes of a group's kernel; None for the default."""
    products = [each for each in operations if each.kind is Kind.CONTRACTION]
    factors = (operand for each in products for operand in each.operands if operand is not None)
    return _BF16 if any(dtype_of(operand) == "bf16" for operand in factors) else None


class _Lowering:
    """Operations as handles of one kernel."""

    def __init__(self) -> None:
        self.inputs: dict[build.Array, Tensor] = {}
        self.constants: dict[build.Array, Known] = {}
        self.values: dict[Tensor, Value] = {}
        self._count = 0

    def add(self, operation: Operation) -> None:
        """Lower an operation.

        The factors of products are inputs of their own, even if they are parts of one tensor: moves prepare each.
        """
        given: list[Value | None] = []
        seen: set[Tensor] = set()
        for operand in operation.operands:
            if not isinstance(operand, Tensor):
                given.append(operand)
            elif operand in seen and operation.kind is Kind.CONTRACTION and self.values[operand] in self.inputs:
                given.append(self._input(operand))
            else:
                given.append(self._operand(operand))
                seen.add(operand)
        lowered = operation.lower(tuple(given), f"w{self._count}_")
        self._count += 1
        self.constants.update(lowered.constants)
        for result, value in zip(operation.results, lowered.results, strict=True):
            if isinstance(result, Tensor):
                self.values[result] = value

    def handle(self, tensor: Tensor) -> build.Array:
        """The handle of a tensor that is not known."""
        value = self.values[tensor]
        assert isinstance(value, build.Array), tensor
        return value

    def _operand(self, operand: Tensor) -> Value:
        if operand not in self.values:
            self.values[operand] = self._input(operand)
        return self.values[operand]

    def _input(self, tensor: Tensor) -> build.Array:
        """A new input of the kernel."""
        handle = tensor.input(f"x{len(self.inputs) or ''}")
        self.inputs[handle] = tensor
        return handle


def _definition(handle: build.Array) -> Definition:
    assert isinstance(handle.operand, Read)
    return handle.operand.definition


def _name(operations: Sequence[Operation]) -> str:
    """The kernel's name: the names of operations with statements, without repetitions."""
    words = list(dict.fromkeys(_words(operations)))
    name = words[0]
    for word in words[1:]:
        if len(name) + len(word) >= _LONGEST:
            return f"{name}_etc"
        name = f"{name}_{word}"
    return name


def _words(operations: Sequence[Operation]) -> Iterator[str]:
    for operation in operations:
        if any(tensor.base is None for tensor in operation.made):
            yield re.sub(r"\W+", "_", operation.name, flags=re.ASCII).strip("_").lower()[:_LONGEST] or "kernel"

"""A kernel while it is made: arrays with names of their own, statements, and the intents of arguments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, Region
from xdsl.rewriter import InsertPoint, Rewriter

from pdojo.dialect.affine import Expr, const, var
from pdojo.dialect.attributes import Intent, Memory
from pdojo.dialect.canonical import canonicalize
from pdojo.dialect.functions import DTYPES, byte_width
from pdojo.dialect.names import name_problem
from pdojo.dialect.ops import BufferOp, KernelOp
from pdojo.dialect.rewriting import build_op
from pdojo.dialect.view.nest import Access, Array, Buffer, Input
from pdojo.frontends.linalg.elements import Iterations, Place


@dataclass
class _Caller:
    """Uses of the memory that a caller passes for reading and writing."""

    observed: bool = False
    """Whether a statement needs a value of the caller."""
    written: bool = False


@dataclass
class KernelWriter:
    """Adds arrays and statements to a kernel."""

    name: str
    body: Block = field(default_factory=Block)
    names: dict[str, None] = field(default_factory=dict[str, None])
    arguments: list[Array] = field(default_factory=list[Array])
    callers: dict[str, _Caller] = field(default_factory=dict[str, _Caller])
    """Uses of arguments of intent `inout`, keyed by name."""

    def argument(self, hint: str, dtype: str, shape: Sequence[int], intent: Intent) -> Array:
        """A new interface array; `inout` becomes `in` or `out` at the end if its uses allow it."""
        value = self.body.insert_arg(MemRefType(DTYPES[dtype], shape), len(self.arguments))
        name = value.name_hint = self._fresh(hint)
        slots = (0,) * len(shape)
        buffer = Buffer((name,), dtype, tuple(shape), slots, Memory.HEAP, intent, None, byte_width(dtype))
        if intent is Intent.INOUT:
            self.callers[name] = _Caller()
        self.arguments.append(Array(name, buffer, value))
        return self.arguments[-1]

    def declare(self, hint: str, dtype: str, shape: Sequence[int], memory: Memory = Memory.HEAP) -> Array:
        """A new temporary; one on the stack takes a single slot."""
        name = self._fresh(hint)
        slots = (int(memory is Memory.STACK),) * len(shape)
        op = BufferOp([name], MemRefType(DTYPES[dtype], shape), memory, slots)
        Rewriter.insert_op(op, self._behind_buffers())
        buffer = Buffer((name,), dtype, tuple(shape), slots, memory, None, op, byte_width(dtype))
        return Array(name, buffer, op.arrays[0])

    def _behind_buffers(self) -> InsertPoint:
        first = next((op for op in self.body.ops if not isinstance(op, BufferOp)), None)
        return InsertPoint.at_end(self.body) if first is None else InsertPoint.before(first)

    def _fresh(self, hint: str) -> str:
        base = "t" if name_problem(hint) else hint
        found, number = base, 0
        while found in self.names:
            number += 1
            found = f"{base}{number}"
        self.names[found] = None
        return found

    def iterations(self) -> Iterations:
        """The place after all nests."""
        return Iterations(self.body)

    def write(
        self,
        at: Iterations,
        output: Place,
        inputs: Sequence[Input],
        function: str | None = None,
        accumulate: str | None = None,
    ) -> None:
        """Add `output accumulate= function(inputs)` to the innermost scope."""
        array, index = output
        read = [value.array.name for value in inputs if isinstance(value, Access)]
        for name in (*read, *[array.name] * (accumulate is not None)):
            if name in self.callers:
                self.callers[name].observed |= not self.callers[name].written
        if array.name in self.callers:
            caller = self.callers[array.name]
            caller.observed |= not (caller.written or _is_whole(index, array.shape, at.extents))
            caller.written = True
        at.block.add_op(build_op((array, index), inputs, at.chain, function=function, accumulate=accumulate))

    def computed(self, at: Iterations, dtype: str, inputs: Sequence[Input], function: str | None = None) -> Access:
        """A new temporary with the value of `function(inputs)` in every iteration."""
        extents = at.extents
        array = self.declare("t", dtype, extents, Memory.STACK)
        index = tuple(var(depth) for depth in range(len(extents)))
        self.write(at, (array, index), inputs, function)
        return Access(array, index)

    def finish(self) -> KernelOp:
        """The kernel, in canonical form and verified. Raises VerifyException."""
        for op in tuple(self.body.ops):
            if isinstance(op, BufferOp) and all(array.first_use is None for array in op.arrays):
                Rewriter.erase_op(op)
        rows = [(a.name, self._intent(a), a.value.type) for a in self.arguments]
        kernel = KernelOp(self.name, rows, Region(self.body))
        canonicalize(kernel)
        kernel.verify()
        return kernel

    def _intent(self, argument: Array) -> Intent:
        intent = argument.buffer.intent
        assert intent is not None
        if intent is not Intent.INOUT:
            return intent
        caller = self.callers[argument.name]
        if not caller.written:
            return Intent.IN
        return Intent.INOUT if caller.observed else Intent.OUT


def _is_whole(index: Iterable[Expr], shape: Sequence[int], extents: Sequence[int]) -> bool:
    """Whether the iterations of a statement write every element: each dimension has a scope of its own."""
    seen: set[int] = set()
    for expression, extent in zip(index, shape, strict=True):
        if expression == const(0) and extent == 1:
            continue
        (depth,) = expression.variables() if len(expression.variables()) == 1 else (-1,)
        if expression != var(depth) or depth in seen or extents[depth] != extent:
            return False
        seen.add(depth)
    return True

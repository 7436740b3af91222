"""What a thread of a block runs, under construction: its memory, and questions about its number."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext

from xdsl.dialects import arith, gpu, memref, scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Region, SSAValue

from pdojo.backends.gpu.homes import Own
from pdojo.backends.gpu.ir.dialect import PRIVATE
from pdojo.backends.gpu.launches import Launch
from pdojo.backends.gpu.numbering import Below, Digit
from pdojo.backends.loops.loop_builder import LoopBuilder
from pdojo.dialect.affine import Expr
from pdojo.dialect.functions import DTYPES
from pdojo.dialect.view.nest import Access, Buffer, Leaf, Nest


class ThreadBuilder(LoopBuilder):
    """Appends what a thread runs to the block of a launch."""

    hardware = "a graphics processor"

    def __init__(self, nest: Nest, found: Launch, block: Block, variables: Sequence[SSAValue]) -> None:
        super().__init__(nest, block, variables)
        self.launch = found
        self.memories: dict[Buffer, SSAValue] = {}
        """The memref of each buffer."""
        self.own: dict[Buffer, Own] = {}
        """The parts of buffers that a thread has for itself."""
        self.thread = self.append(gpu.ThreadIdOp(gpu.DimensionAttr(gpu.DimensionEnum.X)))
        self.thread.name_hint = "thread"

    # Memory

    def private(self, dtype: str, shape: Sequence[int], name: str) -> SSAValue:
        """Memory of each thread."""
        value = self.append(memref.AllocaOp.get(DTYPES[dtype], shape=shape, memory_space=PRIVATE))
        value.name_hint = name
        return value

    def memory(self, access: Access, leaf: Leaf) -> SSAValue:
        """The memref of an access."""
        return self.memories[access.array.buffer]

    def position(self, access: Access, leaf: Leaf) -> list[SSAValue]:
        """The indices of an access, in the thread's part if it has one."""
        part = self.own.get(access.array.buffer)
        if part is None:
            return super().position(access, leaf)
        return [self.indices.value(e) for e in part.indices[access]]

    # The number of the thread

    def digit(self, digit: Digit) -> SSAValue:
        """The value of a digit of the thread's number."""
        value = self.thread
        if digit.within:
            value = self.append(arith.RemUIOp(value, self.constants.index(digit.within)))
        if digit.stride > 1:
            value = self.append(arith.DivUIOp(value, self.constants.index(digit.stride)))
        if digit.extent:
            value = self.append(arith.RemUIOp(value, self.constants.index(digit.extent)))
        return value

    @contextmanager
    def only_if(self, tests: Sequence[Below], guards: Sequence[Expr] = ()) -> Generator[None]:
        """Code appended within runs only in threads that pass all tests, if all guards hold."""
        conditions: list[SSAValue] = []
        for test in tests:
            bound = self.constants.index(test.bound)
            conditions.append(self.append(arith.CmpiOp(self.digit(test.digit), bound, "ult")))
        if guards:
            conditions.append(self.indices.condition(guards))
        whole = conditions[0] if conditions else None
        for condition in conditions[1:]:
            assert whole is not None
            whole = self.append(arith.AndIOp(whole, condition))
        with nullcontext() if whole is None else self.conditional(whole):
            yield

    # Loops that are no scopes

    @contextmanager
    def counted(self, extent: int) -> Generator[SSAValue]:
        """Append within to the body of a loop from 0; gives its variable."""
        lower, upper, step = [self.constants.index(v) for v in (0, extent, 1)]
        with self.block(IndexType()) as block:
            yield block.args[0]
            self.builder.insert(scf.YieldOp())
        self.builder.insert(scf.ForOp(lower, upper, step, (), Region(block)))

"""Construction of a thread's code: its memory, and conditions on its number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from functools import reduce

from xdsl.dialects import arith, gpu, memref
from xdsl.ir import Block, SSAValue

from pdojo.backends.gpu.block_walk import BlockWalk
from pdojo.backends.gpu.homes import Own
from pdojo.backends.gpu.ir.dialect import PRIVATE
from pdojo.backends.gpu.launches import Launch
from pdojo.backends.gpu.numbering import Below, Digit
from pdojo.backends.loops.loop_builder import LoopBuilder
from pdojo.dialect.affine import Expr
from pdojo.dialect.functions import DTYPES
from pdojo.dialect.view.nest import Access, Buffer, Leaf, Nest


class ThreadBuilder(BlockWalk[SSAValue], LoopBuilder):
    """Appends a thread's code to the block of a launch."""

    hardware = "a graphics processor"

    def __init__(
        self,
        nest: Nest,
        found: Launch,
        block: Block,
        variables: Sequence[SSAValue],
        sizes: Mapping[str, SSAValue],
    ) -> None:
        super().__init__(nest, block, variables, sizes)
        self.launch = found
        self.memories: dict[Buffer, SSAValue] = {}
        """The memref of each buffer."""
        self.own: dict[Buffer, Own] = {}
        """The part of each buffer that a thread owns."""
        self.thread = self.append(gpu.ThreadIdOp(gpu.DimensionAttr(gpu.DimensionEnum.X)))
        self.thread.name_hint = "thread"

    # Memory

    def private(self, dtype: str, shape: Sequence[int], name: str) -> SSAValue:
        """New private memory of each thread."""
        value = self.append(memref.AllocaOp.get(DTYPES[dtype], shape=shape, memory_space=PRIVATE))
        value.name_hint = name
        return value

    def memory(self, access: Access, leaf: Leaf) -> SSAValue:
        return self.memories[access.array.buffer]

    def position(self, access: Access, leaf: Leaf) -> list[SSAValue]:
        """The indices of an access, within the thread's part if the buffer has one."""
        part = self.own.get(access.array.buffer)
        if part is None:
            return super().position(access, leaf)
        return [self.indices.value(e) for e in part.indices[access]]

    # The number of the thread

    def digit(self, digit: Digit) -> SSAValue:
        """The value of a digit of the thread's number."""
        value = self.thread
        for width in digit.within:
            value = self.append(arith.RemUIOp(value, self.constants.index(width)))
        if digit.stride > 1:
            value = self.append(arith.DivUIOp(value, self.constants.index(digit.stride)))
        if digit.extent:
            value = self.append(arith.RemUIOp(value, self.constants.index(digit.extent)))
        return value

    def below(self, test: Below) -> SSAValue:
        """Whether a digit is below its bound."""
        return self.append(arith.CmpiOp(self.digit(test.digit), self.constants.index(test.bound), "ult"))

    def condition(self, constraints: Sequence[Expr]) -> SSAValue:
        return self.indices.condition(constraints)

    def where(self, conditions: Sequence[SSAValue]) -> AbstractContextManager[None]:
        whole = reduce(lambda one, other: self.append(arith.AndIOp(one, other)), conditions)
        return self.conditional(whole)

"""Shuffles of any element type in words of 32 bits, the only ones that MLIR's lowerings support."""

from __future__ import annotations

from xdsl.builder import Builder
from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type, IntegerType, i32, i64
from xdsl.ir import Operation, SSAValue

from pdojo.backends.gpu.ir.dialect import ShuffleOp
from pdojo.backends.loops.emitter import Constants
from pdojo.dialect.functions import DTYPES, byte_width
from pdojo.dialect.view.nest import Constant


class Shuffles:
    """Appends shuffles."""

    def __init__(self, builder: Builder, constants: Constants) -> None:
        self.builder, self.constants = builder, constants

    def exchanged(self, value: SSAValue, dtype: str, offset: int, width: int) -> SSAValue:
        """The value, of type `dtype`, of the thread at distance `offset` in the first `width` of the warp."""
        if isinstance(value.type, Float32Type) or value.type == i32:
            return self._word(value, offset, width)
        element = DTYPES[dtype]
        bits = 1 if dtype == "i1" else 8 * byte_width(dtype)
        integer = IntegerType(bits)
        number = value if value.type == integer else self._append(arith.BitcastOp(value, integer))
        moved = self._wide(number, offset, width) if bits == 64 else self._narrow(number, integer, offset, width)
        return moved if element == integer else self._append(arith.BitcastOp(moved, element))

    def _narrow(self, number: SSAValue, integer: IntegerType, offset: int, width: int) -> SSAValue:
        word = self._word(self._append(arith.ExtUIOp(number, i32)), offset, width)
        return self._append(arith.TruncIOp(word, integer))

    def _wide(self, number: SSAValue, offset: int, width: int) -> SSAValue:
        half = self.constants.typed(Constant(32, "i64"))
        high = self._append(arith.TruncIOp(self._append(arith.ShRUIOp(number, half)), i32))
        low = self._append(arith.TruncIOp(number, i32))
        high, low = (self._append(arith.ExtUIOp(self._word(w, offset, width), i64)) for w in (high, low))
        return self._append(arith.OrIOp(self._append(arith.ShLIOp(high, half)), low))

    def _word(self, value: SSAValue, offset: int, width: int) -> SSAValue:
        distance, count = (self.constants.typed(Constant(n, "i32")) for n in (offset, width))
        return self._append(ShuffleOp(value, distance, count))

    def _append(self, op: Operation) -> SSAValue:
        return self.builder.insert(op).results[0]

"""A reduction over the lanes of one vector, as a tree: what a vector mapping of an accumulation declares."""

from __future__ import annotations

from xdsl.dialects import llvm
from xdsl.dialects.builtin import DenseArrayBase, VectorType, i32
from xdsl.ir import SSAValue

from pdojo.backends.llvm.code import FunctionCode, suffix
from pdojo.backends.llvm.functions import apply
from pdojo.backends.llvm.ops import ExtractElementOp, element_type, lanes
from pdojo.dialect.functions import dtype_name, is_float
from pdojo.dialect.nest import Constant

_INTEGER_REDUCTIONS = {
    "arith.addi": "add",
    "arith.muli": "mul",
    "arith.maxsi": "smax",
    "arith.minsi": "smin",
    "arith.maxui": "umax",
    "arith.minui": "umin",
    "arith.andi": "and",
    "arith.ori": "or",
}
_NARROWEST = 4
"""Lanes of the narrowest vector that halving makes; below, it would be scalars, which are slower to compare."""


def reduce_lanes(code: FunctionCode, accumulate: str, vector: SSAValue) -> SSAValue:
    """All lanes of `vector` combined by an accumulation."""
    element = element_type(vector)
    dtype = dtype_name(element)
    if not is_float(dtype):
        name = f"llvm.vector.reduce.{_INTEGER_REDUCTIONS[accumulate]}.{suffix(vector.type)}"
        return code.emit(llvm.CallIntrinsicOp(name, [vector], [element]))
    count = lanes(vector)
    assert count is not None
    if accumulate in ("arith.maximumf", "arith.minimumf"):
        if count & (count - 1) == 0:
            return _halve(code, accumulate, vector, dtype)
        name = "fmaximum" if accumulate == "arith.maximumf" else "fminimum"
        op = llvm.CallIntrinsicOp(f"llvm.vector.reduce.{name}.{suffix(vector.type)}", [vector], [element])
        return code.emit(op)
    name, neutral = ("fadd", -0.0) if accumulate == "arith.addf" else ("fmul", 1.0)
    start = code.constant(Constant(neutral, dtype))
    op = llvm.CallIntrinsicOp(f"llvm.vector.reduce.{name}.{suffix(vector.type)}", [start, vector], [element])
    # The order of the lanes is free; without the flag they would be added one after the other.
    op.properties["fastmathFlags"] = llvm.FastMathAttr([llvm.FastMathFlag.REASSOC])
    return code.emit(op)


def _halve(code: FunctionCode, accumulate: str, vector: SSAValue, dtype: str) -> SSAValue:
    """Combine the halves until one lane is left, in whole vectors: LLVM's own expansion falls back to scalars."""
    width = lanes(vector) or 1
    while width > 1:
        half = width // 2
        count = lanes(vector) or 1
        kept = half if half >= _NARROWEST else count
        upper = _shuffle(code, vector, [(half + k) % count for k in range(kept)])
        lower = vector if kept == count else _shuffle(code, vector, list(range(kept)))
        vector = apply(code, accumulate, (upper, lower), (dtype, dtype), dtype)
        width = half
    return code.emit(ExtractElementOp(vector, code.integer(0, 32)))


def _shuffle(code: FunctionCode, vector: SSAValue, order: list[int]) -> SSAValue:
    kind = VectorType(element_type(vector), [len(order)])
    return code.emit(llvm.ShuffleVectorOp(vector, vector, DenseArrayBase.from_list(i32, order), kind))

"""Reductions over the lanes of a vector, in the tree order that a vector mapping of an accumulation permits."""

from __future__ import annotations

from xdsl.dialects import llvm
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import SSAValue

from pdojo.backends.llvm.code import FunctionCode, suffix, value_type
from pdojo.backends.llvm.float_types import convert_float
from pdojo.backends.llvm.functions import apply
from pdojo.backends.llvm.ops import ExtractElementOp, element_type, lanes
from pdojo.backends.llvm.vectors import shuffle
from pdojo.dialect.functions import is_float
from pdojo.dialect.view.nest import Constant
from pdojo.math.functions import FUNCTIONS

_NARROWEST = 4
"""Lanes of the narrowest vector that halving makes; fewer would become scalars, whose comparisons are slower."""


def reduce_lanes(code: FunctionCode, accumulate: str, vector: SSAValue, dtype: str) -> SSAValue:
    """All lanes of `vector`, of element type `dtype`, combined by the accumulation's function."""
    element = element_type(vector)
    if not is_float(dtype):
        name = (FUNCTIONS[accumulate].llvm or "").removeprefix("llvm.")
        return code.emit(llvm.CallIntrinsicOp(f"llvm.vector.reduce.{name}.{suffix(vector.type)}", [vector], [element]))
    count = lanes(vector)
    assert count is not None
    extremum = accumulate in ("arith.maximumf", "arith.minimumf")
    if extremum or dtype in ("f16", "bf16"):
        if count & (count - 1) == 0:
            return _halve(code, accumulate, vector, dtype)
        if not extremum:
            return _chain(code, accumulate, vector, dtype)
        wide = "f32" if dtype in ("f16", "bf16") else dtype
        vector, element = convert_float(code, vector, dtype, wide), value_type(wide)
        name = "fmaximum" if accumulate == "arith.maximumf" else "fminimum"
        op = llvm.CallIntrinsicOp(f"llvm.vector.reduce.{name}.{suffix(vector.type)}", [vector], [element])
        return convert_float(code, code.emit(op), wide, dtype)
    name, neutral = ("fadd", -0.0) if accumulate == "arith.addf" else ("fmul", 1.0)
    start = code.constant(Constant(neutral, dtype))
    op = llvm.CallIntrinsicOp(f"llvm.vector.reduce.{name}.{suffix(vector.type)}", [start, vector], [element])
    # The order of the lanes is free; without the flag, LLVM would add them one after the other.
    op.properties["fastmathFlags"] = llvm.FastMathAttr([FastMathFlag.REASSOC])
    return code.emit(op)


def _chain(code: FunctionCode, accumulate: str, vector: SSAValue, dtype: str) -> SSAValue:
    """Combine one lane after the other."""
    total, *rest = (code.emit(ExtractElementOp(vector, code.integer(k, 32))) for k in range(lanes(vector) or 1))
    for value in rest:
        total = apply(code, accumulate, (value, total), (dtype, dtype), dtype)
    return total


def _halve(code: FunctionCode, accumulate: str, vector: SSAValue, dtype: str) -> SSAValue:
    """Combine the halves until one lane remains, in whole vectors: LLVM's own expansion would use scalars."""
    width = lanes(vector) or 1
    while width > 1:
        half = width // 2
        count = lanes(vector) or 1
        kept = half if half >= _NARROWEST else count
        upper = shuffle(code, vector, vector, [(half + k) % count for k in range(kept)])
        lower = vector if kept == count else shuffle(code, vector, vector, range(kept))
        vector = apply(code, accumulate, (upper, lower), (dtype, dtype), dtype)
        width = half
    return code.emit(ExtractElementOp(vector, code.integer(0, 32)))

"""x86 instructions that give the same bits as the general code in fewer operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from xdsl.dialects import llvm
from xdsl.dialects.builtin import Float32Type, Float64Type, IntegerAttr, IntegerType, i32
from xdsl.ir import Attribute, Operation, SSAValue

from pdojo.backends.llvm.ops import lanes

Features: TypeAlias = frozenset[str]
"""Instruction set features in LLVM's spelling (`avx512f`)."""

_NEEDS = {"scalef": "avx512f", "range": "avx512dq"}
_CURRENT_DIRECTION = 4
"""The rounding argument for the control register's current mode."""


_WIDTHS: dict[type[Attribute], int] = {Float32Type: 32, Float64Type: 64}


def has_masked_x86(features: Features, name: str, count: int | None, element: Attribute) -> bool:
    """Whether the processor has `name` for vectors of `count` lanes; scalars (None) use the general code."""
    if count is None or _NEEDS[name] not in features or type(element) not in _WIDTHS:
        return False
    bits = count * _WIDTHS[type(element)]
    return bits == 512 or (bits in (128, 256) and "avx512vl" in features)


def masked_x86(
    append: Callable[[Operation], SSAValue],
    features: Features,
    name: str,
    operands: Sequence[SSAValue],
    immediate: Sequence[int],
    element: Attribute,
) -> SSAValue | None:
    """`llvm.x86.avx512.mask.NAME` on two vectors without a mask; None if the processor lacks it.

    `scalef` is x * 2**floor(y); `range` is the maximum with immediate 5 and the minimum with 4; it orders zeros by sign
    and prefers numbers to NaN.
    """
    count = lanes(operands[0])
    if count is None or not has_masked_x86(features, name, count, element):
        return None
    kind = "ps" if isinstance(element, Float32Type) else "pd"
    bits = count * _WIDTHS[type(element)]

    def constant(value: int, size: int) -> SSAValue:
        integer = IntegerType(size)
        return append(llvm.ConstantOp(IntegerAttr(value, integer, truncate_bits=True), integer))

    arguments = [*operands, *(constant(k, 32) for k in immediate), operands[0], constant(-1, max(8, count))]
    if bits == 512:
        arguments.append(append(llvm.ConstantOp(IntegerAttr(_CURRENT_DIRECTION, i32), i32)))
    call = llvm.CallIntrinsicOp(f"llvm.x86.avx512.mask.{name}.{kind}.{bits}", arguments, [operands[0].type])
    return append(call)

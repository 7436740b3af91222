"""Recipes as inlined code of the llvm dialect, for scalars and vectors of f32 and f64.

`docs/math.md` lists results for infinities, NaN, zeros and denormal numbers, and the origin of the error bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from xdsl.builder import Builder
from xdsl.dialects import llvm
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr, IntegerType, VectorType
from xdsl.ir import Attribute, Operation, SSAValue

from pdojo.backends.llvm.code import function_op
from pdojo.backends.llvm.ops import SelectOp, element_type, lanes, with_lanes
from pdojo.backends.llvm.x86 import Features, has_masked_x86, masked_x86
from pdojo.dialect.functions import DTYPES
from pdojo.errors import LoweringError
from pdojo.math.functions import FUNCTIONS
from pdojo.math.values import FORMATS, Format, Real, Values

_CASTS: dict[str, Callable[[SSAValue, Attribute], Operation]] = {
    "arith.bitcast": llvm.BitcastOp,
    "arith.sitofp": llvm.SIToFPOp,
    "arith.extf": llvm.FPExtOp,
    "arith.truncf": llvm.FPTruncOp,
}
_FORMATS: dict[Attribute, Format] = {DTYPES[name]: known for name, known in FORMATS.items()}


def emit_math(
    function: str, operands: Sequence[SSAValue], builder: Builder, features: Features = frozenset()
) -> SSAValue:
    """Append the code of `function`, which has a recipe, and return its value.

    `features` are the processor's: their instructions are used if they give the same bits.

    Operands and result have one type: f32, f64 or a vector of either. Scalar and vector code give the same bits. The
    code has no blocks, symbols or library calls. Raises LoweringError for other functions, types or numbers of
    operands.
    """
    spec = FUNCTIONS.get(function)
    if spec is None or spec.recipe is None:
        inlined = ", ".join(sorted(f.name for f in FUNCTIONS.values() if f.recipe is not None))
        raise LoweringError(f"'{function}' has no inlined code; there is code for {inlined}")
    if len(operands) != spec.arity:
        raise LoweringError(f"'{function}' takes {spec.arity} operand{'s' * (spec.arity > 1)}, not {len(operands)}")
    kind = operands[0].type
    if element_type(operands[0]) not in _FORMATS or any(o.type != kind for o in operands):
        listed = ", ".join(str(o.type) for o in operands)
        raise LoweringError(f"'{function}' is inlined for f32, f64 and vectors of them, not for ({listed})")
    code = _Code(builder, lanes(operands[0]), features)
    value: SSAValue = spec.recipe()(*(Real(code, _FORMATS[element_type(o)], o) for o in operands)).value
    return value


class _Code(Values[SSAValue]):
    """Appends operations to a builder; values are scalars (`count` is None) or vectors."""

    def __init__(self, builder: Builder, count: int | None, features: Features) -> None:
        super().__init__()
        self._builder = builder
        self._count = count
        self._features = features

    def _append(self, op: Operation) -> SSAValue:
        return self._builder.insert(op).results[0]

    def new_constant(self, number: float, dtype: str) -> SSAValue:
        """Append a constant with `number` in every lane."""
        element: Any = DTYPES[dtype]
        value = IntegerAttr(int(number), element) if isinstance(element, IntegerType) else FloatAttr(number, element)
        if self._count is None:
            return self._append(llvm.ConstantOp(value, element))
        kind, data = VectorType(element, [self._count]), cast(Any, value.value.data)
        return self._append(llvm.ConstantOp(DenseIntOrFPElementsAttr.from_list(kind, [data]), kind))

    def apply(self, function: str, operands: Sequence[SSAValue], dtypes: Sequence[str], result: str) -> SSAValue:
        if function in _CASTS:
            return self._append(_CASTS[function](operands[0], with_lanes(DTYPES[result], self._count)))
        _, _, predicate = function.partition("cmpi.")
        if predicate:
            flag = IntegerAttr(llvm.ICmpPredicateFlag(predicate).to_int(), 64)
            return self._append(llvm.ICmpOp(operands[0], operands[1], flag))
        if function == "arith.select":
            return self._append(SelectOp(operands[0], operands[1], operands[2]))
        # Code runs with rounding to nearest; targets without an instruction for `rint` have it in their C library.
        name = "llvm.rint" if function == "math.roundeven" else FUNCTIONS[function].llvm
        assert name is not None, function
        return self._append(function_op(name, operands))

    def shift(self, function: str, value: SSAValue, count: int, dtype: str) -> SSAValue:
        """Append a shift of every lane."""
        shift = llvm.ShlOp if function == "arith.shli" else llvm.AShrOp
        return self._append(shift(value, self.constant(count, dtype)))

    def scales(self, dtype: str) -> bool:
        """Whether the processor has AVX-512's `vscalef` for vectors of this length."""
        return has_masked_x86(self._features, "scalef", self._count, DTYPES[dtype])

    def scaled(self, value: SSAValue, exponent: SSAValue, dtype: str) -> SSAValue:
        """Append `vscalef`."""
        found = masked_x86(self._append, self._features, "scalef", (value, exponent), (), DTYPES[dtype])
        assert found is not None
        return found

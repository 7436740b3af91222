"""Elementary functions as inlined code of the llvm dialect, for scalars and vectors of f32 and f64.

`docs/math.md` lists results for infinities, NaN, zeros and denormal numbers, and the origin of the error bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.ir import SSAValue

from pdojo.backends.llvm.math_erf import erf
from pdojo.backends.llvm.math_exp import exp, exp2, expm1, tanh
from pdojo.backends.llvm.math_log import log, log1p, log2
from pdojo.backends.llvm.math_pow import powf
from pdojo.backends.llvm.math_root import rsqrt
from pdojo.backends.llvm.math_trig import cos, sin
from pdojo.backends.llvm.math_values import FORMATS, Features, Real
from pdojo.backends.llvm.ops import element_type
from pdojo.errors import LoweringError


@dataclass(frozen=True, slots=True)
class UlpBound:
    """The greatest error over all arguments, in units in the last place of the exact result, by format."""

    f32: float
    f64: float


MATH_FUNCTIONS: dict[str, UlpBound] = {
    "math.exp": UlpBound(1.0, 1.0),
    "math.exp2": UlpBound(1.0, 1.0),
    "math.expm1": UlpBound(1.25, 1.5),
    "math.log": UlpBound(1.0, 1.0),
    "math.log2": UlpBound(1.0, 1.25),
    "math.log1p": UlpBound(1.5, 1.75),
    "math.tanh": UlpBound(1.75, 2.0),
    "math.erf": UlpBound(1.25, 1.5),
    "math.sin": UlpBound(0.51, 1.0),
    "math.cos": UlpBound(0.51, 1.0),
    "math.rsqrt": UlpBound(1.5, 1.5),
    "math.powf": UlpBound(0.51, 1.25),
}
"""The functions that `emit_math` emits, with their error bounds."""

_UNARY: dict[str, Callable[[Real], Real]] = {
    "math.exp": exp,
    "math.exp2": exp2,
    "math.expm1": expm1,
    "math.log": log,
    "math.log2": log2,
    "math.log1p": log1p,
    "math.tanh": tanh,
    "math.erf": erf,
    "math.sin": sin,
    "math.cos": cos,
    "math.rsqrt": rsqrt,
}
_BINARY: dict[str, Callable[[Real, Real], Real]] = {"math.powf": powf}


def emit_math(
    function: str, operands: Sequence[SSAValue], builder: Builder, features: Features = frozenset()
) -> SSAValue:
    """Append the code of `function` (a key of `MATH_FUNCTIONS`) and return its value.

    `features` are the processor's: their instructions are used if they give the same bits.

    Operands and result have one type: f32, f64 or a vector of either. Scalar and vector code give the same bits. The
    code has no blocks, symbols or library calls. Raises LoweringError for other functions, types or numbers of
    operands.
    """
    expected = 1 if function in _UNARY else 2 if function in _BINARY else None
    if expected is None:
        raise LoweringError(f"'{function}' has no inlined code; there is code for {', '.join(sorted(MATH_FUNCTIONS))}")
    if len(operands) != expected:
        raise LoweringError(f"'{function}' takes {expected} operand{'s' * (expected > 1)}, not {len(operands)}")
    kind = operands[0].type
    if element_type(operands[0]) not in FORMATS or any(o.type != kind for o in operands):
        listed = ", ".join(str(o.type) for o in operands)
        raise LoweringError(f"'{function}' is inlined for f32, f64 and vectors of them, not for ({listed})")
    first, *others = operands
    x = Real.of(first, builder, features)
    if expected == 1:
        return _UNARY[function](x).value
    return _BINARY[function](x, x.beside(others[0])).value

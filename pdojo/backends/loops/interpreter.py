"""What xDSL's interpreter lacks to run the loop form: functions of arith and math, stack memory, parallel loops.

Floating-point functions are rounded to their type, once each (xDSL's own `addf` and its like are computed in double
precision and rounded where the value is stored). Integers are kept as signed values.
"""

from __future__ import annotations

import math as numbers
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any, TypeAlias, cast

import numpy as np
from xdsl.context import Context
from xdsl.dialects import arith, math, memref, scf
from xdsl.dialects.builtin import Float16Type, Float32Type, Float64Type, IntegerType, ModuleOp
from xdsl.interpreter import (
    Interpreter,
    InterpreterFunctions,
    PythonValues,
    ReturnedValues,
    TerminatorValue,
    impl,
    impl_terminator,
    register_impls,
)
from xdsl.interpreters import register_implementations
from xdsl.interpreters.builtin import xtype_for_el_type
from xdsl.interpreters.math import MathFunctions
from xdsl.interpreters.shaped_array import ShapedArray
from xdsl.interpreters.utils.ptr import TypedPtr
from xdsl.ir import Attribute, Operation
from xdsl.utils.comparisons import to_signed, to_unsigned
from xdsl.utils.exceptions import InterpretationError

Scalar: TypeAlias = Callable[..., Any]
"""A function of NumPy or Python scalars."""


def loops_interpreter(module: ModuleOp, ctx: Context) -> Interpreter:
    """An xDSL interpreter for a module in loop form, with all that its operations need."""
    interpreter = Interpreter(module)
    register_implementations(interpreter, ctx)
    interpreter.register_implementations(MathFunctions())
    for functions in (LoopFunctions(), _scalar_functions()()):
        interpreter.register_implementations(functions, override=True)
    return interpreter


@register_impls
class LoopFunctions(InterpreterFunctions):
    """Stack memory and parallel loops."""

    @impl(memref.AllocaOp)
    def run_alloca(self, interpreter: Interpreter, op: memref.AllocaOp, args: PythonValues) -> PythonValues:
        """Fresh memory, zeroed."""
        shape = op.memref.type.get_shape()
        element = xtype_for_el_type(op.memref.type.get_element_type(), interpreter.index_bitwidth)
        return (ShapedArray(TypedPtr[Any].zeros(prod(shape), xtype=element), list(shape)),)

    @impl(scf.ParallelOp)
    def run_parallel(self, interpreter: Interpreter, op: scf.ParallelOp, args: PythonValues) -> PythonValues:
        """All iterations, one after the other; reductions are not supported."""
        if op.initVals:
            raise InterpretationError("scf.parallel with reductions is not supported")
        rank = len(op.lowerBound)
        bounds = zip(args[:rank], args[rank : 2 * rank], args[2 * rank :], strict=True)
        for point in product(*(range(*bound) for bound in bounds)):
            interpreter.run_ssacfg_region(op.body, point, "parallel")
        return ()

    @impl_terminator(scf.ReduceOp)
    def run_reduce(
        self, interpreter: Interpreter, op: scf.ReduceOp, args: PythonValues
    ) -> tuple[TerminatorValue, PythonValues]:
        """The end of an iteration."""
        return ReturnedValues(()), ()


def _rsqrt(x: float) -> float:
    return np.divide(1, np.sqrt(x))


def _fma(x: float, y: float, z: float) -> float:
    """`x * y + z` without rounding the product; exact for double precision."""
    plain = float(x) * float(y) + float(z)
    if not numbers.isfinite(plain) or plain == 0:
        return plain
    return float(Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z)))


_FLOAT: dict[type[Operation], Scalar] = {
    arith.DivfOp: np.divide,
    arith.NegfOp: np.negative,
    arith.MaxnumfOp: np.fmax,
    arith.MinnumfOp: np.fmin,
    math.AbsFOp: np.abs,
    math.CeilOp: np.ceil,
    math.FloorOp: np.floor,
    math.RoundEvenOp: np.rint,
    math.TruncOp: np.trunc,
    math.ExpOp: np.exp,
    math.Exp2Op: np.exp2,
    math.ExpM1Op: np.expm1,
    math.LogOp: np.log,
    math.Log2Op: np.log2,
    math.Log1pOp: np.log1p,
    math.SqrtOp: np.sqrt,
    math.RsqrtOp: _rsqrt,
    math.SinOp: np.sin,
    math.CosOp: np.cos,
    math.TanhOp: np.tanh,
    math.ErfOp: numbers.erf,
    math.PowFOp: np.power,
    math.CopySignOp: np.copysign,
    math.FmaOp: _fma,
}

_SIGNED: dict[type[Operation], Scalar] = {
    arith.MaxSIOp: max,
    arith.MinSIOp: min,
    math.AbsIOp: abs,
}

_UNSIGNED: dict[type[Operation], Scalar] = {
    arith.DivUIOp: int.__floordiv__,
    arith.RemUIOp: int.__mod__,
    arith.MaxUIOp: max,
    arith.MinUIOp: min,
    arith.ShRUIOp: int.__rshift__,
}

_CASTS: dict[type[Operation], Callable[[Any, Attribute, Attribute], Any]] = {
    arith.ExtFOp: lambda x, _, target: _round(x, target),
    arith.TruncFOp: lambda x, _, target: _round(x, target),
    arith.SIToFPOp: lambda x, source, target: _round(to_signed(x, _width(source)), target),
    arith.UIToFPOp: lambda x, source, target: _round(to_unsigned(x, _width(source)), target),
    arith.FPToSIOp: lambda x, _, target: to_signed(int(x), _width(target)),
    arith.FPToUIOp: lambda x, _, target: to_signed(int(x), _width(target)),
    arith.ExtSIOp: lambda x, source, _: to_signed(x, _width(source)),
    arith.ExtUIOp: lambda x, source, _: to_unsigned(x, _width(source)),
    arith.TruncIOp: lambda x, _, target: to_signed(x, _width(target)),
    arith.BitcastOp: lambda x, source, target: np.asarray(x, _dtype(source)).view(_dtype(target)).item(),
}


def _scalar_functions() -> type[InterpreterFunctions]:
    """The tables above as implementations."""
    rows = (
        *((op, _float(function)) for op, function in _FLOAT.items()),
        *((op, _integer(function, to_signed)) for op, function in _SIGNED.items()),
        *((op, _integer(function, to_unsigned)) for op, function in _UNSIGNED.items()),
        *((op, _cast(function)) for op, function in _CASTS.items()),
    )
    methods = {f"run_{op.__name__}": impl(op)(run) for op, run in rows}
    return register_impls(type("ScalarFunctions", (InterpreterFunctions,), methods))


def _float(function: Scalar) -> Scalar:
    def run(_: InterpreterFunctions, interpreter: Interpreter, op: Operation, args: PythonValues) -> PythonValues:
        element = op.results[0].type
        with np.errstate(all="ignore"):
            return (_round(function(*(np.asarray(a, _dtype(element))[()] for a in args)), element),)

    return run


def _integer(function: Scalar, read: Callable[[int, int], int]) -> Scalar:
    def run(_: InterpreterFunctions, interpreter: Interpreter, op: Operation, args: PythonValues) -> PythonValues:
        width = _width(op.results[0].type)
        return (to_signed(function(*(read(a, width) for a in args)), width),)

    return run


def _cast(function: Scalar) -> Scalar:
    def run(_: InterpreterFunctions, interpreter: Interpreter, op: Operation, args: PythonValues) -> PythonValues:
        return (function(args[0], op.operands[0].type, op.results[0].type),)

    return run


def _round(value: float, element: Attribute) -> float:
    with np.errstate(all="ignore"):
        return np.asarray(value).astype(_dtype(element)).item()


def _width(element: Attribute) -> int:
    return cast(IntegerType, element).width.data


def _dtype(element: Attribute) -> np.dtype[Any]:
    match element:
        case Float16Type():
            return np.dtype(np.float16)
        case Float32Type():
            return np.dtype(np.float32)
        case Float64Type():
            return np.dtype(np.float64)
        case IntegerType():
            return np.dtype(f"i{max(1, element.width.data // 8)}")
        case _:
            raise InterpretationError(f"the interpreter has no numbers of type {element}")

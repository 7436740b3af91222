"""Additions to xDSL's interpreter for the loop form: functions of arith and math, stack memory, parallel loops.

Functions have the meaning in `pdojo.dialect.semantics.functions`, rounded to their type. Integers are signed Python
numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import prod
from typing import Any, TypeAlias

import numpy as np
from xdsl.context import Context
from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import IndexType, ModuleOp
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
from xdsl.interpreters.shaped_array import ShapedArray
from xdsl.interpreters.utils.ptr import TypedPtr
from xdsl.ir import Operation, SSAValue

from pdojo.backends.loops.functions import standard_operations
from pdojo.dialect.functions import dtype_name
from pdojo.dialect.semantics.functions import apply
from pdojo.dialect.semantics.rounding import CARRIERS
from pdojo.math.functions import FUNCTIONS, Signature

_Run: TypeAlias = Callable[[InterpreterFunctions, Interpreter, Any, PythonValues], PythonValues]


def loops_interpreter(module: ModuleOp, ctx: Context) -> Interpreter:
    """An xDSL interpreter for a module in loop form, with implementations of all its operations."""
    interpreter = Interpreter(module)
    register_implementations(interpreter, ctx)
    interpreter.register_implementations(LoopFunctions())
    interpreter.register_implementations(_scalar_functions()(), override=True)
    return interpreter


@register_impls
class LoopFunctions(InterpreterFunctions):
    """Stack memory and parallel loops."""

    @impl(memref.AllocaOp)
    def run_alloca(self, interpreter: Interpreter, op: memref.AllocaOp, args: PythonValues) -> PythonValues:
        """Allocate zeroed memory."""
        shape = op.memref.type.get_shape()
        element = xtype_for_el_type(op.memref.type.get_element_type(), interpreter.index_bitwidth)
        return (ShapedArray(TypedPtr[Any].zeros(prod(shape), xtype=element), list(shape)),)

    @impl(scf.ParallelOp)
    def run_parallel(self, interpreter: Interpreter, op: scf.ParallelOp, args: PythonValues) -> PythonValues:
        """Run all iterations in order; the loop form has no reductions."""
        rank = len(op.lowerBound)
        interpreter.interpreter_assert(len(args) == 3 * rank, "scf.parallel with reductions is not supported")
        bounds = zip(args[:rank], args[rank : 2 * rank], args[2 * rank :], strict=True)
        for point in product(*(range(*bound) for bound in bounds)):
            interpreter.run_ssacfg_region(op.body, point, "parallel")
        return ()

    @impl_terminator(scf.ReduceOp)
    def run_reduce(
        self, interpreter: Interpreter, op: scf.ReduceOp, args: PythonValues
    ) -> tuple[TerminatorValue, PythonValues]:
        """End an iteration."""
        return ReturnedValues(()), ()


def _scalar_functions() -> type[InterpreterFunctions]:
    """All functions of statements that have an operation, except comparisons and select, which xDSL implements."""
    methods: dict[str, _Run] = {}
    for function in FUNCTIONS.values():
        operation = standard_operations().get(function.name)
        if operation is not None and function.signature in (Signature.FLOAT, Signature.INTEGER, Signature.CAST):
            methods[f"run_{function.name}"] = impl(operation)(_run(function.name))
    return register_impls(type("ScalarFunctions", (InterpreterFunctions,), methods))


def _run(function: str) -> _Run:
    def run(self: InterpreterFunctions, interpreter: Interpreter, op: Operation, args: PythonValues) -> PythonValues:
        dtypes = [_dtype(operand) for operand in op.operands]
        operands = [np.asarray(a).astype(CARRIERS[t]) for a, t in zip(args, dtypes, strict=True)]
        return (apply(function, operands, dtypes, _dtype(op.results[0])).item(),)

    return run


def _dtype(value: SSAValue) -> str:
    """The element type in which a value is computed."""
    return "i64" if isinstance(value.type, IndexType) else dtype_name(value.type)

"""Inlined math functions as callables over arrays, and errors in ulp."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from typing import Any

import llvmlite.binding as binding
import numpy as np
from numpy.typing import NDArray
from xdsl.builder import Builder
from xdsl.dialects import llvm
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import Block, Region
from xdsl.rewriter import InsertPoint

from pdojo.backends.llvm.convert import convert_module
from pdojo.backends.llvm.math import emit_math
from pdojo.backends.llvm.ops import with_lanes
from pdojo.backends.llvm.optimize import Effort, parse, processor, run_passes
from pdojo.dialect.functions import DTYPES
from pdojo.math.functions import FUNCTIONS, UlpBound

Array = NDArray[Any]
ARITY = {"math.powf": 2}
"""Number of operands where it is not one."""
BOUNDS: dict[str, UlpBound] = {f.name: f.bound for f in FUNCTIONS.values() if f.bound is not None}
"""The error bounds of the functions with recipes."""


def array_function(name: str, function: str, dtype: str, lanes: int) -> llvm.FuncOp:
    """`name(count, inputs..., output)`: apply `function` to arrays, `lanes` elements at a time."""
    arity = ARITY.get(function, 1)
    pointer, element = llvm.LLVMPointerType(), DTYPES[dtype]
    arguments = [i64, *[pointer] * (arity + 1)]
    entry, body, after = Block(arg_types=arguments), Block(arg_types=[i64]), Block()
    start = llvm.ConstantOp(IntegerAttr(0, i64), i64)
    step = llvm.ConstantOp(IntegerAttr(lanes, i64), i64)
    entry.add_ops([start, step, llvm.BrOp(body, start.result)])

    shape = with_lanes(element, None if lanes == 1 else lanes)
    builder = Builder(InsertPoint.at_end(body))
    index = body.args[0]
    count, *inputs, output = entry.args
    size = DTYPES[dtype].bitwidth // 8
    operands = [
        builder.insert(
            llvm.LoadOp(builder.insert(llvm.GEPOp.from_mixed_indices(p, [index], element)).results[0], shape, size)
        ).results[0]
        for p in inputs
    ]
    value = emit_math(function, operands, builder)
    place = builder.insert(llvm.GEPOp.from_mixed_indices(output, [index], element)).results[0]
    builder.insert(llvm.StoreOp(value, place, size))
    following = builder.insert(llvm.AddOp(index, step.result)).results[0]
    below = llvm.ICmpOp(following, count, IntegerAttr(llvm.ICmpPredicateFlag("ult").to_int(), 64))
    again = builder.insert(below).results[0]
    builder.insert(llvm.CondBrOp(again, body, [following], after, ()))
    after.add_op(llvm.ReturnOp())
    return llvm.FuncOp(
        name, llvm.LLVMFunctionType(arguments), llvm.LinkageAttr("external"), body=Region([entry, body, after])
    )


@dataclass(frozen=True)
class Compiled:
    """A function in machine code for this computer; keeps the engine alive."""

    engine: Any
    address: int
    lanes: int
    arity: int

    def __call__(self, *inputs: Array) -> Array:
        """Apply to arrays of one length; pads to whole vectors."""
        length = len(inputs[0])
        padding = -length % self.lanes
        padded = [np.ascontiguousarray(np.concatenate([x, x[:1].repeat(padding)]) if padding else x) for x in inputs]
        output = np.empty_like(padded[0])
        prototype = ctypes.CFUNCTYPE(None, ctypes.c_int64, *[ctypes.c_void_p] * (self.arity + 1))
        prototype(self.address)(len(output), *(x.ctypes.data for x in padded), output.ctypes.data)
        return output[:length]


@cache
def compiled(function: str, dtype: str, lanes: int, effort: Effort = "search") -> Compiled:
    """The function over arrays, made for the host."""
    host = processor()
    machine = host.target_machine(effort)
    module = ModuleOp([array_function("apply", function, dtype, lanes)])
    module.verify()
    parsed = parse(str(convert_module(module, host.triple, str(machine.target_data))))
    run_passes(parsed, machine, effort)
    engine: Any = binding.create_mcjit_compiler(parsed, machine)  # pyright: ignore[reportUnknownMemberType]
    engine.finalize_object()
    return Compiled(engine, engine.get_function_address("apply"), lanes, ARITY.get(function, 1))


def ulp_errors(result: Array, exact: Array) -> NDArray[np.float64]:
    """|result - exact| in units in the last place of `exact`, in the format of `result`.

    A result beyond the greatest number counts as the power of two that follows it. Where exactly one is a nan, or the
    signs of zeros or infinities differ, the error is infinite.
    """
    info = np.finfo(result.dtype)
    top = exact.dtype.type(2.0) ** int(info.maxexp)
    wide = np.where(np.isinf(result), np.copysign(top, result), result.astype(exact.dtype))
    bounded = np.clip(exact, -top, top)
    _, exponent = np.frexp(np.where(np.isfinite(bounded), bounded, 1))
    last = np.maximum(exponent, int(info.minexp) + 1) - (int(info.nmant) + 1)
    error = np.abs(np.ldexp(wide - bounded, -last)).astype(np.float64)
    wrong = (np.isnan(result) != np.isnan(exact)) | (np.signbit(wide) != np.signbit(bounded)) & ~np.isnan(exact)
    return np.where(wrong, np.inf, np.where(np.isnan(exact), 0.0, error))

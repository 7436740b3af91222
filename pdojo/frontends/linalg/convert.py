"""The pass `convert-linalg-to-pdojo`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import MemRefType, ModuleOp, TensorType
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from pdojo.dialect.ops import CallOp, KernelOp
from pdojo.frontends.linalg.constants import check_bits
from pdojo.frontends.linalg.function import kernel_of_function
from pdojo.frontends.linalg.refusal import name_of, refused
from pdojo.frontends.text import TextContext

_DIALECTS = ("linalg.", "tensor.")
"""Beginnings of the names of operations that make a function a kernel."""


@dataclass(frozen=True)
class ConvertLinalgToPdojoPass(ModulePass):
    """Turn every `func.func` of tensors, or with operations of `linalg` or `tensor`, into a `pdojo.kernel`.

    Private functions that only such functions call become part of their callers. Raises ConversionError for the first
    operation that kernels cannot express; the module is then as before.
    """

    name = "convert-linalg-to-pdojo"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        functions = {each.sym_name.data: each for each in op.walk() if isinstance(each, func.FuncOp)}
        converted = {name: each for name, each in functions.items() if is_kernel_like(each)}
        calls = [each for each in op.walk() if isinstance(each, func.CallOp)]
        outer = [call for call in calls if _function_around(call) not in converted.values()]
        inlined = {call.callee.string_value() for call in calls if call not in outer}
        kept = {call.callee.string_value() for call in outer}
        if not isinstance(ctx, TextContext):
            for constant in (each for function in converted.values() for each in function.walk()):
                if isinstance(constant, arith.ConstantOp):
                    check_bits(constant)
        kernels: dict[str, KernelOp] = {}
        for name, function in converted.items():
            if name not in inlined or name in kept or not _is_private(function):
                kernels[name] = kernel_of_function(function, functions)
        replacements = {call: _kernel_call(call) for call in outer if call.callee.string_value() in kernels}
        for call, replacement in replacements.items():
            Rewriter.replace_op(call, replacement)
        for name, function in converted.items():
            if name in kernels:
                Rewriter.replace_op(function, kernels[name])
            else:
                Rewriter.erase_op(function)


def is_kernel_like(function: func.FuncOp) -> bool:
    """Whether a function has a body, and tensors or operations of linalg."""
    types = (*function.function_type.inputs, *function.function_type.outputs)
    inside = (name_of(op).startswith(_DIALECTS) for op in function.walk())
    return not function.is_declaration and (any(isinstance(t, TensorType) for t in types) or any(inside))


def _is_private(function: func.FuncOp) -> bool:
    return function.sym_visibility is not None and function.sym_visibility.data == "private"


def _function_around(op: Operation) -> Operation | None:
    around = op.parent_op()
    while around is not None and not isinstance(around, func.FuncOp):
        around = around.parent_op()
    return around


def _kernel_call(call: func.CallOp) -> CallOp:
    """The call of a kernel by a function that stays. Raises ConversionError if it passes values that are no memrefs."""
    if call.results or not all(isinstance(operand.type, MemRefType) for operand in call.arguments):
        raise refused(
            call, f"calls '{call.callee.string_value()}', which becomes a kernel, with values that are no memrefs"
        )
    return CallOp(call.callee.string_value(), call.arguments)

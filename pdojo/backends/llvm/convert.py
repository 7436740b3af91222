"""Conversion of xDSL's llvm dialect to an llvmlite module.

It extends `xdsl.backend.llvm` by vectors of pointers, the operations of `llvmx`, non-temporal and alias metadata, and
alignment and fast-math flags of intrinsics. xDSL converts every other operation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from xdsl.backend.llvm.convert_op import convert_op
from xdsl.backend.llvm.convert_type import convert_type
from xdsl.dialects import llvm
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerAttr, ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from pdojo.backends.llvm.convert_ops import CONVERSIONS, Values
from pdojo.backends.llvm.metadata import Metadata, alias_scopes

_FLAGS = {
    "llvm.noalias": "noalias",
    "llvm.nonnull": "nonnull",
    "llvm.noundef": "noundef",
}


def convert_module(module: ModuleOp, triple: str, data_layout: str) -> ir.Module:
    """The llvmlite module for a module of the llvm dialect."""
    # A separate context: the global one would keep the names of all modules ever made.
    target = ir.Module(context=ir.Context())
    target.triple = triple
    target.data_layout = data_layout
    functions = [f for f in module.body.block.ops if isinstance(f, llvm.FuncOp)]
    metadata = Metadata(target, alias_scopes(module))
    for table in module.body.block.ops:
        if isinstance(table, llvm.GlobalOp):
            _define_table(table, target)
    for function in functions:
        _declare(function, target)
    for function in functions:
        if function.body.blocks:
            _define(function, target, metadata)
    return target


def _define_table(table: llvm.GlobalOp, module: ir.Module) -> None:
    assert isinstance(table.value, DenseIntOrFPElementsAttr)
    entries = [int(entry) for entry in table.value.get_values()]
    kind = ir.ArrayType(ir.IntType(64), len(entries))
    # llvmlite's stubs lack the attributes of variables.
    defined: Any = ir.GlobalVariable(module, kind, name=table.sym_name.data)
    defined.linkage, defined.global_constant, defined.align = "internal", True, 8
    defined.initializer = ir.Constant(kind, entries)


def _declare(function: llvm.FuncOp, module: ir.Module) -> None:
    signature = ir.FunctionType(
        convert_type(function.function_type.output), [convert_type(t) for t in function.function_type.inputs]
    )
    declared = ir.Function(module, signature, name=function.sym_name.data)
    if function.linkage.linkage.data == "internal":
        declared.linkage = "internal"
    declared.attributes.add("nounwind")
    if function.arg_attrs is None:
        return
    for argument, facts in zip(declared.args, function.arg_attrs.data, strict=True):
        for name, value in facts.data.items():
            if name in _FLAGS:
                argument.add_attribute(_FLAGS[name])
            elif isinstance(value, IntegerAttr):
                setattr(argument.attributes, name.removeprefix("llvm."), value.value.data)


def _define(function: llvm.FuncOp, module: ir.Module, metadata: Metadata) -> None:
    target = cast(ir.Function, module.get_global(function.sym_name.data))
    blocks: dict[Block, ir.Block] = {}
    values: dict[SSAValue, ir.Value] = {}
    for number, block in enumerate(function.body.blocks):
        blocks[block] = target.append_basic_block("entry" if number == 0 else "")
        if number == 0:
            for own, given in zip(block.args, target.args, strict=True):
                given.name = own.name_hint or given.name
                values[own] = given
            continue
        builder = ir.IRBuilder(blocks[block])
        for argument in block.args:
            values[argument] = builder.phi(convert_type(argument.type))
    for block in function.body.blocks:
        builder = ir.IRBuilder(blocks[block])
        builder.position_at_end(blocks[block])
        for op in block.ops:
            _convert(op, builder, values, blocks, metadata)


def _convert(
    op: Operation, builder: ir.IRBuilder, values: Values, blocks: dict[Block, ir.Block], metadata: Metadata
) -> None:
    conversion: Callable[[Operation, ir.IRBuilder, Values], ir.Instruction | None] | None = CONVERSIONS.get(type(op))
    if conversion is None:
        convert_op(op, builder, values, blocks)
        for result in op.results:
            converted = values[result]
            if isinstance(converted, ir.Instruction):
                # Flags come from a set; unsorted, the text would differ between processes.
                converted.flags.sort()
        return
    instruction = conversion(op, builder, values)
    if instruction is not None:
        metadata.attach(op, instruction)

"""Conversions of operations to llvmlite that xDSL's converter lacks or that need more than it offers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

from llvmlite import ir
from xdsl.backend.llvm.convert_type import convert_type
from xdsl.dialects import llvm
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr, VectorType, i1
from xdsl.ir import Attribute, Operation, SSAValue

from pdojo.backends.llvm.code import suffix
from pdojo.backends.llvm.ops import (
    AddressesOp,
    ExtractElementOp,
    FCmpOp,
    FPToSIOp,
    FPToUIOp,
    SelectOp,
    StoreFenceOp,
    UIToFPOp,
)

Values: TypeAlias = dict[SSAValue, Any]
"""llvmlite values by xDSL's SSA value."""


class _Literal(ir.Constant):
    """A constant in LLVM's text form; llvmlite would print it lane by lane, or with a type that LLVM has dropped."""

    def __init__(self, kind: ir.Type, text: str) -> None:
        self.type = kind
        self.constant = text

    def _get_reference(self) -> str:
        return self.constant

    def _to_string(self) -> str:
        return f"{self.type} {self.constant}"


def _load(op: llvm.LoadOp, builder: ir.IRBuilder, values: Values) -> ir.Instruction:
    instruction: Any = builder.load(values[op.ptr], typ=convert_type(op.dereferenced_value.type))
    instruction.align = None if op.alignment is None else op.alignment.value.data
    values[op.dereferenced_value] = instruction
    return instruction


def _store(op: llvm.StoreOp, builder: ir.IRBuilder, values: Values) -> ir.Instruction:
    instruction: Any = builder.store(values[op.value], values[op.ptr])
    instruction.align = None if op.alignment is None else op.alignment.value.data
    return instruction


def _alloca(op: llvm.AllocaOp, builder: ir.IRBuilder, values: Values) -> ir.Instruction:
    # The instruction must contain the count as a constant, so that the frame has a fixed size.
    instruction: Any = builder.alloca(convert_type(op.elem_type), size=values[op.size])
    instruction.align = 8 if op.alignment is None else op.alignment.value.data
    # llvmlite would print a typed pointer, which LLVM no longer accepts.
    instruction.type = ir.PointerType()
    values[op.res] = instruction
    return instruction


def _address(op: llvm.GEPOp, builder: ir.IRBuilder, values: Values) -> ir.Instruction:
    dynamic = iter(op.ssa_indices)
    indices = [
        values[next(dynamic)] if index == llvm.GEP_USE_SSA_VAL else ir.IntType(32)(index)
        for index in op.rawConstantIndices.iter_values()
    ]
    element = convert_type(op.elem_type)
    instruction = ir.GEPInstr(
        builder.block, values[op.ptr], indices, op.inbounds is not None, source_etype=element, name=""
    )
    _insert(builder, instruction)
    values[op.result] = instruction
    return instruction


class _Addresses(ir.Instruction):
    """`getelementptr` with a vector of indices, which llvmlite's builder lacks."""

    def __init__(self, parent: Any, pointer: Any, offsets: Any, element: ir.Type) -> None:
        self.element = element
        kind = ir.VectorType(ir.PointerType(), offsets.type.count)
        super().__init__(parent, kind, "getelementptr", [pointer, offsets])

    def descr(self, buf: list[str]) -> None:
        """Print the instruction."""
        pointer, offsets = self.operands
        buf.append(
            f"getelementptr {self.element}, {pointer.type} {pointer.get_reference()}, "
            f"{offsets.type} {offsets.get_reference()}\n"
        )


def _addresses(op: AddressesOp, builder: ir.IRBuilder, values: Values) -> ir.Instruction:
    element = convert_type(op.element)
    instruction = _Addresses(builder.block, values[op.pointer], values[op.offsets], element)
    _insert(builder, instruction)
    values[op.res] = instruction
    return instruction


def _insert(builder: ir.IRBuilder, instruction: ir.Instruction) -> None:
    builder._insert(instruction)  # pyright: ignore[reportPrivateUsage]  # as xDSL does: there is no public way


def _constant(op: llvm.ConstantOp, builder: ir.IRBuilder, values: Values) -> None:
    kind = convert_type(op.result.type)
    match op.value:
        case DenseIntOrFPElementsAttr():
            assert isinstance(op.result.type, VectorType)
            values[op.result] = _vector(kind, op.result.type.element_type, op.value.get_values())
        case IntegerAttr() | FloatAttr():
            number = op.value.value.data
            values[op.result] = ir.Constant(kind, _bit(int(number)) if op.result.type == i1 else number)


def _vector(kind: ir.Type, element: Attribute, numbers: Sequence[Any]) -> ir.Constant:
    """A vector constant; equal lanes form one splat, which LLVM parses faster."""
    target = convert_type(element)
    if element == i1:
        numbers = [_bit(n) for n in numbers]
    # Compared as text, because 0.0 equals -0.0, and NaN is not equal to itself.
    texts = {ir.Constant(target, n).get_reference() for n in numbers}
    if len(texts) == 1:
        return _Literal(kind, f"splat ({target} {texts.pop()})")
    return ir.Constant(kind, list(numbers))


def _bit(number: int) -> int:
    """The value of an i1 attribute as 0 or 1: attributes store true as -1."""
    return number & 1


def _undef(op: llvm.UndefOp, builder: ir.IRBuilder, values: Values) -> None:
    values[op.res] = _Literal(convert_type(op.res.type), "undef")


def _cast(opcode: str) -> Callable[[Operation, ir.IRBuilder, Values], ir.Instruction]:
    def convert(op: Operation, builder: ir.IRBuilder, values: Values) -> ir.Instruction:
        source, kind = values[op.operands[0]], convert_type(op.results[0].type)
        instruction = ir.CastInstr(builder.block, opcode, source, kind)
        _insert(builder, instruction)
        values[op.results[0]] = instruction
        return instruction

    return convert


def _call(builder: ir.IRBuilder, name: str, arguments: list[Any], result: ir.Type, **options: Any) -> ir.Instruction:
    signature = ir.FunctionType(result, [a.type for a in arguments])
    known = builder.module.globals.get(name)
    function = ir.Function(builder.module, signature, name=name) if known is None else known
    instruction: Any = builder.call(function, arguments, **options)
    return instruction


def _intrinsic(op: llvm.CallIntrinsicOp, builder: ir.IRBuilder, values: Values) -> ir.Instruction:
    arguments = [values[a] for a in op.args]
    result = ir.VoidType() if op.ress is None else convert_type(op.ress.type)
    flags = sorted(f.value for f in op.fastmathFlags.data)
    instruction = _call(builder, op.intrin.data, arguments, result, fastmath=flags)
    alignment = op.attributes.get("alignment")
    if isinstance(alignment, IntegerAttr):
        facts = ir.ArgumentAttributes()
        facts.align = alignment.value.data
        cast(Any, instruction).arg_attributes[_pointer_position(op)] = facts
    if op.ress is not None:
        values[op.ress] = instruction
    return instruction


def _pointer_position(op: llvm.CallIntrinsicOp) -> int:
    """The index of the argument that holds the address or addresses."""
    return next(k for k, a in enumerate(op.args) if suffix(a.type).endswith("p0"))


def _named(name: str) -> Callable[[Operation, ir.IRBuilder, Values], ir.Instruction]:
    """The conversion of an operation to the intrinsic `name`, with the result's type in the mangled name."""

    def convert(op: Operation, builder: ir.IRBuilder, values: Values) -> ir.Instruction:
        kind = op.results[0].type
        arguments = [values[a] for a in op.operands]
        instruction = _call(builder, f"{name}.{suffix(kind)}", arguments, convert_type(kind))
        values[op.results[0]] = instruction
        return instruction

    return convert


def _negate(op: llvm.FNegOp, builder: ir.IRBuilder, values: Values) -> ir.Instruction:
    instruction: Any = builder.fneg(values[op.arg], flags=sorted(f.value for f in op.fastmathFlags.data))
    values[op.res] = instruction
    return instruction


def _compare(op: FCmpOp, builder: ir.IRBuilder, values: Values) -> ir.Instruction:
    predicate = op.predicate.data
    operator = {"eq": "==", "gt": ">", "ge": ">=", "lt": "<", "le": "<=", "ne": "!="}.get(predicate[1:], predicate)
    compare = builder.fcmp_ordered if predicate.startswith("o") else builder.fcmp_unordered
    instruction = compare(operator, values[op.lhs], values[op.rhs])
    values[op.res] = instruction
    return instruction


def _select(op: SelectOp, builder: ir.IRBuilder, values: Values) -> None:
    values[op.res] = builder.select(values[op.cond], values[op.lhs], values[op.rhs])


def _extract(op: ExtractElementOp, builder: ir.IRBuilder, values: Values) -> None:
    values[op.res] = builder.extract_element(values[op.vector], values[op.index])


def _fence(op: StoreFenceOp, builder: ir.IRBuilder, values: Values) -> None:
    builder.fence("seq_cst")


def _reference(op: llvm.AddressOfOp, builder: ir.IRBuilder, values: Values) -> None:
    function = builder.module.get_global(op.global_name.string_value())
    values[op.result] = _Literal(ir.PointerType(), function.get_reference())


def _invoke(op: llvm.CallOp, builder: ir.IRBuilder, values: Values) -> ir.Instruction:
    assert op.callee is not None
    function = builder.module.get_global(op.callee.string_value())
    instruction = builder.call(function, [values[a] for a in op.args])
    if op.returned is not None:
        values[op.returned] = instruction
    return instruction


CONVERSIONS: dict[type[Operation], Callable[[Any, ir.IRBuilder, Values], ir.Instruction | None]] = {
    llvm.LoadOp: _load,
    llvm.StoreOp: _store,
    llvm.AllocaOp: _alloca,
    llvm.GEPOp: _address,
    llvm.ConstantOp: _constant,
    llvm.UndefOp: _undef,
    llvm.BitcastOp: _cast("bitcast"),
    llvm.FPExtOp: _cast("fpext"),
    llvm.FPTruncOp: _cast("fptrunc"),
    llvm.SIToFPOp: _cast("sitofp"),
    UIToFPOp: _cast("uitofp"),
    FPToSIOp: _cast("fptosi"),
    FPToUIOp: _cast("fptoui"),
    llvm.FNegOp: _negate,
    llvm.FMAOp: _named("llvm.fma"),
    llvm.FSqrtOp: _named("llvm.sqrt"),
    llvm.FAbsOp: _named("llvm.fabs"),
    llvm.FFloorOp: _named("llvm.floor"),
    llvm.FCeilOp: _named("llvm.ceil"),
    llvm.FCopySignOp: _named("llvm.copysign"),
    llvm.CallIntrinsicOp: _intrinsic,
    llvm.CallOp: _invoke,
    llvm.AddressOfOp: _reference,
    AddressesOp: _addresses,
    FCmpOp: _compare,
    SelectOp: _select,
    ExtractElementOp: _extract,
    StoreFenceOp: _fence,
}
"""Conversions by operation; they take precedence over xDSL's."""

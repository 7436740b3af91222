"""A function under construction in the llvm dialect: blocks, loops, constants, index arithmetic.

Index arithmetic is placed in the outermost loop in which its variables are known, so that passes need not hoist it.
Every open loop, and the function itself, is a *level*: it has a block that ends in a branch, and code that depends on
no deeper variable is inserted before that branch.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TypeAlias

import numpy as np
from xdsl.builder import Builder
from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    AnyFloat,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    SymbolRefAttr,
    VectorType,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint

from pdojo.backends.common.addresses import bind, is_within, within_table
from pdojo.backends.llvm.x86 import Features
from pdojo.dialect.affine import Atom, Div, Expr, IndexArray, Lookup, Size, atom_variables, const
from pdojo.dialect.functions import DTYPES, ElementType, byte_width
from pdojo.dialect.semantics.rounding import round_float64, to_interface
from pdojo.dialect.table import Outside, Table
from pdojo.dialect.view.nest import Constant

POINTER = llvm.LLVMPointerType()
_NO_WRAP = llvm.OverflowAttr([llvm.OverflowFlag.NO_SIGNED_WRAP, llvm.OverflowFlag.NO_UNSIGNED_WRAP])

Terms: TypeAlias = tuple[tuple[Atom, int], ...]


@dataclass(eq=False)
class Level:
    """The place for values that depend only on the variables of this loop and the loops around it."""

    block: Block
    """A block that ends in a branch; code is inserted before the branch."""
    values: dict[Hashable, SSAValue] = field(default_factory=dict[Hashable, SSAValue])

    def add(self, op: Operation) -> SSAValue:
        """Append an operation with one result to the level's own block."""
        self.do(op)
        return op.results[0]

    def do(self, op: Operation) -> None:
        """Append an operation without results to the level's own block."""
        last = self.block.last_op
        assert last is not None
        self.block.insert_op_before(op, last)


class FunctionCode:
    """A function under construction; code is appended to `block`."""

    def __init__(self, name: str, argument_types: Sequence[Attribute], features: Features = frozenset()) -> None:
        """`features` are the processor's; if empty, the code runs on all processors."""
        self.name = self.kernel = name
        self.features = features
        self.region = Region()
        entry = Block(arg_types=argument_types)
        self.region.add_block(entry)
        self.arguments = entry.args
        self.block = Block()
        entry.add_op(llvm.BrOp(self.block))
        self.region.add_block(self.block)
        self.levels = [Level(entry)]
        self.known: dict[int, int] = {}
        """Current values of the induction variables of unrolled scopes, keyed by depth."""
        self.variables: dict[int, tuple[SSAValue, int]] = {}
        """The other induction variables, keyed by depth: the SSA value and the index of its level."""
        self.extents: list[int] = []
        """Extents of the open scopes, keyed by depth."""
        self.indices: dict[str, SSAValue] = {}
        """The addresses of arrays of indices."""
        self.sizes: dict[str, SSAValue] = {}
        """The values of sizes (i64)."""

    # Code at the current place

    def emit(self, op: Operation) -> SSAValue:
        """Append an operation with one result."""
        self.block.add_op(op)
        return op.results[0]

    def do(self, op: Operation) -> None:
        """Append an operation without results."""
        self.block.add_op(op)

    def builder(self) -> Builder:
        """A builder at the end of the current block."""
        return Builder(InsertPoint.at_end(self.block))

    def intrinsic(self, name: str, operands: Sequence[SSAValue], result: Attribute) -> SSAValue:
        """Call `name`, completed by the type of the result (`llvm.fma` becomes `llvm.fma.v16f32`)."""
        return self.emit(llvm.CallIntrinsicOp(f"{name}.{suffix(result)}", operands, [result]))

    # Control flow

    def new_block(self, *argument_types: Attribute) -> Block:
        """Append a new block to the function, without continuing in it."""
        block = Block(arg_types=argument_types)
        self.region.add_block(block)
        return block

    def enter(self, block: Block) -> None:
        """Continue at the end of another block."""
        self.block = block

    def skip_unless(self, condition: SSAValue) -> Block:
        """Branch over the following code unless `condition` (i1) holds; pass the returned block to `rejoin`."""
        inside, after = self.new_block(), Block()
        self.do(llvm.CondBrOp(condition, inside, (), after, ()))
        self.enter(inside)
        return after

    def rejoin(self, after: Block) -> None:
        """Close the branch opened by `skip_unless`."""
        self.do(llvm.BrOp(after))
        self.region.add_block(after)
        self.enter(after)

    def open_loop(self, depth: int, low: SSAValue) -> None:
        """Begin a loop that runs at least once; its variable starts at `low`."""
        header, body = self.new_block(i64), self.new_block()
        self.do(llvm.BrOp(header, low))
        header.add_op(llvm.BrOp(body))
        self.levels.append(Level(header))
        self.variables[depth] = (header.args[0], len(self.levels) - 1)
        self.enter(body)

    def close_loop(self, depth: int, high: SSAValue) -> None:
        """End the innermost loop: repeat while the variable is below `high`."""
        header = self.levels.pop().block
        variable, _ = self.variables.pop(depth)
        after = Block()
        following = self.emit(llvm.AddOp(variable, self.integer(1), overflow=_NO_WRAP))
        again = self.compare("ult", following, high)
        self.do(llvm.CondBrOp(again, header, [following], after, ()))
        self.region.add_block(after)
        self.enter(after)

    def compare(self, predicate: str, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """An integer comparison."""
        flag = llvm.ICmpPredicateFlag(predicate)
        return self.emit(llvm.ICmpOp(lhs, rhs, IntegerAttr(flag.to_int(), i64)))

    # Constants, one of each per function

    def integer(self, value: int, width: int = 64) -> SSAValue:
        """An integer constant."""
        return self._constant(("integer", value, width), IntegerAttr(value, IntegerType(width)))

    def constant(self, constant: Constant) -> SSAValue:
        """A constant of an element type."""
        # Keyed by text, because 0.0 equals -0.0, and NaN is not equal to itself.
        key = ("constant", repr(constant.value), constant.dtype)
        element = value_type(constant.dtype)
        if isinstance(element, IntegerType):
            return self._constant(key, IntegerAttr(_integer_value(constant), element, truncate_bits=True))
        return self._constant(key, FloatAttr(float(constant.value), element))

    def splat_constant(self, constant: Constant, count: int) -> SSAValue:
        """A constant of an element type in every lane of a vector."""
        element = value_type(constant.dtype)
        if isinstance(element, IntegerType):
            number = IntegerAttr(_integer_value(constant), element, truncate_bits=True).value.data
            attribute = DenseIntOrFPElementsAttr.from_list(VectorType(element, [count]), [number])
        else:
            attribute = _float_splat(element, count, float(constant.value))
        return self._constant(("splat", repr(constant.value), constant.dtype, count), attribute)

    def vector_constant(self, values: Sequence[int], width: int) -> SSAValue:
        """A vector of integer constants."""
        kind = VectorType(IntegerType(width), [len(values)])
        attribute = DenseIntOrFPElementsAttr.from_list(kind, list(values))
        return self._constant(("vector", tuple(values), width), attribute)

    def unknown_zero(self) -> SSAValue:
        """An i32 that is 0, which LLVM does not know: it is the result of assembly without instructions."""
        root = self.levels[0]
        key = ("unknown zero",)
        if key not in root.values:
            zero = self.integer(0, 32)
            root.values[key] = root.add(llvm.InlineAsmOp("", "=r,0", [zero], [zero.type]))
        return root.values[key]

    def zeros(self, dtype: str, count: int) -> SSAValue:
        """A vector of zeros, of the type that `dtype` has in memory."""
        return self.splat_constant(Constant(0, "i8" if dtype == "i1" else dtype), count)

    def _constant(self, key: Hashable, attribute: IntegerAttr | FloatAttr | DenseIntOrFPElementsAttr) -> SSAValue:
        root = self.levels[0]
        if key not in root.values:
            kind = attribute.type
            root.values[key] = root.add(llvm.ConstantOp(attribute, kind))
        return root.values[key]

    # Index arithmetic

    def bind(self, expression: Expr) -> Expr:
        """Substitute the current values of unrolled scopes' variables."""
        return bind(expression, self.known, self.extents)

    def index(self, expression: Expr) -> SSAValue:
        """The value of an index expression, as i64."""
        return self._index(self.bind(expression))

    def pointer(self, base: SSAValue, expression: Expr, element: Attribute) -> SSAValue:
        """The address that is `expression` elements after `base`."""
        expression = self.bind(expression)
        address = base
        done: Terms = ()
        for number, terms in self._by_level(expression):
            done += terms
            level = self.levels[number]
            key = ("pointer", base, element, done)
            if key not in level.values:
                offset = self._sum(number, terms)
                level.values[key] = level.add(
                    llvm.GEPOp.from_mixed_indices(address, [offset], element),
                )
            address = level.values[key]
        if not expression.constant:
            return address
        # A constant distance is part of the addressing mode and free.
        distance = expression.constant
        index = distance if abs(distance) < 1 << 31 else self.integer(distance)
        return self.emit(llvm.GEPOp.from_mixed_indices(address, [index], element))

    def at_least_zero(self, constraints: Sequence[Expr]) -> SSAValue:
        """Whether all constraints are at least zero (i1)."""
        result: SSAValue | None = None
        for constraint in constraints:
            test = self.compare("sge", self.index(constraint), self.integer(0))
            result = test if result is None else self.emit(llvm.AndOp(result, test))
        assert result is not None
        return result

    def _index(self, expression: Expr) -> SSAValue:
        total: SSAValue | None = None
        done: Terms = ()
        deepest = 0
        for number, terms in self._by_level(expression):
            done += terms
            deepest = number
            level = self.levels[number]
            key = ("index", done)
            if key not in level.values:
                part = self._sum(number, terms)
                level.values[key] = part if total is None else level.add(llvm.AddOp(total, part))
            total = level.values[key]
        if total is None:
            return self.integer(expression.constant)
        if not expression.constant:
            return total
        level = self.levels[deepest]
        key = ("index", done, expression.constant)
        if key not in level.values:
            level.values[key] = level.add(llvm.AddOp(total, self.integer(expression.constant)))
        return level.values[key]

    def _by_level(self, expression: Expr) -> list[tuple[int, Terms]]:
        """The terms of an expression, grouped by the outermost level at which they are known, outermost first."""
        groups: dict[int, list[tuple[Atom, int]]] = {}
        for term in expression.terms:
            groups.setdefault(self._level(term[0]), []).append(term)
        return [(number, tuple(groups[number])) for number in sorted(groups)]

    def _level(self, atom: Atom) -> int:
        if isinstance(atom, int):
            return self.variables[atom][1]
        return max((self.variables[v][1] for v in atom_variables(atom)), default=0)

    def _sum(self, number: int, terms: Terms) -> SSAValue:
        """The sum of terms, computed at a level."""
        level = self.levels[number]
        total: SSAValue | None = None
        for atom, coefficient in terms:
            value = self._value(level, atom)
            if coefficient != 1:
                value = level.add(llvm.MulOp(value, self.integer(coefficient)))
            total = value if total is None else level.add(llvm.AddOp(total, value))
        assert total is not None
        return total

    def _value(self, level: Level, atom: Atom) -> SSAValue:
        if isinstance(atom, int):
            return self.variables[atom][0]
        if atom not in level.values:
            match atom:
                case Div():
                    level.values[atom] = self._quotient(level, atom)
                case Size():
                    level.values[atom] = self._size(level, atom)
                case Lookup():
                    level.values[atom] = self._entry(level, atom)
        return level.values[atom]

    def _size(self, level: Level, atom: Size) -> SSAValue:
        value = self.sizes[atom.name]
        return value if atom.step == 1 else level.add(llvm.UDivOp(value, self.integer(atom.step)))

    def scaled(self, index: Expr, factor: int, extents: Sequence[Expr]) -> SSAValue:
        """`factor * index * product(extents)`, as i64; the extents depend on sizes only."""
        root, key = self.levels[0], ("stride", factor, tuple(extents))
        if key not in root.values:
            stride = self.integer(factor)
            for extent in extents:
                stride = root.add(llvm.MulOp(stride, self.index(extent)))
            root.values[key] = stride
        bound = self.bind(index)
        value = self._index(bound)
        level = self.levels[max((self._level(atom) for atom, _ in bound.terms), default=0)]
        place = ("scaled", bound, factor, tuple(extents))
        if place not in level.values:
            level.values[place] = level.add(llvm.MulOp(value, root.values[key]))
        return level.values[place]

    def _quotient(self, level: Level, atom: Div) -> SSAValue:
        """`numerator floordiv divisor` by an unsigned division: the numerator is made non-negative first."""
        numerator = atom.numerator
        low, _ = numerator.bounds(self.extents)
        shift = max(0, -(low // atom.divisor))
        quotient = level.add(llvm.UDivOp(self._index(numerator + shift * atom.divisor), self.integer(atom.divisor)))
        return level.add(llvm.SubOp(quotient, self.integer(shift))) if shift else quotient

    def _entry(self, level: Level, atom: Lookup) -> SSAValue:
        """The entry of a table, which is a constant of the module, or of an array of indices."""
        root, table = self.levels[0], atom.table
        if isinstance(table, IndexArray):
            return self._index_entry(level, table, atom.operands)
        if table not in root.values:
            name = SymbolRefAttr(table_symbol(self.kernel, table))
            root.values[table] = root.add(llvm.AddressOfOp(name, POINTER))
        place = self._index(atom.operands[0])
        if not within_table(atom, self.extents):
            place = self._clamped(level, place, 0, const(len(table.entries) - 1))
        address = level.add(llvm.GEPOp.from_mixed_indices(root.values[table], [place], i64))
        return level.add(llvm.LoadOp(address, i64, 8))

    def _index_entry(self, level: Level, table: IndexArray, operands: Sequence[Expr]) -> SSAValue:
        """An entry of an array of indices, within its range whatever the caller gave."""
        position = self.integer(0)
        for operand, extent in zip(operands, table.extents, strict=True):
            place = self._index(operand)
            if not is_within(operand, extent, self.extents):
                place = self._clamped(level, place, 0, extent - 1)
            position = level.add(llvm.AddOp(level.add(llvm.MulOp(position, self._index(extent))), place))
        kind = memory_type(table.dtype)
        address = level.add(llvm.GEPOp.from_mixed_indices(self.indices[table.name], [position], kind))
        value = level.add(llvm.LoadOp(address, kind, byte_width(table.dtype)))
        if value.type != i64:
            value = level.add(llvm.SExtOp(value, i64))
        if table.outside is Outside.WRAP:
            less = IntegerAttr(llvm.ICmpPredicateFlag.SLT.to_int(), i64)
            is_negative = level.add(llvm.ICmpOp(value, self.integer(0), less))
            wrapped = level.add(llvm.AddOp(value, self._index(table.last + 1)))
            value = level.add(llvm.SelectOp(is_negative, wrapped, value))
        return self._clamped(level, value, table.low, table.last)

    def _clamped(self, level: Level, value: SSAValue, low: int, last: Expr) -> SSAValue:
        """The nearest integer from `low` to `last`, which depends on sizes only."""
        value = level.add(llvm.CallIntrinsicOp("llvm.smax.i64", [value, self.integer(low)], [i64]))
        return level.add(llvm.CallIntrinsicOp("llvm.smin.i64", [value, self._index(last)], [i64]))


def table_symbol(kernel: str, table: Table) -> str:
    """The name of a table's global constant."""
    return f"{kernel}.table.{table.name}"


def _integer_value(constant: Constant) -> int:
    """The value of an integer constant, or the bits of a constant of f16 or bf16."""
    if constant.dtype not in ("f16", "bf16"):
        return int(constant.value)
    rounded = round_float64(np.asarray(float(constant.value)), constant.dtype)
    return int(to_interface(rounded, constant.dtype).reshape(-1).view(np.uint16)[0])


def _float_splat(element: AnyFloat, count: int, number: float) -> DenseIntOrFPElementsAttr:
    kind = VectorType(element, [count])
    return DenseIntOrFPElementsAttr.from_list(kind, [number])


def suffix(kind: Attribute) -> str:
    """The type's name in intrinsics: `f32`, `v16f32`, `p0`."""
    match kind:
        case VectorType():
            return f"v{kind.get_shape()[0]}{suffix(kind.element_type)}"
        case llvm.LLVMPointerType():
            return "p0"
        case _:
            return str(kind)


@cache
def _operations() -> dict[str, type[Operation]]:
    return {op.name: op for op in llvm.LLVM.operations}


def function_op(name: str, operands: Sequence[SSAValue]) -> Operation:
    """An instruction (`fadd`), or an intrinsic (`llvm.sqrt`) whose operands and result have one type."""
    if name.startswith("llvm."):
        kind = operands[0].type
        return llvm.CallIntrinsicOp(f"{name}.{suffix(kind)}", operands, [kind])
    operation: Callable[..., Operation] = _operations()[f"llvm.{name}"]
    return operation(*operands)


def value_type(dtype: str) -> ElementType:
    """The register type of `dtype`; f16 and bf16 are held as bits, as LLVM would call libraries for them."""
    return IntegerType(16) if dtype in ("f16", "bf16") else DTYPES[dtype]


def memory_type(dtype: str) -> Attribute:
    """The memory type of `dtype`; an i1 takes a byte."""
    return IntegerType(8) if dtype == "i1" else value_type(dtype)

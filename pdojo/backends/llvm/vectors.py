"""Vectors in the llvm dialect: splats, lane numbers, masks."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import llvm
from xdsl.dialects.builtin import DenseArrayBase, DenseIntOrFPElementsAttr, IntegerType, VectorType, i32, i64
from xdsl.ir import Attribute, SSAValue

from pdojo.backends.common.addresses import within_table
from pdojo.backends.llvm.code import FunctionCode, memory_type, suffix
from pdojo.backends.llvm.ops import SelectOp, lanes
from pdojo.dialect.affine import Atom, Expr, Lookup, Size, atom_variables, const, var
from pdojo.dialect.functions import byte_width
from pdojo.dialect.table import Outside, Table


def splat(code: FunctionCode, value: SSAValue, count: int) -> SSAValue:
    """A vector with `value` in every lane."""
    kind = VectorType(value.type, [count])
    empty = code.emit(llvm.UndefOp(kind))
    first = code.emit(llvm.InsertElementOp(empty, value, code.integer(0, 32)))
    return shuffle(code, first, empty, [0] * count)


def shuffle(code: FunctionCode, first: SSAValue, second: SSAValue, order: Sequence[int]) -> SSAValue:
    """Elements of two vectors of one type by index; the second vector's indices follow the first's."""
    assert isinstance(first.type, VectorType)
    kind = VectorType(first.type.element_type, [len(order)])
    return code.emit(llvm.ShuffleVectorOp(first, second, DenseArrayBase.from_list(i32, list(order)), kind))


def splat_constant(code: FunctionCode, value: int, kind: Attribute) -> SSAValue:
    """An integer constant of type `kind`; for a vector type, in every lane."""
    count = lanes(kind)
    element = kind.element_type if isinstance(kind, VectorType) else kind
    assert isinstance(element, IntegerType)
    width = element.width.data
    return code.integer(value, width) if count is None else code.vector_constant([value] * count, width)


def known_lanes(mask: SSAValue) -> list[bool] | None:
    """The lanes of a constant mask; None for other masks."""
    op = mask.owner
    if not isinstance(op, llvm.ConstantOp) or not isinstance(op.value, DenseIntOrFPElementsAttr):
        return None
    return [bool(lane) for lane in op.value.get_values()]


def unknown(code: FunctionCode, mask: SSAValue) -> SSAValue:
    """The same mask; LLVM cannot find out that it is constant."""
    count = lanes(mask)
    assert count is not None
    zero = code.emit(llvm.TruncOp(code.unknown_zero(), IntegerType(1)))
    return code.emit(llvm.OrOp(mask, splat(code, zero, count)))


def reverse(code: FunctionCode, vector: SSAValue) -> SSAValue:
    """The lanes in reverse order."""
    count = lanes(vector)
    assert count is not None
    return shuffle(code, vector, vector, range(count - 1, -1, -1))


def index_lanes(code: FunctionCode, expression: Expr, depth: int) -> SSAValue:
    """The values of an index expression for all lanes of the vector scope at `depth`, as i64."""
    extent = code.extents[depth]
    shared = [t for t in expression.terms if not _varies(t[0], depth)]
    total = splat(code, code.index(Expr(expression.constant, tuple(shared))), extent)
    for atom, coefficient in expression.terms:
        if not _varies(atom, depth):
            continue
        part = _atom_lanes(code, atom, depth)
        if coefficient != 1:
            part = code.emit(llvm.MulOp(part, splat_constant(code, coefficient, part.type)))
        total = code.emit(llvm.AddOp(total, part))
    return total


def _varies(atom: Atom, depth: int) -> bool:
    return depth in atom_variables(atom)


def _entries(code: FunctionCode, lookup: Lookup, depth: int) -> SSAValue:
    """The entries that the lanes look up, as i64: by one load if their places follow each other, else one by one."""
    if _follow(code, lookup, depth):
        return _loaded(code, lookup, depth)
    total = code.vector_constant([0] * code.extents[depth], 64)
    for lane in range(code.extents[depth]):
        entry = code.index(Expr(0, ((lookup, 1),)).substitute({depth: const(lane)}, code.extents))
        total = code.emit(llvm.InsertElementOp(total, entry, code.integer(lane, 32)))
    return total


def _follow(code: FunctionCode, lookup: Lookup, depth: int) -> bool:
    """Whether the lanes' places, all of which exist, follow each other, also where a guard excludes a lane."""
    *outer, last = lookup.operands
    return within_table(lookup, code.extents) and not any(e.uses(depth) for e in (*outer, last - var(depth)))


def _loaded(code: FunctionCode, lookup: Lookup, depth: int) -> SSAValue:
    """The entries from that of the first lane on; indices are within their range whatever the caller gave."""
    count, table = code.extents[depth], lookup.table
    first = [e.substitute({depth: const(0)}, code.extents) for e in lookup.operands]
    dtype = "i64" if isinstance(table, Table) else table.dtype
    wide, kind = VectorType(i64, [count]), VectorType(memory_type(dtype), [count])
    value = code.emit(llvm.LoadOp(code.entry_address(Lookup(table, tuple(first))), kind, byte_width(dtype)))
    if kind != wide:
        value = code.emit(llvm.SExtOp(value, wide))
    if isinstance(table, Table):
        return value
    if table.outside is Outside.WRAP:
        wrapped = code.emit(llvm.AddOp(value, splat(code, code.index(table.last + 1), count)))
        value = code.emit(SelectOp(code.compare("slt", value, code.zeros("i64", count)), wrapped, value))
    for name, limit in (("smax", const(table.low)), ("smin", table.last)):
        bound = splat(code, code.index(limit), count)
        value = code.emit(llvm.CallIntrinsicOp(f"llvm.{name}.{suffix(wide)}", [value, bound], [wide]))
    return value


def _atom_lanes(code: FunctionCode, atom: Atom, depth: int) -> SSAValue:
    if isinstance(atom, int):
        return code.vector_constant(range(code.extents[depth]), 64)
    if isinstance(atom, Lookup):
        return _entries(code, atom, depth)
    assert not isinstance(atom, Size), "a size is equal in all lanes"
    # An unsigned division: the numerator is made non-negative first.
    low, _ = atom.numerator.bounds(code.extents)
    shift = max(0, -(low // atom.divisor))
    numerator = index_lanes(code, atom.numerator + shift * atom.divisor, depth)
    quotient = code.emit(llvm.UDivOp(numerator, splat_constant(code, atom.divisor, numerator.type)))
    return code.emit(llvm.SubOp(quotient, splat_constant(code, shift, quotient.type))) if shift else quotient

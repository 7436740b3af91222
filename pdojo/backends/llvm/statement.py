"""A statement as code: scalar, or as explicit vectors for the lanes of its vector scope."""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects import llvm
from xdsl.dialects.builtin import VectorType
from xdsl.ir import SSAValue

from pdojo.backends.common.addresses import lanes_of, spell
from pdojo.backends.llvm.code import value_type
from pdojo.backends.llvm.functions import apply, from_integer, fused, fused_chain
from pdojo.backends.llvm.lane_memory import load_lanes, store_lanes
from pdojo.backends.llvm.memory import AccessPlace, Reach
from pdojo.backends.llvm.ops import SelectOp, with_lanes
from pdojo.backends.llvm.reduce import reduce_lanes
from pdojo.backends.llvm.vectors import index_lanes, splat
from pdojo.dialect.affine import Expr
from pdojo.dialect.functions import DTYPES, identity_value, is_float
from pdojo.dialect.view.nest import Access, Constant, Index, Input, Leaf, Scope
from pdojo.errors import LoweringError

_I31 = 1 << 31


def emit_statement(reach: Reach, leaf: Leaf) -> None:
    """Append the code of one instance of a statement."""
    operands = [_operand(reach, leaf, i) for i in leaf.inputs]
    place = reach.place(leaf.output, leaf)
    if leaf.accumulate is None:
        reach.store(place, _computed(reach, leaf, operands))
        return
    if leaf.contracted:
        reach.store(place, fused(reach.code, operands[0], operands[1], reach.load(place), place.buffer.dtype))
        return
    new = _computed(reach, leaf, operands)
    reach.store(place, _combined(reach, leaf, new, reach.load(place)))


def _computed(reach: Reach, leaf: Leaf, operands: list[SSAValue]) -> SSAValue:
    if leaf.function is None:
        return operands[0]
    dtypes = [_dtype(i) for i in leaf.inputs]
    return apply(reach.code, leaf.function, operands, dtypes, leaf.output.array.dtype)


def _combined(reach: Reach, leaf: Leaf, new: SSAValue, old: SSAValue) -> SSAValue:
    """The old value accumulated with the new one. The new value is the first operand: on x86 only the first operand of
    a maximum is fixed up for signed zeros, so the fix-up does not lengthen the accumulation's dependence chain.
    """
    assert leaf.accumulate is not None
    dtype = leaf.output.array.dtype
    return apply(reach.code, leaf.accumulate, (new, old), (dtype, dtype), dtype)


def _dtype(value: Input) -> str:
    return value.array.dtype if isinstance(value, Access) else value.dtype


def _operand(reach: Reach, leaf: Leaf, value: Input) -> SSAValue:
    match value:
        case Access():
            return reach.load(reach.place(value, leaf))
        case Constant():
            return reach.code.constant(value)
        case Index():
            return _index_value(reach, reach.code.index(value.expression), value.dtype)


def _index_value(reach: Reach, value: SSAValue, dtype: str) -> SSAValue:
    """Convert an index (i64 or narrower, or a vector of them) to `dtype`."""
    if is_float(dtype):
        return from_integer(reach.code, value, dtype)
    kind = value.type
    source = kind.element_type if isinstance(kind, VectorType) else kind
    target = with_lanes(value_type(dtype), kind.get_shape()[0] if isinstance(kind, VectorType) else None)
    if source == value_type(dtype):
        return value
    narrower = DTYPES[dtype].bitwidth < DTYPES[str(source)].bitwidth
    return reach.code.emit((llvm.TruncOp if narrower else llvm.SExtOp)(value, target))


# Vectors


def emit_lanes(reach: Reach, leaf: Leaf, scope: Scope, mask: SSAValue | None) -> None:
    """Append a statement for all lanes of its vector scope; `mask` selects the active lanes (None: all)."""
    code = reach.code
    depth = scope.depth
    if leaf.accumulate is None:
        value = computed_lanes(reach, leaf, depth, mask)
        store_lanes(reach, reach.place(leaf.output, leaf), value, depth, mask)
        return
    operands = [_operand_lanes(reach, leaf, i, depth, mask) for i in leaf.inputs]
    place = reach.place(leaf.output, leaf)
    shape = lanes_of(place.index, depth, code.extents)
    if shape.uniform:
        _accumulate_all(reach, leaf, replace(place, index=shape.base), operands, mask)
        return
    if shape.offsets is None or len(set(shape.offsets)) < scope.extent:
        raise LoweringError(
            f"{spell(leaf.output, leaf.chain)}: the lanes of '{scope.extent}:v' accumulate into cells of which some "
            f"{'may' if shape.offsets is None else 'do'} coincide; use split_reduction or unmap"
        )
    old = load_lanes(reach, place, depth, mask)
    if leaf.contracted:
        store_lanes(reach, place, fused(code, operands[0], operands[1], old, place.buffer.dtype), depth, mask)
        return
    store_lanes(reach, place, _combined(reach, leaf, _computed(reach, leaf, operands), old), depth, mask)


def computed_lanes(reach: Reach, leaf: Leaf, depth: int, mask: SSAValue | None) -> SSAValue:
    """The results of a statement for all lanes of its vector scope, not stored yet."""
    return _computed(reach, leaf, [_operand_lanes(reach, leaf, i, depth, mask) for i in leaf.inputs])


def _accumulate_all(
    reach: Reach, leaf: Leaf, place: AccessPlace, operands: list[SSAValue], mask: SSAValue | None
) -> None:
    """Accumulate all lanes into one cell: reduce them by a tree, which the mapping permits, then add the old value."""
    code = reach.code
    dtype = place.buffer.dtype
    assert leaf.accumulate is not None
    if leaf.contracted:
        # Each product is rounded once with its sum, so the lanes form a chain.
        reach.store(place, fused_chain(code, operands[0], operands[1], reach.load(place), mask, dtype))
        return
    new = _computed(reach, leaf, operands)
    if mask is not None:
        # The neutral element is -0.0: -0.0 + x is x for every x, but 0.0 + -0.0 is 0.0.
        neutral = -0.0 if leaf.accumulate == "arith.addf" else identity_value(leaf.accumulate, dtype)
        count = reach.code.extents[leaf.chain[-1].depth]
        new = code.emit(SelectOp(mask, new, code.splat_constant(Constant(neutral, dtype), count)))
    reach.store(place, _combined(reach, leaf, reduce_lanes(code, leaf.accumulate, new, dtype), reach.load(place)))


def _operand_lanes(reach: Reach, leaf: Leaf, value: Input, depth: int, mask: SSAValue | None) -> SSAValue:
    code = reach.code
    match value:
        case Access():
            return load_lanes(reach, reach.place(value, leaf), depth, mask)
        case Constant():
            return code.splat_constant(value, code.extents[depth])
        case Index():
            return _index_lanes(reach, code.bind(value.expression), value.dtype, depth)


def _index_lanes(reach: Reach, expression: Expr, dtype: str, depth: int) -> SSAValue:
    code = reach.code
    extent = code.extents[depth]
    shape = lanes_of(expression, depth, code.extents)
    if shape.offsets is None:
        return _index_value(reach, index_lanes(code, expression, depth), dtype)
    base = code.index(shape.base)
    if shape.uniform:
        return splat(code, _index_value(reach, base, dtype), extent)
    low, high = expression.bounds(code.extents)
    width = 32 if low >= -_I31 and high < _I31 else 64
    if width == 32:
        base = code.emit(llvm.TruncOp(base, value_type("i32")))
    numbers = code.emit(llvm.AddOp(splat(code, base, extent), code.vector_constant(shape.offsets, width)))
    return _index_value(reach, numbers, dtype)


def lane_mask(reach: Reach, constraints: list[Expr], depth: int) -> SSAValue | None:
    """The mask of the lanes that satisfy `e >= 0` for all constraints; None without constraints."""
    code = reach.code
    shapes = [lanes_of(constraint, depth, code.extents) for constraint in constraints]
    if shapes and all(shape.offsets is not None and shape.base.is_constant for shape in shapes):
        rows = [[shape.base.constant + offset >= 0 for offset in shape.offsets or ()] for shape in shapes]
        return code.vector_constant([-all(lane) for lane in zip(*rows, strict=True)], 1)
    total: SSAValue | None = None
    for constraint, shape in zip(constraints, shapes, strict=True):
        if shape.offsets is None:
            values = index_lanes(code, constraint, depth)
            limits = code.vector_constant([0] * code.extents[depth], 64)
        else:
            values, limits = _compared(reach, shape.base, shape.offsets)
        test = code.compare("sge", values, limits)
        total = test if total is None else code.emit(llvm.AndOp(total, test))
    return total


def _compared(reach: Reach, base: Expr, offsets: tuple[int, ...]) -> tuple[SSAValue, SSAValue]:
    """Both sides of `base >= -offset`, which means `base + offset >= 0`, in the narrowest integers that hold them."""
    code = reach.code
    low, high = base.bounds(code.extents)
    largest = max(abs(o) for o in offsets)
    width = 32 if max(abs(low), abs(high), largest) < _I31 else 64
    value = code.index(base)
    if width == 32:
        value = code.emit(llvm.TruncOp(value, value_type("i32")))
    return splat(code, value, len(offsets)), code.vector_constant([-o for o in offsets], width)

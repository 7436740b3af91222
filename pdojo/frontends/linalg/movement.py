"""Operations that move elements: views of tensors and memrefs, and arrays from pieces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeAlias

from xdsl.dialects import memref, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, IntegerType
from xdsl.ir import Operation, SSAValue

from pdojo.dialect.affine import Expr, const, floordiv, modulo, var
from pdojo.dialect.view.nest import Index
from pdojo.frontends.linalg.elements import Elements
from pdojo.frontends.linalg.kernel_writer import KernelWriter
from pdojo.frontends.linalg.nests import copy, place_of
from pdojo.frontends.linalg.refusal import INDEX, dtype_of, refused, shape_of
from pdojo.frontends.linalg.scalars import Scalars, Surroundings, as_expression

Numbers: TypeAlias = DenseArrayBase[IntegerType]
View: TypeAlias = Callable[[Any, Surroundings], Elements]
"""The result of an operation as elements of its operands, without a statement."""


def _same(op: tensor.CastOp | memref.CastOp, outside: Surroundings) -> Elements:
    source, shape = outside(op.source), shape_of(op, op.dest.type)
    if source.shape != shape:
        raise refused(op, f"casts {op.source.type} to {op.dest.type}")
    return source


def _element(op: Operation, elements: Elements) -> Any:
    if elements.element is None:
        raise refused(op, "reads an unspecified element of a tensor")
    return elements.element


def _collapse(op: tensor.CollapseShapeOp | memref.CollapseShapeOp, outside: Surroundings) -> Elements:
    """A view, with divisions where a dimension joins several that have more than one element each."""
    source = outside(op.operands[0])
    groups = _groups(op.reassociation)
    shape = shape_of(op, op.results[0].type)
    if [prod(source.shape[d] for d in group) for group in groups] != list(shape):
        raise refused(op, f"turns {op.operands[0].type} into {op.results[0].type}")
    index: list[Expr] = [const(0)] * source.rank
    for axis, group in enumerate(groups):
        rest = var(axis)
        for d in reversed(group):
            index[d] = modulo(rest, source.shape[d], shape)
            rest = floordiv(rest, source.shape[d], shape)
    return source.view(shape, index)


def _expand(op: tensor.ExpandShapeOp | memref.ExpandShapeOp, outside: Surroundings) -> Elements:
    source = outside(op.operands[0])
    groups = _groups(op.reassociation)
    shape = shape_of(op, op.results[0].type)
    if [prod(shape[d] for d in group) for group in groups] != list(source.shape):
        raise refused(op, f"turns {op.operands[0].type} into {op.results[0].type}")
    return source.view(shape, _joined(groups, shape))


def _joined(groups: Sequence[Sequence[int]], shape: Sequence[int]) -> list[Expr]:
    """The index of an element after each group of dimensions is collapsed into one, over the dimensions of `shape`."""
    index: list[Expr] = []
    for group in groups:
        expression = const(0)
        for d in group:
            expression = expression * shape[d] + var(d)
        index.append(expression)
    return index


def _groups(reassociation: Any) -> list[list[int]]:
    return [[number.value.data for number in group.data] for group in reassociation.data]


def _slice(op: tensor.ExtractSliceOp | memref.SubviewOp, outside: Surroundings) -> Elements:
    source = outside(op.source)
    shape = shape_of(op, op.result.type)
    return source.view(shape, _sliced(op, source.shape, shape, outside))


def _sliced(op: Any, whole: Sequence[int], shape: Sequence[int], outside: Surroundings) -> list[Expr]:
    """The index in the whole of an element of a slice. Raises ConversionError if it may be out of bounds."""
    offsets = _known(op, op.static_offsets, op.offsets, outside)
    sizes = _known(op, op.static_sizes, op.sizes, outside)
    strides = _known(op, op.static_strides, op.strides, outside)
    kept = _kept(sizes, shape)
    if kept is None:
        raise refused(op, f"has a slice of sizes {sizes} for the shape {list(shape)}")
    index = [const(offset) for offset in offsets]
    for axis, d in enumerate(kept):
        index[d] = var(axis) * strides[d] + offsets[d]
    for d, (expression, extent) in enumerate(zip(index, whole, strict=True)):
        low, high = expression.bounds(shape)
        if low < 0 or high >= extent:
            raise refused(op, f"has elements {low} to {high} of dimension {d}, which has {extent}")
    return index


def _kept(sizes: Sequence[int], shape: Sequence[int]) -> list[int] | None:
    """The dimensions of a slice that its shape keeps: dimensions of size 1 may be dropped."""
    kept: list[int] = []
    for d, size in enumerate(sizes):
        wanted = shape[len(kept)] if len(kept) < len(shape) else None
        if size == wanted:
            kept.append(d)
        elif size != 1:
            return None
    return kept if len(kept) == len(shape) else None


def _known(op: Operation, static: Numbers, dynamic: Sequence[SSAValue], outside: Surroundings) -> list[int]:
    """Offsets, sizes or strides as numbers. Raises ConversionError if one depends on data."""
    rest = iter(dynamic)
    found: list[int] = []
    for number in static.get_values():
        if number == DYNAMIC_INDEX:
            expression = as_expression(_element(op, outside(next(rest))))
            if expression is None or not expression.is_constant:
                raise refused(op, "has an offset, a size or a stride that is no constant")
            number = expression.constant
        found.append(number)
    return found


VIEWS: dict[type[Operation], View] = {
    tensor.CastOp: _same,
    tensor.CollapseShapeOp: _collapse,
    tensor.EmptyOp: lambda op, outside: Elements(dtype_of(op, op.tensor.type), shape_of(op, op.tensor.type), None),
    tensor.ExpandShapeOp: _expand,
    tensor.ExtractSliceOp: _slice,
    tensor.SplatOp: lambda op, outside: outside(op.input).view(shape_of(op, op.result.type), ()),
    memref.CollapseShapeOp: _collapse,
    memref.ExpandShapeOp: _expand,
    memref.CastOp: _same,
    memref.SubviewOp: _slice,
}
"""Operations whose results are views of their operands."""

Pieces: TypeAlias = Callable[[Any, KernelWriter, Surroundings, Elements], None]
"""Writes the result of an operation, an array of its own, piece by piece."""


def _collapsed(op: tensor.CollapseShapeOp, writer: KernelWriter, outside: Surroundings, target: Elements) -> None:
    source = _specified(op, outside(op.src))
    copy(writer, target.view(source.shape, _joined(_groups(op.reassociation), source.shape)), source)


def _insert_slice(op: tensor.InsertSliceOp, writer: KernelWriter, outside: Surroundings, target: Elements) -> None:
    source, before = outside(op.source), outside(op.dest)
    if before.element is not None:
        copy(writer, target, before)
    copy(writer, target.view(source.shape, _sliced(op, target.shape, source.shape, outside)), _specified(op, source))


def _insert(op: tensor.InsertOp, writer: KernelWriter, outside: Surroundings, target: Elements) -> None:
    before = outside(op.dest)
    if before.element is not None:
        copy(writer, target, before)
    index = [as_expression(_element(op, outside(operand))) for operand in op.indices]
    places = [each for each in index if each is not None and each.is_constant]
    if len(places) < len(index):
        raise refused(op, "writes an element at a position that is no constant")
    copy(writer, target.view((), places), _specified(op, outside(op.scalar)))


def _concat(op: tensor.ConcatOp, writer: KernelWriter, outside: Surroundings, target: Elements) -> None:
    axis, done = op.dim.value.data, 0
    for operand in op.inputs:
        piece = outside(operand)
        index = [var(d) + (done if d == axis else 0) for d in range(piece.rank)]
        copy(writer, target.view(piece.shape, index), _specified(op, piece))
        done += piece.shape[axis]


def _from_elements(op: tensor.FromElementsOp, writer: KernelWriter, outside: Surroundings, target: Elements) -> None:
    for number, operand in enumerate(op.elements):
        index: list[Expr] = []
        for extent in reversed(target.shape):
            index.insert(0, const(number % extent))
            number //= extent
        copy(writer, target.view((), index), _specified(op, outside(operand)))


def _pad(op: tensor.PadOp, writer: KernelWriter, outside: Surroundings, target: Elements) -> None:
    """The padding everywhere, then the source in its place."""
    low, high = _known(op, op.static_low, op.low, outside), _known(op, op.static_high, op.high, outside)
    if min(*low, *high, 0) < 0:
        raise refused(op, "has a negative width")
    source = outside(op.source)
    last = op.region.block.last_op
    assert last is not None
    if any((*low, *high)):
        at = writer.iterations()
        index = at.enter_all(target.shape)
        scalars = Scalars(writer, at, outside, op)
        scalars.values.update({a: Index(e, INDEX) for a, e in zip(op.region.block.args, index, strict=True)})
        writer.write(at, place_of(at.at(target, index)), [scalars.value(last.operands[0])])
    inside = [var(d) + width for d, width in enumerate(low)]
    copy(writer, target.view(source.shape, inside), _specified(op, source))


def _specified(op: Operation, elements: Elements) -> Elements:
    _element(op, elements)
    return elements


PIECES: dict[type[Operation], Pieces] = {
    tensor.CollapseShapeOp: _collapsed,
    tensor.ConcatOp: _concat,
    tensor.FromElementsOp: _from_elements,
    tensor.InsertOp: _insert,
    tensor.InsertSliceOp: _insert_slice,
    tensor.PadOp: _pad,
}
"""Operations whose results are arrays made from pieces."""

"""Attributes and operands in the forms that lowerings share: element types, axes, scalars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pdojo import build
from pdojo.build.extents import broadcast_shape
from pdojo.build.sizes import Open
from pdojo.onnx.operators.registry import Node

ELEMENTS = {
    **{1: "f32", 2: "u8", 3: "i8", 4: "u16", 5: "i16", 6: "i32", 7: "i64", 9: "i1", 10: "f16", 11: "f64"},
    **{12: "u32", 13: "u64", 16: "bf16"},
}
"""Element types of handles by the numbers of `TensorProto.DataType`."""
FLOATS = ("f64", "f32", "f16", "bf16")


def element_of(node: Node, number: int) -> str:
    """The element type of handles with a number of `TensorProto.DataType`; kernels have no others."""
    if number not in ELEMENTS:
        node.refuse(f"kernels have no elements of TensorProto type {number}")
    return ELEMENTS[number]


def axis_of(node: Node, axis: int, rank: int) -> int:
    """An axis counted from the start."""
    if not -rank <= axis < max(rank, 1):
        node.contradicts(f"axis {axis} is out of bounds for {rank} dimensions")
    return axis % rank if rank else 0


def number_of(node: Node, operand: int) -> Any:
    """The only element of a known operand."""
    value = node.static(operand)
    if value.size != 1:
        node.refuse(f"operand {operand} has {value.size} elements, not one")
    return value.reshape(())[()]


def integers(node: Node, operand: int) -> list[int]:
    """The elements of a known operand as integers, which may depend on sizes."""
    value = node.static(operand)
    if value.ndim > 1:
        node.contradicts(f"operand {operand} has {value.ndim} dimensions, not one")
    return [each if isinstance(each, Open) else int(each) for each in value.reshape(-1)]


def integers_of(node: Node, name: str, operand: int) -> list[int] | None:
    """Integers that older versions have as the attribute `name`, and newer ones as an operand; None if absent."""
    given = node.attribute(name)
    if given is not None:
        return [given] if isinstance(given, int) else list(given)
    return integers(node, operand) if node.given(operand) else None


def scalar_of(node: Node, operand: int) -> build.Array:
    """An operand of one element, as a handle without dimensions."""
    value = node.array(operand)
    if value.size != 1:
        node.refuse(f"operand {operand} has {value.size} elements, not one")
    return build.reshape(value, ())


def optional(node: Node, operand: int) -> build.Array | None:
    """The handle of an operand; None if it is absent."""
    return node.array(operand) if node.given(operand) else None


def legacy_broadcast(node: Node, x: build.Array, y: build.Array) -> build.Array:
    """`y` with the axes that the attributes `broadcast` and `axis` of versions before 7 give it."""
    if node.opset >= 7:
        return y
    if node.attribute("broadcast") and node.attribute("axis") is not None:
        axis = axis_of(node, node.attribute("axis"), x.rank)
        if axis + y.rank > x.rank:
            node.contradicts(f"its operands have {x.rank} and {y.rank} dimensions, and 'axis' is {axis}")
        y = build.reshape(y, (*y.shape, *[1] * (x.rank - axis - y.rank)))
    elif not node.attribute("broadcast"):
        check_same_shapes(node, [x, y])
    if broadcast_shape(x.shape, y.shape) != x.shape:
        node.contradicts(f"an operand of shape {list(y.shape)} is not broadcast to {list(x.shape)}")
    return y


def check_same_shapes(node: Node, operands: Sequence[build.Array]) -> None:
    """Refuse operands of different shapes."""
    shapes = list(dict.fromkeys(tuple(each.shape) for each in operands))
    if len(shapes) > 1:
        node.contradicts(f"operands of shapes {list(shapes[0])} and {list(shapes[1])} are not broadcast to each other")

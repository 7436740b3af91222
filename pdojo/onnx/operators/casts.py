"""Casts between element types, and other types for the same bits."""

from __future__ import annotations

from pdojo import build
from pdojo.build import Array
from pdojo.model.element_types import element_type
from pdojo.onnx.operators.arguments import element_of
from pdojo.onnx.operators.registry import Node, operator

_NAMES = {
    **{"FLOAT": 1, "UINT8": 2, "INT8": 3, "UINT16": 4, "INT16": 5, "INT32": 6, "INT64": 7, "BOOL": 9},
    **{"FLOAT16": 10, "DOUBLE": 11, "UINT32": 12, "UINT64": 13},
}
"""Numbers of types, keyed by the names that the first version of Cast takes."""


@operator("Cast")
def cast(node: Node) -> Array:
    """The elements in another type."""
    to = node.attribute("to")
    return build.cast(node.array(0), element_of(node, _NAMES.get(to, 0) if isinstance(to, str) else to))


@operator("CastLike")
def cast_like(node: Node) -> Array:
    """The elements in the type of another operand."""
    target = node.value(1)
    return build.cast(node.array(0), target.dtype if isinstance(target, Array) else element_type(target.dtype))


@operator("BitCast")
def bit_cast(node: Node) -> Array:
    """The same bits as another type of the same width."""
    x, kind = node.array(0), element_of(node, node.attribute("to"))
    return build.cast(x, kind) if {x.dtype, kind} <= {"i1", "i8", "u8"} else build.bitcast(x, kind)

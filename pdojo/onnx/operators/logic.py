"""Comparisons, logic, bits, choices."""

from __future__ import annotations

from collections.abc import Callable

from pdojo import build
from pdojo.build import Array
from pdojo.build.indexing import triangle
from pdojo.onnx.operators.arguments import legacy_broadcast, number_of, scalar_of
from pdojo.onnx.operators.registry import Node, operator

_FUNCTIONS = {
    **{"And": "&", "Or": "|", "Xor": "^", "BitwiseAnd": "&", "BitwiseOr": "|", "BitwiseXor": "^"},
    **{"Less": "<", "LessOrEqual": "<=", "Greater": ">", "GreaterOrEqual": ">=", "Equal": "=="},
}


def _binary(function: str) -> Callable[[Node], Array]:
    def lower(node: Node) -> Array:
        x = node.array(0)
        return build.map(function, x, legacy_broadcast(node, x, node.array(1)))

    return lower


for _name, _function in _FUNCTIONS.items():
    operator(_name)(_binary(_function))


@operator("Not", "BitwiseNot")
def invert(node: Node) -> Array:
    """The inverse of every bit."""
    return ~node.array(0)


@operator("BitShift")
def bit_shift(node: Node) -> Array:
    """Shifts to the left or to the right; signed elements keep their sign."""
    sign = {"LEFT": "<<", "RIGHT": ">>"}.get(node.attribute("direction", ""))
    if sign is None:
        node.refuse(f"'{node.attribute('direction')}' is no direction of a shift")
    return build.map(sign, node.array(0), node.array(1))


@operator("Where")
def where(node: Node) -> Array:
    """Elements of one operand or of the other."""
    return build.where(node.array(0), node.array(1), node.array(2))


@operator("Trilu")
def trilu(node: Node) -> Array:
    """The part of matrices above or below a diagonal, and zeros elsewhere."""
    is_known = not (node.given(1) and isinstance(node.value(1), Array))
    k = (int(number_of(node, 1)) if node.given(1) else 0) if is_known else scalar_of(node, 1)
    return triangle(node.array(0), k, upper=bool(node.attribute("upper", 1)))

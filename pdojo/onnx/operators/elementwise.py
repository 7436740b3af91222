"""Arithmetic and elementary functions of every element."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

from pdojo import build
from pdojo.build import Array, bits
from pdojo.onnx.operators.arguments import FLOATS, check_same_shapes, legacy_broadcast, scalar_of
from pdojo.onnx.operators.registry import Node, operator


def unary(name: str, function: str, since: int = 1, **attributes: tuple[str, float]) -> None:
    """Register an operator of one operand as a function; `attributes` have the parameter's name and the default."""

    def lower(node: Node) -> Array:
        given = {own: node.attribute(name, default) for name, (own, default) in attributes.items()}
        return build.map(function, node.array(0), **given)

    operator(name, since=since)(lower)


for _name in """Acos Acosh Asin Asinh Atan Atanh Ceil Cos Cosh Erf Exp Floor Log Reciprocal Sign Sin Sinh Sqrt Tan
Tanh""".split():
    unary(_name, _name.lower())
unary("Round", "roundeven")
unary("IsNaN", "is_nan")
unary("IsInf", "is_inf", detect_positive=("positive", 1), detect_negative=("negative", 1))


@operator("Abs")
def absolute(node: Node) -> Array:
    """Elements without their signs."""
    return abs(node.array(0))


@operator("Neg")
def negative(node: Node) -> Array:
    """Elements with the other sign."""
    return -node.array(0)


@operator("Identity")
def identity(node: Node) -> Array:
    """The operand."""
    return node.array(0)


def _operands(node: Node) -> tuple[Array, Array]:
    x = node.array(0)
    return x, legacy_broadcast(node, x, node.array(1))


def _binary(name: str, function: Callable[[Array, Array], Array]) -> None:
    def lower(node: Node) -> Array:
        return function(*_operands(node))

    operator(name)(lower)


_binary("Add", lambda x, y: x + y)
_binary("Sub", lambda x, y: x - y)
_binary("Mul", lambda x, y: x * y)
_binary("Div", lambda x, y: build.map("/", x, y))


@operator("Mod")
def mod(node: Node) -> Array:
    """The remainder with the sign of the divisor, or of the dividend if `fmod` is set."""
    x, y = _operands(node)
    if (kind := node.attribute("fmod", 0)) not in (0, 1):
        node.contradicts(f"attribute 'fmod' is {kind}, not 0 or 1")
    return build.map("rem", x, y) if kind else x % y


@operator("Pow")
def power(node: Node) -> Array:
    """Powers of the element type of the base, with exponents of any type."""
    x, y = _operands(node)
    known = node.value(1)
    if isinstance(known, np.ndarray) and known.size == 1 and y.rank <= x.rank:
        exponent = float(known.reshape(-1)[0])
        if exponent in (1, 2, 3) or (exponent == 0.5 and x.dtype in FLOATS):
            return build.power(x, exponent)
    if x.dtype in FLOATS and y.dtype in (x.dtype, "f16", "bf16", "f32"):
        return build.map("pow", x, build.cast(y, x.dtype))
    if x.dtype in FLOATS or y.dtype in FLOATS:
        return build.cast(build.map("pow", build.cast(x, "f64"), build.cast(y, "f64")), x.dtype)
    return bits.integer_power(x, y)


def _fold(name: str, function: Callable[[Array, Array], Array]) -> None:
    def lower(node: Node) -> Array:
        return reduce(function, _all_operands(node))

    operator(name)(lower)


def _all_operands(node: Node) -> list[Array]:
    """The operands, which have equal shapes before version 8."""
    found = [node.array(k) for k in range(len(node.inputs))]
    if node.opset < 8:
        check_same_shapes(node, found)
    return found


_fold("Max", build.maximum)
_fold("Min", build.minimum)
_fold("Sum", lambda x, y: x + y)


@operator("Mean")
def mean(node: Node) -> Array:
    """The mean of the operands."""
    total = reduce(lambda x, y: x + y, _all_operands(node))
    return total / len(node.inputs) if len(node.inputs) > 1 else total


@operator("Clip")
def clip_between_attributes(node: Node) -> Array:
    """Elements between two attributes."""
    return build.clip(node.array(0), node.attribute("min"), node.attribute("max"))


@operator("Clip", since=11)
def clip(node: Node) -> Array:
    """Elements between two scalar operands."""
    bounds = [scalar_of(node, k) if node.given(k) else None for k in (1, 2)]
    return build.clip(node.array(0), *bounds)

"""Activation functions, softmax and its relatives."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from pdojo import build
from pdojo.build import Array
from pdojo.build.array import broadcast_shape
from pdojo.onnx.operators.arguments import FLOATS, axis_of, check_same_shapes, number_of, wide_type
from pdojo.onnx.operators.elementwise import in_f32, unary
from pdojo.onnx.operators.registry import Node, operator

unary("Relu", build.relu)
unary("Sigmoid", build.sigmoid)
unary("Softplus", build.softplus)
unary("Softsign", in_f32(lambda x: x / (abs(x) + 1)))
unary("Mish", in_f32(lambda x: x * build.tanh(build.softplus(x))))
unary("HardSwish", in_f32(lambda x: x * build.clip(x * (1 / 6) + 0.5, 0, 1)))


@operator("LeakyRelu")
def leaky_relu(node: Node) -> Array:
    """`x`, or `alpha * x` below 0."""
    return build.leaky_relu(node.array(0), node.attribute("alpha", 0.01))


@operator("PRelu")
def p_relu(node: Node) -> Array:
    """`x`, or `slope * x` below 0, with an array of slopes."""
    x, slope = node.array(0), node.array(1)
    if node.opset < 7 and slope.rank == 1 and x.rank > 2:
        slope = build.reshape(slope, (-1, *[1] * (x.rank - 2)))
    if broadcast_shape(x.shape, slope.shape) != x.shape:
        node.contradicts(f"slopes of shape {list(slope.shape)} are not broadcast to {list(x.shape)}")
    return build.leaky_relu(x, slope) if x.dtype in FLOATS else build.where(x < 0, x * slope, x)


@operator("Elu")
def elu(node: Node) -> Array:
    """`x`, or `alpha * (exp(x) - 1)` below 0."""
    return build.elu(node.array(0), node.attribute("alpha", 1.0))


@operator("Celu")
def celu(node: Node) -> Array:
    """`x`, or `alpha * (exp(x / alpha) - 1)` below 0."""
    return build.celu(node.array(0), node.attribute("alpha", 1.0))


@operator("Selu")
def selu(node: Node) -> Array:
    """The scaled exponential linear unit."""
    alpha = node.attribute("alpha", 1.67326319217681884765625 if node.opset >= 6 else 1.6732)
    gamma = node.attribute("gamma", 1.05070102214813232421875 if node.opset >= 6 else 1.0507)
    return in_f32(lambda x: build.where(x > 0, x * gamma, build.map("expm1", x) * (alpha * gamma)))(node.array(0))


@operator("Gelu")
def gelu(node: Node) -> Array:
    """The Gaussian error linear unit."""
    return build.gelu(node.array(0), approximate=node.choice("approximate", ("none", "tanh")) == "tanh")


def swish(x: Array, alpha: float = 1.0) -> Array:
    """`x * sigmoid(alpha * x)`."""
    return build.silu(x) if alpha == 1 else in_f32(lambda u: u / (build.exp(u * -alpha) + 1))(x)


@operator("Swish")
def lower_swish(node: Node) -> Array:
    """`x * sigmoid(alpha * x)`."""
    return swish(node.array(0), node.attribute("alpha", 1.0))


@operator("SwiGLU")
def swiglu(node: Node) -> Array:
    """`swish(a) * b`."""
    a, b = node.array(0), node.array(1)
    check_same_shapes(node, [a, b])
    gate = swish(build.cast(a, wide_type(a.dtype)), node.attribute("alpha", 1.0))
    return build.cast(gate * build.cast(b, gate.dtype), a.dtype)


@operator("HardSigmoid")
def hard_sigmoid(node: Node) -> Array:
    """`alpha * x + beta` between 0 and 1."""
    alpha, beta = node.attribute("alpha", 0.2), node.attribute("beta", 0.5)
    return in_f32(lambda x: build.clip(x * alpha + beta, 0, 1))(node.array(0))


@operator("ThresholdedRelu")
def thresholded_relu(node: Node) -> Array:
    """`x` above `alpha`, and 0 elsewhere."""
    x = node.array(0)
    return build.where(x > node.attribute("alpha", 1.0), x, 0)


@operator("Shrink")
def shrink(node: Node) -> Array:
    """`x` moved towards 0 by `bias` where it is beyond `lambd`, and 0 elsewhere."""
    x, bias, bound = node.array(0), node.attribute("bias", 0.0), node.attribute("lambd", 0.5)
    u = x if x.dtype in FLOATS else build.cast(x, "f64")
    return build.cast(build.where(u < -bound, u + bias, build.where(u > bound, u - bias, 0)), x.dtype)


def _of_rows(function: Callable[[Array, int], Array]) -> Callable[[Node], Array]:
    """The lowering of versions before 13: one row of all axes from `axis` on."""

    def lower(node: Node) -> Array:
        x = node.array(0)
        axis = axis_of(node, node.attribute("axis", 1), x.rank)
        rows = build.reshape(x, (prod(x.shape[:axis]), prod(x.shape[axis:])))
        return build.reshape(function(rows, -1), x.shape)

    return lower


def _of_axis(function: Callable[[Array, int], Array]) -> Callable[[Node], Array]:
    def lower(node: Node) -> Array:
        x = node.array(0)
        return function(x, axis_of(node, node.attribute("axis", -1), x.rank))

    return lower


for _name, _function in {"Softmax": build.softmax, "LogSoftmax": build.log_softmax, "Hardmax": build.hardmax}.items():
    operator(_name)(_of_rows(_function))
    operator(_name, since=13)(_of_axis(_function))


@operator("Dropout")
def dropout(node: Node) -> Array | tuple[Array, Array]:
    """Dropout of no elements: kernels have no random numbers."""
    x = node.array(0)
    training = node.given(2) and bool(number_of(node, 2))
    if training and (not node.given(1) or float(number_of(node, 1))):
        node.refuse("dropout in training needs random numbers")
    return (x, build.constant(1, "i1", x.shape)) if len(node.outputs) > 1 else x

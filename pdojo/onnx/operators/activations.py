"""Activation functions, softmax and its relatives."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from pdojo import build
from pdojo.build import Array
from pdojo.build.extents import broadcast_shape
from pdojo.onnx.operators.arguments import FLOATS, axis_of, check_same_shapes, number_of
from pdojo.onnx.operators.elementwise import unary
from pdojo.onnx.operators.registry import Node, operator

for _name in ("Relu", "Sigmoid", "Softplus", "Softsign", "Mish", "HardSwish"):
    unary(_name, _name.lower())
unary("LeakyRelu", "leaky_relu", alpha=("slope", 0.01))
unary("Elu", "elu", alpha=("alpha", 1.0))
unary("Celu", "celu", alpha=("alpha", 1.0))
unary("Selu", "selu", alpha=("alpha", 1.6732), gamma=("scale", 1.0507))
unary("Selu", "selu", 6, alpha=("alpha", 1.67326319217681884765625), gamma=("scale", 1.05070102214813232421875))
unary("Swish", "silu", alpha=("slope", 1.0))
unary("HardSigmoid", "hardsigmoid", alpha=("alpha", 0.2), beta=("beta", 0.5))


@operator("ThresholdedRelu")
def thresholded_relu(node: Node) -> Array:
    """`x` above `alpha`, and 0 elsewhere."""
    return build.map("threshold", node.array(0), bound=node.attribute("alpha", 1.0), keeps_nan=False)


@operator("PRelu")
def p_relu(node: Node) -> Array:
    """`x`, or `slope * x` below 0, with an array of slopes."""
    x, slope = node.array(0), node.array(1)
    if node.opset < 7 and slope.rank == 1 and x.rank > 2:
        slope = build.reshape(slope, (-1, *[1] * (x.rank - 2)))
    if broadcast_shape(x.shape, slope.shape) != x.shape:
        node.contradicts(f"slopes of shape {list(slope.shape)} are not broadcast to {list(x.shape)}")
    return build.leaky_relu(x, slope) if x.dtype in FLOATS else build.where(x < 0, x * slope, x)


@operator("Gelu")
def gelu(node: Node) -> Array:
    """The Gaussian error linear unit."""
    return build.gelu(node.array(0), approximate=node.choice("approximate", ("none", "tanh")) == "tanh")


@operator("SwiGLU")
def swiglu(node: Node) -> Array:
    """`swish(a) * b`."""
    a, b = node.array(0), node.array(1)
    check_same_shapes(node, [a, b])
    return build.map("swiglu", a, b, slope=node.attribute("alpha", 1.0))


@operator("Shrink")
def shrink(node: Node) -> Array:
    """`x` moved towards 0 by `bias` where it is beyond `lambd`, and 0 elsewhere."""
    x, bias, bound = node.array(0), node.attribute("bias", 0.0), node.attribute("lambd", 0.5)
    u = x if x.dtype in FLOATS else build.cast(x, "f64")
    return build.cast(build.map("shrink", u, bias=bias, bound=bound), x.dtype)


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

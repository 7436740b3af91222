"""Quantised integers, and products of quantised arrays."""

from __future__ import annotations

from pdojo import build
from pdojo.build import Array, quantising
from pdojo.dialect.element_types import wide_type
from pdojo.errors import UsageError
from pdojo.model.element_types import element_type
from pdojo.onnx.operators.arguments import along, axis_of, element_of, scalar_of
from pdojo.onnx.operators.convolutions import convolved
from pdojo.onnx.operators.registry import Node, operator


def _fitting(node: Node, x: Array, values: Array) -> Array:
    """Scales or zero points as an array of the shape of `x`: of all elements, an axis, or blocks of an axis."""
    block = node.attribute("block_size", 0)
    if block < 0:
        node.contradicts(f"attribute 'block_size' is {block}")
    if values.size == 1:
        return build.reshape(values, ())
    axis = axis_of(node, node.attribute("axis", 1), x.rank)
    blocks = -(-x.shape[axis] // block) if block else x.shape[axis]
    wanted = tuple(blocks if d == axis else extent for d, extent in enumerate(x.shape)) if block else (blocks,)
    if values.shape != wanted:
        node.contradicts(f"scales or zero points have shape {list(values.shape)}, not {list(wanted)}")
    if not block:
        return along(x, axis, build.reshape(values, (-1,)))
    repeated = build.repeat(values, block, axis)
    return repeated[tuple(slice(0, extent) for extent in x.shape)]


def _element(node: Node, operand: int) -> str:
    value = node.value(operand)
    return value.dtype if isinstance(value, Array) else element_type(value.dtype)


@operator("QuantizeLinear")
def quantize(node: Node) -> Array:
    """`x / scale`, rounded, plus the zero point, saturated."""
    x, scale = node.array(0), node.array(1)
    if node.given(2):
        kind, zero = _element(node, 2), _fitting(node, x, node.array(2))
    else:
        number, zero = node.attribute("output_dtype", 0), None
        kind = element_of(node, number) if number else "u8"
    precision = node.attribute("precision", 0)
    own = element_of(node, precision) if precision else wide_type(x.dtype)
    own = "f32" if own[0] in "iu" else own
    return quantising.quantize(x, _fitting(node, x, scale), zero, kind, own)


@operator("DequantizeLinear")
def dequantize(node: Node) -> Array:
    """`(x - zero point) * scale`."""
    x, scale = node.array(0), node.array(1)
    zero = _fitting(node, x, node.array(2)) if node.given(2) else None
    found = quantising.dequantize(x, _fitting(node, x, scale), zero, wide_type(scale.dtype))
    number = node.attribute("output_dtype", 0)
    return build.cast(found, element_of(node, number) if number else scale.dtype)


@operator("DynamicQuantizeLinear")
def dynamic_quantize(node: Node) -> tuple[Array, Array, Array]:
    """Elements quantised to u8 over their own range, with scale and zero point."""
    return quantising.quantize_by_range(node.array(0))


def _centred(node: Node, operand: int, zero: int, *, axis: int | None) -> Array:
    """A quantised operand minus its zero point, in i32; a vector of zero points is along `axis`."""
    x, point = build.cast(node.array(operand), "i32"), build.cast(node.array(zero), "i32")
    return x - (build.reshape(point, ()) if point.size == 1 else _aligned(x, point, axis))


def _aligned(x: Array, values: Array, axis: int | None) -> Array:
    if axis is None or values.rank != 1:
        return values
    if not -x.rank <= axis < x.rank or x.shape[axis] != values.size:
        raise UsageError(f"{values.size} scales or zero points do not fit an array of shape {list(x.shape)}")
    return along(x, axis % x.rank, values)


def _requantised(node: Node, sums: Array, factor: Array, scale: int, zero: int) -> Array:
    """Sums of products in the scale and type of the result."""
    return quantising.requantize(
        sums, factor, scalar_of(node, scale), scalar_of(node, zero), _element(node, zero), wide_type(factor.dtype)
    )


@operator("QLinearMatMul")
def quantised_matmul(node: Node) -> Array:
    """The product of quantised matrices."""
    a, b = _centred(node, 0, 2, axis=-2), _centred(node, 3, 5, axis=-1)
    sums = build.matmul(a, b)
    left, right = node.array(1), node.array(4)
    left = _aligned(sums, left, -2) if left.size > 1 else build.reshape(left, ())
    right = _aligned(sums, right, -1) if right.size > 1 else build.reshape(right, ())
    return _requantised(node, sums, left * right, 6, 7)


@operator("QLinearConv")
def quantised_conv(node: Node) -> Array:
    """The convolution of quantised arrays; the bias is in the scale of the products."""
    x, weights = _centred(node, 0, 2, axis=None), _centred(node, 3, 5, axis=0)
    sums = convolved(node, x, weights, node.array(8) if node.given(8) else None)
    scale = node.array(4)
    factor = scalar_of(node, 1) * (along(sums, 1, scale) if scale.size > 1 else build.reshape(scale, ()))
    return _requantised(node, sums, factor, 6, 7)

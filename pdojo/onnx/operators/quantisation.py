"""Quantised integers, and products of quantised arrays."""

from __future__ import annotations

from collections.abc import Callable

from pdojo import build
from pdojo.build import Array, quantising
from pdojo.dialect.element_types import wide_type
from pdojo.model.element_types import element_type
from pdojo.onnx.operators.arguments import axis_of, element_of, optional, scalar_of
from pdojo.onnx.operators.convolutions import windows_of
from pdojo.onnx.operators.registry import Node, operator


def _fitting(node: Node, x: Array, values: Array) -> Array:
    return fitted(node, x, values, node.attribute("axis", 1), node.attribute("block_size", 0))


def fitted(node: Node, x: Array, values: Array, axis: int, block: int) -> Array:
    """Scales or zero points as an array of the shape of `x`: of all elements, an axis, or blocks of an axis."""
    if block < 0:
        node.contradicts(f"attribute 'block_size' is {block}")
    if values.size == 1:
        return build.reshape(values, ())
    axis = axis_of(node, axis, x.rank)
    blocks = -(-x.shape[axis] // block) if block else x.shape[axis]
    wanted = tuple(blocks if d == axis else extent for d, extent in enumerate(x.shape)) if block else (blocks,)
    if values.shape != wanted:
        node.contradicts(f"scales or zero points have shape {list(values.shape)}, not {list(wanted)}")
    if not block:
        return quantising.along(build.reshape(values, (-1,)), x, axis)
    repeated = build.repeat(values, block, axis)
    return repeated[tuple(slice(0, extent) for extent in x.shape)]


def _element(node: Node, operand: int) -> str:
    value = node.value(operand)
    return value.dtype if isinstance(value, Array) else element_type(value.dtype)


@operator("QuantizeLinear")
def quantize(node: Node) -> Array:
    """`x / scale`, rounded, plus the zero point, saturated."""
    return _quantized(node, quantising.quantize)


def requantize(node: Node) -> Array:
    """QuantizeLinear of a value that was computed from dequantised integers: multiplied by a reciprocal."""
    return _quantized(node, quantising.quantize_product)


def _quantized(node: Node, quantised: Callable[[Array, Array, Array | None, str, str], Array]) -> Array:
    x, scale = node.array(0), node.array(1)
    if node.given(2):
        kind, zero = _element(node, 2), known_zero(node, 2)
        zero = None if zero is None else _fitting(node, x, zero)
    else:
        number, zero = node.attribute("output_dtype", 0), None
        kind = element_of(node, number) if number else "u8"
    precision = node.attribute("precision", 0)
    own = element_of(node, precision) if precision else wide_type(x.dtype)
    own = "f32" if own[0] in "iu" else own
    return quantised(x, _fitting(node, x, scale), zero, kind, own)


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


def known_zero(node: Node, operand: int) -> Array | None:
    """A zero point; None if there is none, or it is known to be 0."""
    known = node.value(operand) if node.given(operand) else None
    is_zero = known is None or (not isinstance(known, Array) and not known.any())
    return None if is_zero else node.array(operand)


@operator("QLinearMatMul")
def quantised_matmul(node: Node) -> Array:
    """The product of quantised matrices."""
    a, a_scale, b, b_scale = (node.array(k) for k in (0, 1, 3, 4))
    last = (scalar_of(node, k) for k in (6, 7))
    return quantising.quantised_matmul(a, a_scale, known_zero(node, 2), b, b_scale, known_zero(node, 5), *last)


@operator("QLinearConv")
def quantised_conv(node: Node) -> Array:
    """The convolution of quantised arrays."""
    x, weights = node.array(0), node.array(3)
    x_scale, scale, zero = (scalar_of(node, k) for k in (1, 6, 7))
    x_zero = None if known_zero(node, 2) is None else scalar_of(node, 2)
    windows, of_weights = windows_of(node, x, weights), (node.array(4), known_zero(node, 5))
    return quantising.quantised_conv(
        x, x_scale, x_zero, weights, *of_weights, scale, zero, optional(node, 8), **windows
    )


@operator("MatMulInteger")
def integer_matmul(node: Node) -> Array:
    """The product of matrices of integers with zero points, in i32."""
    return quantising.integer_matmul(node.array(0), node.array(1), known_zero(node, 2), known_zero(node, 3))


@operator("ConvInteger")
def integer_conv(node: Node) -> Array:
    """The convolution of integers with zero points, in i32."""
    x, weights = node.array(0), node.array(1)
    zero = None if known_zero(node, 2) is None else scalar_of(node, 2)
    return quantising.integer_conv(x, weights, zero, known_zero(node, 3), **windows_of(node, x, weights))

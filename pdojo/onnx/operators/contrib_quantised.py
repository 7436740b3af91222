"""Quantised operators of ONNX Runtime's domain: elementwise functions, pools and products of bytes."""

from __future__ import annotations

from collections.abc import Callable

from pdojo import build
from pdojo.build import Array, quantising
from pdojo.onnx.operators.arguments import axis_of, optional, scalar_of
from pdojo.onnx.operators.contrib import DOMAIN, check_rank, check_shape, contrib
from pdojo.onnx.operators.convolutions import windows_of
from pdojo.onnx.operators.pools import pool_windows
from pdojo.onnx.operators.quantisation import dequantize, known_zero, quantize
from pdojo.onnx.operators.registry import Node, operator

_ONE = "X:Q X_scale:S X_zero_point:Q? Y_scale:S Y_zero_point:Q?"
_TWO = "A:Q A_scale:S A_zero_point:Q? B:Q B_scale:S B_zero_point:Q? C_scale:S C_zero_point:Q?"

# Models of older quantisers have these two in the domain, where axis 1 is not the default for a scalar scale either.
operator("QuantizeLinear", domain=DOMAIN)(quantize)
operator("DequantizeLinear", domain=DOMAIN)(dequantize)


def _zero(node: Node, operand: int) -> Array | None:
    """A zero point of one element; None if it is 0."""
    return None if known_zero(node, operand) is None else scalar_of(node, operand)


def _number(node: Node, operand: int) -> Array:
    """The numbers of an operand that scale and zero point follow."""
    x = node.array(operand)
    return quantising.dequantize(x, scalar_of(node, operand + 1), _zero(node, operand + 2), "f32")


def _quantised(node: Node, numbers: Array, scale: int, dtype: str) -> Array:
    """Numbers quantised by operands: the scale, and the zero point behind it."""
    return quantising.quantize_product(numbers, scalar_of(node, scale), _zero(node, scale + 1), dtype, "f32")


@contrib("QLinearAdd", _TWO)
def qlinear_add(node: Node) -> Array:
    """The sum of quantised arrays."""
    return _quantised(node, _number(node, 0) + _number(node, 3), 6, node.array(0).dtype)


@contrib("QLinearMul", _TWO)
def qlinear_mul(node: Node) -> Array:
    """The product of the elements of quantised arrays."""
    return _quantised(node, _number(node, 0) * _number(node, 3), 6, node.array(0).dtype)


@contrib("QLinearSigmoid", _ONE)
def qlinear_sigmoid(node: Node) -> Array:
    """The sigmoid of quantised numbers."""
    return _quantised(node, build.sigmoid(_number(node, 0)), 3, node.array(0).dtype)


@contrib("QLinearLeakyRelu", _ONE, "alpha")
def qlinear_leaky_relu(node: Node) -> Array:
    """The numbers, those below 0 times `alpha`."""
    found = build.leaky_relu(_number(node, 0), node.attribute("alpha", 0.01))
    return _quantised(node, found, 3, node.array(0).dtype)


@contrib("QLinearSoftmax", "X:Q X_scale:S X_zero_point:Q? Y_scale:S Y_zero_point:Q", "opset! axis")
def qlinear_softmax(node: Node) -> Array:
    """Softmax along an axis; before version 13 of Softmax, all axes from `axis` on are one."""
    x, old = _number(node, 0), node.attribute("opset") < 13
    axis = axis_of(node, node.attribute("axis", -1), x.rank)
    if old:
        found = build.softmax(build.reshape(x, (*x.shape[:axis], -1)), -1)
        found = build.reshape(found, x.shape)
    else:
        found = build.softmax(x, axis)
    return _quantised(node, found, 3, node.array(0).dtype)


@contrib(
    "QLinearWhere", "condition:* X:Q X_scale:S X_zero_point:Q Y:Q Y_scale:S Y_zero_point:Q Z_scale:S Z_zero_point:Q"
)
def qlinear_where(node: Node) -> Array:
    """The elements of one of two quantised arrays."""
    found = build.where(node.array(0), _number(node, 1), _number(node, 4))
    return _quantised(node, found, 7, node.array(1).dtype)


def _channels_first(node: Node, x: Array, apply: Callable[[Array], Array]) -> Array:
    """A function of images with channels first, for images in the layout of the node."""
    if not node.attribute("channels_last", 0):
        return apply(x)
    found = apply(build.transpose(x, (0, x.rank - 1, *range(1, x.rank - 1))))
    return build.transpose(found, (0, *range(2, found.rank), 1))


_POOL = "X:Q X_scale:S X_zero_point:Q? Y_scale:S Y_zero_point:Q?"


@contrib(
    "QLinearAveragePool",
    _POOL,
    "auto_pad ceil_mode~ channels_last~ count_include_pad~ dilations kernel_shape! pads strides",
)
def qlinear_average_pool(node: Node) -> Array:
    """The mean of every window of quantised images."""
    counted = bool(node.attribute("count_include_pad", 0))
    found = _channels_first(
        node, _number(node, 0), lambda x: build.avg_pool(x, count_padding=counted, **pool_windows(node, x))
    )
    return _quantised(node, found, 3, node.array(0).dtype)


@contrib("QLinearGlobalAveragePool", _POOL, "channels_last~")
def qlinear_global_average_pool(node: Node) -> Array:
    """The mean of every channel of quantised images."""
    found = _channels_first(node, _number(node, 0), lambda x: build.mean(x, [*range(2, x.rank)], keepdims=True))
    return _quantised(node, found, 3, node.array(0).dtype)


@contrib("NhwcMaxPool", "X:Q", "auto_pad ceil_mode~ dilations kernel_shape! pads strides")
def nhwc_max_pool(node: Node) -> Array:
    """The greatest element of every window of images with channels last."""
    x = node.array(0)
    turned = build.transpose(x, (0, x.rank - 1, *range(1, x.rank - 1)))
    found = build.pool("max", turned, **pool_windows(node, turned))
    return build.transpose(found, (0, *range(2, found.rank), 1))


@contrib("QLinearConcat", "Y_scale:S Y_zero_point:Q", "axis!", variadic=True)
def qlinear_concat(node: Node) -> Array:
    """Quantised arrays side by side along an axis, each with a scale and a zero point of its own."""
    count, rest = divmod(len(node.inputs) - 2, 3)
    if rest or not count:
        node.contradicts(f"it has {len(node.inputs)} operands, not 2 and 3 for each array")
    dtype = node.array(1).dtype
    found: list[Array] = []
    for place in range(2, len(node.inputs), 3):
        x = node.array(place)
        if x.dtype != dtype:
            node.contradicts(f"operand {place} is of type {x.dtype}, 'Y_zero_point' of type {dtype}")
        found.append(x if _is_kept(node, place) else _quantised(node, _number(node, place), 0, dtype))
    return build.concatenate(found, axis_of(node, node.attribute("axis"), found[0].rank))


def _is_kept(node: Node, place: int) -> bool:
    """Whether an array has the known scale and zero point of the result."""
    for own, wanted in ((place + 1, 0), (place + 2, 1)):
        first, second = node.value(own), node.value(wanted)
        if isinstance(first, Array) or isinstance(second, Array) or first.size != 1 or first.item() != second.item():
            return False
    return True


@contrib(
    "QLinearConv",
    "x:Q x_scale:S x_zero_point:Q w:W w_scale:S w_zero_point:W y_scale:S y_zero_point:Z B:N?",
    "auto_pad channels_last~ dilations group kernel_shape pads strides",
)
def qlinear_conv(node: Node) -> Array:
    """The convolution of quantised arrays, perhaps with channels last; the weights have channels first."""
    weights, of_weights = node.array(3), (node.array(4), known_zero(node, 5))
    scale, zero = scalar_of(node, 6), scalar_of(node, 7)

    def convolved(x: Array) -> Array:
        given = x, scalar_of(node, 1), _zero(node, 2), weights, *of_weights, scale, zero, optional(node, 8)
        return quantising.quantised_conv(*given, **windows_of(node, x, weights))

    return _channels_first(node, node.array(0), convolved)


def _by_column(node: Node, operand: int, name: str, b: Array) -> Array | None:
    """A scale or zero point of one element, or of one for each column of `b`; None if absent, or 0."""
    known = known_zero(node, operand)
    if known is not None and known.size != 1:
        check_shape(node, name, known, (b.shape[-1],), (*b.shape[:-2], 1, b.shape[-1]))
    return known


def _plus_bias(node: Node, operand: int, found: Array) -> Array:
    """The result plus an operand with an element for each column, if there is one."""
    if not node.given(operand):
        return found
    check_shape(node, "bias", node.value(operand), found.shape[-1:])
    return found + node.array(operand)


def scaled_product(node: Node, a: Array, a_scale: Array, a_zero: Array | None, places: tuple[int, int, int]) -> Array:
    """The product of integers with the matrix of the node, times the scales, in their type.

    `places` are the operands of the matrix, its scale and its zero point.
    """
    b = node.array(places[0])
    scale, zero = (
        _by_column(node, place, name, b) for place, name in zip(places[1:], ("scale", "zero point"), strict=True)
    )
    sums = quantising.integer_matmul(a, b, a_zero, zero)
    if scale is None:
        return build.cast(sums, a_scale.dtype) * 0
    factor = a_scale * quantising.along(scale, sums, -1)
    return build.cast(sums, factor.dtype) * factor


@contrib("MatMulIntegerToFloat", "A:Q B:W a_scale:T b_scale:T a_zero_point:Q? b_zero_point:W? bias:T?")
def matmul_integer_to_float(node: Node) -> Array:
    """The product of quantised matrices as numbers."""
    a = node.array(0)
    return _plus_bias(node, 6, scaled_product(node, a, scalar_of(node, 2), _zero(node, 4), (1, 3, 5)))


@contrib("DynamicQuantizeMatMul", "A:S B:W b_scale:S b_zero_point:W? bias:S?")
def dynamic_quantize_matmul(node: Node) -> Array:
    """The product of a matrix, quantised to u8 over the range of its elements, with a quantised matrix."""
    a, scale, zero = quantising.quantize_by_range(node.array(0))
    return _plus_bias(node, 4, scaled_product(node, a, scale, zero, (1, 2, 3)))


@contrib(
    "QGemm",
    "A:Q a_scale:S a_zero_point:Q B:W b_scale:S b_zero_point:W C:N? y_scale:S? y_zero_point:Z?",
    "alpha transA~ transB~",
)
def qgemm(node: Node) -> Array:
    """The product of quantised matrices times `alpha`, plus an i32 array in its scale; quantised if it has a scale."""
    a, b = node.array(0), node.array(3)
    check_rank(node, "A", a, 2)
    check_rank(node, "B", b, 2)
    a = build.transpose(a) if node.attribute("transA", 0) else a
    b = build.transpose(b) if node.attribute("transB", 0) else b
    sums = quantising.integer_matmul(a, b, _zero(node, 2), _by_column(node, 5, "b_zero_point", b))
    if node.given(6):
        whole = sums + node.array(6)
        check_shape(node, "C", whole, sums.shape)
        sums = whole
    scale = node.array(4)
    if scale.size != 1:
        check_shape(node, "b_scale", scale, b.shape[-1:])
    factor = scalar_of(node, 1) * quantising.along(scale, sums, -1) * node.attribute("alpha", 1.0)
    if node.given(7) != node.given(8):
        node.contradicts("one of the operands 'y_scale' and 'y_zero_point' is absent")
    numbers = build.cast(sums, "f32") * factor
    return _quantised(node, numbers, 7, node.array(8).dtype) if node.given(7) else numbers

"""Products of dequantised bytes, computed from the bytes: the form that quantisers write (QDQ).

A convolution or a product of (x - p) s and (w - q) r has the results (sum (x - p)(w - q)) s r; the sums are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pdojo import build
from pdojo.build import Array, quantising
from pdojo.model.element_types import element_type
from pdojo.model.graph import Operand, Tensor
from pdojo.onnx.operators.convolutions import windows_of
from pdojo.onnx.operators.quantisation import fitted, known_zero
from pdojo.onnx.operators.registry import Node

BYTES = ("u8", "i8")
Lowering = Callable[[Node], Array]


@dataclass(frozen=True)
class Dequantised:
    """A result of DequantizeLinear, and what it was computed from."""

    result: Operand
    operands: tuple[Operand | None, ...]
    """The integers, their scale, and their zero point, or None."""
    axis: int
    block: int = 0
    """Elements of a block with a scale; 0 if each place of the axis has one."""


def dequantised(
    attributes: Mapping[str, Any], operands: Sequence[Operand | None], result: Operand
) -> Dequantised | None:
    """The record of a DequantizeLinear; None for other element types than bytes and f32."""
    numbers, scale = operands[0], operands[1]
    if numbers is None or scale is None or attributes.get("output_dtype"):
        return None
    if _type(numbers) not in BYTES or _type(scale) != "f32":
        return None
    given = (*operands, None)[:3]
    return Dequantised(result, given, attributes.get("axis", 1), attributes.get("block_size", 0))


def _type(value: Operand) -> str:
    return value.dtype if isinstance(value, Tensor) else element_type(value.dtype)


def of_bytes(
    op_type: str,
    attributes: Mapping[str, Any],
    operands: Sequence[Operand | None],
    known: Mapping[int, Dequantised],
) -> tuple[Lowering, list[Operand | None]] | None:
    """The lowering and the operands of a product of dequantised bytes; None for other nodes.

    `known` has the results of DequantizeLinear by identity. Scales and zero points of the first factor are single
    numbers; the second factor is known, with one scale, or one for each output. If only the second factor is
    dequantised, the kernel gets its bytes, and passes decide where they are expanded.
    """
    if op_type not in _AXES or len(operands) < 2:
        return None
    left, right = (known.get(id(each)) for each in operands[:2])
    if right is None or isinstance(right.operands[0], Tensor):
        return None
    if left is None:
        return _of_weights(op_type, attributes, operands, right)
    if left.block or right.block or not all(_is_single(each) for each in left.operands[1:]):
        return None
    weights = right.operands[0]
    assert weights is not None
    axis = _AXES[op_type](attributes, weights.ndim)
    if axis is None or not all(_is_single(each) or _is_along(right, each, axis) for each in right.operands[1:]):
        return None
    return _LOWERINGS[op_type], [*left.operands, *right.operands, *operands[2:]]


def _of_weights(
    op_type: str, attributes: Mapping[str, Any], operands: Sequence[Operand | None], right: Dequantised
) -> tuple[Lowering, list[Operand | None]] | None:
    """The lowering of the product of a tensor and dequantised weights."""
    if op_type not in _FLOAT or not isinstance(operands[0], Tensor) or operands[0].dtype != "f32":
        return None
    weights = right.operands[0]
    assert isinstance(weights, np.ndarray)
    if weights.ndim != 2 or _AXES[op_type](attributes, weights.ndim) is None:
        return None

    def lower(node: Node) -> Array:
        numbers, scale = node.array(1), fitted(node, node.array(1), node.array(2), right.axis, right.block)
        zero = None if (known := known_zero(node, 3)) is None else fitted(node, numbers, known, right.axis, right.block)
        return _FLOAT[op_type](node, quantising.dequantize(numbers, scale, zero, "f32"))

    return lower, [operands[0], *right.operands, *operands[2:]]


def _float_gemm(node: Node, weights: Array) -> Array:
    return _plus(node, 4, build.matmul(node.array(0), _of_gemm(node, weights)))


def _of_gemm(node: Node, weights: Array) -> Array:
    return build.transpose(weights) if node.attribute("transB", 0) else weights


def _plus(node: Node, operand: int, found: Array) -> Array:
    """The result plus an operand, if there is one."""
    return found + node.array(operand) if node.given(operand) else found


def _is_single(value: Operand | None) -> bool:
    return value is None or (not isinstance(value, Tensor) and value.size == 1)


def _is_along(factor: Dequantised, value: Operand | None, axis: int) -> bool:
    """True for known numbers, one for each output."""
    numbers = factor.operands[0]
    assert isinstance(numbers, np.ndarray)
    return isinstance(value, np.ndarray) and factor.axis % numbers.ndim == axis % numbers.ndim and value.ndim == 1


def _gemm_axis(attributes: Mapping[str, Any], rank: int) -> int | None:
    """The axis of the outputs of Gemm; None if it does more than a product."""
    plain = attributes.get("alpha", 1.0) == attributes.get("beta", 1.0) == 1.0 and not attributes.get("transA", 0)
    return (0 if attributes.get("transB", 0) else 1) if plain else None


def _zeros(node: Node) -> tuple[Array | None, Array | None]:
    return known_zero(node, 2), known_zero(node, 5)


def _scaled(node: Node, sums: Array, axis: int) -> Array:
    """Exact sums times the scales of both factors."""
    return build.cast(sums, "f32") * (_scalar(node, 1) * quantising.along(node.array(4), sums, axis))


def _scalar(node: Node, operand: int) -> Array:
    return build.reshape(node.array(operand), ())


def _conv(node: Node) -> Array:
    x, weights = node.array(0), node.array(3)
    zero, zeros = _zeros(node)
    sums = quantising.integer_conv(x, weights, zero, zeros, **windows_of(node, x, weights))
    found = _scaled(node, sums, 1)
    if not node.given(6):
        return found
    return found + build.reshape(node.array(6), (-1, *[1] * (found.rank - 2)))


def _matmul(node: Node) -> Array:
    zero, zeros = _zeros(node)
    return _scaled(node, quantising.integer_matmul(node.array(0), node.array(3), zero, zeros), -1)


def _gemm(node: Node) -> Array:
    zero, zeros = _zeros(node)
    sums = quantising.integer_matmul(node.array(0), _of_gemm(node, node.array(3)), zero, zeros)
    return _plus(node, 6, _scaled(node, sums, -1))


_AXES: dict[str, Callable[[Mapping[str, Any], int], int | None]] = {
    "Conv": lambda _, __: 0,
    "MatMul": lambda _, rank: rank - 1,
    "Gemm": _gemm_axis,
}
_FLOAT: dict[str, Callable[[Node, Array], Array]] = {
    "MatMul": lambda node, weights: build.matmul(node.array(0), weights),
    "Gemm": _float_gemm,
}
"""Products of a tensor of f32 and the handle of dequantised weights."""
_LOWERINGS: dict[str, Lowering] = {"Conv": _conv, "MatMul": _matmul, "Gemm": _gemm}

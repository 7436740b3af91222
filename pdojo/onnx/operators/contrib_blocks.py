"""Products with matrices of packed bits and a scale for each block of terms."""

from __future__ import annotations

from collections.abc import Callable

from pdojo import build
from pdojo.build import Array, indexing
from pdojo.dialect.element_types import wide_type
from pdojo.onnx.operators.contrib import check_shape, contrib
from pdojo.onnx.operators.registry import Node


def unpacked(x: Array, bits: int, count: int) -> Array:
    """The first `count` numbers of each row of bytes, each of `bits` bits, the low ones first."""
    each = 8 // bits
    if each == 1:
        return x[:, :count]
    shifts = build.cast(build.iota((each * x.shape[1],), "i32") % each * bits, "u8")
    return ((build.repeat(x, each, 1) >> shifts) & ((1 << bits) - 1))[:, :count]


@contrib(
    "MatMulNBits",
    "A:F B:B scales:F zero_points:*? g_idx:N? bias:F?",
    "K! N! accuracy_level bits block_size! weight_prepacked",
)
def matmul_nbits(node: Node) -> Array:
    """The product with a matrix of numbers of 2, 4 or 8 bits, each block of terms with a scale and a zero point.

    The product is computed in f32 at every `accuracy_level`.
    """
    a = node.array(0)
    terms, columns, bits = node.attribute("K"), node.attribute("N"), node.attribute("bits", 4)
    if bits not in (2, 4, 8):
        node.refuse(f"attribute 'bits' is {bits}; products have numbers of 2, 4 and 8 bits")
    if node.attribute("weight_prepacked", 0):
        node.refuse("its weights are in the order of a GPU's instructions (attribute 'weight_prepacked')")
    size = node.attribute("block_size")
    if size < 16 or size & (size - 1):
        node.contradicts(f"attribute 'block_size' is {size}, not a power of 2 from 16 on")
    if terms < 1 or columns < 1 or a.rank < 1 or a.shape[-1] != terms:
        node.contradicts(f"operand 'A' has shape {list(a.shape)}, the matrix {terms} x {columns} elements")
    blocks, dtype = -(-terms // size), wide_type(a.dtype)
    check_shape(node, "B", node.value(1), (columns, blocks, size * bits // 8))
    numbers = unpacked(build.reshape(node.array(1), (columns, -1)), bits, terms)
    scales = build.cast(_by_block(node, 2, "scales", columns, blocks), dtype)
    zeros = _zeros(node, columns, blocks, bits)
    spread = _spreading(node, size, terms)
    if zeros is None or zeros.dtype == "i32":
        whole = build.cast(numbers, "i32") - (1 << bits - 1 if zeros is None else spread(zeros))
        weights = build.cast(whole, dtype) * spread(scales)
    else:
        weights = (build.cast(numbers, dtype) - spread(build.cast(zeros, dtype))) * spread(scales)
    found = build.matmul(build.cast(a, dtype), build.transpose(weights))
    if node.given(5):
        check_shape(node, "bias", node.value(5), (columns,))
        found = found + build.cast(node.array(5), dtype)
    return build.cast(found, a.dtype)


def _spreading(node: Node, size: int, terms: int) -> Callable[[Array], Array]:
    """The function from the numbers of blocks to those of terms, by the operand of the blocks if there is one."""
    if not node.given(4):
        return lambda values: build.repeat(values, size, 1)[:, :terms]
    check_shape(node, "g_idx", node.value(4), (terms,))
    places = node.indices(4)
    return lambda values: indexing.take_at(values, [None, places])


def _by_block(node: Node, operand: int, name: str, columns: int, blocks: int) -> Array:
    check_shape(node, name, node.value(operand), (columns, blocks), (columns * blocks,))
    return build.reshape(node.array(operand), (columns, blocks))


def _zeros(node: Node, columns: int, blocks: int, bits: int) -> Array | None:
    """The zero points of all blocks: i32 if they are packed, else numbers of another type; None for the default."""
    if not node.given(3):
        return None
    zeros = node.array(3)
    if zeros.dtype != "u8":
        if zeros.dtype != node.array(0).dtype:
            node.contradicts(f"operand 'zero_points' is of type {zeros.dtype}, not u8 or {node.array(0).dtype}")
        return _by_block(node, 3, "zero_points", columns, blocks)
    width = -(-blocks * bits // 8)
    check_shape(node, "zero_points", zeros, (columns, width), (columns * width,))
    return build.cast(unpacked(build.reshape(zeros, (columns, width)), bits, blocks), "i32")

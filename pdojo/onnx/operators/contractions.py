"""Products of matrices and sums of products."""

from __future__ import annotations

from itertools import combinations
from string import ascii_letters

from pdojo import build
from pdojo.build import Array
from pdojo.build.array import broadcast_shape
from pdojo.errors import UsageError
from pdojo.onnx.operators.registry import Node, operator


@operator("MatMul")
def matmul(node: Node) -> Array:
    """The product of matrices."""
    return build.matmul(node.array(0), node.array(1))


def _centred(x: Array, zero: Array | None, *, rows: bool) -> Array:
    """Integers minus their zero point, in i32; a vector of zero points has one for each row or column."""
    wide = build.cast(x, "i32")
    if zero is None:
        return wide
    aligned = build.expand_dims(zero, -1) if rows and zero.rank == 1 and zero.size > 1 else zero
    if broadcast_shape(x.shape, aligned.shape) != x.shape:
        raise UsageError(f"zero points of shape {list(zero.shape)} do not fit integers of shape {list(x.shape)}")
    return wide - build.cast(aligned, "i32")


@operator("MatMulInteger")
def matmul_integer(node: Node) -> Array:
    """The product of matrices of integers with zero points, in i32."""
    left = _centred(node.array(0), node.array(2) if node.given(2) else None, rows=True)
    return build.matmul(left, _centred(node.array(1), node.array(3) if node.given(3) else None, rows=False))


@operator("Gemm")
def gemm(node: Node) -> Array:
    """`alpha * a @ b + beta * c`."""
    a, b = node.array(0), node.array(1)
    a = build.transpose(a) if node.attribute("transA", 0) else a
    b = build.transpose(b) if node.attribute("transB", 0) else b
    alpha, beta = node.attribute("alpha", 1.0), node.attribute("beta", 1.0)
    found = build.matmul(a, b)
    if alpha != 1:
        found = found * alpha
    if not node.given(2) or not beta:
        return found
    c = node.array(2)
    return found + (c if beta == 1 else c * beta)


@operator("Einsum")
def einsum(node: Node) -> Array:
    """The sum of products that an equation describes."""
    equation = str(node.attribute("equation")).replace(" ", "")
    operands = [node.array(k) for k in range(len(node.inputs))]
    inputs, arrow, result = equation.partition("->")
    words = inputs.split(",")
    if len(words) != len(operands):
        node.refuse(f"equation '{equation}' does not describe {len(operands)} operands")
    unused = [letter for letter in ascii_letters if letter not in equation]
    ranks = [x.rank - len(word.replace("...", "")) for word, x in zip(words, operands, strict=True) if "..." in word]
    dots = unused[: max(ranks, default=0)]
    shared = broadcast_shape(*[_under_dots(word, x) for word, x in zip(words, operands, strict=True)])
    named: list[str] = []
    for k, (word, x) in enumerate(zip(words, operands, strict=True)):
        count = x.rank - len(word.replace("...", "")) if "..." in word else 0
        start = word.find("...")
        extents = [*x.shape[:start], *shared[len(shared) - count :], *x.shape[start + count :]] if count else x.shape
        operands[k] = build.broadcast_to(x, extents)
        named.append(word.replace("...", "".join(dots[len(dots) - count :])))
    letters = "".join(words).replace("...", "")
    implicit = "..." * bool(dots) + "".join(sorted({letter for letter in letters if letters.count(letter) == 1}))
    target = (result if arrow else implicit).replace("...", "".join(dots))
    return build.contract(f"{','.join(named)}->{target}", *operands)


def _under_dots(word: str, x: Array) -> tuple[int, ...]:
    """The extents of the axes that `...` stands for."""
    start = word.find("...")
    return x.shape[start : start + x.rank - len(word) + 3] if start >= 0 else ()


_LARGEST = 6
"""The greatest number of rows of a determinant, whose nests double with each row."""


@operator("Det")
def det(node: Node) -> Array:
    """The determinants of small matrices, by expansion along their rows."""
    x = node.array(0)
    size = x.shape[-1]
    if x.shape[-2] != size or size > _LARGEST:
        node.refuse(f"determinants are of square matrices of up to {_LARGEST} rows, not of {list(x.shape[-2:])}")
    # The minors of the last rows, by their columns.
    minors: dict[tuple[int, ...], Array] = {(): build.constant(1, x.dtype, x.shape[:-2])}
    for row in reversed(range(size)):
        found: dict[tuple[int, ...], Array] = {}
        for columns in combinations(range(size), size - row):
            total = None
            for k, column in enumerate(columns):
                part = x[..., row, column] * minors[columns[:k] + columns[k + 1 :]]
                total = part if total is None else total - part if k % 2 else total + part
            assert total is not None
            found[columns] = total
        minors = found
    return minors[tuple(range(size))]

"""Products of matrices and sums of products."""

from __future__ import annotations

from string import ascii_letters

from pdojo import build
from pdojo.build import Array
from pdojo.build.extents import broadcast_shape
from pdojo.errors import UsageError
from pdojo.onnx.operators.arguments import optional
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
    return build.gemm(a, b, optional(node, 2), alpha=node.attribute("alpha", 1.0), beta=node.attribute("beta", 1.0))


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


@operator("Det")
def det(node: Node) -> Array:
    """The determinants of small matrices."""
    try:
        return build.det(node.array(0))
    except UsageError as error:
        node.refuse(str(error))

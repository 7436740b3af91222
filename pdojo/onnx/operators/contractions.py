"""Products of matrices and sums of products."""

from __future__ import annotations

from pdojo import build
from pdojo.build import Array
from pdojo.errors import UsageError
from pdojo.onnx.operators.arguments import optional
from pdojo.onnx.operators.registry import Node, operator


@operator("MatMul")
def matmul(node: Node) -> Array:
    """The product of matrices."""
    return build.matmul(node.array(0), node.array(1))


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
    inputs, arrow, _ = equation.partition("->")
    letters = inputs.replace("...", "").replace(",", "")
    once = "".join(sorted({letter for letter in letters if letters.count(letter) == 1}))
    whole = equation if arrow else f"{equation}->{'...' * ('...' in equation)}{once}"
    return build.contract(whole, *(node.array(k) for k in range(len(node.inputs))))


@operator("Det")
def det(node: Node) -> Array:
    """The determinants of small matrices."""
    try:
        return build.det(node.array(0))
    except UsageError as error:
        node.refuse(str(error))

"""Linear layers whose rows have several axes: `view`, product, `view` as one product with these axes.

PyTorch joins the axes of rows into one, whose extent is a product of sizes if several are symbols, or which ends a run
of them if an inner one is: no kernel has such an axis.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.experimental.symbolic_shapes import statically_known_true

_ATEN: Any = torch.ops.aten
_VIEWS = _ATEN.view.default, _ATEN._unsafe_view.default, _ATEN.reshape.default
_TRANSPOSED = _ATEN.permute.default, _ATEN.t.default, _ATEN.transpose.int


def keep_rows_apart(module: GraphModule) -> None:
    """Replace linear layers of joined rows in a graph of ATen without side effects."""
    graph = module.graph
    replaced = False
    for node in list(graph.nodes):
        match node.target, node.args:
            case _ATEN.mm.default, (Node() as rows, Node() as weight):
                replaced |= _replace(node, rows, weight, None)
            case _ATEN.addmm.default, (Node() as bias, Node() as rows, Node() as weight) if not node.kwargs:
                replaced |= _replace(node, rows, weight, bias)
            case _:
                pass
    if replaced:
        graph.eliminate_dead_code()
        module.recompile()


def _replace(product: Node, rows: Node, weight: Node, bias: Node | None) -> bool:
    """Put a product with the axes of `x` into the place of the views of a product of joined rows, if it is one."""
    if rows.target not in _VIEWS or (bias is not None and len(_shape(bias)) > 1):
        return False
    x: Any = rows.args[0]
    axes = _shape(x)[:-1]
    inner = [extent for extent in axes if not statically_known_true(extent == 1)][1:]
    shape = (*axes, *_shape(product)[1:])
    is_joined = any(isinstance(extent, torch.SymInt) for extent in inner)
    if not is_joined or not are_equal(_shape(x)[-1:], _shape(rows)[1:]):
        return False
    users = list(product.users)
    if not users or any(user.target not in _VIEWS or not are_equal(_shape(user), shape) for user in users):
        return False
    with product.graph.inserting_before(product):
        if weight.target in _TRANSPOSED and len(_shape(weight.args[0])) == 2:
            matrix: Any = weight.args[0]
        else:
            matrix = product.graph.call_function(_ATEN.permute.default, (weight, [1, 0]))
            matrix.meta["val"] = weight.meta["val"].permute(1, 0)
        made = product.graph.call_function(_ATEN.linear.default, (x, matrix, *(() if bias is None else (bias,))))
    made.meta["val"] = users[0].meta["val"]
    for user in users:
        user.replace_all_uses_with(made)
    return True


def _shape(node: Any) -> tuple[Any, ...]:
    return tuple(node.meta["val"].shape)


def are_equal(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Whether two shapes, or strides, are equal for all values of symbols."""
    return len(one) == len(other) and all(statically_known_true(a == b) for a, b in zip(one, other, strict=True))

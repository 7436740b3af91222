"""Views that are their source: `expand` and `view` to the shape that a tensor has, which PyTorch's products make.

Each that is a result of the graph would be a call of PyTorch, which takes as long as a small kernel.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.experimental.symbolic_shapes import statically_known_true

from pdojo.torch.linear_layers import are_equal


def drop_idle_views(module: GraphModule) -> None:
    """Put sources into the place of views of the same elements in a graph of ATen without side effects.

    A result stays a tensor of its own, beside arguments and other results.
    """
    graph = module.graph
    results = {*graph.output_node().all_input_nodes}
    replaced = False
    for node in list(graph.nodes):
        if not getattr(node.target, "is_view", False):
            continue
        source = node.args[0]
        if not isinstance(source, Node) or not _is_same(source.meta.get("val"), node.meta.get("val")):
            continue
        if node in results:
            if source.op == "placeholder" or source in results:
                continue
            results.add(source)
        node.replace_all_uses_with(source)
        replaced = True
    if replaced:
        graph.eliminate_dead_code()
        module.recompile()


def _is_same(one: Any, other: Any) -> bool:
    """Whether two examples are tensors with the same elements at the same places of memory."""
    if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor) or one.dtype != other.dtype:
        return False
    if one.is_conj() != other.is_conj() or one.is_neg() != other.is_neg():
        return False
    is_laid_out = are_equal(tuple(one.shape), tuple(other.shape)) and are_equal(one.stride(), other.stride())
    return is_laid_out and statically_known_true(one.storage_offset() == other.storage_offset())

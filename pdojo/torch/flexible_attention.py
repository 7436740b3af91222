"""`flex_attention` of a graph that Dynamo captured, as operators of ATen, with the functions of scores in kernels."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch._higher_order_ops.flex_attention import flex_attention, math_attention
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx import GraphModule, Node
from torch.nn.attention.flex_attention import _vmap_for_bhqkv
from torch.nn.functional import scaled_dot_product_attention

_ADD = (operator.add, torch.add)


def expand_flexible_attention(module: GraphModule) -> None:
    """Make calls of `flex_attention` functions of tensors, in the graph that Dynamo captured.

    A call stays as it is, and runs in PyTorch, if its functions cannot be computed for all scores at once.
    """
    for node in module.graph.nodes:
        if node.op == "call_function" and node.target is flex_attention:
            only_result = all(user.target is operator.getitem and user.args[1] == 0 for user in node.users)
            function = _attention if only_result and _is_sum(module, node) else _with_statistics
            if _is_possible(module, node, function):
                node.target = function
    module.recompile()


def _is_possible(module: GraphModule, node: Node, function: Any) -> bool:
    """Whether the function runs for tensors without memory in the place of the arguments."""

    def example(each: Node) -> Any:
        return getattr(module, str(each.target)) if each.op == "get_attr" else each.meta["example_value"]

    arguments = torch.fx.node.map_arg(node.args, example)
    if node.kwargs or not isinstance(arguments[0], FakeTensor):
        return False
    try:
        with arguments[0].fake_mode, torch.no_grad():
            function(*arguments)
    except (RuntimeError, TypeError, ValueError, IndexError):
        return False
    return True


def _is_sum(module: GraphModule, node: Node) -> bool:
    """Whether the function of scores is the score, or the score plus a number that does not depend on it."""
    scores: Any = node.args[3]
    graph = getattr(module, str(scores.target)).graph
    score = next(each for each in graph.nodes if each.op == "placeholder")
    found = next(iter(graph.output_node().all_input_nodes), score)
    if found is score:
        return graph.output_node().all_input_nodes == [score]
    is_sum = found.op == "call_function" and found.target in _ADD and not found.kwargs
    return is_sum and tuple(found.args).count(score) == 1 and set(score.users) == {found}


def _with_statistics(*arguments: Any) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The attention, the logarithms of the sums of exponentials, and the greatest scores, as PyTorch has them."""
    query = arguments[0]
    found, logarithms, greatest = math_attention(*arguments)
    return _in_order_of(found, query), logarithms, greatest


def _attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    score_mod: Any,
    block_mask: tuple[Any, ...],
    scale: float,
    kernel_options: dict[str, Any],
    score_buffers: Sequence[Any] = (),
    mask_buffers: Sequence[Any] = (),
) -> tuple[torch.Tensor]:
    """Attention with a mask of numbers: what is added to scores, and -inf where the mask forbids the key."""
    batch, kind = query.shape[0], torch.float64 if query.dtype is torch.float64 else torch.float32
    key, value = (each.expand(batch, *each.shape[1:]) for each in (key, value))
    places = [torch.arange(extent) for extent in (batch, query.shape[1], query.shape[2], key.shape[2])]
    added = _vmap_for_bhqkv(score_mod, prefix=(None,), suffix=(None,) * len(score_buffers))
    allowed = _vmap_for_bhqkv(block_mask[-1], prefix=(), suffix=(None,) * len(mask_buffers))
    numbers = added(torch.zeros((), dtype=kind), *places, *score_buffers)
    mask = torch.where(allowed(*places, *mask_buffers), numbers.to(kind), -torch.inf)
    grouped = query.shape[1] != key.shape[1]
    found = scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scale, enable_gqa=grouped)
    return (_in_order_of(found, query),)


def _in_order_of(found: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """The tensor with its axes in memory in the order of another one."""
    order = sorted(range(like.dim()), key=lambda axis: like.stride(axis), reverse=True)
    back = sorted(range(like.dim()), key=order.__getitem__)
    return found.permute(order).contiguous().permute(back)

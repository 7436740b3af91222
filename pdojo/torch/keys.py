"""The tensors of a graph of ATen: results of nodes."""

from __future__ import annotations

import operator
from typing import Any, TypeAlias

import torch
from torch.fx import Node

from pdojo.errors import UsageError
from pdojo.torch.element_types import handle_type
from pdojo.torch.symbols import Example, OpenTensor, is_example

Key: TypeAlias = "tuple[Node, int]"
"""A tensor of the graph: a result of a node."""


def key_of(node: Node) -> Key:
    """The tensor that a node stands for: results are tensors of the call.

    A result of a higher-order call may have elements; each of them is a tensor of its own.
    """
    if not _is_element(node):
        return node, 0
    source, index = node.args
    assert isinstance(source, Node)
    assert isinstance(index, int)
    return (node, 0) if _is_element(source) else (source, index)


def _is_element(node: Node) -> bool:
    return node.op == "call_function" and node.target is operator.getitem


def tensor_of(key: Key) -> Example:
    """A tensor of the graph, without memory."""
    value = key[0].meta["val"]
    return value[key[1]] if isinstance(value, tuple | list) else value


def know_results(node: Node) -> None:
    """Give a higher-order call the values of its results; PyTorch may have them at the elements only."""
    if "val" not in node.meta and node.users and all(_is_element(user) for user in node.users):
        values: dict[Any, Any] = {user.args[1]: user.meta.get("val") for user in node.users}
        node.meta["val"] = tuple(values.get(n) for n in range(max(values) + 1))


def new_tensor(like: Example) -> torch.Tensor:
    """A tensor with memory for one without; its elements are arbitrary."""
    assert isinstance(like, torch.Tensor)
    return torch.empty_strided(like.shape, like.stride(), dtype=like.dtype, device=like.device)


def is_without_elements(value: object) -> bool:
    """Whether a result is a tensor without elements; sizes that depend on values are symbols."""
    if isinstance(value, OpenTensor):
        return any(not isinstance(extent, torch.SymInt) and extent == 0 for extent in value.shape)
    return isinstance(value, torch.Tensor) and not isinstance(value.numel(), torch.SymInt) and not value.numel()


def check_tensor(tensor: Example) -> None:
    """Raise UsageError for a tensor that no kernel takes."""
    if not is_example(tensor):
        raise UsageError("a number depends on values of tensors")
    if any(isinstance(extent, torch.SymInt) for extent in tensor.shape):
        raise UsageError("a shape depends on values of tensors")
    handle_type(tensor.dtype)
    if tensor.device.type != "cpu":
        raise UsageError(f"kernels take tensors on the CPU, not on {tensor.device}")
    if tensor.layout != torch.strided:
        raise UsageError(f"kernels take strided tensors, not {str(tensor.layout).removeprefix('torch.')}")
    if is_without_elements(tensor):
        raise UsageError("an array has no elements")


def results_of(made: object) -> list[Any]:
    """The results of a call of PyTorch, one or several."""
    return list(made) if isinstance(made, tuple | list) else [made]

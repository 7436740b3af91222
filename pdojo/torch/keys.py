"""The tensors of a graph of ATen: results of nodes."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, TypeAlias

import torch
from torch.fx import Node

from pdojo.build.sizes import OpenExtent, is_open
from pdojo.dialect.strides import overlaps
from pdojo.errors import UsageError
from pdojo.torch.devices import CPU, elsewhere, is_on
from pdojo.torch.element_types import handle_type, memory_order
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


def strided_order(tensor: Example) -> tuple[int, ...] | None:
    """The axes of a tensor that is not dense in the order in which regions read it as it is; None if they copy it.

    The last axis is contiguous, no two elements are one, and they are floats: arrays of indices are dense. On a GPU
    kernels read dense arrays only.
    """
    shape, strides = tuple(tensor.shape), tuple(tensor.stride())
    last = next((d for d, stride in enumerate(strides) if shape[d] != 1 and stride == 1), None)
    if last is None or not tensor.dtype.is_floating_point or _is_dense(shape, strides) or tensor.device.type != "cpu":
        return None
    order = [d for d in range(len(shape)) if d != last]
    if is_open((*shape, *strides)):
        return (*order, last) if all(strides) else None
    return None if overlaps(shape, strides) else (*sorted(order, key=lambda d: -strides[d]), last)


def _is_dense(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether elements lie side by side at all sizes."""
    try:
        return memory_order(shape, strides) is not None
    except OpenExtent:
        return False


def is_without_elements(value: object) -> bool:
    """Whether a result is a tensor without elements; sizes that depend on values are symbols."""
    if isinstance(value, OpenTensor):
        return any(not isinstance(extent, torch.SymInt) and extent == 0 for extent in value.shape)
    return isinstance(value, torch.Tensor) and not isinstance(value.numel(), torch.SymInt) and not value.numel()


def check_tensor(tensor: Example, device: torch.device = CPU) -> None:
    """Raise UsageError for a tensor that no kernel on a device takes."""
    if not is_example(tensor):
        raise UsageError("a number depends on values of tensors")
    if any(isinstance(extent, torch.SymInt) for extent in tensor.shape):
        raise UsageError("a shape depends on values of tensors")
    handle_type(tensor.dtype)
    if not is_on(tensor.device, device):
        raise UsageError(elsewhere(tensor.device, device))
    if tensor.layout != torch.strided:
        raise UsageError(f"kernels take strided tensors, not {str(tensor.layout).removeprefix('torch.')}")
    if is_without_elements(tensor):
        raise UsageError("an array has no elements")


def results_of(made: object) -> list[Any]:
    """The results of a call of PyTorch, one or several."""
    return list(made) if isinstance(made, tuple | list) else [made]

"""The device of a graph's kernels: the CPU, or a GPU (`pdojo.torch.gpus`)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import torch
from torch.fx import GraphModule, Node

from pdojo.errors import UsageError

if TYPE_CHECKING:
    from pdojo.model.device_models import Place

CPU = torch.device("cpu")
_META = "kernel_device"


def device_of(node: Node) -> torch.device:
    """The device of the kernels of a node's graph."""
    return node.meta.get(_META, CPU)


def place_of(device: torch.device) -> Place | None:
    """The place of models on a device; None for the CPU. Raises UsageError for a device that kernels cannot use."""
    if device.type == "cpu":
        return None
    from pdojo.torch.gpus import gpu_place

    return gpu_place(device)


def choose_device(module: GraphModule) -> Place | None:
    """Choose the device of a graph's kernels: that of most calls for which there are kernels; None for the CPU."""
    counts: Counter[torch.device] = Counter()
    for node in module.graph.nodes:
        if node.op == "call_function":
            counts.update(each.device for each in _tensors(node.meta.get("val")))
    for device, _ in counts.most_common():
        try:
            place = place_of(device)
        except UsageError:
            continue
        if place is not None:
            for node in module.graph.nodes:
                node.meta[_META] = device
        return place
    return None


def is_on(tensor_device: torch.device, device: torch.device) -> bool:
    """Whether a tensor is on the device of kernels."""
    return tensor_device.type == "cpu" if device.type == "cpu" else tensor_device == device


def elsewhere(tensor_device: torch.device, device: torch.device) -> str:
    """The reason for which kernels on one device do not take a tensor on another one."""
    wanted = "the CPU" if device.type == "cpu" else str(device)
    reason = f"kernels take tensors on {wanted}, not on {tensor_device}"
    try:
        place_of(tensor_device)
    except UsageError as error:
        return f"{reason}: {error}"
    return f"{reason}: the kernels of a graph are for one device"


def _tensors(value: object) -> list[torch.Tensor]:
    values = value if isinstance(value, tuple | list) else [value]
    return [each for each in values if isinstance(each, torch.Tensor)]

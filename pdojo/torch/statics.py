"""Whether tensors that were taken for constants have changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

_SAMPLES = 16
"""Elements of each tensor that are compared at each call."""
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
"""Integers by their bytes."""
_VERSION: Callable[[torch.Tensor], int] = torch.Tensor._version.__get__  # pyright: ignore
"""The version of a tensor, without a frame of Python."""


class Statics:
    """Tensors whose values programs know, as they were.

    A change in place raises the version of a tensor, new memory has another address. Changes through `.data`, which
    PyTorch does not count, are found by comparing some elements of each tensor, evenly spread over it.
    """

    def __init__(self, tensors: Sequence[torch.Tensor]) -> None:
        self._addresses = [*map(torch.Tensor.data_ptr, tensors)]
        self._versions = [*map(_VERSION, tensors)]
        self._tensors = list(tensors)
        self._samples = [_sample(tensor) for tensor in tensors if tensor.numel() and tensor.element_size() in _BITS]
        self._before = self._now()

    def unchanged(self, tensors: Sequence[torch.Tensor]) -> bool:
        """Whether these are the tensors, with the values that they had. PyTorch's guards compare their shapes."""
        if [*map(torch.Tensor.data_ptr, tensors)] != self._addresses:
            return False
        return [*map(_VERSION, tensors)] == self._versions and bool((self._now() == self._before).all())

    def _now(self) -> NDArray[np.int64]:
        if not self._samples:
            return np.empty(0, np.int64)
        return np.concatenate(self._samples, dtype=np.int64, casting="unsafe")


def can_be_constant(tensor: torch.Tensor) -> bool:
    """Whether changes of a tensor can be found: it is an ordinary one on the CPU, which counts its changes."""
    is_plain = type(tensor) in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer) and tensor.layout == torch.strided
    return is_plain and tensor.device.type == "cpu" and not tensor.is_inference()


def _sample(tensor: torch.Tensor) -> NDArray[Any]:
    """A view of the bits of some elements, spread over the memory that a tensor uses."""
    count = 1 + sum((extent - 1) * stride for extent, stride in zip(tensor.shape, tensor.stride(), strict=True))
    step = max(1, -(-count // _SAMPLES))
    # An odd step meets all columns of a matrix.
    step += 1 - step % 2 if step > 1 else 0
    whole = torch.as_strided(tensor.detach(), (-(-count // step),), (step,))
    return whole.view(_BITS[tensor.element_size()]).numpy()

"""Whether tensors that were taken for constants have changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle
from time import perf_counter
from typing import Any
from zlib import crc32

import numpy as np
import torch
from numpy.typing import NDArray

from pdojo.torch.element_types import memory_order

_WHOLE = 2048
"""Most elements of a tensor that is compared whole in every call."""
_SHARE = 16
"""Elements of a larger tensor for each one that is compared in every call."""
_SAMPLES = 8192
"""Most elements of the sample of a larger tensor."""
_AT_ONCE = 16384
"""Most elements of larger tensors whose samples are compared in every call; other samples take turns."""
_FEW = 16
"""Elements of every other larger tensor that are compared in every call."""
_BLOCK = 16384
"""Approximate bytes of a block; blocks are compared in turn, by their checksums."""
_BUDGET = 0.01
"""The time for comparisons of blocks, as a part of the time of calls."""
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
"""Integers by their bytes."""
_VERSION: Callable[[torch.Tensor], int] = torch.Tensor._version.__get__
"""The version of a tensor, without a frame of Python."""


class LateChangeWarning(RuntimeWarning):
    """A constant had changed some calls before the change was found."""


@dataclass
class _Block:
    """A part of a tensor that is compared in turns."""

    bits: torch.Tensor
    checksum: int
    shape: tuple[int, ...]
    """The shape of the whole tensor."""
    seen: int = 0
    """The number of the call before which it was compared last."""


class Statics:
    """Tensors whose values programs know, as they were.

    A change in place raises the version of a tensor, new memory has another address. Changes through `.data`, which
    PyTorch does not count, are found by comparing elements: in every call all of small tensors, and some of large ones,
    evenly spread; and more samples and blocks of large tensors in turns, for one percent of the time of calls.
    """

    def __init__(self, tensors: Sequence[torch.Tensor]) -> None:
        self._addresses = [*map(torch.Tensor.data_ptr, tensors)]
        self._versions = [*map(_VERSION, tensors)]
        self._tensors = list(tensors)
        filled = [(_bits(tensor), tuple(tensor.shape)) for tensor in tensors if tensor.numel()]
        left, later, views = _AT_ONCE, list[_Block](), list[NDArray[Any]]()
        for bits, shape in filled:
            sample, is_large = _sample(bits), _span(bits) > _WHOLE
            if is_large and len(sample) > left:
                later.append(_Block(sample, _checksum(sample), shape))
                sample = sample[:: max(1, len(sample) // _FEW)]
            elif is_large:
                left -= len(sample)
            views.append(sample.numpy())
        self._samples = views
        self._before = self._now()
        large = [each for each in filled if _span(each[0]) > _WHOLE]
        blocks = [_Block(part, _checksum(part), shape) for bits, shape in large for part in _parts(bits)]
        # A sample and a block in turns.
        self._turns = cycle([cycle(each) for each in (later, blocks) if each])
        self._count = len(later) + len(blocks)
        self._calls = 0
        self._seconds = 0.0
        """The time that comparisons of blocks may take now; negative if they took too long."""

    def unchanged(self, tensors: Sequence[torch.Tensor]) -> bool:
        """Whether these are the tensors, with the values that they had. PyTorch's guards compare their shapes."""
        if [*map(torch.Tensor.data_ptr, tensors)] != self._addresses or [*map(_VERSION, tensors)] != self._versions:
            return False
        return self._now() == self._before

    def late_change(self, seconds: float) -> str | None:
        """Compare the next blocks, after a call of some seconds; a message if one has changed."""
        self._calls += 1
        self._seconds += seconds * _BUDGET
        compared = 0
        while self._seconds > 0 and compared < self._count:
            begin = perf_counter()
            block = next(next(self._turns))
            if _checksum(block.bits) != block.checksum:
                return (
                    f"a parameter or buffer of shape {list(block.shape)} was changed through `.data` or NumPy, which "
                    f"PyTorch does not count: results of up to {self._calls - block.seen} calls before this one are "
                    "those of its old values. Change it under `torch.no_grad()` without `.data`, or pass "
                    "options={'constants': False}"
                )
            block.seen = self._calls
            compared += 1
            self._seconds -= perf_counter() - begin
        self._seconds = min(self._seconds, 0.0)
        return None

    def _now(self) -> list[bytes]:
        # Python compares bytes faster than NumPy compares arrays.
        return [*map(np.ndarray.tobytes, self._samples)]


def can_be_constant(tensor: torch.Tensor) -> bool:
    """Whether changes of a tensor can be found: it is an ordinary one on the CPU, which counts its changes."""
    is_plain = type(tensor) in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer) and tensor.layout == torch.strided
    return is_plain and tensor.device.type == "cpu" and not tensor.is_inference() and tensor.element_size() in _BITS


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """The elements as integers, in the order of memory."""
    order = memory_order(tensor.shape, tensor.stride())
    plain = tensor.detach() if order is None else tensor.detach().permute(order)
    return plain.view(_BITS[tensor.element_size()])


def _sample(bits: torch.Tensor) -> torch.Tensor:
    """All elements of a small tensor; else a view of some, spread over the memory that it uses."""
    count, step = _span(bits), 1
    if count > _WHOLE:
        rows = len(bits)
        step = count // max(16, min(max(rows, bits.numel() // rows), count // _SHARE, _SAMPLES))
        step -= 1 - step % 2  # An odd step meets all columns of a matrix.
    return torch.as_strided(bits, (-(-count // step),), (step,))


def _span(bits: torch.Tensor) -> int:
    """The elements of memory from the first to the last one."""
    return 1 + sum((extent - 1) * stride for extent, stride in zip(bits.shape, bits.stride(), strict=True))


def _parts(bits: torch.Tensor) -> Sequence[torch.Tensor]:
    """The blocks of a tensor: of its memory, or some rows if its elements are not side by side."""
    whole = bits.flatten() if bits.is_contiguous() else bits
    row = max(1, whole.numel() // len(whole) * whole.element_size())
    return whole.split(max(1, _BLOCK // row))


def _checksum(bits: torch.Tensor) -> int:
    return crc32(bits.contiguous().numpy().data)

"""Element types of PyTorch and of handles (`pdojo.build`), and tensors as NumPy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import torch
from numpy.typing import NDArray

from pdojo.errors import UsageError
from pdojo.model.element_types import numpy_type

HANDLES = {
    torch.float64: "f64",
    torch.float32: "f32",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.int16: "i16",
    torch.int8: "i8",
    torch.uint8: "u8",
    torch.uint16: "u16",
    torch.uint32: "u32",
    torch.uint64: "u64",
    torch.bool: "i1",
}
"""The element types of handles, keyed by the element types of tensors."""
TENSORS = {name: dtype for dtype, name in HANDLES.items()}
"""The element types of tensors, keyed by the element types of handles."""


def handle_type(dtype: torch.dtype) -> str:
    """The element type of handles. Raises UsageError if kernels have no such type."""
    if dtype not in HANDLES:
        raise UsageError(f"kernels have no elements of type {str(dtype).removeprefix('torch.')}")
    return HANDLES[dtype]


def memory_order(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, ...] | None:
    """The dimensions in their order in memory, slowest first; None if the elements are not side by side.

    >>> memory_order((2, 3, 4), (12, 1, 3))
    (0, 2, 1)
    """
    order = tuple(range(len(shape)))
    if not _is_dense(shape, strides, order):
        order = tuple(sorted(order, key=lambda d: (-strides[d], d)))
    return order if _is_dense(shape, strides, order) else None


def _is_dense(shape: Sequence[int], strides: Sequence[int], order: Sequence[int]) -> bool:
    expected = 1
    for d in reversed(order):
        if shape[d] != 1 and strides[d] != expected:
            return False
        expected *= shape[d]
    return True


def strides_of(shape: Sequence[int]) -> list[int]:
    """The strides of a contiguous tensor.

    >>> strides_of((2, 3, 4))
    [12, 4, 1]
    """
    return [prod(shape[d + 1 :]) for d in range(len(shape))]


def values_of(tensor: torch.Tensor) -> NDArray[Any]:
    """The elements of a tensor on the CPU as a NumPy array of the same memory."""
    plain = tensor.detach()
    if plain.dtype == torch.bfloat16:
        return plain.view(torch.int16).numpy().view(numpy_type("bf16"))
    return plain.numpy()

"""PyTorch tensors as NumPy arrays of the same memory, and back. This module never imports PyTorch."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from pdojo.errors import UsageError


def is_tensor(value: object) -> bool:
    """Whether a value is a tensor; False if PyTorch has not been imported."""
    torch: Any = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def are_tensors(given: Mapping[str, object]) -> bool:
    """Whether the arrays of a call are tensors. Raises UsageError if only some are tensors."""
    if "torch" not in sys.modules:
        return False
    tensors = [name for name, value in given.items() if is_tensor(value)]
    other = next((name for name in given if name not in tensors), None)
    if tensors and other is not None:
        raise UsageError(
            f"array '{tensors[0]}' is a PyTorch tensor and '{other}' is a {type(given[other]).__name__}; pass tensors "
            f"only, or no tensor (torch.from_numpy and Tensor.numpy share memory)"
        )
    return bool(tensors)


def array_of(value: object, name: str) -> NDArray[Any]:
    """The memory of a tensor, without a copy. Raises UsageError, naming the array, if NumPy cannot share it."""
    tensor = cast("Any", value)
    if tensor.device.type != "cpu":
        raise UsageError(f"array '{name}' is on device '{tensor.device}'; move it to the CPU")
    if tensor.requires_grad:
        raise UsageError(
            f"array '{name}' requires grad, and no gradient flows through a kernel; pass {name}.detach(), which shares "
            f"its memory"
        )
    try:
        # NumPy has no bfloat16: return the bit patterns in the same memory.
        if str(tensor.dtype) == "torch.bfloat16":
            return tensor.view(_torch().int16).numpy().view(np.uint16)
        return tensor.numpy()
    except (RuntimeError, TypeError, ValueError) as error:
        raise UsageError(f"array '{name}' cannot share its memory with NumPy: {error}") from None


def tensor_of(array: NDArray[Any], dtype: str) -> object:
    """A tensor of element type `dtype` with the memory of an array."""
    torch = _torch()
    if dtype == "bf16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def dtype_of(array: np.dtype[Any], dtype: str) -> str:
    """PyTorch's name for the type of interface arrays of element type `dtype`."""
    return "torch.bfloat16" if dtype == "bf16" else f"torch.{array.name}"


def _torch() -> Any:
    return sys.modules["torch"]

"""Arrays and tensors as the memory that C functions take. This module is part of every generated wheel."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, Protocol, cast

import numpy as np

ALIGNMENT = 64
"""Bytes to which arrays are aligned for the fastest variants."""
DTYPES = {
    "f64": "float64",
    "f32": "float32",
    "f16": "float16",
    "bf16": "uint16",
    "i64": "int64",
    "i32": "int32",
    "i16": "int16",
    "i8": "int8",
    "i1": "bool",
    "u64": "uint64",
    "u32": "uint32",
    "u16": "uint16",
    "u8": "uint8",
}
"""NumPy's names of element types; bf16 is passed as its bits."""
_START = ctypes.c_char * 0
_KINDS: dict[str, np.dtype[Any]] = {name: np.dtype(kind) for name, kind in DTYPES.items()}


class Tensor(Protocol):
    """A tensor of PyTorch on the CPU."""

    def data_ptr(self) -> int:
        """The address of the first element."""
        ...

    def __dlpack__(self, *, stream: Any = None) -> Any: ...


@dataclass(frozen=True)
class Argument:
    """An array of an operator."""

    name: str
    dtype: str
    """`f32`, `bf16`, `i8` ..."""
    direction: str
    """`in`, `inout` or `out`."""

    @cached_property
    def kind(self) -> np.dtype[Any]:
        """NumPy's type of the elements."""
        return _KINDS[self.dtype]


def empty(shape: Sequence[int], dtype: str) -> Any:
    """A new array aligned to 64 bytes, for which the fastest variants run; `dtype` is `f32`, `bf16`, `i8` ..."""
    kind = _KINDS.get(dtype)
    if kind is None:
        raise ValueError(f"{dtype!r} is no element type; these are {', '.join(_KINDS)}")
    memory = np.empty(prod(shape) * kind.itemsize + ALIGNMENT, np.uint8)
    return np.ndarray(tuple(shape), kind, memory, -address(memory) % ALIGNMENT)


def address(array: Any) -> int:
    """The address of the first element of a NumPy array."""
    # A third of the time of `array.ctypes.data`.
    return ctypes.addressof(_START.from_buffer(array)) if array.flags.writeable else array.ctypes.data


def view(value: Any, argument: Argument) -> Any:
    """The memory of an array or tensor as a NumPy array, without a copy. Raises TypeError or ValueError."""
    name = argument.name
    array: Any
    if isinstance(value, np.ndarray):
        if isinstance(value, np.ma.MaskedArray):
            raise TypeError(f"{name} is a masked array, and masks are not supported; pass {name}.filled(value)")
        array = cast("Any", value)
    elif is_tensor(value):
        array = _of_tensor(value, name)
    elif hasattr(value, "__dlpack__"):
        array = np.from_dlpack(value)
    else:
        raise TypeError(f"{name} is a {type(value).__name__}; pass a NumPy array, or a PyTorch tensor on the CPU")
    if array.dtype != argument.kind:
        if argument.dtype == "bf16" and array.dtype.name == "bfloat16":
            return view(array.view(np.uint16), argument)
        also = " (the bits of bf16)" if argument.dtype == "bf16" else ""
        raise TypeError(f"{name} has element type {array.dtype}, not {DTYPES[argument.dtype]}{also}")
    if not array.flags.c_contiguous:
        raise ValueError(f"{name} is not contiguous; pass a copy (numpy.ascontiguousarray, Tensor.contiguous)")
    return array


def results_like(given: Sequence[Any], arrays: Sequence[Any], dtypes: Sequence[str]) -> list[Any]:
    """New arrays of these element types as values of the kind of the inputs: tensors for tensors."""
    if any(map(is_tensor, given)):
        return [_tensor(array, dtype) for array, dtype in zip(arrays, dtypes, strict=True)]
    if "bf16" not in dtypes:
        return list(arrays)
    # NumPy has the type bfloat16 if the caller's package adds it.
    kinds = [cast("Any", each).dtype for each in given if isinstance(each, np.ndarray)]
    bits: Any = next((kind for kind in kinds if kind.name == "bfloat16"), np.dtype(np.uint16))
    return [a.view(bits) if dtype == "bf16" else a for a, dtype in zip(arrays, dtypes, strict=True)]


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor; False if PyTorch has not been imported."""
    torch: Any = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _of_tensor(value: Any, name: str) -> Any:
    torch: Any = sys.modules["torch"]
    if value.device.type != "cpu":
        raise ValueError(f"{name} is on device {value.device}; move it to the CPU")
    if value.requires_grad:
        raise ValueError(f"{name} requires grad, and no gradient flows through the library; pass {name}.detach()")
    if value.dtype == torch.bfloat16:
        return value.view(torch.int16).numpy().view(np.uint16)
    return value.numpy()


def _tensor(array: Any, dtype: str) -> Any:
    torch: Any = sys.modules["torch"]
    if dtype == "bf16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)

"""Arrays that callers pass to a compiled kernel: NumPy, PyTorch and DLPack, checked against the kernel's interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ctypes import addressof, c_char, c_uint8
from dataclasses import dataclass, replace
from math import prod
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from pdojo.backends.calling.strided import complete, misfit, placed, share_memory, span, strides_in
from pdojo.backends.calling.tensors import array_of, dtype_of, is_tensor, tensor_of
from pdojo.dialect.affine import Expr, IndexArray
from pdojo.dialect.attributes import Intent
from pdojo.dialect.functions import byte_width
from pdojo.dialect.semantics.rounding import INTERFACE
from pdojo.dialect.sizes import shape_for, with_sizes
from pdojo.dialect.strides import Strides
from pdojo.dialect.view.nest import Nest
from pdojo.errors import UsageError

AnyArray: TypeAlias = Any
"""A NumPy array, a PyTorch tensor on the CPU, or any object with `__dlpack__`."""
ALIGNMENT = 64
"""Alignment in bytes of arrays that this module allocates."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """An interface array of a kernel."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    intent: Intent
    alignment: int
    constant: bool = False
    """Whether callers may bind it once: then its bytes are the same at every call."""
    extents: tuple[Expr, ...] = ()
    """The extents as expressions of sizes, if they depend on some; `shape` has the greatest ones."""
    indices: IndexArray | None = None
    """The range of its entries, if they are indices."""
    strides: Strides = ()
    """The strides of its outer dimensions in elements, None for one that a call gives; () if it is dense."""

    @property
    def gaps(self) -> int:
        """Elements of memory that an array of its own takes beyond a dense one's; may be negative."""
        return span(self.shape, complete(self.shape, self.strides)) - prod(self.shape) if self.strides else 0

    @property
    def extent_texts(self) -> list[str]:
        """The extents as texts: numbers, or expressions of sizes."""
        return [extent.render(str) for extent in self.extents] or [str(extent) for extent in self.shape]

    @property
    def written(self) -> bool:
        """Whether the kernel writes it."""
        return self.intent is not Intent.IN


def parameters_of(nest: Nest) -> tuple[Parameter, ...]:
    """The interface of a kernel, in order."""
    interface = [b for b in nest.buffers if b.intent is not None]
    return tuple(
        Parameter(
            b.names[0],
            b.dtype,
            b.shape,
            b.intent,
            b.alignment,
            b.constant,
            b.sized,
            nest.index_arrays.get(b.names[0]),
            b.strides,
        )
        for b in interface
        if b.intent is not None
    )


def parameters_at(parameters: Sequence[Parameter], sizes: Mapping[str, int]) -> list[Parameter]:
    """The interface for given values of sizes."""
    found = [replace(p, shape=shape_for(p.extents, sizes)) if p.extents else p for p in parameters]
    return [
        p if p.indices is None else replace(p, indices=replace(p.indices, last=with_sizes(p.indices.last, sizes)))
        for p in found
    ]


def array_bytes(nest: Nest, sizes: Mapping[str, int]) -> int:
    """Bytes of the interface arrays of a kernel for values of its sizes."""
    return sum(prod(p.shape) * byte_width(p.dtype) for p in parameters_at(parameters_of(nest), sizes))


def aligned_empty(shape: Sequence[int], dtype: np.dtype[Any], alignment: int = ALIGNMENT) -> NDArray[Any]:
    """An uninitialised C-ordered array, whose address is a multiple of `alignment` bytes.

    Raises UsageError if there is not enough memory.
    """
    return located_empty(shape, dtype, prod(shape) * dtype.itemsize, max(alignment, dtype.itemsize))[0]


def located_empty(
    shape: Sequence[int], dtype: np.dtype[Any], size: int, alignment: int = ALIGNMENT
) -> tuple[NDArray[Any], int]:
    """`aligned_empty` for an array of `size` bytes, and its address."""
    try:
        memory = np.empty(size + alignment, np.uint8)
    except (MemoryError, ValueError):
        raise UsageError(f"there is no memory for an array of {size} bytes") from None
    address = address_of(memory)
    start = -address % alignment
    return np.ndarray(shape, dtype, cast("Any", memory), start), address + start


def address_of(array: NDArray[Any]) -> int:
    """The address of the first element: `array.ctypes.data` in a fraction of the time, if the array is writeable."""
    try:
        return addressof(c_char.from_buffer(cast("Any", array)))
    except (TypeError, ValueError, BufferError):
        return array.ctypes.data


def aligned(array: AnyArray) -> AnyArray:
    """A copy of an array, or of a tensor on the CPU, aligned to 64 bytes, as tuned kernels may require.

    Raises UsageError for a tensor without memory on the CPU.

    >>> import numpy as np
    >>> import pdojo
    >>> x = pdojo.aligned(np.ones((4, 8), np.float32))
    >>> x.ctypes.data % 64
    0
    """
    source = array_of(array, "array") if is_tensor(array) else np.asarray(array)
    copy = aligned_empty(source.shape, source.dtype)
    copy[...] = source
    if not is_tensor(array):
        return copy
    return tensor_of(copy, "bf16" if str(array.dtype) == "torch.bfloat16" else "")


def empty_for(parameter: Parameter) -> NDArray[Any]:
    """An uninitialised array with the shape, strides and type of an output."""
    dtype, alignment = INTERFACE[parameter.dtype], max(ALIGNMENT, parameter.alignment)
    return in_memory(parameter, aligned_empty((prod(parameter.shape) + parameter.gaps,), dtype, alignment))


def in_memory(parameter: Parameter, memory: NDArray[Any]) -> NDArray[Any]:
    """The array of a parameter in a row of elements, as many as it has and its `gaps`."""
    if not parameter.strides:
        return memory.reshape(parameter.shape)
    return placed(memory, parameter.shape, complete(parameter.shape, parameter.strides))


def view(value: AnyArray, parameter: Parameter) -> NDArray[Any]:
    """The caller's memory as a NumPy array; raises UsageError, naming the array, if it does not fit."""
    array = cast("NDArray[Any]", value) if isinstance(value, np.ndarray) else _imported(value, parameter)
    wanted = INTERFACE[parameter.dtype]
    tensor: Any = value if not isinstance(value, np.ndarray) and is_tensor(value) else None
    if array.dtype != wanted:
        if tensor is not None:
            taken = dtype_of(wanted, parameter.dtype)
            raise UsageError(f"array '{parameter.name}' has dtype {tensor.dtype}, the kernel takes {taken}")
        hint = " (bit patterns of bf16)" if parameter.dtype == "bf16" else ""
        raise UsageError(f"array '{parameter.name}' has dtype {array.dtype}, the kernel takes {wanted}{hint}")
    if array.shape != parameter.shape:
        raise UsageError(
            f"array '{parameter.name}' has shape {_shape(array.shape)}, the kernel takes {_shape(parameter.shape)}"
        )
    if parameter.strides:
        _check_strides(array, parameter)
    elif not array.flags.c_contiguous:
        hint = f"{parameter.name}.contiguous()" if tensor is not None else "numpy.ascontiguousarray of it"
        raise UsageError(f"array '{parameter.name}' is not C-contiguous; pass {hint}")
    if parameter.written and not array.flags.writeable:
        raise UsageError(f"array '{parameter.name}' is read-only, but the kernel writes it")
    if array.ctypes.data % parameter.alignment:
        raise UsageError(
            f"array '{parameter.name}' is not aligned to {parameter.alignment} bytes, as the kernel requires; "
            f"pass pdojo.aligned({parameter.name}), an aligned copy"
        )
    return array


def _check_strides(array: NDArray[Any], parameter: Parameter) -> None:
    if (problem := misfit(array, parameter.strides, written=parameter.written)) is not None:
        raise UsageError(f"strided array '{parameter.name}' {problem}")


def view_at(address: int, parameter: Parameter, sizes: Mapping[str, int]) -> NDArray[Any]:
    """The memory at an address as an array of the kernel for given values of sizes."""
    dtype = INTERFACE[parameter.dtype]
    shape = shape_for(parameter.extents, sizes) if parameter.extents else parameter.shape
    memory = (c_uint8 * (prod(shape) * dtype.itemsize)).from_address(address)
    return np.ctypeslib.as_array(memory).view(dtype).reshape(shape)


def check_overlap(arrays: Sequence[NDArray[Any]], parameters: Sequence[Parameter]) -> None:
    """Raise UsageError if an array that the kernel writes shares memory with another array."""
    spans = _spans(arrays, parameters)
    for position, (_, end, place) in enumerate(spans):
        for start, _, other in spans[position + 1 :]:
            if start >= end:
                break
            first, second = parameters[place], parameters[other]
            between = (first.strides or second.strides) and not share_memory(arrays[place], arrays[other])
            if (first.written or second.written) and not between:
                raise UsageError(
                    f"arrays '{first.name}' and '{second.name}' overlap in memory, and the kernel writes one"
                )


def _spans(arrays: Sequence[NDArray[Any]], parameters: Sequence[Parameter]) -> list[tuple[int, int, int]]:
    """The first byte of each array, the byte after its last one, and its position; in the order of memory."""
    rows = enumerate(zip(arrays, parameters, strict=True))
    sizes = ((k, a, span(a.shape, strides_in(a)) * a.itemsize if p.strides else a.nbytes) for k, (a, p) in rows)
    return sorted((array.ctypes.data, array.ctypes.data + size, place) for place, array, size in sizes)


def _shape(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape)) or "()"


def _imported(value: AnyArray, parameter: Parameter) -> NDArray[Any]:
    """The memory of a foreign array, without a copy."""
    if is_tensor(value):
        return array_of(value, parameter.name)
    if not hasattr(value, "__dlpack__"):
        raise UsageError(
            f"array '{parameter.name}' is a {type(value).__name__}; pass a NumPy array, a PyTorch tensor on the CPU, "
            f"or an object that supports DLPack"
        )
    try:
        return np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise UsageError(f"array '{parameter.name}' cannot be shared through DLPack: {error}") from error

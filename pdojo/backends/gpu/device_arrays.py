"""Device arrays as arguments of a kernel: tensors, and objects with CUDA's array interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, cast

import numpy as np

from pdojo.backends.calling.arrays import Parameter
from pdojo.backends.calling.tensors import dtype_of
from pdojo.dialect.semantics.rounding import INTERFACE
from pdojo.errors import UsageError


@dataclass(frozen=True)
class DeviceArray:
    """An array, described by its owner."""

    address: int
    dtype: str
    """NumPy's name of the type, or PyTorch's, which begins with `torch.`."""
    shape: tuple[int, ...]
    contiguous: bool
    """Whether its elements lie in C order without gaps."""
    read_only: bool = False


def is_on_device(value: object) -> bool:
    """Whether a value is an array in device memory."""
    device = getattr(getattr(value, "device", None), "type", None)
    if hasattr(value, "data_ptr"):
        return device != "cpu"
    return hasattr(value, "__cuda_array_interface__")


def facts_of(value: Any) -> tuple[object, ...] | None:
    """A key of all properties that `addresses_of` checks; None for an array without an address.

    Calls of a kernel with equal keys, parameter by parameter, pass or fail the checks alike.
    """
    pointer = getattr(value, "data_ptr", None)
    if pointer is not None:
        graded, device = getattr(value, "requires_grad", False), getattr(value, "device", None)
        try:
            return pointer(), value.dtype, tuple(value.shape), value.is_contiguous(), graded, device
        except RuntimeError:  # a sparse tensor
            return None
    facts = getattr(value, "__cuda_array_interface__", None)
    if facts is None:
        return None
    strides = facts.get("strides")
    return (*facts["data"], facts["typestr"], tuple(facts["shape"]), None if strides is None else tuple(strides))


def addresses_of(given: Mapping[str, object], parameters: Sequence[Parameter], kernel: str) -> list[int]:
    """The addresses of arrays by the names of parameters, in the order of the interface.

    Raises UsageError, naming the array, if an array is missing or does not fit, or if a written array overlaps another.
    """
    missing = [p.name for p in parameters if p.name not in given]
    if missing:
        raise UsageError(f"kernel '{kernel}' needs {', '.join(missing)}: on a device no array may be left out")
    found = [_checked(described(given[p.name], p.name), p) for p in parameters]
    _check_overlap(found, parameters)
    return found


def shapes_of(given: Mapping[str, object]) -> dict[str, tuple[int, ...]]:
    """The shapes of arrays by name. Raises UsageError for an array in other memory."""
    return {name: described(array, name).shape for name, array in given.items()}


def described(value: Any, name: str) -> DeviceArray:
    """The owner's description of an array. Raises UsageError for an array in other memory."""
    if not is_on_device(value):
        raise UsageError(
            f"array '{name}' is a {type(value).__name__} in the host's memory, and others are on a device: pass all "
            f"arrays on the device, or none"
        )
    if hasattr(value, "data_ptr"):
        if getattr(value, "requires_grad", False):
            raise UsageError(
                f"array '{name}' requires grad, and no gradient flows through a kernel: pass {name}.detach()"
            )
        return DeviceArray(value.data_ptr(), str(value.dtype), tuple(value.shape), bool(value.is_contiguous()))
    facts = cast("dict[str, Any]", value.__cuda_array_interface__)
    address, read_only = facts["data"]
    dtype, shape = np.dtype(facts["typestr"]), tuple(facts["shape"])
    strides = facts.get("strides")
    contiguous = strides is None or tuple(strides) == _strides(shape, dtype.itemsize)
    return DeviceArray(int(address), dtype.name, shape, contiguous, bool(read_only))


def _checked(array: DeviceArray, parameter: Parameter) -> int:
    """The address of an array, checked against its parameter."""
    name, wanted = parameter.name, INTERFACE[parameter.dtype]
    taken = dtype_of(wanted, parameter.dtype) if array.dtype.startswith("torch.") else wanted.name
    if array.dtype != taken:
        raise UsageError(f"array '{name}' has dtype {array.dtype}, the kernel takes {taken}")
    if array.shape != parameter.shape:
        shapes = ("x".join(map(str, shape)) or "()" for shape in (array.shape, parameter.shape))
        raise UsageError("array '{}' has shape {}, the kernel takes {}".format(name, *shapes))
    if not array.contiguous:
        raise UsageError(f"array '{name}' is not C-contiguous; pass {name}.contiguous()")
    if parameter.written and array.read_only:
        raise UsageError(f"array '{name}' is read-only, but the kernel writes it")
    if array.address % parameter.alignment:
        raise UsageError(
            f"array '{name}' is not aligned to {parameter.alignment} bytes, as the kernel requires; "
            f"pass {name}.clone(), an aligned copy"
        )
    return array.address


def _check_overlap(addresses: Sequence[int], parameters: Sequence[Parameter]) -> None:
    sizes = [prod(p.shape) * INTERFACE[p.dtype].itemsize for p in parameters]
    spans = sorted(zip(addresses, sizes, parameters, strict=True), key=lambda span: span[:2])
    for position, (start, size, first) in enumerate(spans):
        for other, _, second in spans[position + 1 :]:
            if other >= start + size:
                break
            if first.written or second.written:
                raise UsageError(
                    f"arrays '{first.name}' and '{second.name}' overlap in memory, and the kernel writes one"
                )


def _strides(shape: Sequence[int], size: int) -> tuple[int, ...]:
    """Strides of a C-ordered array in bytes."""
    return tuple(size * prod(shape[d + 1 :]) for d in range(len(shape)))


def stream_handle(stream: object) -> int:
    """The driver's handle of a stream: an integer, or an object of PyTorch or of CUDA's stream protocol.

    Raises UsageError for anything else.
    """
    if stream is None:
        return 0
    if isinstance(stream, int):
        return stream
    found = getattr(stream, "cuda_stream", None)
    if isinstance(found, int):
        return found
    if hasattr(stream, "__cuda_stream__"):
        _, handle = cast("Any", stream).__cuda_stream__()
        return int(handle)
    raise UsageError(
        f"a stream is an integer, or an object with 'cuda_stream' or '__cuda_stream__', not a {type(stream).__name__}"
    )

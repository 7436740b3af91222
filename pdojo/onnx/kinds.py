"""Element types of ONNX's values: those of kernels, and others, which only steps take."""

from __future__ import annotations

from typing import Any, cast

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from pdojo.errors import UsageError
from pdojo.model.element_types import element_type, numpy_type
from pdojo.model.extents import is_extents
from pdojo.model.graph import Operand, Tensor


class Late(Tensor):
    """A tensor whose shape is known only when the model runs; no operation takes it."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "", (), frozenset())


def kind_of(dtype: np.dtype[Any]) -> str:
    """The element type of handles, or the name of a type that kernels do not have.

    >>> kind_of(np.dtype(np.float32)), kind_of(np.dtype(object)), kind_of(np.dtype(np.complex64))
    ('f32', 'string', 'complex64')
    """
    try:
        return element_type(dtype)
    except UsageError:
        return "string" if dtype == np.dtype(object) else dtype.name


def array_type(kind: str) -> np.dtype[Any]:
    """The NumPy type of a kind; strings are objects.

    >>> array_type("string"), array_type("float8_e4m3fn"), array_type("u8")
    (dtype('O'), dtype(float8_e4m3fn), dtype('uint8'))
    """
    if kind == "string":
        return np.dtype(object)
    try:
        return numpy_type(kind)
    except KeyError:
        return np.dtype(getattr(ml_dtypes, kind, kind))


def kind_of_operand(value: Operand) -> str:
    """The kind of a tensor or of a known value."""
    if is_extents(value):
        return "i64"
    return value.dtype if isinstance(value, Tensor) else kind_of(value.dtype)


_IN_BYTES = {"int4": np.int8, "int2": np.int8, "uint4": np.uint8, "uint2": np.uint8}


def in_bytes(value: Operand | None) -> Operand | None:
    """A known array of integers of 2 or 4 bits in bytes; other values as they are."""
    kind = _IN_BYTES.get(value.dtype.name) if isinstance(value, np.ndarray) else None
    return value.astype(kind) if isinstance(value, np.ndarray) and kind is not None else value


def is_foreign(value: object) -> bool:
    """Whether a value is of a type that kernels do not have."""
    if is_extents(value):
        return False
    if isinstance(value, Tensor):
        dtype = None if isinstance(value, Late) else array_type(value.dtype)
    else:
        dtype = cast("NDArray[Any]", value).dtype if isinstance(value, np.ndarray) else None
    try:
        return dtype is not None and not element_type(dtype)
    except UsageError:
        return True

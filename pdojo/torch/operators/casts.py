"""Other element types for the same numbers."""

from __future__ import annotations

from pdojo import build
from pdojo.build import Array
from pdojo.dialect.element_types import is_float
from pdojo.torch.operators.registry import Call, aten

_NARROW = ("i8", "i16", "u8", "u16")


@aten("_to_copy.default", "prims.convert_element_type.default", pointwise=True)
def to_copy(call: Call, x: Array, *_: object, **__: object) -> Array:
    """The elements in another type."""
    return converted(x, call.dtype)


def converted(x: Array, dtype: str) -> Array:
    """The elements in another type; floats out of the range of narrow integers keep the low bits, as in PyTorch."""
    return build.cast(build.cast(x, "i32") if is_float(x.dtype) and dtype in _NARROW else x, dtype)

"""Names of element types; a module without imports."""

from __future__ import annotations

FLOATS = ("f64", "f32", "f16", "bf16")
"""Floating-point types."""
ELEMENT_TYPES = (*FLOATS, "i64", "i32", "i16", "i8", "i1")
"""All element types."""


def is_float(dtype: str) -> bool:
    """Whether `dtype` names a floating-point type."""
    return dtype in FLOATS

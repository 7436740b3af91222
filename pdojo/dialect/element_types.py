"""Names of element types; a module without imports."""

from __future__ import annotations

FLOATS = ("f64", "f32", "f16", "bf16")
"""Floating-point types."""
ELEMENT_TYPES = (*FLOATS, "i64", "i32", "i16", "i8", "i1")
"""All element types."""
WIDE = {"f16": "f32", "bf16": "f32"}
"""The types in which floats of 16 bits are summed, and computed in several steps; others are wide enough."""


def is_float(dtype: str) -> bool:
    """Whether `dtype` names a floating-point type."""
    return dtype in FLOATS


def wide_type(dtype: str) -> str:
    """The type in which elements are summed, and computed in several steps."""
    return WIDE.get(dtype, dtype)

"""Scalar functions: a record each, and recipes of functions that take several operations (docs/math.md)."""

"""Functions of every element by the names of NumPy; `map` takes all others by their names."""

from __future__ import annotations

from pdojo.build.array import Array, Like, apply, cast, map
from pdojo.build.numbers import check_dtype, storage_of
from pdojo.dialect.functions import check_types
from pdojo.errors import UsageError


def where(condition: Array, x: Like, y: Like) -> Array:
    """The elements of `x` where `condition` (i1) is true, those of `y` elsewhere; shapes broadcast.

    >>> from pdojo import build
    >>> x = build.input("x", "f32", (4, 8))
    >>> build.where(x > 0, x, 0)
    <Array f32 [4, 8]>
    """
    if condition.dtype != "i1":
        raise UsageError(f"a condition has element type i1, not {condition.dtype}; compare it, or use build.cast")
    return map("select", condition, x, y)


def maximum(x: Like, y: Like) -> Array:
    """The greater of two elements; NaN wins. Shapes broadcast.

    >>> from pdojo import build
    >>> build.maximum(build.input("x", "f32", (4, 8)), 0)
    <Array f32 [4, 8]>
    """
    return map("max", x, y)


def minimum(x: Like, y: Like) -> Array:
    """The lesser of two elements; NaN wins. Shapes broadcast.

    >>> from pdojo import build
    >>> build.minimum(build.input("x", "i8", (4, 8)), 100)
    <Array i8 [4, 8]>
    """
    return map("min", x, y)


def clip(x: Array, lower: Like | None = None, upper: Like | None = None) -> Array:
    """The elements of `x`, but at least `lower` and at most `upper`; None is no bound.

    >>> from pdojo import build
    >>> build.clip(build.input("x", "f32", (4, 8)), 0, 6)
    <Array f32 [4, 8]>
    """
    return map("clip", x, lower=lower, upper=upper)


def exp(x: Array) -> Array:
    """The exponential function.

    >>> from pdojo import build
    >>> build.exp(build.input("x", "bf16", (4, 8)))
    <Array bf16 [4, 8]>
    """
    return map("exp", x)


def log(x: Array) -> Array:
    """The natural logarithm.

    >>> from pdojo import build
    >>> build.log(build.input("x", "f32", (4, 8)))
    <Array f32 [4, 8]>
    """
    return map("log", x)


def sqrt(x: Array) -> Array:
    """The square root.

    >>> from pdojo import build
    >>> build.sqrt(build.input("x", "f32", (4, 8)))
    <Array f32 [4, 8]>
    """
    return map("sqrt", x)


def tanh(x: Array) -> Array:
    """The hyperbolic tangent.

    >>> from pdojo import build
    >>> build.tanh(build.input("x", "f32", (4, 8)))
    <Array f32 [4, 8]>
    """
    return map("tanh", x)


def bitcast(x: Array, dtype: str) -> Array:
    """The same bits as an element type of the same width.

    >>> from pdojo import build
    >>> build.bitcast(build.input("x", "f32", (4,)), "i32")
    <Array i32 [4]>
    """
    kind = check_dtype(dtype)
    if storage_of(kind) == x.storage:
        return cast(x, kind)
    if check_types("arith.bitcast", (x.storage,), storage_of(kind)) is not None:
        raise UsageError(f"the bits of {x.dtype} are no bits of {kind}; bitcast needs a type of the same width")
    return apply("arith.bitcast", [x], kind)

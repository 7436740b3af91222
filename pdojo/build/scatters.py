"""Elements from a start on that callers give, and writes at indices that callers give.

Writes are in order, so that the last value at a place counts, or values join the element there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Literal, TypeAlias

from pdojo.build.array import Array, Item, broadcast_to, cast, define, sliced, wide
from pdojo.build.extents import axes_of, shown
from pdojo.build.graph import Definition, Read, Write, identity
from pdojo.build.reductions import accumulation_of
from pdojo.build.sizes import greatest
from pdojo.build.slicing import Outer, Places
from pdojo.dialect.affine import modulo, var
from pdojo.dialect.element_types import WIDE
from pdojo.errors import UsageError

Accumulation: TypeAlias = Literal["+", "*", "max", "min"]
View: TypeAlias = Callable[[Array], Array]
"""A function from an array to the view of it that is written."""
MOST_START = 1 << 31
"""Starts in a ring are below this."""


def check_alike(x: Array, values: Array) -> None:
    """Raise UsageError for values of another element type than the array into which they are written."""
    if values.dtype != x.dtype:
        raise UsageError(f"values of type {values.dtype} are put into {x.dtype}; use build.cast")


def target(x: Array, view: View) -> Array:
    """The view of an array like `x` that is to be written."""
    there = view(Array(x.dtype, x.shape, Read(Definition(x.storage, x.shape), identity(x.shape))))
    assert isinstance(there.operand, Read)
    return there


def scattered(x: Array, view: View, values: Array, accumulation: Accumulation | None = None) -> Array:
    """A copy of `x` with `values`, which broadcast, in the place of a view: in the order of the values, or joined.

    Sums and products of f16 and bf16 are computed in f32.
    """
    check_alike(x, values)
    if accumulation in ("+", "*") and x.dtype in WIDE:
        return cast(scattered(wide(x), view, wide(values), accumulation), x.dtype)
    there = target(x, view)
    value = broadcast_to(values, there.shape)
    joins = None if accumulation is None else accumulation_of(accumulation, x)
    if not value.size:
        return x
    assert isinstance(there.operand, Read)
    copy = Write(x.shape, identity(x.shape), x.operand)
    return define(x.dtype, x.shape, copy, Write(value.shape, there.operand.index, value.operand, joins=joins))


def put_items(
    x: Array, items: Sequence[Item], values: Array, accumulation: Accumulation | None = None, outside: Outer = "wrap"
) -> Array:
    """`scattered` with `values` at `x[items]`."""
    return scattered(x, lambda whole: sliced(whole, items, outside), values, accumulation)


def take_from(x: Array, start: Array, length: int, axis: int = 0, *, outside: Outer = "refuse") -> Array:
    """The view of `length` neighbouring elements along `axis` from a start on that callers give.

    `start` is an input of integers without axes, or one that broadcasts to the result. `outside` is the meaning of a
    start with which an element would be outside of the array: with `refuse`, the call is refused, `clamp` takes the
    nearest start.

    >>> from pdojo import build
    >>> x = build.input("x", "f32", (4, 8))
    >>> build.take_from(x, build.input("start", "i64", ()), 3, axis=1)
    <Array f32 [4, 3]>
    """
    if outside == "wrap":
        raise UsageError("a start outside of an axis is refuse or clamp, not 'wrap'")
    (axis,) = axes_of(axis, x.rank)
    count = x.shape[axis] - length + 1
    return _run(x, start, length, axis, count, outside)


def put_from(x: Array, start: Array, values: Array, axis: int = 0, *, outside: Outer = "refuse") -> Array:
    """A copy of `x` with `values` in the place of `take_from(x, start, length, axis)`; `length` is their extent.

    >>> from pdojo import build
    >>> x, v = build.input("x", "f32", (4, 8)), build.input("v", "f32", (4, 3))
    >>> build.put_from(x, build.input("start", "i64", ()), v, axis=1)
    <Array f32 [4, 8]>
    """
    (axis,) = axes_of(axis, x.rank)
    if values.rank != x.rank:
        raise UsageError(f"values have {values.rank} axes, and the array into which they are put has {x.rank}")
    length = values.shape[axis]
    return scattered(x, lambda whole: take_from(whole, start, length, axis, outside=outside), values)


def put_around(x: Array, starts: Array, values: Array, axis: int) -> Array:
    """`put_from` of an axis whose last element is followed by the first one; starts may be of any later round."""
    length, extent = values.shape[axis], x.shape[axis]
    return scattered(x, lambda whole: _run(whole, starts, length, axis, MOST_START, "refuse", extent), values)


def _run(x: Array, start: Array, length: int, axis: int, count: int, outside: Outer, around: int = 0) -> Array:
    """The view of elements along an axis from one of `count` starts on; `around` is the extent of an axis in a ring."""
    if length < 0 or count < 1:
        raise UsageError(f"axis {axis} of {shown(x.shape)} has no {length} neighbouring elements")
    shape = (*x.shape[:axis], length, *x.shape[axis + 1 :])
    if not prod(shape):
        return x[(*[slice(None)] * axis, slice(0, length))]
    first = broadcast_to(start, shape)
    box = greatest(shape)
    entry = Places(first.dtype, first.shape, first.operand).along(axis, count, outside) + var(axis).substitute({}, box)
    index = [*identity(shape)]
    index[axis] = modulo(entry, around, box) if around else entry
    return x.view(shape, index)

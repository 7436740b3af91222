"""Reductions along axes; sums and products of f16 and bf16 accumulate in f32."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod as product
from typing import TypeAlias

from pdojo.build.array import Array, cast, constant, define, iota, map, wide
from pdojo.build.extents import axes_of
from pdojo.build.graph import Reduction, Write, identity
from pdojo.build.numbers import Scalar, is_unsigned
from pdojo.build.policy import accumulated_wide, calls_wide, rounded_once
from pdojo.build.shapes import squeeze
from pdojo.build.sizes import expression_of, greatest
from pdojo.dialect.affine import Expr, const
from pdojo.dialect.affine import var as iteration
from pdojo.dialect.element_types import WIDE, is_float
from pdojo.dialect.functions import accumulation_function, identity_value
from pdojo.dialect.view.nest import Constant, Index
from pdojo.errors import UsageError

Axes: TypeAlias = int | Sequence[int] | None
"""Axes, counted from the end if negative; None is all."""
MOST_I32 = 2**31 - 1
"""Largest number of type i32."""


@calls_wide
def reduce(
    accumulation: str, x: Array, axis: Axes = None, *, keepdims: bool = False, initial: Scalar | None = None
) -> Array:
    """The accumulation `+ * max min and or` of the notation along `axis`, as `numpy.ufunc.reduce`.

    `initial` is the value before the first element; None is the neutral element.

    >>> from pdojo import build
    >>> build.reduce("max", build.input("x", "f32", (4, 8)), axis=-1, keepdims=True)
    <Array f32 [4, 1]>
    """
    axes = axes_of(axis, x.rank)
    if accumulation in ("max", "min") and initial is None and not product(x.shape[a] for a in axes):
        raise UsageError(f"'{accumulation}' of no elements has no value; give initial=")
    result = reduced(accumulation, x, axes, initial=initial)
    return _with_axes(result, axes, x.rank) if keepdims else result


def reduced(
    accumulation: str, x: Array, axes: Sequence[int], *, initial: Scalar | None = None, guard: Sequence[Expr] = ()
) -> Array:
    """`reduce` of the elements for which `guard` holds: expressions `e >= 0` over the indices of `x`."""
    function = accumulation_of(accumulation, x)
    if accumulation in ("+", "*") and x.dtype in WIDE:
        return cast(reduced(accumulation, wide(x), axes, initial=initial, guard=guard), x.dtype)
    kept = [d for d in range(x.rank) if d not in axes]
    places = {d: position for position, d in enumerate((*kept, *axes))}
    whole = x.view(tuple(x.shape[d] for d in places), [iteration(places[d]) for d in range(x.rank)])
    start: Constant | Index = Constant(identity_value(function, x.storage), x.storage)
    if initial is not None:
        given = constant(initial, x.dtype).operand
        assert isinstance(given, Constant | Index)
        start = given
    inner = {d: iteration(place) for d, place in places.items()}
    held = tuple(e.substitute(inner, greatest(whole.shape)) for e in guard)
    shape = tuple(x.shape[d] for d in kept)
    nest = Write(whole.shape, identity(shape), whole.operand, held, Reduction(function, start, len(axes)))
    return define(x.dtype, shape, nest)


def accumulation_of(spelling: str, x: Array) -> str:
    """The function of an accumulation of elements like those of `x`. Raises UsageError if there is none."""
    unsigned = is_unsigned(x.dtype) and spelling in ("max", "min")
    found = accumulation_function(f"u{spelling}" if unsigned else spelling, x.storage)
    if found is None or (x.dtype == "i1" and spelling in ("+", "*")):
        known = f"{'' if x.dtype == 'i1' else '+ * '}max min{'' if is_float(x.dtype) else ' and or'}"
        raise UsageError(f"'{spelling}' does not accumulate {x.dtype}; known: {known}")
    return found


def neutral_of(accumulation: str, x: Array) -> float | int:
    """The value that leaves an accumulation of the elements of `x` as it is."""
    value = identity_value(accumulation_of(accumulation, x), x.storage)
    return value % (1 << int(x.dtype[1:])) if is_unsigned(x.dtype) else value


def _with_axes(x: Array, axes: Sequence[int], rank: int) -> Array:
    """The array with axes of extent 1, whose numbers are those in the result."""
    kept = [d for d in range(rank) if d not in axes]
    shape = [1 if d in axes else x.shape[kept.index(d)] for d in range(rank)]
    return x.view(shape, [iteration(d) if extent != 1 else const(0) for d, extent in zip(kept, x.shape, strict=True)])


@accumulated_wide
def sum(x: Array, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """The sum along `axis`.

    >>> from pdojo import build
    >>> build.sum(build.input("x", "f32", (4, 8)), axis=0)
    <Array f32 [8]>
    """
    return reduce("+", x, axis, keepdims=keepdims)


@accumulated_wide
def prod(x: Array, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """The product along `axis`.

    >>> from pdojo import build
    >>> build.prod(build.input("x", "f32", (4, 8)), axis=1)
    <Array f32 [4]>
    """
    return reduce("*", x, axis, keepdims=keepdims)


def max(x: Array, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """The greatest element along `axis`; NaN wins.

    >>> from pdojo import build
    >>> build.max(build.input("x", "u8", (4, 8)))
    <Array u8 []>
    """
    return reduce("max", x, axis, keepdims=keepdims)


def min(x: Array, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """The least element along `axis`; NaN wins.

    >>> from pdojo import build
    >>> build.min(build.input("x", "f32", (4, 8)), axis=(0, 1), keepdims=True)
    <Array f32 [1, 1]>
    """
    return reduce("min", x, axis, keepdims=keepdims)


def any(x: Array, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """Whether an element along `axis` is not 0, as i1.

    >>> from pdojo import build
    >>> build.any(build.input("x", "i1", (4, 8)), axis=1)
    <Array i1 [4]>
    """
    return reduce("or", cast(x, "i1"), axis, keepdims=keepdims)


def all(x: Array, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """Whether no element along `axis` is 0, as i1.

    >>> from pdojo import build
    >>> build.all(build.input("x", "i1", (4, 8)))
    <Array i1 []>
    """
    return reduce("and", cast(x, "i1"), axis, keepdims=keepdims)


@rounded_once
def mean(x: Array, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """The mean along `axis`, of floating-point numbers.

    >>> from pdojo import build
    >>> build.mean(build.input("x", "f16", (4, 8)), axis=-1)
    <Array f16 [4]>
    """
    return sum(x, axis, keepdims=keepdims) / product(x.shape[a] for a in axes_of(axis, x.rank))


@rounded_once
def var(x: Array, axis: Axes = None, *, correction: float = 0, keepdims: bool = False) -> Array:
    """The variance along `axis`: the mean of the squared deviations, with `correction` subtracted from their number.

    The number is 0 at least: the variance is infinite then, or NaN if all elements are equal.

    >>> from pdojo import build
    >>> build.var(build.input("x", "f32", (4, 8)), axis=-1, correction=1)
    <Array f32 [4]>
    """
    return var_mean(x, axis, correction=correction, keepdims=keepdims)[0]


@rounded_once
def var_mean(x: Array, axis: Axes = None, *, correction: float = 0, keepdims: bool = False) -> list[Array]:
    """The variance, as `var`, and the mean, in f32 of f16 and bf16.

    >>> from pdojo import build
    >>> build.var_mean(build.input("x", "f32", (4, 8)), axis=-1)
    [<Array f32 [4]>, <Array f32 [4]>]
    """
    average = mean(x, axis, keepdims=True)
    deviations = x - average
    axes = axes_of(axis, x.rank)
    count = product(x.shape[a] for a in axes) - correction
    squares = sum(deviations * deviations, axis, keepdims=keepdims)
    return [squares / (count if count >= 0 else 0), average if keepdims else squeeze(average, axes)]


@rounded_once
def std(x: Array, axis: Axes = None, *, correction: float = 0, keepdims: bool = False) -> Array:
    """The standard deviation along `axis`: the square root of `var`.

    >>> from pdojo import build
    >>> build.std(build.input("x", "f32", (4, 8)), axis=-1)
    <Array f32 [4]>
    """
    return map("sqrt", var(x, axis, correction=correction, keepdims=keepdims))


@accumulated_wide
def sum_squares(x: Array, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """The sum of the squares along `axis`.

    >>> from pdojo import build
    >>> build.sum_squares(build.input("x", "f32", (4, 8)), axis=0)
    <Array f32 [8]>
    """
    return sum(x * x, axis, keepdims=keepdims)


@rounded_once
def log_sum(x: Array, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """The logarithm of the sum along `axis`.

    >>> from pdojo import build
    >>> build.log_sum(build.input("x", "f32", (4, 8)), axis=0)
    <Array f32 [8]>
    """
    return map("log", sum(x, axis, keepdims=keepdims))


def argmax(x: Array, axis: int = -1, *, keepdims: bool = False, last: bool = False) -> Array:
    """The index of the greatest element along `axis`, as i64: the first of equal ones, or the last; of NaN before all.

    >>> from pdojo import build
    >>> build.argmax(build.input("x", "f32", (4, 8)), axis=1)
    <Array i64 [4]>
    """
    return _index_of("max", x, axis, keepdims=keepdims, last=last)


def argmin(x: Array, axis: int = -1, *, keepdims: bool = False, last: bool = False) -> Array:
    """The index of the least element along `axis`, as i64: the first of equal ones, or the last; of NaN before all.

    >>> from pdojo import build
    >>> build.argmin(build.input("x", "f32", (4, 8)), axis=1, keepdims=True)
    <Array i64 [4, 1]>
    """
    return _index_of("min", x, axis, keepdims=keepdims, last=last)


def _index_of(accumulation: str, x: Array, axis: int, *, keepdims: bool, last: bool) -> Array:
    (axis,) = axes_of(axis, x.rank)
    if x.dtype == "i1":
        x = cast(x, "u8")
    chosen = x == reduce(accumulation, x, axis, keepdims=True)
    if is_float(x.dtype):
        chosen = chosen | map("uno", x, x)
    outside = -1 if last else x.shape[axis]
    # Vectors of f32 and of i32 have the same number of lanes.
    dtype = "i32" if x.shape[axis] <= MOST_I32 else "i64"
    indices = map("select", chosen, iota(x.shape, dtype, axis), outside)
    return cast(reduce("max" if last else "min", indices, axis, keepdims=keepdims, initial=outside), "i64")


@calls_wide
def cumulative(accumulation: str, x: Array, axis: int = -1, *, exclusive: bool = False, reverse: bool = False) -> Array:
    """The accumulation of the elements up to each one along `axis`: a recurrence, in order.

    An exclusive one leaves out the element itself. In reverse, it is of the elements from each one on.

    >>> from pdojo import build
    >>> build.cumulative("+", build.input("x", "f32", (4, 8)), axis=1)
    <Array f32 [4, 8]>
    """
    (axis,) = axes_of(axis, x.rank)
    function = accumulation_of(accumulation, x)
    if accumulation in ("+", "*") and x.dtype in WIDE:
        return cast(cumulative(accumulation, wide(x), axis, exclusive=exclusive, reverse=reverse), x.dtype)
    kept = [d for d in range(x.rank) if d != axis]
    places = {d: position for position, d in enumerate((*kept, axis))}
    shape = tuple(x.shape[d] for d in places)
    index = [iteration(places[d]) for d in range(x.rank)]
    if reverse:
        index[axis] = expression_of(x.shape[axis] - 1) - index[axis]
    whole = x.view(shape, index)
    target = tuple(e.substitute({}, greatest(shape)) for e in index) if x.size else tuple(index)
    start = Constant(identity_value(function, x.storage), x.storage)
    reduction = Reduction(function, start, 1, running=True, exclusive=exclusive)
    return define(x.dtype, x.shape, Write(shape, target, whole.operand, (), reduction))


def cumulative_max(x: Array, axis: int = -1) -> list[Array]:
    """The greatest element up to each one along `axis`, and its index as i64: the last of equal ones; NaN wins.

    >>> from pdojo import build
    >>> build.cumulative_max(build.input("x", "f32", (4, 8)))
    [<Array f32 [4, 8]>, <Array i64 [4, 8]>]
    """
    return _running_extreme("max", x, axis)


def cumulative_min(x: Array, axis: int = -1) -> list[Array]:
    """The least element up to each one along `axis`, and its index as i64: the last of equal ones; NaN wins.

    >>> from pdojo import build
    >>> build.cumulative_min(build.input("x", "f32", (4, 8)), 0)
    [<Array f32 [4, 8]>, <Array i64 [4, 8]>]
    """
    return _running_extreme("min", x, axis)


def _running_extreme(accumulation: str, x: Array, axis: int) -> list[Array]:
    (axis,) = axes_of(axis, x.rank)
    found = cumulative(accumulation, x, axis)
    is_new = x == found
    if is_float(x.dtype):
        is_new = is_new | map("uno", x, x)
    return [found, cumulative("max", map("select", is_new, iota(x.shape, "i64", axis), 0), axis)]

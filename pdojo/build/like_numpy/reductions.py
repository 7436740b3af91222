"""NumPy's reductions: `axis=`, `dtype=`, `keepdims=`, `initial=`, `where=`; running ones, norms, and `ufunc.reduce`.

Sums and products of narrow integers and of booleans are of type i64 or u64, means of integers of type f64, as in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

from pdojo.build import elementwise, lengths, reductions
from pdojo.build.array import Array, broadcast_to, cast, constant, map, promoted
from pdojo.build.extents import axes_of
from pdojo.build.like_numpy.constants import as_float, element_type, of
from pdojo.build.pieces import concatenate
from pdojo.build.reductions import Axes, neutral_of, reduce
from pdojo.build.shapes import expand_dims, reshape
from pdojo.errors import UsageError


def _summing(x: Array, dtype: Any) -> Array:
    """The array in the type of its sums and products."""
    if dtype is not None:
        return cast(x, element_type(dtype))
    return x if x.is_float else cast(x, "u64" if x.is_unsigned and x.dtype != "i1" else "i64")


def _kept(x: Array, where: Array | bool, other: float) -> Array:
    """The elements where a condition holds, and another value elsewhere."""
    if where is True:
        return x
    condition = constant(0, "i1") if where is False else where
    return elementwise.where(broadcast_to(cast(condition, "i1"), x.shape), x, other)


def _total(accumulation: str, neutral: int) -> Callable[..., Array]:
    def total(
        a: Array,
        axis: Axes = None,
        dtype: Any = None,
        *,
        keepdims: bool = False,
        initial: float | None = None,
        where: Array | bool = True,
    ) -> Array:
        return reduce(accumulation, _kept(_summing(a, dtype), where, neutral), axis, keepdims=keepdims, initial=initial)

    return total


sum, prod = _total("+", 0), _total("*", 1)
of("sum")(sum)
of("prod")(prod)


def _extreme(name: str) -> Callable[..., Array]:
    def extreme(
        a: Array,
        axis: Axes = None,
        *,
        keepdims: bool = False,
        initial: float | None = None,
        where: Array | bool = True,
    ) -> Array:
        if where is not True and initial is None:
            raise UsageError(f"np.{name} with where= needs initial=, the value if the condition never holds")
        return reduce(name, _kept(a, where, neutral_of(name, a)), axis, keepdims=keepdims, initial=initial)

    return extreme


_greatest, _least = _extreme("max"), _extreme("min")
of("max", "amax")(_greatest)
of("min", "amin")(_least)


@of("any")
def any(a: Array, axis: Axes = None, *, keepdims: bool = False, where: Array | bool = True) -> Array:
    """Whether an element along `axis` is not 0."""
    return reductions.any(_kept(cast(a, "i1"), where, 0), axis, keepdims=keepdims)


@of("all")
def all(a: Array, axis: Axes = None, *, keepdims: bool = False, where: Array | bool = True) -> Array:
    """Whether no element along `axis` is 0."""
    return reductions.all(_kept(cast(a, "i1"), where, 1), axis, keepdims=keepdims)


@of("count_nonzero")
def count_nonzero(a: Array, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """The number of elements along `axis` that are not 0."""
    return sum(cast(a, "i1"), axis, keepdims=keepdims)


def _counted(x: Array, axis: Axes, where: Array | bool) -> Array:
    """The number of elements of `x` along `axis` for which a condition holds, in its type."""
    return cast(sum(_kept(constant(1, "i1", x.shape), where, 0), axis, keepdims=True), x.dtype)


@of("mean")
def mean(
    a: Array, axis: Axes = None, dtype: Any = None, *, keepdims: bool = False, where: Array | bool = True
) -> Array:
    """The mean along `axis`."""
    x = as_float(a) if dtype is None else cast(a, element_type(dtype))
    if where is True:
        return reductions.mean(x, axis, keepdims=keepdims)
    return _dropped(sum(x, axis, keepdims=True, where=where) / _counted(x, axis, where), axis, keepdims)


def _dropped(x: Array, axis: Axes, keepdims: bool) -> Array:
    """The array without the axes of a reduction, unless they are kept."""
    gone = axes_of(axis, x.rank)
    return x if keepdims else reshape(x, [extent for d, extent in enumerate(x.shape) if d not in gone])


@of("var")
def var(
    a: Array,
    axis: Axes = None,
    dtype: Any = None,
    *,
    ddof: float = 0,
    keepdims: bool = False,
    correction: float | None = None,
    where: Array | bool = True,
) -> Array:
    """The variance along `axis`; `ddof` or `correction` is subtracted from the number of elements."""
    x = as_float(a) if dtype is None else cast(a, element_type(dtype))
    less = ddof if correction is None else correction
    if where is True:
        return reductions.var(x, axis, correction=less, keepdims=keepdims)
    deviations = x - mean(x, axis, keepdims=True, where=where)
    count = elementwise.maximum(_counted(x, axis, where) - less, 0)
    return _dropped(sum(deviations * deviations, axis, keepdims=True, where=where) / count, axis, keepdims)


@of("std")
def std(
    a: Array,
    axis: Axes = None,
    dtype: Any = None,
    *,
    ddof: float = 0,
    keepdims: bool = False,
    correction: float | None = None,
    where: Array | bool = True,
) -> Array:
    """The standard deviation along `axis`."""
    return elementwise.sqrt(var(a, axis, dtype, ddof=ddof, keepdims=keepdims, correction=correction, where=where))


@of("ptp")
def ptp(a: Array, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """The difference of the greatest and the least element along `axis`."""
    return reductions.max(a, axis, keepdims=keepdims) - reductions.min(a, axis, keepdims=keepdims)


@of("average")
def average(a: Array, axis: Axes = None, weights: Array | None = None, *, keepdims: bool = False) -> Array:
    """The mean along `axis`, with a weight for each element."""
    if weights is None:
        return mean(a, axis, keepdims=keepdims)
    factors = weights
    if weights.shape != a.shape:
        (place,) = axes_of(axis, a.rank)
        factors = broadcast_to(reshape(weights, (-1, *[1] * (a.rank - 1 - place))), a.shape)
    return sum(a * factors, axis, keepdims=keepdims) / sum(factors, axis, keepdims=keepdims)


@of("nansum")
def nansum(a: Array, axis: Axes = None, dtype: Any = None, *, keepdims: bool = False) -> Array:
    """The sum along `axis` of the elements that are not NaN."""
    return sum(a, axis, dtype, keepdims=keepdims, where=~map("is_nan", a) if a.is_float else True)


@of("nanmean")
def nanmean(a: Array, axis: Axes = None, dtype: Any = None, *, keepdims: bool = False) -> Array:
    """The mean along `axis` of the elements that are not NaN."""
    return mean(a, axis, dtype, keepdims=keepdims, where=~map("is_nan", a) if a.is_float else True)


def _index_of(function: Callable[..., Array]) -> Callable[..., Array]:
    def index_of(a: Array, axis: int | None = None, *, keepdims: bool = False) -> Array:
        if axis is not None:
            return function(a, axis, keepdims=keepdims)
        found = function(reshape(a, (a.size,)), 0)
        return reshape(found, [1] * a.rank) if keepdims else found

    return index_of


of("argmax")(_index_of(reductions.argmax))
of("argmin")(_index_of(reductions.argmin))


def _running(accumulation: str) -> Callable[..., Array]:
    def running(a: Array, axis: int | None = None, dtype: Any = None) -> Array:
        x = _summing(a, dtype)
        if axis is None:
            x, axis = reshape(x, (x.size,)), 0
        return reductions.cumulative(accumulation, x, axis)

    return running


of("cumsum")(_running("+"))
of("cumprod")(_running("*"))


def _cumulative(accumulation: str) -> Callable[..., Array]:
    def cumulative(x: Array, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Array:
        if axis is None and x.rank != 1:
            raise UsageError(f"running sums of an array of {x.rank} axes need axis=")
        (place,) = axes_of(0 if axis is None else axis, x.rank)
        found = reductions.cumulative(accumulation, _summing(x, dtype), place)
        if not include_initial:
            return found
        first = constant(0 if accumulation == "+" else 1, found.dtype, [*x.shape[:place], 1, *x.shape[place + 1 :]])
        return concatenate([first, found], place)

    return cumulative


of("cumulative_sum")(_cumulative("+"))
of("cumulative_prod")(_cumulative("*"))


@of("diff")
def diff(
    a: Array, n: int = 1, axis: int = -1, prepend: Array | float | None = None, append: Array | float | None = None
) -> Array:
    """The differences of neighbours along `axis`, `n` times."""
    (place,) = axes_of(axis, a.rank)
    if n < 0:
        raise UsageError(f"differences are taken 0 times or more, not {n}")
    ends = [each if each is None or isinstance(each, Array) else constant(each, a.dtype) for each in (prepend, append)]
    edge = [*a.shape[:place], 1, *a.shape[place + 1 :]]
    first, last = ([] if each is None else [each if each.rank else broadcast_to(each, edge)] for each in ends)
    x = concatenate(promoted("'np.diff'", *first, a, *last), place)
    for _ in range(n):
        lead = [slice(None)] * place
        later, earlier = x[(*lead, slice(1, None))], x[(*lead, slice(None, -1))]
        x = later ^ earlier if x.dtype == "i1" else later - earlier
    return x


@of("linalg.norm")
def norm(x: Array, ord: Any = None, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """The norm of vectors, or of matrices for two axes: Frobenius', or the greatest or least sum of rows or columns."""
    axes = [*range(x.rank)] if axis is None else [axis] if isinstance(axis, int) else [*axis]
    if ord is None or (len(axes) == 2 and ord == "fro"):
        return lengths.norm(as_float(x), 2, axes, keepdims=keepdims)
    if len(axes) == 1 and isinstance(ord, int | float):
        return lengths.norm(as_float(x), ord, axes, keepdims=keepdims)
    if len(axes) != 2 or ord not in (1, -1, inf, -inf):
        raise UsageError(f"np.linalg.norm of handles has no order {ord!r} for {len(axes)} axes; known: fro, 1, -1, inf")
    first, second = (each % x.rank for each in axes)
    summed, extreme = (first, second) if abs(ord) == 1 else (second, first)
    sums = sum(abs(as_float(x)), summed, keepdims=True)
    found = (reductions.max if ord > 0 else reductions.min)(sums, extreme, keepdims=True)
    return _dropped(found, axes, keepdims)


@of("linalg.vector_norm")
def vector_norm(x: Array, *, axis: Axes = None, keepdims: bool = False, ord: float = 2) -> Array:
    """The norm of vectors along `axis`."""
    return lengths.norm(as_float(x), ord, axis, keepdims=keepdims)


@of("linalg.matrix_norm")
def matrix_norm(x: Array, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """The norm of matrices, the last two axes."""
    return norm(x, ord, (-2, -1), keepdims=keepdims)


@of("searchsorted")
def searchsorted(a: Array, v: Array | float, side: str = "left") -> Array:
    """The places in a sorted array at which elements would be inserted: the number of elements before them."""
    if a.rank != 1 or side not in ("left", "right"):
        raise UsageError(f"np.searchsorted takes an array of one axis, and side left or right, not {side}")
    values = v if isinstance(v, Array) else constant(v, a.dtype)
    one = expand_dims(values, -1)
    return sum(a < one if side == "left" else a <= one, -1)


def _reduce(function: Callable[..., Array]) -> Callable[..., Array]:
    """A reduction of NumPy as `ufunc.reduce`, along the first axis."""

    def reduced(array: Array, axis: Axes = 0, dtype: Any = None, **options: Any) -> Array:
        return function(array, axis, **options, **({} if dtype is None else {"dtype": dtype}))

    return reduced


def _bits(accumulation: str) -> Callable[..., Array]:
    def bits(a: Array, axis: Axes = None, *, keepdims: bool = False) -> Array:
        return reduce(accumulation, a, axis, keepdims=keepdims)

    return bits


_REDUCTIONS: dict[str, Callable[..., Array]] = {
    **{"add": sum, "multiply": prod, "maximum": _greatest, "minimum": _least, "logical_and": all, "logical_or": any},
    **{"bitwise_and": _bits("and"), "bitwise_or": _bits("or")},
}
for _name, _function in _REDUCTIONS.items():
    of(f"{_name}.reduce")(_reduce(_function))


def _accumulate(accumulation: str) -> Callable[..., Array]:
    def accumulated(array: Array, axis: int = 0, dtype: Any = None) -> Array:
        x = _summing(array, dtype) if accumulation in "+*" else array
        return reductions.cumulative(accumulation, x, axis)

    return accumulated


_ACCUMULATIONS: Sequence[tuple[str, str]] = (("add", "+"), ("multiply", "*"), ("maximum", "max"), ("minimum", "min"))
for _name, _sign in _ACCUMULATIONS:
    of(f"{_name}.accumulate")(_accumulate(_sign))

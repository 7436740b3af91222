"""NumPy's statistics of sorted elements, of variables, and of neighbours."""

from __future__ import annotations

from math import inf, nan, prod
from typing import Any

from pdojo.build import elementwise, reductions
from pdojo.build.array import Array, cast, map
from pdojo.build.extents import axes_of
from pdojo.build.like_numpy.constants import as_float, element_type, of
from pdojo.build.like_numpy.reductions import mean
from pdojo.build.like_numpy.sorting import sort
from pdojo.build.pieces import concatenate
from pdojo.build.reductions import Axes
from pdojo.build.shapes import expand_dims, reshape, transpose
from pdojo.errors import UsageError


def _rows(x: Array, axes: tuple[int, ...]) -> Array:
    """The array with the elements of some axes along a new last one."""
    kept = [d for d in range(x.rank) if d not in axes]
    moved = transpose(x, [*kept, *axes])
    return reshape(moved, [*(x.shape[d] for d in kept), prod(x.shape[d] for d in axes)])


@of("quantile")
def quantile(a: Array, q: float, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """The quantile along `axis` by linear interpolation; NaN if an element is."""
    axes = axes_of(axis, a.rank)
    rows = _rows(as_float(a), axes)
    count = rows.shape[-1]
    if not 0 <= q <= 1 or count < 1:
        raise UsageError(f"quantiles are from 0 to 1, of one element or more, not {q} of {count}")
    place = q * (count - 1)
    first, ordered = int(place), sort(rows)
    low, high = ordered[..., first], ordered[..., min(first + 1, count - 1)]
    found = low + (high - low) * (place - first) if place > first else low
    found = elementwise.where(reductions.any(map("is_nan", rows), -1), nan, found)
    return expand_dims(found, axes) if keepdims else found


@of("percentile")
def percentile(a: Array, q: float, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """The quantile of `q / 100`."""
    return quantile(a, q / 100, axis, keepdims=keepdims)


@of("median")
def median(a: Array, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """The middle element along `axis`, or the mean of the two in the middle; NaN if an element is."""
    return quantile(a, 0.5, axis, keepdims=keepdims)


def _without_nan(a: Array, axis: Axes, keepdims: bool, accumulation: str, neutral: float) -> Array:
    reduction = reductions.max if accumulation == "max" else reductions.min
    if not a.is_float:
        return reduction(a, axis, keepdims=keepdims)
    is_nan = map("is_nan", a)
    found = reduction(elementwise.where(is_nan, neutral, a), axis, keepdims=keepdims)
    return elementwise.where(reductions.all(is_nan, axis, keepdims=keepdims), nan, found)


@of("nanmax")
def nanmax(a: Array, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """The greatest element along `axis` that is not NaN; NaN if all are."""
    return _without_nan(a, axis, keepdims, "max", -inf)


@of("nanmin")
def nanmin(a: Array, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """The least element along `axis` that is not NaN; NaN if all are."""
    return _without_nan(a, axis, keepdims, "min", inf)


@of("cov")
def cov(m: Array, *, rowvar: bool = True, ddof: int = 1, dtype: Any = None) -> Array:
    """The covariances of variables, the rows, or the columns without `rowvar`; of type f64 without `dtype`."""
    if m.rank > 2 or not m.rank:
        raise UsageError(f"np.cov takes a vector or a matrix, not an array of {m.rank} axes")
    x = cast(m, "f64" if dtype is None else element_type(dtype))
    rows = reshape(x, (1, x.size)) if x.rank == 1 else x if rowvar else transpose(x)
    deviations = rows - mean(rows, 1, keepdims=True)
    found = deviations @ transpose(deviations) / (rows.shape[1] - ddof)
    return reshape(found, ()) if found.size == 1 else found


@of("corrcoef")
def corrcoef(x: Array, *, rowvar: bool = True, dtype: Any = None) -> Array:
    """The correlations of variables, from -1 to 1, of the type of `cov`."""
    found = cov(x, rowvar=rowvar, dtype=dtype)
    if not found.rank:
        return found / found
    deviations = elementwise.sqrt(found.diagonal())
    return elementwise.clip(found / deviations[:, None] / deviations, -1, 1)


@of("trapezoid")
def trapezoid(y: Array, x: Array | None = None, dx: float = 1.0, axis: int = -1) -> Array:
    """The integral along `axis` by the trapezoidal rule, between places `x` or `dx` apart."""
    (place,) = axes_of(axis, y.rank)
    values = as_float(y)
    later, earlier = _part(values, place, 1, None), _part(values, place, 0, -1)
    areas = (later + earlier) / 2
    if x is None:
        return reductions.sum(areas * dx, place)
    if x.rank == 1:
        widths = reshape(x[1:] - x[:-1], [-1, *[1] * (y.rank - 1 - place)])
    else:
        (along,) = axes_of(axis, x.rank)
        widths = _part(x, along, 1, None) - _part(x, along, 0, -1)
    return reductions.sum(areas * widths, place)


@of("gradient")
def gradient(f: Array, *varargs: float, axis: Axes = None) -> Array | list[Array]:
    """The central differences along each axis, one-sided at the ends; `varargs` has the distances of elements."""
    axes = axes_of(axis, f.rank)
    steps = varargs * len(axes) if len(varargs) == 1 else varargs or (1.0,) * len(axes)
    if len(steps) != len(axes):
        raise UsageError(f"np.gradient takes a distance for each of {len(axes)} axes, not {len(steps)}")
    found = [_slope(as_float(f), place, step) for place, step in zip(axes, steps, strict=True)]
    return found[0] if len(found) == 1 else found


def _slope(x: Array, axis: int, step: float) -> Array:
    if x.shape[axis] < 2:
        raise UsageError(f"np.gradient needs two elements along an axis, not {x.shape[axis]}")
    first = (_part(x, axis, 1, 2) - _part(x, axis, 0, 1)) / step
    inner = (_part(x, axis, 2, None) - _part(x, axis, 0, -2)) / (2 * step)
    last = (_part(x, axis, -1, None) - _part(x, axis, -2, -1)) / step
    return concatenate([first, inner, last], axis)


def _part(x: Array, axis: int, start: int, end: int | None) -> Array:
    """The elements from one place of an axis to another."""
    return x[(*[slice(None)] * axis, slice(start, end))]

"""Reductions along axes, running ones, indices of extremes, and softmax."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pdojo import build
from pdojo.build import Array
from pdojo.build.extents import axes_of
from pdojo.torch.operators.registry import Call, aten

Dim = int | Sequence[int] | None
"""Axes of a reduction; None and none are all."""


def axes(x: Array, dim: Dim) -> tuple[int, ...]:
    """Axes counted from the start; an array without dimensions has none, whatever PyTorch calls them."""
    if not x.rank or dim is None or (not isinstance(dim, int) and not dim):
        return tuple(range(x.rank))
    return axes_of(dim if isinstance(dim, int) else tuple(dim), x.rank)


def one_axis(x: Array, dim: int) -> tuple[Array, int]:
    """The array, with one dimension at least, and an axis counted from the start."""
    whole = x if x.rank else build.reshape(x, (1,))
    return whole, dim % whole.rank


@aten("sum.dim_IntList", "sum.default")
def sum_(call: Call, x: Array, dim: Dim = None, keepdim: bool = False, *, dtype: object = None) -> Array:
    """The sum along axes."""
    return build.sum(build.cast(x, call.dtype), axes(x, dim), keepdims=keepdim)


@aten("mean.dim", "mean.default")
def mean(call: Call, x: Array, dim: Dim = None, keepdim: bool = False, *, dtype: object = None) -> Array:
    """The mean along axes."""
    return build.mean(build.cast(x, call.dtype), axes(x, dim), keepdims=keepdim)


@aten("prod.default")
def product(call: Call, x: Array, *, dtype: object = None) -> Array:
    """The product of all elements."""
    return build.prod(build.cast(x, call.dtype))


@aten("prod.dim_int")
def product_along(call: Call, x: Array, dim: int, keepdim: bool = False, *, dtype: object = None) -> Array:
    """The product along an axis."""
    return build.prod(build.cast(x, call.dtype), axes(x, dim), keepdims=keepdim)


@aten("amax.default", "max.default")
def amax(call: Call, x: Array, dim: Dim = None, keepdim: bool = False) -> Array:
    """The greatest element along axes; NaN wins."""
    return build.max(x, axes(x, dim), keepdims=keepdim)


@aten("amin.default", "min.default")
def amin(call: Call, x: Array, dim: Dim = None, keepdim: bool = False) -> Array:
    """The least element along axes; NaN wins."""
    return build.min(x, axes(x, dim), keepdims=keepdim)


@aten("aminmax.default")
def aminmax(call: Call, x: Array, *, dim: int | None = None, keepdim: bool = False) -> list[Array]:
    """The least and the greatest element along an axis, or of all."""
    along = axes(x, dim)
    return [build.min(x, along, keepdims=keepdim), build.max(x, along, keepdims=keepdim)]


@aten("max.dim")
def max_along(call: Call, x: Array, dim: int, keepdim: bool = False) -> list[Array]:
    """The greatest element along an axis, and its index."""
    whole, axis = one_axis(x, dim)
    index = build.argmax(whole, axis, keepdims=keepdim)
    return _of_rank(call, [build.max(whole, axis, keepdims=keepdim), index])


@aten("min.dim")
def min_along(call: Call, x: Array, dim: int, keepdim: bool = False) -> list[Array]:
    """The least element along an axis, and its index."""
    whole, axis = one_axis(x, dim)
    index = build.argmin(whole, axis, keepdims=keepdim)
    return _of_rank(call, [build.min(whole, axis, keepdims=keepdim), index])


def _of_rank(call: Call, results: Sequence[Array]) -> list[Array]:
    """The results, without dimensions if the operand has none."""
    return [build.reshape(each, shape) for each, (_, shape) in zip(results, call.results, strict=True)]


@aten("argmax.default")
def argmax(call: Call, x: Array, dim: int | None = None, keepdim: bool = False) -> Array:
    """The index of the greatest element along an axis, or in all elements: the first one of equal ones, or of NaN."""
    whole, axis = (build.reshape(x, (-1,)), 0) if dim is None else one_axis(x, dim)
    return build.reshape(build.argmax(whole, axis), call.shape)


@aten("argmin.default")
def argmin(call: Call, x: Array, dim: int | None = None, keepdim: bool = False) -> Array:
    """The index of the least element along an axis, or in all elements: the first one of equal ones, or of NaN."""
    whole, axis = (build.reshape(x, (-1,)), 0) if dim is None else one_axis(x, dim)
    return build.reshape(build.argmin(whole, axis), call.shape)


@aten("any.default", "any.dim", "any.dims")
def any_(call: Call, x: Array, dim: Dim = None, keepdim: bool = False) -> Array:
    """Whether an element along axes is not 0."""
    return build.any(x, _given(x, dim), keepdims=keepdim)


@aten("all.default", "all.dim", "all.dims")
def all_(call: Call, x: Array, dim: Dim = None, keepdim: bool = False) -> Array:
    """Whether no element along axes is 0."""
    return build.all(x, _given(x, dim), keepdims=keepdim)


def _given(x: Array, dim: Dim) -> tuple[int, ...]:
    """The axes of `any` and `all`, for which an empty list is no axis."""
    return () if dim is not None and not isinstance(dim, int) and not dim else axes(x, dim)


@aten("var.correction")
def variance(call: Call, x: Array, dim: Dim = None, *, correction: float | None = None, keepdim: bool = False) -> Array:
    """The variance along axes."""
    return build.var(x, axes(x, dim), correction=_correction(correction), keepdims=keepdim)


@aten("std.correction")
def deviation(
    call: Call, x: Array, dim: Dim = None, *, correction: float | None = None, keepdim: bool = False
) -> Array:
    """The square root of the variance along axes."""
    return build.std(x, axes(x, dim), correction=_correction(correction), keepdims=keepdim)


@aten("var_mean.correction")
def variance_and_mean(
    call: Call, x: Array, dim: Dim = None, *, correction: float | None = None, keepdim: bool = False
) -> list[Array]:
    """The variance and the mean along axes."""
    return build.var_mean(x, axes(x, dim), correction=_correction(correction), keepdims=keepdim)


def _correction(given: float | None) -> float:
    return 1 if given is None else given


@aten("cumsum.default")
def cumsum(call: Call, x: Array, dim: int, *, dtype: object = None) -> Array:
    """The sum of the elements up to each one."""
    return _running("+", call, x, dim)


@aten("cumprod.default")
def cumprod(call: Call, x: Array, dim: int, *, dtype: object = None) -> Array:
    """The product of the elements up to each one."""
    return _running("*", call, x, dim)


def _running(accumulation: str, call: Call, x: Array, dim: int) -> Array:
    values = build.cast(x, call.dtype)
    return build.cumulative(accumulation, values, dim) if x.rank else values


@aten("cummax.default")
def cummax(call: Call, x: Array, dim: int) -> list[Array]:
    """The greatest element up to each one, and its last index; NaN wins."""
    return _of_rank(call, build.cumulative_max(*one_axis(x, dim)))


@aten("cummin.default")
def cummin(call: Call, x: Array, dim: int) -> list[Array]:
    """The least element up to each one, and its last index; NaN wins."""
    return _of_rank(call, build.cumulative_min(*one_axis(x, dim)))


@aten("logsumexp.default")
def logsumexp(call: Call, x: Array, dim: Dim, keepdim: bool = False) -> Array:
    """The logarithm of the sum of the exponentials along axes."""
    return build.logsumexp(build.cast(x, call.dtype), axes(x, dim), keepdims=keepdim)


@aten("linalg_vector_norm.default")
def vector_norm(
    call: Call, x: Array, ord: float = 2, dim: Dim = None, keepdim: bool = False, *, dtype: object = None
) -> Array:
    """The norm of order `ord` along axes: `sum(|x|^ord)^(1/ord)`, the extremes for infinite ones, the count for 0."""
    return build.norm(build.cast(x, call.dtype), ord, axes(x, dim), keepdims=keepdim)


@aten("dist.default")
def distance(call: Call, x: Array, y: Array, p: float = 2) -> Array:
    """The norm of the differences of all elements."""
    return build.distance(x, y, p)


@aten("_softmax.default")
def softmax(call: Call, x: Array, dim: int, half_to_float: bool) -> Array:
    """`exp(x) / sum(exp(x))` along an axis."""
    return _along(build.softmax, call, x, dim)


@aten("_log_softmax.default")
def log_softmax(call: Call, x: Array, dim: int, half_to_float: bool) -> Array:
    """The logarithm of softmax along an axis."""
    return _along(build.log_softmax, call, x, dim)


@aten("_safe_softmax.default")
def softmax_of_allowed(call: Call, x: Array, dim: int, dtype: object = None) -> Array:
    """Softmax along an axis; 0 in rows whose elements are all -inf."""
    return _along(build.safe_softmax, call, x, dim)


def _along(function: Callable[[Array, int], Array], call: Call, x: Array, dim: int) -> Array:
    whole, axis = one_axis(build.cast(x, call.dtype), dim)
    return build.reshape(function(whole, axis), call.shape)

"""Norms of vectors, and arrays divided by norms; f16 and bf16 are computed in f32 and rounded once."""

from __future__ import annotations

from math import inf
from math import prod as product

from pdojo.build.array import Array, cast, map, power
from pdojo.build.elementwise import where
from pdojo.build.extents import axes_of
from pdojo.build.policy import of_one_type, rounded_once
from pdojo.build.reductions import Axes, max, min, sum


@rounded_once
def norm(x: Array, order: float = 2, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """`sum(|x|^order)^(1/order)` along `axis`: the extremes for infinite orders, the number of elements but 0 for 0.

    >>> from pdojo import build
    >>> build.norm(build.input("x", "f32", (4, 8)), 1, axis=-1)
    <Array f32 [4]>
    """
    size = abs(x)
    if abs(order) == inf:
        return (max if order > 0 else min)(size, axis, keepdims=keepdims)
    if order == 0:
        return sum(cast(size != 0, size.dtype), axis, keepdims=keepdims)
    if order == 1 or product(x.shape[d] for d in axes_of(axis, x.rank)) == 1:
        return sum(size, axis, keepdims=keepdims)
    total = sum(size * size if order == 2 else power(size, order), axis, keepdims=keepdims)
    return map("sqrt", total) if order == 2 else power(total, 1 / order)


@rounded_once
def normalize(x: Array, order: float = 2, axis: Axes = -1) -> Array:
    """The quotient by the `norm` along `axis`; 0 if the norm is 0.

    >>> from pdojo import build
    >>> build.normalize(build.input("x", "f32", (4, 8)))
    <Array f32 [4, 8]>
    """
    total = norm(x, order, axis, keepdims=True)
    return where(total == 0, 0, x / total)


@rounded_once
@of_one_type
def distance(x: Array, y: Array, order: float = 2, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """The `norm` of the difference along `axis`.

    >>> from pdojo import build
    >>> build.distance(build.input("x", "f32", (4, 8)), build.input("y", "f32", (8,)), axis=-1)
    <Array f32 [4]>
    """
    return norm(x - y, order, axis, keepdims=keepdims)


@rounded_once
@of_one_type
def distances(x: Array, y: Array, order: float = 2) -> Array:
    """The `norm` of the difference of each pair of rows: [..., M, N] of `x` [..., M, K] and `y` [..., N, K].

    >>> from pdojo import build
    >>> build.distances(build.input("x", "f32", (4, 8)), build.input("y", "f32", (3, 8)))
    <Array f32 [4, 3]>
    """
    return distance(x[..., None, :], y[..., None, :, :], order, -1)

"""Softmax and its relatives; f16 and bf16 are computed in f32 and rounded once."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, prod

from pdojo.build.array import Array, broadcast_to, cast, constant, define, iota
from pdojo.build.elementwise import exp, log, where
from pdojo.build.extents import axes_of, shown
from pdojo.build.graph import Computed, Write, identity
from pdojo.build.policy import of_one_type, rounded_once
from pdojo.build.reductions import Axes, argmax, log_sum, max, reduced, sum
from pdojo.build.shapes import squeeze
from pdojo.build.sizes import greatest
from pdojo.dialect.affine import Expr, var
from pdojo.errors import UsageError


@rounded_once
def softmax(x: Array, axis: int = -1, *, mask: Array | None = None) -> Array:
    """`exp(x) / sum(exp(x))` along `axis`, computed stably: the maximum is subtracted before exp.

    Elements whose `mask` (i1, broadcast to the shape of `x`) is false are left out; they are 0 in the result.

    >>> from pdojo import build
    >>> build.softmax(build.input("x", "f32", (4, 8)))
    <Array f32 [4, 8]>
    """
    u = x if mask is None else masked(x, mask)
    e = exp(u - max(u, axis, keepdims=True))
    return e / sum(e, axis, keepdims=True)


@rounded_once
@of_one_type
def softmax_gradient(y: Array, gradient: Array, axis: int = -1) -> Array:
    """The gradient of the operand of `softmax`, from its result `y` and the gradient of that."""
    product = gradient * y
    return product - y * sum(product, axis, keepdims=True)


@rounded_once
@of_one_type
def log_softmax_gradient(y: Array, gradient: Array, axis: int = -1) -> Array:
    """The gradient of the operand of `log_softmax`, from its result `y` and the gradient of that."""
    return gradient - exp(y) * sum(gradient, axis, keepdims=True)


@rounded_once
def safe_softmax(x: Array, axis: int = -1) -> Array:
    """`softmax`; 0 where all elements along `axis` are -inf.

    >>> from pdojo import build
    >>> build.safe_softmax(build.input("x", "f32", (4, 8)))
    <Array f32 [4, 8]>
    """
    return safe_softmax_and_logarithms(x, axis)[0]


def safe_softmax_and_logarithms(u: Array, axis: int = -1) -> tuple[Array, Array]:
    """`softmax` of f32 or f64, and the logarithms of the sums of exponentials; both are 0 where all elements are -inf.

    The weights are not `exp(u - logarithms)`: the rounding of a large logarithm would be an error of a whole row.
    """
    most = max(u, axis, keepdims=True)
    finite = where(most == -inf, 0, most)
    e = exp(u - finite)
    total = sum(e, axis, keepdims=True)
    is_empty = total == 0
    logarithms = where(is_empty, 0, log(total) + finite)
    return e / where(is_empty, 1, total), squeeze(logarithms, axes_of(axis, u.rank))


def masked(u: Array, mask: Array) -> Array:
    """The array with -inf where the mask is false, or with the mask added if it is of numbers."""
    found = where(mask, u, -inf) if mask.dtype == "i1" else u + cast(mask, u.dtype)
    if found.shape != u.shape:
        raise UsageError(f"a mask of shape {shown(mask.shape)} does not broadcast to {shown(u.shape)}")
    return found


@rounded_once
def causal_softmax(x: Array) -> Array:
    """`softmax` of each row over its elements up to the diagonal; the others are 0. Rows are the last axis.

    Guards leave out the others: no statement computes them.

    >>> from pdojo import build
    >>> build.causal_softmax(build.input("x", "f32", (2, 8, 8)))
    <Array f32 [2, 8, 8]>
    """
    if x.rank < 2:
        raise UsageError(f"causal_softmax takes matrices, not an array of shape {shown(x.shape)}")
    # The element of column j of row i counts iff i - j >= 0.
    guard = (var(x.rank - 2) - var(x.rank - 1),)
    most = reduced("max", x, [x.rank - 1], guard=guard)[..., None]
    e = _guarded("math.exp", guard, _guarded("arith.subf", guard, x, most))
    total = reduced("+", e, [x.rank - 1], guard=guard)[..., None]
    return _guarded("arith.divf", guard, e, total, fill=0)


def _guarded(function: str, guard: Sequence[Expr], x: Array, *others: Array, fill: float | None = None) -> Array:
    """A function where `guard` holds, over the shape of `x`; elsewhere `fill`, and nothing if it is None."""
    operands = [broadcast_to(each, x.shape) for each in others]
    value = Computed(function, (x.operand, *(operand.operand for operand in operands)), x.storage)
    held = tuple(e.substitute({}, greatest(x.shape)) for e in guard)
    fills = [] if fill is None else [Write(x.shape, identity(x.shape), constant(fill, x.dtype).operand)]
    return define(x.dtype, x.shape, *fills, Write(x.shape, identity(x.shape), value, held))


@rounded_once
def log_softmax(x: Array, axis: int = -1) -> Array:
    """The logarithm of `softmax`: `x - max - log(sum(exp(x - max)))`.

    >>> from pdojo import build
    >>> build.log_softmax(build.input("x", "f32", (4, 8)), axis=0)
    <Array f32 [4, 8]>
    """
    d = x - max(x, axis, keepdims=True)
    return d - log(sum(exp(d), axis, keepdims=True))


@rounded_once
def logsumexp(x: Array, axis: Axes = -1, *, keepdims: bool = False) -> Array:
    """`log(sum(exp(x)))` along `axis`, computed stably; infinities as in the formula; -inf without elements.

    >>> from pdojo import build
    >>> build.logsumexp(build.input("x", "f32", (4, 8)), axis=1)
    <Array f32 [4]>
    """
    axes = axes_of(axis, x.rank)
    if not prod(x.shape[d] for d in axes):
        return log_sum(x, axis, keepdims=keepdims)
    most = max(x, axis, keepdims=True)
    finite = where(abs(most) == inf, 0, most)
    found = log(sum(exp(x - finite), axis, keepdims=True)) + finite
    return found if keepdims else squeeze(found, axes)


def hardmax(x: Array, axis: int = -1) -> Array:
    """1 for the first of the greatest elements along `axis`, or of NaN, and 0 for the others.

    >>> from pdojo import build
    >>> build.hardmax(build.input("x", "f32", (4, 8)))
    <Array f32 [4, 8]>
    """
    (axis,) = axes_of(axis, x.rank)
    return where(iota(x.shape, "i64", axis) == argmax(x, axis, keepdims=True), constant(1, x.dtype), 0)

"""Softmax and its relatives, attention; f16 and bf16 are computed in f32 and rounded once."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from pdojo.build.array import Array, axes_of, broadcast_to, cast, constant, define, map, shown
from pdojo.build.contractions import matmul
from pdojo.build.elementwise import exp, log, where
from pdojo.build.graph import Computed, Write, identity
from pdojo.build.policy import rounded_once
from pdojo.build.reductions import Axes, max, reduced, sum
from pdojo.build.shapes import squeeze, transpose
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
    return _softmax(x if mask is None else _masked(x, mask), axis)


def _softmax(u: Array, axis: int) -> Array:
    e = exp(u - max(u, axis, keepdims=True))
    return e / sum(e, axis, keepdims=True)


def safe_softmax(u: Array, axis: int = -1) -> Array:
    """`softmax` of f32 or f64; 0 where all elements are -inf."""
    return safe_softmax_and_logarithms(u, axis)[0]


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


def _masked(u: Array, mask: Array) -> Array:
    """The array with -inf where the mask is false, or with the mask added if it is of numbers."""
    masked = where(mask, u, -inf) if mask.dtype == "i1" else u + cast(mask, u.dtype)
    if masked.shape != u.shape:
        raise UsageError(f"a mask of shape {shown(mask.shape)} does not broadcast to {shown(u.shape)}")
    return masked


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
    held = tuple(e.substitute({}, x.shape) for e in guard)
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
    """`log(sum(exp(x)))` along `axis`, computed stably; infinities give what the formula says.

    >>> from pdojo import build
    >>> build.logsumexp(build.input("x", "f32", (4, 8)), axis=1)
    <Array f32 [4]>
    """
    most = max(x, axis, keepdims=True)
    finite = where(abs(most) == inf, 0, most)
    found = log(sum(exp(x - finite), axis, keepdims=True)) + finite
    return found if keepdims else squeeze(found, axes_of(axis, x.rank))


@rounded_once
def attention(
    q: Array,
    k: Array,
    v: Array,
    *,
    mask: Array | None = None,
    causal: bool = False,
    scale: float | None = None,
) -> Array:
    """Scaled dot-product attention: `softmax(q k^T scale) v`.

    Shapes: `q` [..., L, D], `k` [..., S, D], `v` [..., S, E]; axes before them broadcast. `scale` None is 1 / sqrt(D).
    A `mask` broadcasts to [..., L, S]: i1 keeps the true scores, numbers are added to the scores. In the causal form,
    query l attends to keys up to l.

    >>> from pdojo import build
    >>> q, k = build.input("q", "f32", (2, 4, 8)), build.input("k", "f32", (2, 6, 8))
    >>> build.attention(q, k, build.input("v", "f32", (2, 6, 3)))
    <Array f32 [2, 4, 3]>
    """
    if q.rank < 2 or k.rank < 2 or v.rank < 2 or q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise UsageError(f"attention: q {shown(q.shape)}, k {shown(k.shape)} and v {shown(v.shape)} do not fit")
    turned = transpose(k, (*range(k.rank - 2), k.rank - 1, k.rank - 2))
    factor = map("rsqrt", constant(q.shape[-1], q.dtype)) if scale is None else scale
    scores = matmul(q, turned) * factor
    scores = scores if mask is None else _masked(scores, mask)
    return matmul(causal_softmax(scores) if causal else _softmax(scores, -1), v)

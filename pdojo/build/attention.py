"""Scaled dot-product attention; f16 and bf16 are computed in f32 and rounded once."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from pdojo.build.array import Array, constant, iota, map
from pdojo.build.contractions import matmul
from pdojo.build.elementwise import where
from pdojo.build.extents import shown
from pdojo.build.policy import rounded_once
from pdojo.build.shapes import expand_dims, reshape, transpose
from pdojo.build.softmax import causal_softmax, masked, safe_softmax, safe_softmax_and_logarithms, softmax
from pdojo.errors import UsageError


@rounded_once
def attention(
    q: Array,
    k: Array,
    v: Array,
    *,
    mask: Array | Sequence[Array] | None = None,
    causal: bool = False,
    scale: float | None = None,
    softcap: float = 0,
) -> Array:
    """Scaled dot-product attention: `softmax(q k^T scale) v`.

    Shapes: `q` [..., L, D], `k` [..., S, D], `v` [..., S, E]; leading axes broadcast. The number of heads of `q`,
    along the axis before L, may be a multiple of the number of heads of `k` and `v`. `scale` None is 1 / sqrt(D);
    scores `s` become `softcap tanh(s / softcap)` if it is not 0. Each `mask` broadcasts to [..., L, S]: i1 keeps the
    true scores, numbers are added to the scores; a query that may attend to no key has the result 0. In the causal
    form, query l attends to keys up to l.

    >>> from pdojo import build
    >>> q, k = build.input("q", "f32", (2, 4, 8)), build.input("k", "f32", (2, 6, 8))
    >>> build.attention(q, k, build.input("v", "f32", (2, 6, 3)))
    <Array f32 [2, 4, 3]>
    """
    _check_fit(q, k, v)
    scores = scores_of(q, k, scale, softcap)
    if mask is not None:
        return product_by_head(safe_softmax(masked_scores(scores, mask, causal=causal)), v)
    return product_by_head(causal_softmax(scores) if causal else softmax(scores, -1), v)


@rounded_once
def attention_with_statistics(
    q: Array,
    k: Array,
    v: Array,
    *,
    mask: Array | Sequence[Array] | None = None,
    causal: bool = False,
    scale: float | None = None,
    softcap: float = 0,
) -> list[Array]:
    """`attention`; the logarithms of the sums of exponentials; the scores, these with the masks, and the weights.

    Logarithms of rows without an allowed key are 0.

    >>> from pdojo import build
    >>> x = build.input("x", "f32", (2, 4, 8))
    >>> build.attention_with_statistics(x, x, x)[:2]
    [<Array f32 [2, 4, 8]>, <Array f32 [2, 4]>]
    """
    _check_fit(q, k, v)
    scores = scores_of(q, k, scale, softcap)
    limited = masked_scores(scores, mask, causal=causal)
    weights, logarithms = safe_softmax_and_logarithms(limited)
    return [product_by_head(weights, v), logarithms, scores, limited, weights]


def _check_fit(q: Array, k: Array, v: Array) -> None:
    if q.rank < 2 or k.rank < 2 or v.rank < 2 or q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise UsageError(f"attention: q {shown(q.shape)}, k {shown(k.shape)} and v {shown(v.shape)} do not fit")


def scores_of(q: Array, k: Array, scale: float | None, softcap: float = 0) -> Array:
    """The products of queries and keys [..., L, S], times the scale, and capped."""
    factor = map("rsqrt", constant(q.shape[-1], q.dtype)) if scale is None else scale
    scores = product_by_head(q, turned(k)) * factor
    return map("tanh", scores / softcap) * softcap if softcap else scores


def masked_scores(scores: Array, mask: Array | Sequence[Array] | None, *, causal: bool) -> Array:
    """The scores, -inf for pairs that a mask or causality forbids."""
    for each in [] if mask is None else [mask] if isinstance(mask, Array) else mask:
        scores = masked(scores, each)
    if not causal:
        return scores
    shape = (*(1,) * (scores.rank - 2), *scores.shape[-2:])
    return where(iota(shape, "i32", -2) >= iota(shape, "i32", -1), scores, -inf)


def product_by_head(x: Array, y: Array) -> Array:
    """`matmul` of arrays [heads, ...], where several heads of `x` in turn share one of `y`."""
    own, shared = (each.shape[-3] if each.rank > 2 else 1 for each in (x, y))
    if own == shared or 1 in (own, shared):
        return matmul(x, y)
    if own % shared:
        raise UsageError(f"attention: {own} heads of queries are no multiple of {shared} heads of keys")
    found = matmul(reshape(x, (*x.shape[:-3], shared, own // shared, *x.shape[-2:])), expand_dims(y, -3))
    return reshape(found, (*found.shape[:-4], own, *found.shape[-2:]))


def turned(x: Array) -> Array:
    """The transposes of the matrices in the last axes."""
    return transpose(x, (*range(x.rank - 2), x.rank - 1, x.rank - 2))

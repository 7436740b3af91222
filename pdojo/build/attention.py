"""Scaled dot-product attention; f16 and bf16 are computed in f32 and rounded once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import inf

from pdojo.build.array import Array, constant, iota, map
from pdojo.build.contractions import matmul
from pdojo.build.elementwise import exp, where
from pdojo.build.extents import shown
from pdojo.build.pieces import concatenate, split, stack
from pdojo.build.policy import of_one_type, rounded_once
from pdojo.build.reductions import sum
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


@rounded_once
@of_one_type
def attention_gradient(
    q: Array,
    k: Array,
    v: Array,
    gradient: Array,
    result: Array,
    logarithms: Array,
    *,
    mask: Array | Sequence[Array] | None = None,
    causal: bool = False,
    scale: float | None = None,
) -> list[Array]:
    """The gradients of `q`, `k` and `v`, from that of the result of `attention`.

    Shapes: [batch, heads, ...]. `result` and `logarithms` are those of `attention_with_statistics`.
    """
    heads, factor = k.shape[1], q.shape[-1] ** -0.5 if scale is None else scale
    scores = masked_scores(scores_of(q, k, factor), mask, causal=causal)
    weights = exp(scores - expand_dims(logarithms, -1))
    of_weights = product_by_head(gradient, turned(v))
    whole = sum(gradient * result, -1, keepdims=True)
    of_scores = weights * (of_weights - whole) * factor
    of_k = matmul(turned(_grouped(of_scores, heads)), _grouped(q, heads))
    of_v = matmul(turned(_grouped(weights, heads)), _grouped(gradient, heads))
    return [product_by_head(of_scores, k), *(each if each.rank == k.rank else sum(each, 2) for each in (of_k, of_v))]


def _grouped(x: Array, heads: int) -> Array:
    """[batch, heads, length, elements] as [batch, heads of keys, heads of a group, length, elements]."""
    return x if x.shape[1] == heads else reshape(x, (x.shape[0], heads, x.shape[1] // heads, *x.shape[2:]))


@rounded_once
@of_one_type
def rotary_embedding(x: Array, cos: Array, sin: Array, *, interleaved: bool = False) -> Array:
    """The rotation of pairs of the first elements of the last axis by angles; the rest stays.

    Shapes: `cos` and `sin` [..., pairs] broadcast to all axes but the last. A pair are elements side by side if
    `interleaved`, else those at equal places of both halves.
    """
    size = 2 * cos.shape[-1]
    turning, rest = x[..., :size], x[..., size:]
    first, second = (turning[..., ::2], turning[..., 1::2]) if interleaved else split(turning, 2, -1)
    real, imaginary = cos * first - sin * second, sin * first + cos * second
    joined = stack([real, imaginary], -1) if interleaved else concatenate([real, imaginary], -1)
    return concatenate([reshape(joined, turning.shape), rest], -1)


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


def allowed_pairs(
    queries: int,
    keys: int,
    *,
    past: int | None = 0,
    lengths: Array | None = None,
    causal: bool = False,
    left: int = -1,
    right: int = -1,
) -> Array | None:
    """Whether a query may attend to a key: i1, broadcasts to [batch, 1, queries, keys]; None if all may.

    Query 0 is at the position of key number `past`; if that is None, the last query is at that of the last key. There
    are `lengths` [batch] keys. In the causal form no key is behind the query. A window reaches `left` keys before the
    query and `right` ones behind it, with no limit if negative.
    """
    found: list[Array] = []
    counts = None if lengths is None else reshape(lengths, (-1, 1, 1, 1))
    # The position of query i is `distance` more than that of the key j with the same number.
    i, j = iota((1, 1, queries, 1), "i64", 2), iota((1, 1, 1, keys), "i64", 3)
    distance = i - j + (past or 0 if past is not None or counts is None else counts - queries)
    if causal:
        found.append(distance >= 0)
    if left >= 0:
        found.append(distance <= left)
    if right >= 0:
        found.append(distance >= -right)
    if counts is not None:
        found.append(j < counts)
    return reduce(lambda x, y: x & y, found) if found else None


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

"""Scaled dot-product attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdojo import build
from pdojo.build.attention import allowed_pairs as allowed
from pdojo.build.attention import attention_gradient as gradient_of_attention
from pdojo.build.attention import rotary_embedding as embedded
from pdojo.build.operator import array, call, operator
from pdojo.build.records.softmax import masked, safe_softmax

Values = NDArray[Any]
_ROWS = array("3 5", "i1", given=(0, 0, 0, 0, 0, 1, 0, 1, 1, 0, 0, 0, 0, 0, 1))
_SAMPLES = (
    call(array("2 3 4"), array("2 5 4"), array("2 5 6")),
    call(array("2 4 3 4"), array("2 1 5 4"), array("1 5 6"), scale=0.3),
    call(array("2 4 3 4"), array("2 2 5 4"), array("2 2 5 6")),
    call(array("2 3 4"), array("2 5 4"), array("2 5 6"), causal=True),
    call(array("2 1 5 4"), array("2 1 3 4"), array("2 1 3 6"), causal=True, scale=0.25),
    call(array("3 4"), array("5 4"), array("5 6"), mask=array("3 5")),
    call(array("2 3 4"), array("2 5 4"), array("2 5 6"), mask=_ROWS),
    call(array("1 2 3 4"), array("1 2 5 4"), array("1 2 5 6"), mask=_ROWS, causal=True),
    call(array("1 2 3 4"), array("1 2 5 4"), array("1 2 5 6"), mask=[array("3 5"), _ROWS]),
    call(array("1 6 3 4"), array("1 2 5 4"), array("1 2 5 1"), mask=array("1 6 1 5")),
    call(array("1 2 3 4"), array("1 2 5 4"), array("1 2 5 6"), softcap=0.75),
    call(array("1 2 1 1"), array("1 2 1 1"), array("1 2 1 1")),
)


@operator(
    build.attention_with_statistics,
    *_SAMPLES[2::2],
    call(array("1 2 3 4"), array("1 2 5 4"), array("1 2 5 4"), causal=True, scale=0.3),
    call(array("2 1 3 4"), array("2 1 5 4"), array("2 1 5 4"), mask=_ROWS),
    call(
        array("2 4 3 4"),
        array("2 2 5 4"),
        array("2 2 5 4"),
        mask=array("1 1 3 5", given=[0, -np.inf, 1, 2, 0.5, *[-np.inf] * 6, 1, *[-np.inf] * 3]),
    ),
    results=("result", "logarithms", "scores", "masked scores", "weights"),
    ulps=24,
)
def attention_with_statistics(
    q: Values,
    k: Values,
    v: Values,
    *,
    mask: Values | Sequence[Values] | None = None,
    causal: bool = False,
    scale: float | None = None,
    softcap: float = 0,
) -> list[Values]:
    """Attention, and the steps to it; queries that may attend to no key have the result 0."""
    k, v = (_by_query(each, q) for each in (k, v))
    scores = q @ k.swapaxes(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    scores = np.tanh(scores / softcap) * softcap if softcap else scores
    limited = scores
    for each in [] if mask is None else mask if isinstance(mask, list) else [mask]:
        limited = masked(limited, np.asarray(each))
    limited = masked(limited, np.tri(*scores.shape[-2:], dtype=np.bool_)) if causal else limited
    weights, sums = safe_softmax(limited), np.exp(limited).sum(-1)
    logarithms = np.where(sums == 0, 0, np.log(sums))
    return [weights @ v, logarithms, scores, limited, weights]


def _by_query(x: Values, q: Values) -> Values:
    """Keys or values, repeated for the heads of queries that share them."""
    if x.ndim < 3 or x.shape[-3] in (1, q.shape[-3]):
        return x
    return np.repeat(x, q.shape[-3] // x.shape[-3], -3)


_HEADS = {shape: [array(f"2 {shape[0]} 5 8"), *[array(f"2 {shape[1]} 6 8")] * 2, *[array(f"2 {shape[0]} 5 8")] * 2,
                  array(f"2 {shape[0]} 5")] for shape in ((4, 4), (4, 2), (3, 1))}  # fmt: skip


@operator(
    gradient_of_attention,
    call(*_HEADS[4, 4], scale=0.3),
    call(*_HEADS[4, 2], causal=True),
    call(*_HEADS[3, 1], mask=array("2 1 5 6")),
    call(*_HEADS[4, 2], mask=array("5 6"), causal=True, scale=0.5),
    call(*_HEADS[4, 4], mask=array("5 6", given=[-np.inf] * 6 + [0.25] * 24)),
    results=("result", "of keys", "of values"),
    ulps=256,
)
def attention_gradient(
    q: Values, k: Values, v: Values, gradient: Values, result: Values, logarithms: Values, *,
    mask: Values | None = None, causal: bool = False, scale: float | None = None,
) -> list[Values]:  # fmt: skip
    """The gradients of queries, keys and values."""
    factor = q.shape[-1] ** -0.5 if scale is None else scale
    keys, values = _by_query(k, q), _by_query(v, q)
    limited = masked(q @ keys.swapaxes(-1, -2) * factor, mask)
    limited = masked(limited, np.tri(*limited.shape[-2:], dtype=np.bool_)) if causal else limited
    weights = np.exp(limited - logarithms[..., None])
    whole = (gradient * result).sum(-1, keepdims=True)
    of_scores = weights * (gradient @ values.swapaxes(-1, -2) - whole) * factor
    shared = [of_scores.swapaxes(-1, -2) @ q, weights.swapaxes(-1, -2) @ gradient]
    groups = (q.shape[0], k.shape[1], -1)
    return [of_scores @ keys, *(each.reshape(*groups, *each.shape[2:]).sum(2) for each in shared)]


@operator(
    allowed,
    call(3, 5, causal=True),
    call(3, 7, past=4, causal=True, left=2),
    call(4, 4, left=0, right=1),
    call(1, 6, right=2),
    call(3, 5, lengths=array("4", given=[5, 3, 0, 1]), right=2),
    call(3, 5, past=None, lengths=array("2", given=[5, 3]), causal=True, left=1),
    types=("i64",),
)
def allowed_pairs(
    queries: int, keys: int, *, past: int | None = 0, lengths: Values | None = None, causal: bool = False,
    left: int = -1, right: int = -1,
) -> Values:  # fmt: skip
    """Whether a query may attend to a key."""
    counts = np.array([keys]) if lengths is None else lengths
    found = np.zeros((len(counts), 1, queries, keys), np.bool_)
    for b, i, j in np.ndindex(len(counts), queries, keys):
        behind = j - i - (int(counts[b]) - queries if past is None else past)
        near = (left < 0 or behind >= -left) and (right < 0 or behind <= right)
        found[b, 0, i, j] = near and j < counts[b] and not (causal and behind > 0)
    return found


@operator(
    embedded,
    call(array("2 3 2 8"), array("2 3 1 4"), array("2 3 1 4")),
    call(array("2 3 2 8"), array("2 3 1 3"), array("2 3 1 3")),
    call(array("2 3 2 9"), array("2 3 1 4"), array("2 3 1 4"), interleaved=True),
    call(array("1 1 1 2"), array("1 1 1 1"), array("1 1 1 1")),
)
def rotary_embedding(x: Values, cos: Values, sin: Values, *, interleaved: bool = False) -> Values:
    """The rotation of pairs of elements."""
    count = int(cos.shape[-1])
    first, second = (
        (slice(0, 2 * count, 2), slice(1, 2 * count, 2)) if interleaved else (slice(count), slice(count, 2 * count))
    )
    turned = (x[..., first] + 1j * x[..., second]) * (cos + 1j * sin)
    found = x.copy()
    found[..., first], found[..., second] = turned.real, turned.imag
    return found


@operator(build.attention, *_SAMPLES, ulps=24)
def attention(q: Values, k: Values, v: Values, **facts: Any) -> Values:
    """Attention."""
    return attention_with_statistics(q, k, v, **facts)[0]

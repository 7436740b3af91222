"""Scaled dot-product attention as PyTorch runs it on CPUs, and its gradient."""

from __future__ import annotations

from math import inf

from pdojo import build
from pdojo.build import Array
from pdojo.build.array import wide
from pdojo.build.attention import safe_softmax, safe_softmax_and_logarithms
from pdojo.torch.operators.registry import Call, aten


def _grouped(x: Array, heads: int) -> Array:
    """[batch, heads, length, elements] as [batch, heads of keys, heads of a group, length, elements]."""
    return x if x.shape[1] == heads else build.reshape(x, (x.shape[0], heads, x.shape[1] // heads, *x.shape[2:]))


def _shared(x: Array, heads: int) -> Array:
    """Keys or values, each for a group of heads of queries."""
    return x if x.shape[1] == heads else build.expand_dims(x, 2)


def _turned(x: Array) -> Array:
    """The transposes of the matrices in the last axes."""
    return build.transpose(x, (*range(x.rank - 2), x.rank - 1, x.rank - 2))


def _scores(q: Array, k: Array, scale: float | None) -> Array:
    """The products [batch, heads, queries, keys] of queries and keys, times the scale."""
    products = build.matmul(_grouped(wide(q), k.shape[1]), _turned(_shared(wide(k), q.shape[1])))
    factor = q.shape[-1] ** -0.5 if scale is None else scale
    return build.reshape(products, (*q.shape[:3], k.shape[2])) * factor


def _masked(scores: Array, mask: Array | None, *, causal: bool) -> Array:
    """The scores, -inf for pairs that the mask or causality forbids."""
    if mask is not None:
        scores = build.where(mask, scores, -inf) if mask.dtype == "i1" else scores + build.cast(mask, scores.dtype)
    if not causal:
        return scores
    shape = (1, 1, *scores.shape[2:])
    return build.where(build.iota(shape, "i32", 2) >= build.iota(shape, "i32", 3), scores, -inf)


def _fit(call: Call, q: Array, k: Array, dropout: float) -> None:
    if dropout:
        call.refuse("it draws random numbers")
    if q.rank != 4 or q.shape[1] % k.shape[1]:
        call.refuse(f"{q.shape[1]} heads of queries and {k.shape[1]} of keys")


@aten("_scaled_dot_product_flash_attention_for_cpu.default")
def attention(
    call: Call,
    q: Array,
    k: Array,
    v: Array,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Array | None = None,
    scale: float | None = None,
) -> list[Array | None]:
    """`softmax(q k^T scale) v`, and the logarithms of the sums of the exponentials of scores.

    Rows without an allowed key are 0, and so are their logarithms.
    """
    _fit(call, q, k, dropout_p)
    scores, logarithms = _scores(q, k, scale), None
    if 1 in call.read:
        weights, logarithms = safe_softmax_and_logarithms(_masked(scores, attn_mask, causal=is_causal))
    elif attn_mask is not None:
        weights = safe_softmax(_masked(scores, attn_mask, causal=is_causal))
    else:
        weights = build.causal_softmax(scores) if is_causal else build.softmax(scores)
    values = build.matmul(_grouped(weights, k.shape[1]), _shared(wide(v), q.shape[1]))
    return [build.reshape(values, call.shape), logarithms]


@aten("_scaled_dot_product_flash_attention_for_cpu_backward.default")
def attention_backward(
    call: Call,
    gradient: Array,
    q: Array,
    k: Array,
    v: Array,
    out: Array,
    logarithms: Array,
    dropout_p: float,
    is_causal: bool,
    *,
    attn_mask: Array | None = None,
    scale: float | None = None,
) -> list[Array]:
    """The gradients of queries, keys and values."""
    _fit(call, q, k, dropout_p)
    heads, factor = k.shape[1], q.shape[-1] ** -0.5 if scale is None else scale
    scores = _masked(_scores(q, k, scale), attn_mask, causal=is_causal)
    weights = build.exp(scores - build.expand_dims(build.cast(logarithms, scores.dtype), -1))
    g = wide(gradient)
    of_weights = build.matmul(_grouped(g, heads), _turned(_shared(wide(v), q.shape[1])))
    whole = build.sum(g * wide(out), -1, keepdims=True)
    of_scores = weights * (build.reshape(of_weights, scores.shape) - whole) * factor
    grouped = _grouped(of_scores, heads)
    of_q = build.reshape(build.matmul(grouped, _shared(wide(k), q.shape[1])), q.shape)
    of_k = build.matmul(_turned(grouped), _grouped(wide(q), heads))
    of_v = build.matmul(_turned(_grouped(weights, heads)), _grouped(g, heads))
    return [of_q, _of_group(of_k, k.rank), _of_group(of_v, v.rank)]


def _of_group(x: Array, rank: int) -> Array:
    """The sum of the gradients of the heads that share keys."""
    return x if x.rank == rank else build.sum(x, 2)

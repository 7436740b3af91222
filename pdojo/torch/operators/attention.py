"""Scaled dot-product attention as PyTorch runs it on CPUs, and its gradient."""

from __future__ import annotations

from pdojo import build
from pdojo.build import Array
from pdojo.build.array import wide
from pdojo.build.attention import masked_scores, product_by_head, scores_of, turned
from pdojo.torch.operators.registry import Call, aten


def _grouped(x: Array, heads: int) -> Array:
    """[batch, heads, length, elements] as [batch, heads of keys, heads of a group, length, elements]."""
    return x if x.shape[1] == heads else build.reshape(x, (x.shape[0], heads, x.shape[1] // heads, *x.shape[2:]))


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
    factor = q.shape[-1] ** -0.5 if scale is None else scale
    if 1 in call.read:
        return [*build.attention_with_statistics(q, k, v, mask=attn_mask, causal=is_causal, scale=factor)[:2]]
    return [build.attention(q, k, v, mask=attn_mask, causal=is_causal, scale=factor), None]


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
    scores = masked_scores(scores_of(wide(q), wide(k), factor), attn_mask, causal=is_causal)
    weights = build.exp(scores - build.expand_dims(build.cast(logarithms, scores.dtype), -1))
    g = wide(gradient)
    of_weights = product_by_head(g, turned(wide(v)))
    whole = build.sum(g * wide(out), -1, keepdims=True)
    of_scores = weights * (of_weights - whole) * factor
    grouped = _grouped(of_scores, heads)
    of_q = product_by_head(of_scores, wide(k))
    of_k = build.matmul(turned(grouped), _grouped(wide(q), heads))
    of_v = build.matmul(turned(_grouped(weights, heads)), _grouped(g, heads))
    return [of_q, _of_group(of_k, k.rank), _of_group(of_v, v.rank)]


def _of_group(x: Array, rank: int) -> Array:
    """The sum of the gradients of the heads that share keys."""
    return x if x.rank == rank else build.sum(x, 2)

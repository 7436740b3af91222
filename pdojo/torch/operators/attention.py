"""Scaled dot-product attention as PyTorch runs it on CPUs, and its gradient."""

from __future__ import annotations

from pdojo import build
from pdojo.build import Array
from pdojo.build.attention import attention_gradient
from pdojo.torch.operators.registry import Call, aten


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
    return attention_gradient(q, k, v, gradient, out, logarithms, mask=attn_mask, causal=is_causal, scale=scale)

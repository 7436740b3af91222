"""Decompositions of composite operators. Operators that `pdojo.build` has as a whole stay whole."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from torch._decomp import core_aten_decompositions
from torch.nn.functional import gelu, layer_norm, linear, relu, scaled_dot_product_attention

from pdojo.torch.operators.registry import RULES
from pdojo.torch.quantised import quantised_decompositions

_KEPT = ("aten.max_unpool2d.default", "aten.max_unpool3d.default")
"""Operators whose decompositions give results of other strides than PyTorch's."""


def decompositions() -> dict[Any, Callable[..., Any]]:
    """PyTorch's decompositions to core ATen, but for operators that have a rule, or that draw random numbers.

    A random operator in parts would draw other numbers than PyTorch does for the same seed. Operators of
    quantisation, which a program may have imported since the last call, have decompositions, too.
    """
    return _of_aten() | quantised_decompositions()


@lru_cache(maxsize=1)
def _of_aten() -> dict[Any, Callable[..., Any]]:
    from pdojo.torch import operators

    assert operators
    table: dict[Any, Callable[..., Any]] = dict(core_aten_decompositions())
    kept = {
        operator: function
        for operator, function in table.items()
        if str(operator) not in (*RULES, *_KEPT) and torch.Tag.nondeterministic_seeded not in operator.tags
    }
    return kept | {torch.ops.aten._transformer_encoder_layer_fwd.default: _encoder_layer}


def _encoder_layer(
    x: torch.Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: torch.Tensor,
    qkv_bias: torch.Tensor,
    proj_weight: torch.Tensor,
    proj_bias: torch.Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    *parameters: Any,
    mask: torch.Tensor | None = None,
    mask_type: int | None = None,
) -> Any:
    """The layer of a Transformer encoder that PyTorch runs as one operator if no gradients are wanted.

    `parameters` are the scales and shifts of both normalisations, and the weights and biases of both linear functions,
    perhaps with the mask and its kind.
    """
    if any(each is not None for each in (*parameters[8:], mask, mask_type)) or x.dim() != 3:
        return NotImplemented
    scale_1, shift_1, scale_2, shift_2, weight_1, bias_1, weight_2, bias_2 = parameters[:8]

    def attended(u: torch.Tensor) -> torch.Tensor:
        heads = linear(u, qkv_weight, qkv_bias).reshape(*u.shape[:2], 3, num_heads, embed_dim // num_heads)
        q, k, v = (each.transpose(1, 2) for each in heads.unbind(2))
        found = scaled_dot_product_attention(q, k, v)
        return linear(found.transpose(1, 2).reshape(u.shape), proj_weight, proj_bias)

    def transformed(u: torch.Tensor) -> torch.Tensor:
        inner = linear(u, weight_1, bias_1)
        return linear(gelu(inner) if use_gelu else relu(inner), weight_2, bias_2)

    def first(u: torch.Tensor) -> torch.Tensor:
        return layer_norm(u, (embed_dim,), scale_1, shift_1, eps)

    def second(u: torch.Tensor) -> torch.Tensor:
        return layer_norm(u, (embed_dim,), scale_2, shift_2, eps)

    if norm_first:
        x = x + attended(first(x))
        return x + transformed(second(x))
    x = first(x + attended(x))
    return second(x + transformed(x))

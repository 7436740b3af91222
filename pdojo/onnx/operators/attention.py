"""Attention and the rotary embedding of positions."""

from __future__ import annotations

from math import inf
from typing import Any

from pdojo import build
from pdojo.build import Array, indexing
from pdojo.build.attention import allowed_pairs
from pdojo.build.attention import rotary_embedding as embedded
from pdojo.onnx.operators.arguments import optional
from pdojo.onnx.operators.registry import Node, operator


def _by_head(x: Array, heads: int | None) -> Array:
    """[batch, heads, length, elements]."""
    if x.rank == 4 or heads is None:
        return x
    return build.transpose(build.reshape(x, (*x.shape[:2], heads, x.shape[2] // heads)), (0, 2, 1, 3))


def _allowed(node: Node, queries: int, keys: int, past: int) -> Array | None:
    """The pairs of query and key that causality, the window and the lengths of sequences allow; None if all."""
    lengths = optional(node, 6)
    return allowed_pairs(
        queries,
        keys,
        past=past if lengths is None or node.given(4) else None,
        lengths=lengths,
        causal=bool(node.attribute("is_causal", 0)),
        left=node.attribute("left_window_size", -1),
        right=node.attribute("right_window_size", -1),
    )


def _mask(node: Node, keys: int) -> Array | None:
    """The mask that the model gives, over all keys: keys that it lacks are excluded."""
    if not node.given(3):
        return None
    mask = node.array(3)
    missing = keys - mask.shape[-1]
    widths = [(0, 0)] * (mask.rank - 1) + [(0, missing)]
    return build.pad(mask, widths, 0 if mask.dtype == "i1" else -inf) if missing > 0 else mask


@operator("Attention")
def attention(node: Node) -> list[Array]:
    """Scaled dot-product attention with masks, a cache, and heads of keys that several heads of queries share."""
    given = node.array(0)
    q = _by_head(given, node.attribute("q_num_heads"))
    k, v = (_by_head(node.array(n), node.attribute("kv_num_heads")) for n in (1, 2))
    for cached in (4, 5):
        if node.given(cached) and node.array(cached).rank != 4:
            node.contradicts(f"operand {cached} has {node.array(cached).rank} dimensions, not 4")
    past = node.array(4).shape[2] if node.given(4) else 0
    if node.given(4):
        k, v = build.concatenate([node.array(4), k], 2), build.concatenate([node.array(5), v], 2)
    batch, heads, queries, size = q.shape
    scale = node.attribute("scale")
    masks = [_mask(node, k.shape[2]), _allowed(node, queries, k.shape[2], past)]
    found = (build.attention_with_statistics if len(node.outputs) > 3 else _alone)(
        q,
        k,
        v,
        mask=[each for each in masks if each is not None] or None,
        scale=size**-0.5 if scale is None else scale,
        softcap=max(0.0, node.attribute("softcap", 0.0)),
    )
    y = found[0]
    if given.rank == 3:
        y = build.reshape(build.transpose(y, (0, 2, 1, 3)), (batch, queries, heads * v.shape[3]))
    exposed = found[{2: 3, 3: 4}.get(node.attribute("qk_matmul_output_mode", 0), 2)] if len(found) > 1 else y
    return [y, k, v, build.cast(exposed, given.dtype)][: len(node.outputs)]


def _alone(*operands: Array, **facts: Any) -> list[Array]:
    return [build.attention(*operands, **facts)]


@operator("RotaryEmbedding")
def rotary_embedding(node: Node) -> Array:
    """The rotation of pairs of elements by the angles of their position."""
    given = node.array(0)
    x = build.transpose(given, (0, 2, 1, 3)) if given.rank == 4 else given
    if given.rank == 3:
        heads = node.attribute("num_heads", 0)
        if not heads:
            node.refuse("an input of three dimensions needs the attribute 'num_heads'")
        x = build.reshape(x, (*x.shape[:2], heads, x.shape[2] // heads))
    cos, sin = (_angles(node, operand) for operand in (1, 2))
    pairs = (node.attribute("rotary_embedding_dim", 0) or x.shape[3]) // 2
    if cos.shape[-1] != pairs or sin.shape[-1] != pairs:
        node.contradicts(f"angles of shapes {list(cos.shape)} and {list(sin.shape)} are not those of {pairs} pairs")
    turned = embedded(x, cos, sin, interleaved=bool(node.attribute("interleaved", 0)))
    return build.transpose(turned, (0, 2, 1, 3)) if given.rank == 4 else build.reshape(turned, given.shape)


def _angles(node: Node, operand: int) -> Array:
    """Cosines or sines [batch, length, 1, elements] of the positions."""
    cache = node.array(operand)
    if node.given(3):
        cache = indexing.take_at(cache, [node.indices(3)])
    return build.expand_dims(cache, 2)

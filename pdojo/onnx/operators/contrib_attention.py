"""Attention of ONNX Runtime's domain: projections, masks and caches of keys in its forms."""

from __future__ import annotations

from typing import Any

import numpy as np

from pdojo import build
from pdojo.build import Array, indexing
from pdojo.build.attention import rotary_embedding as embedded
from pdojo.onnx.operators.arguments import scalar_of
from pdojo.onnx.operators.contrib import check_rank, check_shape, contrib
from pdojo.onnx.operators.contrib_quantised import scaled_product
from pdojo.onnx.operators.quantisation import known_zero
from pdojo.onnx.operators.registry import NeedsParts, Node


def by_head(x: Array, heads: int) -> Array:
    """[batch, length, heads * elements] as [batch, heads, length, elements]."""
    return build.transpose(build.reshape(x, (*x.shape[:2], heads, x.shape[2] // heads)), (0, 2, 1, 3))


def joined(x: Array) -> Array:
    """[batch, heads, length, elements] as [batch, length, heads * elements]."""
    turned = build.transpose(x, (0, 2, 1, 3))
    return build.reshape(turned, (*turned.shape[:2], turned.shape[2] * turned.shape[3]))


def heads_of(node: Node, name: str, *widths: int) -> int:
    """A number of heads that divides widths."""
    heads = node.attribute(name)
    for width in widths:
        if heads < 1 or width % heads:
            node.contradicts(f"attribute '{name}' is {heads}, which does not divide {width} elements")
    return heads


def absent(node: Node, *names: tuple[int, str]) -> None:
    """Refuse operands that kernels have no use for."""
    for operand, name in names:
        if node.given(operand):
            node.refuse(f"operand '{name}' is not supported")


def unset(node: Node, *names: str) -> None:
    """Refuse attributes other than 0 that lowerings do not know."""
    for name in names:
        if node.attribute(name, 0):
            node.refuse(f"attribute '{name}' is {node.attribute(name)}; only 0 is supported")


def _masks(node: Node, q: Array, keys: int, past: int, mask: int, bias: int | None) -> list[Array]:
    """The masks of an attention over `keys`, of which `past` are from a cache: numbers to add, and allowed pairs.

    `mask` and `bias` are operands: lengths, or 0 for keys to leave out, and numbers to add.
    """
    batch, heads, queries, _ = q.shape
    found: list[Array] = []
    if node.given(mask):
        kept = _kept(node, mask, batch, queries, keys)
        found.append(build.where(kept, build.constant(0, "f32"), node.attribute("mask_filter_value", -10000.0)))
    if bias is not None and node.given(bias):
        first = [(b, n, queries, keys) for b in (1, batch) for n in (1, heads)]
        check_shape(node, "attention_bias", node.value(bias), *first)
        found.append(node.array(bias))
    if node.attribute("unidirectional", 0):
        i, j = build.iota((1, 1, queries, 1), "i32", 2), build.iota((1, 1, 1, keys), "i32", 3)
        found.append(j - i <= past)
    return found


def _kept(node: Node, operand: int, batch: int, queries: int, keys: int) -> Array:
    """Whether a mask keeps pairs: i1 [batch, 1, queries or 1, keys]."""
    mask = node.array(operand)
    if mask.rank == 1:
        check_shape(node, "mask", mask, (batch,), (2 * batch,))
        place = build.iota((1, 1, 1, keys), "i32", 3)
        kept = place < build.reshape(mask[:batch], (batch, 1, 1, 1))
        if mask.shape[0] == 2 * batch and mask.shape[0] != batch:
            kept = kept & (place >= build.reshape(mask[batch:], (batch, 1, 1, 1)))
        return kept
    check_shape(node, "mask", mask, (batch, keys), (batch, queries, keys))
    return build.reshape(mask, (batch, 1, -1 if mask.rank == 3 else 1, keys)) > 0


def _attended(node: Node, q: Array, k: Array, v: Array, masks: list[Array]) -> list[Array]:
    """The result [batch, length, elements]; the weights behind it if the node wants them."""
    scale = node.attribute("scale", 0.0) or None
    given: dict[str, Any] = {"mask": masks or None, "scale": scale}
    if len(node.outputs) < 4:
        return [joined(build.attention(q, k, v, **given))]
    result, *_, weights = build.attention_with_statistics(q, k, v, **given)
    return [joined(result), build.cast(weights, q.dtype)]


def _of_projections(node: Node, projected: Array, sizes: list[int], places: tuple[int, int, int | None]) -> list[Array]:
    """The attention of queries, keys and values side by side; `places` are the operands mask, cache and bias."""
    unset(node, "do_rotary", "past_present_share_buffer")
    mask, past, bias = places
    heads = heads_of(node, "num_heads", *sizes)
    q, k, v = (by_head(each, heads) for each in build.split(projected, sizes, 2))
    length = 0
    if node.given(past):
        cache = node.array(past)
        check_rank(node, "past", cache, 5)
        length = cache.shape[3]
        check_shape(node, "past", cache, (2, *k.shape[:2], length, k.shape[3]))
        check_shape(node, "past", cache, (2, *v.shape[:2], length, v.shape[3]))
        k, v = build.concatenate([cache[0], k], 2), build.concatenate([cache[1], v], 2)
    result = _attended(node, q, k, v, _masks(node, q, k.shape[2], length, mask, bias))
    return [*result, build.stack([k, v], 0)] if len(node.outputs) > 1 else result


_FORM = "do_rotary~ mask_filter_value num_heads! past_present_share_buffer~ scale unidirectional~"


@contrib(
    "Attention",
    "input:F weights:F bias:F? mask_index:N? past:F? attention_bias:F? past_sequence_length:N?",
    f"{_FORM} qkv_hidden_sizes rotary_embedding_dim",
)
def attention(node: Node) -> list[Array]:
    """The attention of projections of one array."""
    x, weights = node.array(0), node.array(1)
    check_rank(node, "input", x, 3)
    check_rank(node, "weights", weights, 2)
    absent(node, (6, "past_sequence_length"))
    width = weights.shape[1]
    sizes = list(node.attribute("qkv_hidden_sizes") or [width // 3] * 3)
    if len(sizes) != 3 or min(sizes) < 1 or sum(sizes) != width or sizes[0] != sizes[1]:
        node.contradicts(f"operand 'weights' has {width} columns, which are not those of projections {sizes}")
    check_shape(node, "weights", weights, (x.shape[2], width))
    projected = build.matmul(x, weights)
    if node.given(2):
        check_shape(node, "bias", node.value(2), (width,))
        projected = projected + node.array(2)
    return _of_projections(node, projected, sizes, (3, 4, 5))


@contrib(
    "QAttention",
    "input:Q weight:W bias:F input_scale:F weight_scale:F mask_index:N? input_zero_point:Q? weight_zero_point:W? "
    "past:F?",
    _FORM,
)
def quantised_attention(node: Node) -> list[Array]:
    """The attention of projections of a quantised array by quantised weights."""
    x, weights = node.array(0), node.array(1)
    check_rank(node, "input", x, 3)
    check_rank(node, "weight", weights, 2)
    width = weights.shape[1]
    if width % 3:
        node.contradicts(f"operand 'weight' has {width} columns, no three equal parts")
    check_shape(node, "weight", weights, (x.shape[2], width))
    check_shape(node, "bias", node.value(2), (width,))
    zero = None if known_zero(node, 6) is None else scalar_of(node, 6)
    projected = scaled_product(node, x, scalar_of(node, 3), zero, (1, 4, 7)) + node.array(2)
    return _of_projections(node, projected, [width // 3] * 3, (5, 8, None))


@contrib(
    "MultiHeadAttention",
    "query:F key:F? value:F? bias:F? key_padding_mask:N? attention_bias:F? past_key:F? past_value:F? "
    "past_sequence_length:N? cache_indirection:N?",
    "mask_filter_value num_heads! scale unidirectional~",
)
def multi_head_attention(node: Node) -> list[Array]:
    """The attention of queries, keys and values, which may be packed, with a bias for each and a cache."""
    absent(node, (8, "past_sequence_length"), (9, "cache_indirection"))
    q, k, v = _operands(node)
    past = 0
    if node.given(6) != node.given(7):
        node.contradicts("one of the operands 'past_key' and 'past_value' is absent")
    if node.given(6):
        held = [node.array(6), node.array(7)]
        check_rank(node, "past_key", held[0], 4)
        past = held[0].shape[2]
        for name, cached, new in (("past_key", held[0], k), ("past_value", held[1], v)):
            check_shape(node, name, cached, (*new.shape[:2], past, new.shape[3]))
        k, v = build.concatenate([held[0], k], 2), build.concatenate([held[1], v], 2)
    result, *weights = _attended(node, q, k, v, _masks(node, q, k.shape[2], past, 4, 5))
    return [result, k, v, *weights][: len(node.outputs)]


def _operands(node: Node) -> tuple[Array, Array, Array]:
    """Queries, keys and values with their biases: [batch, heads, length, elements]."""
    query, heads = node.array(0), node.attribute("num_heads")
    check_rank(node, "query", query, 3, 5)
    if query.rank == 5:
        absent(node, (1, "key"), (2, "value"))
        parts = _packed(node, "query", query, 3)
    elif node.given(1) and node.array(1).rank == 5:
        absent(node, (2, "value"))
        parts = [query, *_packed(node, "key", node.array(1), 2)]
    else:
        parts = [query, node.array(1), node.array(2)]
    biases: list[Array] | None = None
    if node.given(3):
        widths = [each.shape[2] if each.rank == 3 else each.shape[1] * each.shape[3] for each in parts]
        check_shape(node, "bias", node.value(3), (sum(widths),))
        biases = build.split(node.array(3), widths, 0)
    found: list[Array] = []
    for place, (name, each) in enumerate(zip(("query", "key", "value"), parts, strict=True)):
        check_rank(node, name, each, *((3,) if place == 0 else (3, 4)))
        if each.rank == 4:
            check_shape(node, name, each, (query.shape[0], heads, *each.shape[2:]))
            # Keys of four dimensions are those of a cache, whose bias is in them.
            found.append(each)
            continue
        heads_of(node, "num_heads", each.shape[2])
        found.append(by_head(each if biases is None else each + biases[place], heads))
    return found[0], found[1], found[2]


def _packed(node: Node, name: str, x: Array, count: int) -> list[Array]:
    """The parts [batch, length, heads * elements] of an array [batch, length, heads, count, elements]."""
    check_shape(node, name, x, (*x.shape[:2], node.attribute("num_heads"), count, x.shape[4]))
    return [build.reshape(x[:, :, :, k], (*x.shape[:2], x.shape[2] * x.shape[4])) for k in range(count)]


@contrib(
    "RotaryEmbedding",
    "input:F position_ids:L cos_cache:F sin_cache:F",
    "interleaved~ is_packed_batching~ num_heads rotary_embedding_dim scale",
)
def rotary_embedding(node: Node) -> Array:
    """The rotation of pairs of elements by the angles of their position, which are given, or a first one."""
    unset(node, "is_packed_batching")
    if node.attribute("scale", 1.0) != 1:
        node.refuse(f"attribute 'scale' is {node.attribute('scale')}; only 1 is supported")
    given, places, pairs = node.array(0), node.value(1), node.value(2).shape[-1]
    check_rank(node, "input", given, 3, 4)
    if pairs < 1:
        node.contradicts("operand 'cos_cache' has no elements")
    if given.rank == 4:
        x = build.transpose(given, (0, 2, 1, 3))
    else:
        width = given.shape[2]
        heads = node.attribute("num_heads", 0) or width // (2 * pairs)
        if heads < 1 or width % heads:
            node.contradicts(f"operand 'input' has {width} elements at each position, not those of {heads} heads")
        x = build.reshape(given, (*given.shape[:2], heads, width // heads))
    turning = node.attribute("rotary_embedding_dim", 0) or x.shape[3]
    if turning != 2 * pairs:
        node.contradicts(f"operand 'cos_cache' has angles of {pairs} pairs for {turning} elements")
    batch, length = x.shape[:2]
    check_shape(node, "position_ids", places, (1,), (batch, length), (1, length))
    if tuple(places.shape) == (1,) and isinstance(places, Array):
        # Positions are in memory before the kernel that reads at them.
        raise NeedsParts(1, lambda first: [build.reshape(first, (1, 1)) + build.iota((1, length), "i64", 1)])
    if tuple(places.shape) == (1,) and not isinstance(places, Array):
        node.inputs = (node.inputs[0], places + np.arange(length)[None], *node.inputs[2:])
    turned = embedded(x, *_angles(node, (2, 3), 1), interleaved=bool(node.attribute("interleaved", 0)))
    return build.transpose(turned, (0, 2, 1, 3)) if given.rank == 4 else build.reshape(turned, given.shape)


def _angles(node: Node, caches: tuple[int, int], places: int) -> list[Array]:
    """Cosines and sines [batch, length, 1, pairs] at the positions of an operand."""
    first = node.value(caches[0])
    check_rank(node, "cos_cache", first, 2)
    check_shape(node, "sin_cache", node.value(caches[1]), first.shape)
    found = [indexing.take_at(node.array(each), [node.indices(places)]) for each in caches]
    return [build.expand_dims(each, 2) for each in found]

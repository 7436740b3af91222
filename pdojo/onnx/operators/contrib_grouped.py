"""Attention of ONNX Runtime's domain in which several heads of queries share a head of keys, with a cache."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pdojo import build
from pdojo.build import Array, indexing
from pdojo.build.attention import rotary_embedding as embedded
from pdojo.onnx.operators.arguments import number_of
from pdojo.onnx.operators.contrib import check_rank, check_shape, contrib
from pdojo.onnx.operators.contrib_attention import absent, by_head, heads_of, joined, unset
from pdojo.onnx.operators.registry import NeedsParts, Node


@contrib(
    "GroupQueryAttention",
    "query:F key:F? value:F? past_key:F? past_value:F? seqlens_k:* total_sequence_length:N cos_cache:F? sin_cache:F? "
    "position_ids:L? attention_bias:F? head_sink:F? k_scale:*? v_scale:*? q_norm_weight:F? k_norm_weight:F? "
    "query_seqlens:N?",
    "causal~ do_rotary~ k_norm_epsilon k_quant_type kv_cache_bit_width kv_num_heads! local_window_size num_heads! "
    "q_norm_epsilon qk_norm_epsilon qk_output rotary_interleaved~ scale sliding_window_cache~ smooth_softmax softcap "
    "v_quant_type",
)
def group_query_attention(node: Node) -> list[Array]:
    """The attention over a cache with the new keys behind those of each sequence, and the new cache."""
    unset(node, "kv_cache_bit_width", "qk_output", "sliding_window_cache")
    absent(node, *enumerate(("k_scale", "v_scale", "q_norm_weight", "k_norm_weight", "query_seqlens"), 12))
    q, k, v = _parts(node)
    batch, _, length, _ = q.shape
    total = int(number_of(node, 6))
    is_first = total == length
    if not is_first:
        _place(node, batch, length)
    if node.attribute("do_rotary", 0):
        q, k = _turned(node, q, k, is_first=is_first)
    keys, values = (_cached(node, new, 3 + place, total, is_first=is_first) for place, new in enumerate((k, v)))
    masks = _masks(node, q, keys.shape[2], is_first=is_first)
    sink = _sink(node, q)
    given = [keys, values]
    if sink is not None:
        # A further key of zeros has the score 0, and its value is 0: the mask adds the sink.
        given = [build.pad(each, [(0, 0), (0, 0), (0, 1), (0, 0)]) for each in given]
        masks = [_beside(each, sink, is_first=not place) for place, each in enumerate(masks)]
    result = build.attention(
        q,
        given[0],
        given[1],
        mask=masks,
        scale=node.attribute("scale", 0.0) or None,
        softcap=max(0.0, node.attribute("softcap", 0.0)),
    )
    return [joined(result), keys, values][: len(node.outputs)]


def _parts(node: Node) -> tuple[Array, Array, Array]:
    """Queries, keys and values [batch, heads, length, elements]; without keys they are side by side in the queries."""
    query = node.array(0)
    check_rank(node, "query", query, 3)
    if node.given(1) != node.given(2):
        node.contradicts("one of the operands 'key' and 'value' is absent")
    heads, shared = (heads_of(node, name) for name in ("num_heads", "kv_num_heads"))
    if shared < 1 or heads < 1 or heads % shared:
        node.contradicts(f"{heads} heads of queries are no multiple of {shared} heads of keys")
    if not node.given(1):
        size, rest = divmod(query.shape[2], heads + 2 * shared)
        if rest:
            node.contradicts(f"operand 'query' has {query.shape[2]} elements, not those of {heads + 2 * shared} heads")
        parts = build.split(query, [heads * size, shared * size, shared * size], 2)
    else:
        heads_of(node, "num_heads", query.shape[2])
        wanted = (*query.shape[:2], query.shape[2] // heads * shared)
        check_shape(node, "key", node.value(1), wanted)
        check_shape(node, "value", node.value(2), wanted)
        parts = [query, node.array(1), node.array(2)]
    q, k, v = (by_head(each, count) for each, count in zip(parts, (heads, shared, shared), strict=True))
    return q, k, v


def _place(node: Node, batch: int, length: int) -> None:
    """Put the positions [batch, length] of the queries, i64, in the place of the last positions of sequences, i32.

    They are in memory before the kernel that reads and writes at them.
    """
    last = node.value(5)
    if isinstance(last, Array) and last.dtype == "i64":
        return
    check_shape(node, "seqlens_k", last, (batch,), (batch, 1))
    if isinstance(last, Array):
        raise NeedsParts(5, lambda given: [_positions(build.cast(given, "i64"), batch, length)])
    known = last.astype(np.int64).reshape(batch, 1) + np.arange(1 - length, 1)
    node.inputs = (*node.inputs[:5], known, *node.inputs[6:])


def _positions(last: Array, batch: int, length: int) -> Array:
    return build.reshape(last, (batch, 1)) - (length - 1) + build.iota((1, length), "i64", 1)


def _turned(node: Node, q: Array, k: Array, *, is_first: bool) -> list[Array]:
    """Queries and keys, rotated by the angles of their positions."""
    if not node.given(7) or not node.given(8):
        node.contradicts("attribute 'do_rotary' is 1, and 'cos_cache' or 'sin_cache' is absent")
    caches, length = [node.array(7), node.array(8)], q.shape[2]
    check_rank(node, "cos_cache", caches[0], 2)
    check_shape(node, "sin_cache", caches[1], caches[0].shape)
    if node.given(9):
        check_shape(node, "position_ids", node.value(9), (q.shape[0], length))
        angles = [indexing.take_at(each, [node.indices(9)]) for each in caches]
    elif is_first:
        if caches[0].shape[0] < length:
            node.contradicts(f"operand 'cos_cache' has {caches[0].shape[0]} rows for {length} positions")
        angles = [build.expand_dims(each[:length], 0) for each in caches]
    else:
        angles = [indexing.take_at(each, [node.indices(5)]) for each in caches]
    factors = [build.expand_dims(each, 1) for each in angles]
    interleaved = bool(node.attribute("rotary_interleaved", 0))
    return [embedded(each, *factors, interleaved=interleaved) for each in (q, k)]


def _cached(node: Node, new: Array, operand: int, total: int, *, is_first: bool) -> Array:
    """The cache with the new keys or values behind those of each sequence."""
    if node.given(3) != node.given(4):
        node.contradicts("one of the operands 'past_key' and 'past_value' is absent")
    name = "past_key" if operand == 3 else "past_value"
    held = 0
    if node.given(operand):
        check_rank(node, name, node.value(operand), 4)
        held = node.value(operand).shape[2]
        check_shape(node, name, node.value(operand), (*new.shape[:2], held, new.shape[3]))
    size = max(total, held)
    if is_first:
        return build.pad(new, [(0, 0), (0, 0), (0, size - new.shape[2]), (0, 0)])
    if not node.given(operand):
        node.contradicts(f"{total} keys are more than the {new.shape[2]} new ones, and there is no '{name}'")
    whole = build.pad(node.array(operand), [(0, 0), (0, 0), (0, size - held), (0, 0)])
    places = node.value(5)
    starts = places[:, 0] if isinstance(places, Array) else [int(each) for each in places[:, 0]]
    return indexing.write_sequences(whole, new, starts, 2)


def _masks(node: Node, q: Array, keys: int, *, is_first: bool) -> list[Array]:
    """The pairs of query and key that may be, i1, and numbers to add."""
    batch, heads, queries, _ = q.shape
    place = build.iota((1, 1, 1, keys), "i64", 3)
    at = build.iota((1, 1, queries, 1), "i64", 2)
    if not is_first:
        at = build.reshape(node.array(5), (batch, 1, queries, 1))
    if node.attribute("causal", 1):
        allowed, window = place <= at, node.attribute("local_window_size", -1)
        if window > 0:
            allowed = allowed & (at - place < window)
    else:
        last = build.reshape(build.cast(node.array(5), "i64"), (batch, 1, -1, 1)) if is_first else at[:, :, -1:]
        allowed = place <= last
    if not node.given(10):
        return [allowed]
    bias = node.array(10)
    check_rank(node, "attention_bias", bias, 4)
    width = bias.shape[3]
    check_shape(node, "attention_bias", bias, *((b, n, queries, width) for b in (1, batch) for n in (1, heads)))
    if width > keys:
        node.contradicts(f"operand 'attention_bias' has {width} columns for {keys} keys")
    return [allowed, build.pad(bias, [(0, 0), (0, 0), (0, 0), (0, keys - width)])]


def _sink(node: Node, q: Array) -> Array | None:
    """The number whose exponential the sums of weights have more, for each head; None if there is none."""
    if node.given(11):
        check_shape(node, "head_sink", node.value(11), (q.shape[1],))
        return build.reshape(build.cast(node.array(11), "f32"), (1, -1, 1, 1))
    return build.constant(0, "f32", (1, 1, 1, 1)) if node.attribute("smooth_softmax", 0) == 1 else None


def _beside(mask: Array, sink: Array, *, is_first: bool) -> Array:
    """A mask with a column for the sink; the first mask has its number."""
    numbers = build.where(mask, build.constant(0, "f32"), float("-inf")) if mask.dtype == "i1" else mask
    column: Sequence[int] = (*numbers.shape[:3], 1)
    if not is_first:
        return build.pad(numbers, [(0, 0), (0, 0), (0, 0), (0, 1)])
    shape = (numbers.shape[0], max(numbers.shape[1], sink.shape[1]), *numbers.shape[2:])
    last = build.broadcast_to(sink, (shape[0], shape[1], column[2], 1))
    return build.concatenate([build.broadcast_to(numbers, shape), last], 3)

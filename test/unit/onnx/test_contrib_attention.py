"""Attention of ONNX Runtime's domain, beside ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="needs onnx")
pytest.importorskip("onnxruntime", reason="needs onnxruntime")

from beside_runtime import Draw, check


def mask_of(draw: Draw, batch: int, queries: int, keys: int, kinds: str) -> Any:
    """A mask in one of the forms, which keeps the first key; None is no mask."""
    lengths = draw.integers(1, keys + 1, batch)
    match draw.among(*kinds):
        case "n":
            return None
        case "1":
            return lengths
        case "b":
            return np.concatenate([lengths, draw.integers(0, 1, batch)])
        case "2":
            return (np.arange(keys) < lengths[:, None]).astype(np.int32)
        case _:
            found = draw.integers(0, 2, batch, queries, keys)
            found[..., 0] = 1
            return found


def form(draw: Draw, heads: int) -> dict[str, Any]:
    found: dict[str, Any] = {"num_heads": heads}
    if draw.flip():
        found["unidirectional"] = 1
    if draw.flip():
        found["scale"] = 0.3
    return found


@pytest.mark.parametrize("seed", range(12))
def test_projections(seed: int) -> None:
    draw = Draw(seed)
    (batch, queries, width), heads, past = draw.extents(3), draw.among(1, 2, 3), draw.among(None, 3)
    size, of_values = 4, 4 if past else draw.among(4, 6)
    sizes = [heads * size, heads * size, heads * of_values]
    keys = queries + (past or 0)
    operands = [
        *(draw.numbers(batch, queries, width), draw.numbers(width, sum(sizes))),
        draw.numbers(sum(sizes)) if draw.flip() else None,
        mask_of(draw, batch, queries, keys, "n1b23"),
        draw.numbers(2, batch, heads, past, size) if past else None,
        draw.numbers(draw.among(1, batch), heads, queries, keys) if not past and draw.flip() else None,
    ]
    attributes = form(draw, heads) | ({"qkv_hidden_sizes": sizes} if of_values != size or draw.flip() else {})
    check(draw, "Attention", operands, ["y", "present"] if past else ["y"], rtol=3e-5, attributes=attributes)


@pytest.mark.parametrize("seed", range(8))
def test_quantised_projections(seed: int) -> None:
    draw = Draw(seed)
    (batch, queries, width), heads, past = draw.extents(3), draw.among(1, 2, 3), draw.among(None, 3)
    columns, points = 12 * heads, draw.among((), (12 * heads,))
    operands = [
        *(draw.bytes("u8", batch, queries, width), draw.bytes("i8", width, columns), draw.numbers(columns)),
        *(draw.scale() / 4, draw.scale(*points) / 4),
        mask_of(draw, batch, queries, queries + (past or 0), "n12"),
        *(draw.bytes("u8"), np.zeros(points, np.int8)),
        draw.numbers(2, batch, heads, past, 4) if past else None,
    ]
    attributes = form(draw, heads)
    outputs = ["y", "present"] if past else ["y"]
    check(draw, "QAttention", operands, outputs, fixed=[1, 3, 4, 6, 7], rtol=3e-5, attributes=attributes)


@pytest.mark.parametrize("kind", ["apart", "cache", "packed", "keys packed"])
@pytest.mark.parametrize("seed", range(6))
def test_heads(kind: str, seed: int) -> None:
    draw = Draw(seed)
    batch, queries, length = draw.extents(3)
    heads, size = draw.among(1, 2, 3), 8
    length = queries if kind == "packed" else length
    past = draw.among(None, 3) if kind == "apart" else None
    if past:
        length = queries
    of_values = draw.among(8, 6) if kind == "apart" and not past else 8
    widths = [heads * size, heads * size, heads * of_values]
    query = draw.numbers(batch, queries, widths[0])
    key, value = draw.numbers(batch, length, widths[1]), draw.numbers(batch, length, widths[2])
    bias = draw.numbers(sum(widths)) if draw.flip() else None
    apart: list[Any] | None = None
    if "packed" in kind:  # ONNX Runtime takes packed keys on GPUs only
        key, value, bias, apart = *(draw.numbers(batch, length, heads * size) for _ in range(2)), None, [query]
        apart += [key, value]
        parts = [each.reshape(batch, length, heads, 1, size) for each in apart[-3 if kind == "packed" else -2 :]]
        key, value = np.concatenate(parts, 3), None
        if kind == "packed":
            query, key = key, None
    if kind == "cache":
        key, value = draw.numbers(batch, heads, length, size), draw.numbers(batch, heads, length, size)
        bias = None
    keys = length + (past or 0)
    mask = mask_of(draw, batch, queries, keys, "n23" if kind == "apart" else "n")
    added = draw.numbers(draw.among(1, batch), draw.among(1, heads), queries, keys) if draw.flip() else None
    held = [draw.numbers(batch, heads, past, each) for each in (size, of_values)] if past else [None, None]
    attributes = form(draw, heads)
    if queries != length:
        attributes.pop("unidirectional", None)
    outputs = ["y", "k", "v"] if past else ["y"]
    operands = [query, key, value, bias, mask, added, *held]
    theirs = None if apart is None else [*apart, None, mask, added]
    check(draw, "MultiHeadAttention", operands, outputs, rtol=3e-5, attributes=attributes, theirs=theirs)


@pytest.mark.parametrize("seed", range(10))
def test_rotations(seed: int) -> None:
    draw = Draw(seed)
    batch, length = draw.extents(2)
    heads, size = draw.among(1, 2), 16
    part = draw.flip()
    pairs = 4 if part else size // 2
    whole = draw.flip()
    shape = (batch, heads, length, size) if whole else (batch, length, heads * size)
    places = draw.integers(0, 20, batch, length, dtype=np.int64) if draw.flip() else np.array([3])
    attributes: dict[str, Any] = {"interleaved": int(draw.flip())}
    if part:
        attributes |= {"rotary_embedding_dim": 2 * pairs, "num_heads": heads}
    operands = [draw.numbers(*shape), places, draw.numbers(20, pairs), draw.numbers(20, pairs)]
    check(draw, "RotaryEmbedding", operands, attributes=attributes)


@pytest.mark.parametrize("seed", range(24))
def test_groups_of_heads(seed: int) -> None:
    draw = Draw(seed)
    batch = int(draw.random.integers(1, 4))
    (heads, shared), size = draw.among((2, 2), (4, 2), (6, 1)), 16
    first, packed = draw.flip(), draw.flip()
    queries = draw.among(5, 7) if first else draw.among(1, 3) if batch == 1 else 1
    if first:
        total, held = queries, draw.among(None, 9)
        last = np.full(batch, total - 1, np.int32)
    else:
        last = draw.integers(queries + 1, 8, batch)
        total = int(last.max()) + 1
        held = draw.among(total - 1, 11)
    width = (heads + 2 * shared if packed else heads) * size
    turned = draw.flip()
    pairs = draw.among(8, 8)
    keys = max(total, held or 0)
    operands: list[Any] = [draw.numbers(batch, queries, width)]
    operands += [None, None] if packed else [draw.numbers(batch, queries, shared * size) for _ in range(2)]
    operands += [draw.numbers(batch, shared, held, size) for _ in range(2)] if held else [None, None]
    operands += [last, np.array([total], np.int32)]
    operands += [draw.numbers(keys + 2, pairs) for _ in range(2)] if turned else [None, None]
    sink = draw.among(None, "smooth", "heads")
    bias = draw.numbers(draw.among(1, batch), draw.among(1, heads), queries, total) if draw.flip() else None
    operands += [None, bias, draw.numbers(heads) if sink == "heads" else None]
    attributes: dict[str, Any] = {"num_heads": heads, "kv_num_heads": shared, "do_rotary": int(turned)}
    attributes |= {"rotary_interleaved": int(draw.flip())} if turned else {}
    attributes |= {"smooth_softmax": 1} if sink == "smooth" else {}
    attributes |= draw.among({}, {"softcap": 2.0}, {"scale": 0.4}, {"local_window_size": 3}, {"causal": 0})

    def parts(results: Any) -> list[Any]:
        """The result and the keys and values up to the last position of each sequence."""
        return [results[0], *(each[b, :, : last[b] + 1] for each in results[1:] for b in range(batch))]

    check(draw, "GroupQueryAttention", operands, ["y", "k", "v"], rtol=3e-5, attributes=attributes, parts=parts)

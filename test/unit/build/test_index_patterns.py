"""Programs whose indices are data, as models have them, against NumPy: interpreted, plain code, the pass's moves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import pdojo
from pdojo import build
from pdojo.build import Array
from pdojo.dialect.machines.registry import host
from pdojo.passes.scheduled_kernel import make_moves
from unit.build.references import random

Values = NDArray[Any]
Pattern = tuple[list[Array], Array, Callable[[np.random.Generator], list[Values]], Callable[..., Values]]


def floats(name: str, *shape: int) -> Array:
    return build.input(name, "f32", shape)


def softmax(x: Values) -> Values:
    grown = np.exp(x - x.max(-1, keepdims=True))
    return grown / grown.sum(-1, keepdims=True)


def paged_attention() -> Pattern:
    """One query for each of three sequences, whose keys and values are in blocks of four that a table names."""
    q, keys, values = floats("q", 3, 2, 8), floats("keys", 10, 4, 2, 8), floats("values", 10, 4, 2, 8)
    blocks, lengths = build.input("blocks", "i32", (3, 5)), build.input("lengths", "i32", (3,))
    k, v = (build.transpose(build.reshape(each[blocks], (3, 20, 2, 8)), (0, 2, 1, 3)) for each in (keys, values))
    scores = build.sum(k * build.expand_dims(q, 2), -1)
    seen = build.iota((3, 1, 20), "i32", 2) < build.reshape(lengths, (3, 1, 1))
    weights = build.softmax(build.where(seen, scores, float("-inf")))
    result = build.sum(build.expand_dims(weights, -1) * v, 2)

    def given(r: np.random.Generator) -> list[Values]:
        return [random("f32", (3, 2, 8), 0), random("f32", (10, 4, 2, 8), 1), random("f32", (10, 4, 2, 8), 2),
                r.integers(0, 10, (3, 5)).astype(np.int32), r.integers(1, 21, 3).astype(np.int32)]  # fmt: skip

    def wanted(q: Values, keys: Values, values: Values, blocks: Values, lengths: Values) -> Values:
        found = np.empty_like(q)
        for row, count in enumerate(lengths):
            k, v = (each[blocks[row]].reshape(20, 2, 8)[:count] for each in (keys, values))
            found[row] = np.einsum("ht,thd->hd", softmax(np.einsum("hd,thd->ht", q[row], k)), v)
        return found

    return [q, keys, values, blocks, lengths], result, given, wanted


def experts() -> Pattern:
    """Rows in the order of their experts, which multiply them, and are added up at their places, two for each row."""
    x, weights, gates = floats("x", 6, 8), floats("w", 3, 8, 5), floats("gates", 12)
    rows, expert = build.input("rows", "i64", (12,)), build.input("expert", "i64", (12,))
    products = build.sum(build.expand_dims(x[rows], 2) * weights[expert], 1) * build.expand_dims(gates, 1)
    result = build.put(build.constant(0, "f32", (6, 5)), rows, products, accumulation="+")

    def given(r: np.random.Generator) -> list[Values]:
        chosen = r.integers(0, 3, 12)
        order = np.argsort(chosen, kind="stable")
        return [random("f32", (6, 8), 0), random("f32", (3, 8, 5), 1), random("f32", (12,), 2),
                np.repeat(np.arange(6), 2)[order], chosen[order]]  # fmt: skip

    def wanted(x: Values, weights: Values, gates: Values, rows: Values, expert: Values) -> Values:
        found = np.zeros((6, 5), np.float32)
        for row, e, gate in zip(rows, expert, gates, strict=True):
            found[row] += gate * (x[row] @ weights[e])
        return found

    return [x, weights, gates, rows, expert], result, given, wanted


def one_hot_product() -> Pattern:
    """The product of a matrix of one-hot rows, without the matrix, and with a bias."""
    w, ids, bias = floats("w", 9, 16), build.input("ids", "i32", (4, 3)), floats("b", 16)
    draw: Callable[[np.random.Generator], list[Values]] = lambda r: [  # noqa: E731
        random("f32", (9, 16), 0), r.integers(0, 9, (4, 3)).astype(np.int32), random("f32", (16,), 1)]  # fmt: skip

    def wanted(w: Values, ids: Values, bias: Values) -> Values:
        return np.eye(9, dtype=np.float32)[ids] @ w + bias

    return [w, ids, bias], w[ids] + bias, draw, wanted


def cache_update() -> Pattern:
    """A cache whose rows from a position on are replaced, and attention to what it has then."""
    cache, new, at = floats("cache", 2, 16, 8), floats("new", 2, 3, 8), build.input("at", "i64", ())
    written = build.put_from(cache, at, new, axis=1)
    seen = build.iota((1, 16), "i64", 1) < at + 3
    result = build.sum(build.where(build.expand_dims(seen, -1), written, 0), 1)
    draw: Callable[[np.random.Generator], list[Values]] = lambda r: [  # noqa: E731
        random("f32", (2, 16, 8), 0), random("f32", (2, 3, 8), 1), np.array(r.integers(0, 14))]  # fmt: skip

    def wanted(cache: Values, new: Values, at: Values) -> Values:
        found = cache.copy()
        found[:, at : at + 3] = new
        return found[:, : at + 3].sum(1)

    return [cache, new, at], result, draw, wanted


def histogram() -> Pattern:
    """How often each of seven numbers occurs; others count as the nearest one."""
    x = build.input("x", "i32", (40,))
    counts = build.constant(0, "i32", (7,))
    result = build.put(counts, x, build.constant(1, "i32"), accumulation="+", outside="clamp")
    draw: Callable[[np.random.Generator], list[Values]] = lambda r: [r.integers(-3, 10, 40).astype(np.int32)]  # noqa: E731

    def wanted(x: Values) -> Values:
        return np.bincount(np.clip(x, 0, 6), minlength=7)

    return [x], result, draw, wanted


PATTERNS = [paged_attention, experts, one_hot_product, cache_update, histogram]


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda each: each.__name__)
def test_patterns(pattern: Callable[[], Pattern]) -> None:
    inputs, result, given, wanted = pattern()
    kernel = build.kernel(pattern.__name__, inputs, [result])
    calls = [pdojo.compile(each) for each in (kernel, make_moves(kernel, host(), "heuristic").after)]
    for seed in range(4):
        arrays = given(np.random.default_rng(seed))
        right = wanted(*arrays)
        for call in calls:
            poisoned = np.full(result.shape, 77, right.dtype if right.dtype.kind == "f" else np.int32)
            call(*arrays, poisoned)
            np.testing.assert_allclose(poisoned, right, rtol=1e-4, atol=1e-5)
        if not seed:
            np.testing.assert_allclose(pdojo.run(kernel, *arrays), right, rtol=1e-4, atol=1e-5)

"""Transposed convolutions with a convolution for each phase, beside the sums of their definition."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import pdojo
from pdojo import build
from pdojo.dialect.view.build import nest_of

Pairs = Sequence[tuple[int, int]]


def summed(
    x: NDArray[Any], weights: NDArray[Any], steps: Sequence[int], cut: Pairs, more: Sequence[int]
) -> NDArray[Any]:
    """Every element of `x` [N, C, ...] adds the weights [C, O, ...], times itself, to the result."""
    taps, places = weights.shape[2:], x.shape[2:]
    whole = [(n - 1) * s + k + b for n, s, k, b in zip(places, steps, taps, more, strict=True)]
    found = np.zeros((x.shape[0], weights.shape[1], *whole))
    for tap in product(*map(range, taps)):
        at = tuple(slice(t, t + (n - 1) * s + 1, s) for t, n, s in zip(tap, places, steps, strict=True))
        found[(..., *at)] += np.einsum("nc...,co->no...", x, weights[(..., *tap)])
    return found[(..., *[slice(a, n - b) for (a, b), n in zip(cut, whole, strict=True)])]


@pytest.mark.parametrize("seed", range(24))
def test_random_shapes(seed: int) -> None:
    random, numbers = Random(seed), np.random.default_rng(seed)
    rank = random.choice((1, 2, 2, 3))
    taps = [random.randint(1, 5 if rank < 3 else 3) for _ in range(rank)]
    steps = [random.randint(1, 3 if rank < 3 else 2) for _ in range(rank)]
    places = [random.randint(2, 6) for _ in range(rank)]
    more = [random.randint(0, s - 1) for s in steps]
    cut = [(random.randint(0, (k - 1) // 2), random.randint(0, (k - 1) // 2)) for k in taps]
    channels, outputs = random.choice((16, 17)), random.choice((1, 5, 16))
    x, w = numbers.standard_normal((2, channels, *places)), numbers.standard_normal((channels, outputs, *taps))
    b = numbers.standard_normal(outputs)
    handles = [build.input(name, "f64", each.shape) for name, each in zip("xwb", (x, w, b), strict=True)]
    result = build.conv_transpose(*handles, stride=steps, padding=cut, output_padding=more)
    kernel = build.kernel("k", handles, [result])
    wanted = summed(x, w, steps, cut, more) + b.reshape(-1, *[1] * rank)
    np.testing.assert_allclose(pdojo.run(kernel, x, w, b), wanted, rtol=1e-12, atol=1e-12)


def test_products_with_zeros_are_left_out() -> None:
    """Nine products for each element of the input, and no sum for a phase without taps."""
    x, w = build.input("x", "f32", (1, 16, 8, 8)), build.input("w", "f32", (16, 16, 3, 3))
    kernel = build.kernel("k", [x, w], [build.conv_transpose(x, w, stride=2, padding=1, output_padding=1)])
    leaves = nest_of(kernel).leaves
    assert sum(np.prod(leaf.extents) for leaf in leaves if leaf.accumulate) == 9 * 8 * 8 * 16 * 16

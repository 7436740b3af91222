"""Kernels as users of NumPy write them: the same function of handles and of NumPy's arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pdojo
from pdojo import build
from unit.build.references import NUMPY, Values, random, run

Kernel = Callable[..., Any]
KERNELS: list[tuple[Kernel, tuple[str, ...]]] = []


def of(*arrays: str) -> Callable[[Kernel], Kernel]:
    """A kernel with its arguments, such as `f32 4 8`."""

    def add(kernel: Kernel) -> Kernel:
        KERNELS.append((kernel, arrays))
        return kernel

    return add


@of("f32 5 16")
def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@of("f32 2 3 6 8", "f32 2 3 6 8", "f32 2 3 6 8")
def attention(q: Any, k: Any, v: Any) -> Any:
    scores = q @ k.swapaxes(-1, -2) / 8**0.5
    causal = np.tril(np.ones((6, 6), bool))
    scores = np.where(causal, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return (weights / weights.sum(-1, keepdims=True)) @ v


@of("f32 4 16", "f32 16")
def rms_norm(x: Any, w: Any) -> Any:
    return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-5) * w


@of("f32 4 16", "f32 16", "f32 16")
def layer_norm(x: Any, scale: Any, shift: Any) -> Any:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * scale + shift


@of("f32 40")
def moving_average(x: Any) -> Any:
    return (x[:-4] + x[1:-3] + x[2:-2] + x[3:-1] + x[4:]) / 5


@of("f32 40", "f32 5")
def filtered(x: Any, taps: Any) -> Any:
    return np.convolve(x, taps, mode="same")


@of("f32 6 30")
def standard_scores(x: Any) -> Any:
    return (x - np.mean(x, axis=0)) / np.std(x, axis=0, ddof=1)


@of("f32 7 5", "f32 9 5")
def squared_distances(x: Any, y: Any) -> Any:
    return ((x[:, None, :] - y[None, :, :]) ** 2).sum(axis=-1)


@of("f32 7 5", "f32 9 5")
def distances_by_products(x: Any, y: Any) -> Any:
    squares = np.sum(x * x, axis=1)[:, np.newaxis] + np.sum(y * y, axis=1) - 2 * (x @ y.T)
    return np.sqrt(np.maximum(squares, 0) + 1e-3)


@of("f32 6 2 8", "f32 6 4", "f32 6 4")
def rotary(x: Any, cos: Any, sin: Any) -> Any:
    even, odd = x[..., ::2], x[..., 1::2]
    c, s = cos[:, None, :], sin[:, None, :]
    turned = np.stack([even * c - odd * s, even * s + odd * c], axis=-1)
    return turned.reshape(x.shape)


@of("f32 2 6", "f32 2 6")
def complex_product(x: Any, y: Any) -> Any:
    (a, b), (c, d) = x, y
    return np.stack((a * c - b * d, a * d + b * c))


@of("f32 3 20")
def gelu(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3)))


@of("f32 20 4")
def covariance(x: Any) -> Any:
    centred = x - x.mean(axis=0)
    return centred.T @ centred / (len(x) - 1)


@of("f32 20 4")
def correlation(x: Any) -> Any:
    z = (x - x.mean(0)) / x.std(0)
    return np.dot(z.T, z) / x.shape[0]


@of("f32 2 3 4", "f32 2 4 5")
def einsum_implicit(a: Any, b: Any) -> Any:
    return np.einsum("bij,bjk", a, b)


@of("f32 2 3 4", "f32 4 5")
def einsum_dots(a: Any, b: Any) -> Any:
    return np.einsum("...ij,jk->...ik", a, b)


@of("f32 6", "f32 6", "f32 6 6")
def bilinear(x: Any, y: Any, m: Any) -> Any:
    return np.einsum("i,ij,j->", x, m, y)


@of("f32 6", "f32 4", "f32 6 4")
def rank_one_update(x: Any, y: Any, m: Any) -> Any:
    return m + np.outer(x, y)


@of("f32 4 10", "i1 4 10")
def masked_mean(x: Any, mask: Any) -> Any:
    return (x * mask).sum(axis=1) / (mask.sum(axis=1).astype(x.dtype) + 1)


@of("f32 4 10")
def mean_of_positive(x: Any) -> Any:
    return x.mean(axis=1, where=x > -5)


@of("f32 9 9")
def laplacian(u: Any) -> Any:
    near = np.roll(u, 1, axis=0) + np.roll(u, -1, axis=0) + np.roll(u, 1, axis=1) + np.roll(u, -1, axis=1)
    return near - 4 * u


@of("f32 8 9")
def sobel(image: Any) -> Any:
    p = np.pad(image, 1, mode="edge")
    gx = p[:-2, 2:] - p[:-2, :-2] + 2 * (p[1:-1, 2:] - p[1:-1, :-2]) + p[2:, 2:] - p[2:, :-2]
    gy = p[2:, :-2] - p[:-2, :-2] + 2 * (p[2:, 1:-1] - p[:-2, 1:-1]) + p[2:, 2:] - p[:-2, 2:]
    return np.hypot(gx, gy)


@of("f32 4 12")
def draw_down(x: Any) -> Any:
    level = np.cumsum(x, axis=1)
    return level - np.maximum.accumulate(level, axis=1)


@of("f32 30")
def exclusive_sums(x: Any) -> Any:
    return np.concatenate([np.zeros(1, np.float32), np.cumsum(x)[:-1]])


@of("f32 8 6", "i64 4")
def embedding(table: Any, ids: Any) -> Any:
    return np.take(table, ids, axis=0) * 2


@of("f32 5 7")
def one_hot_of_greatest(x: Any) -> Any:
    return (np.arange(7) == np.argmax(x, axis=1)[:, None]).astype(np.float32)


@of("f32 6 4", "f32 4 5", "f32 5", "f32 5 3")
def two_layers(x: Any, w1: Any, b1: Any, w2: Any) -> Any:
    return np.maximum(x @ w1 + b1, 0) @ w2


@of("f32 6 5", "f32 6 5")
def cosine_similarity(x: Any, y: Any) -> Any:
    return np.sum(x * y, -1) / (np.linalg.norm(x, axis=-1) * np.linalg.norm(y, axis=-1))


@of("i32 5 6")
def checksum(x: Any) -> Any:
    low, high = x & 15, x >> 4
    return (low ^ (high * 3 + 1)) % 7 - divmod(x, 5)[1] // 2


@of("f32 3 8 8")
def max_pool(x: Any) -> Any:
    return x.reshape(3, 4, 2, 4, 2).max(axis=(2, 4))


@of("f32 4 6", "f32 4 6")
def huber(x: Any, y: Any) -> Any:
    d = abs(x - y)
    near = d < 1
    return np.where(near, 0.5 * d**2, 0).mean() + (~near * (d - 0.5)).mean()


@of("f32 2 3 5", "f32 3 5 4")
def tensor_product(a: Any, b: Any) -> Any:
    return np.tensordot(a, b, axes=([1, 2], [0, 1]))


@of("f32 4 9")
def mirrored(x: Any) -> Any:
    return np.hstack((x[:, ::-1], np.flip(x, 0), np.tile(x[:, :1], (1, 2)), np.repeat(x[:, -1:], 2, axis=1)))


@of("f32 12")
def log_sum_exp(x: Any) -> Any:
    top = x.max()
    return top + np.log(np.add.reduce(np.exp(x - top)))


@of("f32 10 3")
def differences(x: Any) -> Any:
    return np.diff(x, axis=0).clip(-1, 1).round(2)


@of("f32 3 4 5")
def axes_around(x: Any) -> Any:
    return np.moveaxis(x, 0, -1).transpose(1, 0, 2)[::-2, -1, ..., None] + x.T[0, 0, 0]


@of("f32 4 6", "f32 4 6")
def inside(x: Any, y: Any) -> Any:
    return ((x > 0) & ~(y >= 0.5) | np.isclose(x, y)).any(axis=0)


@of("f32 6 6", "f64 6", "f64 6")
def residual(a: Any, x: Any, b: Any) -> Any:
    r = b - a @ x
    return np.sqrt((r**2).mean())


@of("f32 50")
def centred_in_double(x: Any) -> Any:
    return x - x.sum(dtype=np.float64) / len(x)


@of("f32 4 10", "f64 10")
def weighted_average(x: Any, weights: Any) -> Any:
    return np.average(x, axis=1, weights=weights**2)


@of("f16 5 6", "f32 6 3", "f64 3")
def layer_of_three_precisions(x: Any, w: Any, b: Any) -> Any:
    return np.maximum(x @ w + b, 0)


@of("f32 8", "f64 8")
def replaced_by_better(rough: Any, exact: Any) -> Any:
    near = abs(rough - exact) < 0.5
    return (near * exact + ~near * rough).clip(-2, 2)


@of("f32 20")
def cubic(x: Any) -> Any:
    return ((np.array([2.0]) * x - 3) * x + np.float32(0.25)) * x


@of("i32 5", "i64 7")
def flat_indices(rows: Any, columns: Any) -> Any:
    return (rows[:, None] % 9) * 7 + columns


@of("i64 12", "i32 12")
def hours(seconds: Any, offsets: Any) -> Any:
    return (seconds * 86399 + offsets * 60) // 3600 % 24


@of("i32 3 6", "i64 3")
def running_totals(counts: Any, start: Any) -> Any:
    return np.concatenate([start[:, None], start[:, None] + np.cumsum(counts, axis=1)], axis=1)


@of("u8 6 7", "u8 6 7", "i8 7")
def image_difference(one: Any, other: Any, bias: Any) -> Any:
    return np.abs(one.astype(np.int16) - other) + bias


@of("u8 16", "u32 16")
def hashed(data: Any, state: Any) -> Any:
    return (state ^ data) * np.arange(16, dtype=np.uint16) % 65521


@of("i32 4 9", "i64 4 9", "i16 9")
def greatest_of_three(a: Any, b: Any, c: Any) -> Any:
    return np.maximum(np.maximum(a, b), c).max(axis=0) - np.minimum(b, c).min()


@of("i32 4 9", "i64 9")
def places_in_row(values: Any, row: Any) -> Any:
    return (row < values[..., None]).sum(axis=-1) + (values == row)


def arrays_of(texts: tuple[str, ...]) -> tuple[list[build.Array], list[Values]]:
    """Handles and random arrays of texts such as `f32 4 8`."""
    handles: list[build.Array] = []
    values: list[Values] = []
    for number, text in enumerate(texts):
        dtype, *extents = text.split()
        shape = tuple(map(int, extents))
        handles.append(build.input(f"x{number}", dtype, shape))
        given = random(dtype, shape, number)
        values.append(abs(given) % 4 if dtype == "i64" else given)
    return handles, values


def wide(values: Values) -> Values:
    return values.astype(np.float64) if values.dtype == np.float32 else values


@pytest.mark.parametrize(("kernel", "texts"), [pytest.param(*row, id=row[0].__name__) for row in KERNELS])
def test_kernels_are_functions_of_numpy(kernel: Kernel, texts: tuple[str, ...]) -> None:
    handles, values = arrays_of(texts)
    made = kernel(*handles)
    found = run(made, handles, values)
    assert np.dtype(NUMPY[made.dtype]) == np.asarray(kernel(*values)).dtype
    wanted = np.asarray(kernel(*map(wide, values)))
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5)


def test_sizes_that_callers_give() -> None:
    n = build.size("N", 2, 64)
    x, w = build.input("x", "f32", (n, 8)), build.input("w", "f32", (8, 3))

    def kernel(x: Any, w: Any) -> Any:
        centred = x - x.mean(axis=0)
        scores = np.exp(centred @ w)
        return np.concatenate([scores / scores.sum(-1, keepdims=True), np.roll(scores, 1, axis=0)], axis=1)

    made = build.kernel("sized", [x, w], [kernel(x, w)])
    for rows in (2, 9):
        given = random("f32", (rows, 8), rows), random("f32", (8, 3), 1)
        np.testing.assert_allclose(pdojo.run(made, *given), kernel(*given), rtol=2e-5)

"""Composites against NumPy in float64: convolutions, pools, losses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

from pdojo import build
from pdojo.build import Array
from unit.build.references import Values, run, softmax
from unit.build.test_primitives import Built, Reference, Spec, check, inputs_of


def _channels(values: Values, rank: int = 2) -> Values:
    return values.reshape(-1, *[1] * rank)


def _sigmoid(x: Values) -> Values:
    return 1 / (1 + np.exp(-x))


def _log_softmax(x: Values, axis: int) -> Values:
    return np.log(softmax(x, axis))


def _huber(d: Values) -> Values:
    return np.where(abs(d) < 0.5, d * d / 2, 0.5 * (abs(d) - 0.25))


def _cross(x: Values, classes: Values, axis: int) -> Values:
    scores = np.moveaxis(_log_softmax(x, axis), axis, -1)
    return -np.take_along_axis(scores, classes[..., None], -1)[..., 0]


def _classes(a: Sequence[Any]) -> Any:
    """Classes below 5 from small integers of any sign."""
    return a[1] % 5


def _bce(x: Values, y: Values) -> Values:
    return -(y * np.log(_sigmoid(x)) + (1 - y) * np.log(1 - _sigmoid(x)))


CASES: dict[str, tuple[Spec, Built, Reference]] = {
    "leaky_relu of slopes": (
        "f64 2 3 4, f64 3 1",
        lambda a: build.leaky_relu(a[0], a[1]),
        lambda a: np.where(a[0] > 0, a[0], a[0] * a[1]),
    ),
    "cross_entropy": (
        "f64 7 5, i64 7",
        lambda a: build.cross_entropy(a[0], _classes(a), reduction="none"),
        lambda a: _cross(a[0], _classes(a), 1),
    ),
    "cross_entropy of images": (
        "f64 2 5 3, i32 2 3",
        lambda a: build.cross_entropy(a[0], _classes(a), 1),
        lambda a: _cross(a[0], _classes(a), 1).mean(),
    ),
    "mse_loss": ("f64 3 5, f64 3 5", lambda a: build.mse_loss(*a), lambda a: ((a[0] - a[1]) ** 2).mean()),
    "mse_loss, summed": (
        "f64 3 5, f64 3 5",
        lambda a: build.mse_loss(*a, reduction="sum"),
        lambda a: ((a[0] - a[1]) ** 2).sum(),
    ),
    "huber_loss": ("f64 9, f64 9", lambda a: build.huber_loss(a[0], a[1], 0.5), lambda a: _huber(a[0] - a[1]).mean()),
    "binary_cross_entropy": (
        "f64 9, f64 9",
        lambda a: build.binary_cross_entropy(a[0], a[1] * a[1], reduction="none"),
        lambda a: _bce(a[0], a[1] ** 2),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_composites(name: str) -> None:
    check(*CASES[name], tolerance=1e-9)


def _windows(x: Values, size: Sequence[int], stride: Sequence[int], dilation: Sequence[int]) -> Values:
    reach = tuple(d * (k - 1) + 1 for k, d in zip(size, dilation, strict=True))
    seen = sliding_window_view(x, reach, tuple(range(2, x.ndim)))
    return seen[(..., *[slice(None, None, s) for s in stride], *[slice(None, None, d) for d in dilation])]


def _conv(x: Values, w: Values, stride: Sequence[int], padding: Any, dilation: Sequence[int], groups: int) -> Values:
    padded = np.pad(x, ((0, 0), (0, 0), *padding))
    rank = x.ndim - 2
    parts: list[Values] = []
    for channels, filters in zip(np.split(padded, groups, 1), np.split(w, groups), strict=True):
        seen = _windows(channels, w.shape[2:], stride, dilation)
        axes = [1, *range(2 + rank, 2 + 2 * rank)]
        parts.append(np.moveaxis(np.tensordot(seen, filters, (axes, range(1, 2 + rank))), -1, 1))
    return np.concatenate(parts, 1)


@pytest.mark.parametrize(
    ("spec", "stride", "padding", "dilation", "groups"),
    [
        ("f64 2 3 9, f64 4 3 3", (2,), ((1, 0),), (1,), 1),
        ("f64 2 4 7 8, f64 6 2 3 2", (1, 2), ((1, 1), (0, 2)), (2, 1), 2),
        ("f64 1 3 7 7, f64 6 1 3 3", (1, 1), ((1, 1), (1, 1)), (1, 1), 3),
        ("f64 1 2 4 5 6, f64 3 2 2 1 3", (1, 2, 1), ((0, 0), (1, 1), (0, 1)), (1, 1, 2), 1),
        ("f64 2 5 4 4, f64 3 5 1 1", (1, 1), ((0, 0), (0, 0)), (1, 1), 1),
    ],
)
def test_conv(spec: Spec, stride: Sequence[int], padding: Any, dilation: Sequence[int], groups: int) -> None:
    facts = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    check(
        spec,
        lambda a: build.conv(*a, **facts),
        lambda a: _conv(a[0], a[1], stride, padding, dilation, groups),
    )


def test_conv_with_a_bias() -> None:
    check(
        "f64 2 3 5 5, f64 4 3 3 3, f64 4",
        lambda a: build.relu(build.conv(*a, padding=1)),
        lambda a: np.maximum(_conv(a[0], a[1], (1, 1), ((1, 1), (1, 1)), (1, 1), 1) + _channels(a[2]), 0),
    )


def _scattered(x: Values, w: Values, s: int, padding: tuple[int, int], more: int, d: int, groups: int) -> Values:
    """Transposed convolution in one dimension, by its definition."""
    extent, window = x.shape[2], d * (w.shape[2] - 1) + 1
    inputs, outputs = x.shape[1] // groups, w.shape[1]
    whole = np.zeros((x.shape[0], outputs * groups, (extent - 1) * s + window + more))
    for g, i, k in np.ndindex(groups, extent, w.shape[2]):
        channels = slice(g * inputs, (g + 1) * inputs)
        whole[:, g * outputs : (g + 1) * outputs, i * s + k * d] += x[:, channels, i] @ w[channels, :, k]
    return whole[:, :, padding[0] : whole.shape[2] - padding[1]]


@pytest.mark.parametrize(
    ("spec", "stride", "padding", "more", "dilation", "groups"),
    [
        ("f64 2 3 5, f64 3 4 3", 1, (0, 0), 0, 1, 1),
        ("f64 2 3 5, f64 3 4 3", 2, (1, 1), 1, 1, 1),
        ("f64 2 4 5, f64 4 3 3", 3, (2, 1), 2, 1, 2),
        ("f64 1 2 4, f64 2 3 2", 2, (0, 1), 0, 3, 1),
        ("f64 1 2 4, f64 2 3 1", 3, (0, 0), 0, 1, 1),
    ],
)
def test_conv_transpose(
    spec: Spec, stride: int, padding: tuple[int, int], more: int, dilation: int, groups: int
) -> None:
    check(
        spec,
        lambda a: build.conv_transpose(
            *a, stride=stride, padding=[padding], output_padding=more, dilation=dilation, groups=groups
        ),
        lambda a: _scattered(a[0], a[1], stride, padding, more, dilation, groups),
    )


def test_conv_transpose_of_images() -> None:
    """Separable weights: one dimension after the other."""
    x, rows, columns = (
        build.input("x", "f64", (1, 1, 3, 4)),
        build.input("r", "f64", (3,)),
        build.input("c", "f64", (2,)),
    )
    weights = build.reshape(rows, (1, 1, 3, 1)) * columns
    result = build.conv_transpose(x, weights, stride=(2, 3), padding=((1, 0), (0, 1)))
    generator = np.random.default_rng(0)
    values = [generator.normal(size=shape) for shape in ((1, 1, 3, 4), (3,), (2,))]
    found = run(result, [x, rows, columns], values)
    down = _scattered(values[0][0].transpose(2, 0, 1), values[1].reshape(1, 1, 3), 2, (1, 0), 0, 1, 1)
    across = _scattered(down.transpose(2, 1, 0), values[2].reshape(1, 1, 2), 3, (0, 1), 0, 1, 1)
    np.testing.assert_allclose(found[0, 0], across[:, 0])


def _spans(extent: int, k: int, s: int, before: int, after: int, ceil: bool) -> list[tuple[int, int]]:
    """Begin and end of windows, relative to the image."""
    most = extent + before + after - k
    count = (-(-most // s) if ceil else most // s) + 1
    starts = [i * s - before for i in range(count)]
    return [(start, start + k) for start in starts if start < extent]


def _pooled(
    x: Values, spans: Sequence[Sequence[tuple[int, int]]], kind: str, ends: Sequence[tuple[int, int]]
) -> Values:
    shape = tuple(len(axis) for axis in spans)
    found = np.empty((*x.shape[:2], *shape))
    for place in np.ndindex(shape):
        parts: list[tuple[int, int]] = [axis[i] for axis, i in zip(spans, place, strict=True)]
        window = x[(..., *[slice(max(a, 0), max(b, 0)) for a, b in parts])]
        axes = tuple(range(2, x.ndim))
        if kind == "max":
            found[(..., *place)] = window.max(axes)
            continue
        limits = [(-a, e + b) if kind == "with" else (0, e) for (a, b), e in zip(ends, x.shape[2:], strict=True)]
        counts = [min(b, high) - max(a, low) for (a, b), (low, high) in zip(parts, limits, strict=True)]
        found[(..., *place)] = window.sum(axes) / (1 if kind == "sum" else math.prod(counts))
    return found


@pytest.mark.parametrize("kind", ["max", "sum", "with", "without"])
@pytest.mark.parametrize("ceil", [False, True])
@pytest.mark.parametrize(
    ("extents", "size", "stride", "padding"),
    [
        ((9,), (3,), (2,), ((1, 1),)),
        ((6, 7), (3, 2), (2, 3), ((1, 0), (0, 1))),
        ((5, 6), (2, 3), (2, 3), ((0, 0), (0, 0))),
        ((3, 8), (2, 4), (3, 4), ((1, 1), (2, 2))),
    ],
)
def test_pools(
    kind: str, ceil: bool, extents: Sequence[int], size: Sequence[int], stride: Sequence[int], padding: Any
) -> None:
    spans = [
        _spans(extent, k, s, before, after, ceil)
        for extent, k, s, (before, after) in zip(extents, size, stride, padding, strict=True)
    ]

    def pooled(x: Array) -> Array:
        if kind in ("with", "without"):
            count_padding = kind == "with"
            return build.avg_pool(x, size, stride=stride, padding=padding, ceil=ceil, count_padding=count_padding)
        name = "max" if kind == "max" else "+"
        return build.pool(name, x, size, stride=stride, padding=padding, ceil=ceil)

    text = " ".join(map(str, extents))
    check(f"f64 2 3 {text}", lambda a: pooled(a[0]), lambda a: _pooled(a[0], spans, kind, padding))


def test_pool_of_bytes() -> None:
    check(
        "u8 1 2 6",
        lambda a: build.pool("max", a[0], (3,), padding=1, stride=1, dilation=2),
        lambda a: _windows(np.pad(a[0], ((0, 0), (0, 0), (1, 1))), (3,), (1,), (2,)).max(-1),
    )


@pytest.mark.parametrize(("padding", "count_padding"), [((0, 0), True), ((2, 1), True), ((2, 1), False)])
def test_means_of_windows_with_gaps(padding: tuple[int, int], count_padding: bool) -> None:
    def mean(x: Values) -> Values:
        padded = np.pad(x, ((0, 0), (0, 0), padding), constant_values=0 if count_padding else np.nan)
        return np.nanmean(_windows(padded, (3,), (2,), (2,)), -1)

    def built(a: Sequence[Array]) -> Array:
        return build.avg_pool(a[0], (3,), padding=(padding,), stride=2, dilation=2, count_padding=count_padding)

    check("f64 1 2 9", built, lambda a: mean(a[0]))


def test_extreme_values() -> None:
    x = build.input("x", "f32", (3, 2))
    values = np.array([[1000, -1000], [-np.inf, -np.inf], [np.inf, 0]], np.float32)
    zeros = build.constant(0, "f32", (3, 2))
    assert run(build.binary_cross_entropy(x, zeros, reduction="none"), [x], [values])[0].tolist() == [1000, 0]


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_16_bits_round_once(dtype: str) -> None:
    """The result is the rounded result in f32."""
    handles, values = inputs_of("f32 3 7")
    x = build.cast(handles[0], dtype)
    for unary in (build.exp,):
        found = run(unary(x), handles, values)
        np.testing.assert_array_equal(found, run(build.cast(unary(build.cast(x, "f32")), dtype), handles, values))

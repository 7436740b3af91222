"""Composites against NumPy in float64: norms, activations, softmax and attention."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pdojo import build
from unit.build.references import Values, erf, run, softmax
from unit.build.test_primitives import Built, Reference, Spec, check, inputs_of


def _normal(x: Values, axis: int | tuple[int, ...]) -> Values:
    return (x - x.mean(axis, keepdims=True)) / np.sqrt(x.var(axis, keepdims=True) + 1e-5)


def _channels(values: Values, rank: int = 2) -> Values:
    return values.reshape(-1, *[1] * rank)


def _sigmoid(x: Values) -> Values:
    return 1 / (1 + np.exp(-x))


def _log_softmax(x: Values, axis: int) -> Values:
    return np.log(softmax(x, axis))


def _causal(x: Values) -> Values:
    return softmax(np.where(np.tri(*x.shape[-2:], dtype=np.bool_), x, -np.inf))


CASES: dict[str, tuple[Spec, Built, Reference]] = {
    "relu": ("f64 9", lambda a: build.relu(a[0]), lambda a: np.maximum(a[0], 0)),
    "leaky_relu": ("f64 9", lambda a: build.leaky_relu(a[0], 0.2), lambda a: np.where(a[0] > 0, a[0], a[0] * 0.2)),
    "leaky_relu of slopes": (
        "f64 2 3 4, f64 3 1",
        lambda a: build.leaky_relu(a[0], a[1]),
        lambda a: np.where(a[0] > 0, a[0], a[0] * a[1]),
    ),
    "elu": ("f64 9", lambda a: build.elu(a[0], 1.5), lambda a: np.where(a[0] > 0, a[0], 1.5 * np.expm1(a[0]))),
    "selu": (
        "f64 9",
        lambda a: build.selu(a[0]),
        lambda a: 1.0507009873554805 * np.where(a[0] > 0, a[0], 1.6732632423543772 * np.expm1(a[0])),
    ),
    "celu": ("f64 9", lambda a: build.celu(a[0], 0.7), lambda a: np.where(a[0] > 0, a[0], 0.7 * np.expm1(a[0] / 0.7))),
    "gelu": ("f64 9", lambda a: build.gelu(a[0]), lambda a: a[0] / 2 * (1 + erf(a[0] / math.sqrt(2)))),
    "gelu by tanh": (
        "f64 9",
        lambda a: build.gelu(a[0], approximate=True),
        lambda a: a[0] / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (a[0] + 0.044715 * a[0] ** 3))),
    ),
    "sigmoid": ("f64 9", lambda a: build.sigmoid(a[0]), lambda a: _sigmoid(a[0])),
    "silu": ("f64 9", lambda a: build.silu(a[0]), lambda a: a[0] * _sigmoid(a[0])),
    "softplus": ("f64 9", lambda a: build.softplus(a[0]), lambda a: np.log1p(np.exp(a[0]))),
    "softplus with beta": ("f64 9", lambda a: build.softplus(a[0], 3), lambda a: np.log1p(np.exp(3 * a[0])) / 3),
    "softmax": ("f64 3 5", lambda a: build.softmax(a[0]), lambda a: softmax(a[0])),
    "softmax of columns": ("f64 3 5 2", lambda a: build.softmax(a[0], -2), lambda a: softmax(a[0], 1)),
    "softmax with a mask": (
        "f64 3 5, f64 5",
        lambda a: build.softmax(a[0], mask=a[1] > -1),
        lambda a: softmax(np.where(a[1] > -1, a[0], -np.inf)),
    ),
    "softmax with summands": (
        "f64 3 5, f64 5",
        lambda a: build.softmax(a[0], mask=a[1]),
        lambda a: softmax(a[0] + a[1]),
    ),
    "causal_softmax of one element": (
        "f64 1 1",
        lambda a: build.causal_softmax(a[0]),
        lambda a: _causal(a[0]),
    ),
    "causal_softmax": ("f64 2 4 6", lambda a: build.causal_softmax(a[0] * 2), lambda a: _causal(a[0] * 2)),
    "log_softmax": ("f64 3 5", lambda a: build.log_softmax(a[0], 0), lambda a: _log_softmax(a[0], 0)),
    "logsumexp": (
        "f64 3 4 5",
        lambda a: build.logsumexp(a[0], (0, -1)),
        lambda a: np.log(np.exp(a[0]).sum((0, -1))),
    ),
    "logsumexp, axes kept": (
        "f64 3 5",
        lambda a: build.logsumexp(a[0], keepdims=True),
        lambda a: np.log(np.exp(a[0]).sum(-1, keepdims=True)),
    ),
    "attention": (
        "f64 2 3 4, f64 2 5 4, f64 2 5 6",
        lambda a: build.attention(*a),
        lambda a: softmax(a[0] @ a[1].swapaxes(-1, -2) / 2) @ a[2],
    ),
    "attention of groups": (
        "f64 2 4 3 4, f64 2 1 5 4, f64 1 5 6",
        lambda a: build.attention(*a, scale=0.3),
        lambda a: softmax(a[0] @ a[1].swapaxes(-1, -2) * 0.3) @ a[2],
    ),
    "attention, causal": (
        "f64 2 3 4, f64 2 5 4, f64 2 5 6",
        lambda a: build.attention(*a, causal=True),
        lambda a: _causal(a[0] @ a[1].swapaxes(-1, -2) / 2) @ a[2],
    ),
    "attention with a mask": (
        "f64 3 4, f64 5 4, f64 5 6, f64 3 5",
        lambda a: build.attention(a[0], a[1], a[2], mask=a[3]),
        lambda a: softmax(a[0] @ a[1].T / 2 + a[3]) @ a[2],
    ),
    "layer_norm": (
        "f64 3 5, f64 5, f64 5",
        lambda a: build.layer_norm(*a),
        lambda a: _normal(a[0], -1) * a[1] + a[2],
    ),
    "layer_norm of axes": (
        "f64 2 3 4, f64 3 4",
        lambda a: build.layer_norm(a[0], a[1], axis=(-2, -1)),
        lambda a: _normal(a[0], (1, 2)) * a[1],
    ),
    "rms_norm": (
        "f64 3 5, f64 5",
        lambda a: build.rms_norm(a[0], a[1], eps=0.1),
        lambda a: a[0] / np.sqrt((a[0] ** 2).mean(-1, keepdims=True) + 0.1) * a[1],
    ),
    "group_norm": (
        "f64 2 6 3 4, f64 6, f64 6",
        lambda a: build.group_norm(a[0], 2, a[1], a[2]),
        lambda a: _normal(a[0].reshape(2, 2, 36), 2).reshape(2, 6, 3, 4) * _channels(a[1]) + _channels(a[2]),
    ),
    "instance_norm": (
        "f64 2 3 5, f64 3, f64 3",
        lambda a: build.instance_norm(*a),
        lambda a: _normal(a[0], 2) * _channels(a[1], 1) + _channels(a[2], 1),
    ),
    "batch_norm": (
        "f64 2 3 4 5, f64 3, f64 3",
        lambda a: build.batch_norm(*a),
        lambda a: _normal(a[0], (0, 2, 3)) * _channels(a[1]) + _channels(a[2]),
    ),
    "batch_norm of columns": (
        "f64 7 3, f64 3",
        lambda a: build.batch_norm(a[0], a[1], axis=-1),
        lambda a: _normal(a[0], 0) * a[1],
    ),
    "batch_norm of one image": ("f64 1 3 4 5", lambda a: build.batch_norm(a[0]), lambda a: _normal(a[0], (0, 2, 3))),
    "batch_norm, channels first": (
        "f64 3 4 5",
        lambda a: build.batch_norm(a[0], axis=0),
        lambda a: _normal(a[0], (1, 2)),
    ),
    "batch_norm of statistics": (
        "f64 2 3 4, f64 3, f64 3, f64 3, f64 3",
        lambda a: build.batch_norm(a[0], a[1], a[2], statistics=(a[3], a[4] * a[4])),
        lambda a: (
            (a[0] - _channels(a[3], 1)) / np.sqrt(_channels(a[4] ** 2, 1) + 1e-5) * _channels(a[1], 1)
            + _channels(a[2], 1)
        ),
    ),
    "batch_norm of statistics alone": (
        "f64 2 3 4, f64 3",
        lambda a: build.batch_norm(a[0], statistics=(a[1], a[1] * a[1])),
        lambda a: (a[0] - _channels(a[1], 1)) / np.sqrt(_channels(a[1] ** 2, 1) + 1e-5),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_composites(name: str) -> None:
    check(*CASES[name], tolerance=1e-9)


def test_extreme_values() -> None:
    x = build.input("x", "f32", (3, 2))
    values = np.array([[1000, -1000], [-np.inf, -np.inf], [np.inf, 0]], np.float32)
    assert run(build.logsumexp(x), [x], [values]).tolist() == [1000, -np.inf, np.inf]
    assert run(build.softplus(x), [x], [values])[0].tolist() == [1000, 0]
    assert run(build.sigmoid(x), [x], [values])[0].tolist() == [1, 0]
    assert run(build.silu(x), [x], [values])[0].tolist() == [1000, -0.0]
    assert run(build.elu(x), [x], [values])[0].tolist() == [1000, -1]
    assert run(build.softmax(x), [x], [values])[0].tolist() == [1, 0]
    zeros = build.constant(0, "f32", (3, 2))
    assert run(build.binary_cross_entropy(x, zeros, reduction="none"), [x], [values])[0].tolist() == [1000, 0]


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_16_bits_round_once(dtype: str) -> None:
    """The result is the rounded result in f32."""
    handles, values = inputs_of("f32 3 7, f32 7")
    x, g = (build.cast(handle, dtype) for handle in handles)
    wide = [build.cast(each, "f32") for each in (x, g)]
    for function in (build.rms_norm, build.layer_norm):
        found = run(function(x, g), handles, values)
        wanted = run(build.cast(function(*wide), dtype), handles, values)
        np.testing.assert_array_equal(found, wanted)
    for unary in (build.softmax, build.gelu, build.silu, build.softplus, build.selu, build.logsumexp, build.exp):
        found = run(unary(x), handles, values)
        np.testing.assert_array_equal(found, run(build.cast(unary(wide[0]), dtype), handles, values))

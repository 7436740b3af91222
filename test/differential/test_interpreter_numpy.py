"""The library kernels, interpreted at sizes of an eighth of the paper's Table 3 and less, against NumPy in float64."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pdojo.dialect.interpreter import interpret, interpret_stepwise
from pdojo.dialect.nest import Nest, nest_of
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.oracle import reduce_sizes
from pdojo.dialect.rounding import Values

KERNELS = Path(__file__).parents[2] / "pdojo" / "kernels"


def softmax(x: Values) -> Values:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def layernorm(x: Values, g: Values, b: Values) -> Values:
    d = x - x.mean(-1, keepdims=True)
    return d / np.sqrt((d * d).mean(-1, keepdims=True) + 1e-5) * g + b


def rmsnorm(x: Values, w: Values) -> Values:
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * w


def relu(x: Values) -> Values:
    return np.maximum(x, 0)


def reducemean(x: Values) -> Values:
    return np.asarray(x.mean(-1))


MEANINGS: dict[str, Callable[..., Values]] = {
    "softmax": softmax,
    "layernorm": layernorm,
    "rmsnorm": rmsnorm,
    "matmul": np.matmul,
    "add": np.add,
    "relu": relu,
    "reducemean": reducemean,
}


def resized(name: str, instances: int) -> Nest:
    """The kernel on smaller arrays, with the divisor of means, which is a constant of the text, made to fit."""
    text = (KERNELS / f"{name}.pdojo").read_text()
    large = nest_of(parse_notation(text)[0])
    small = reduced(text, instances)
    rows = next(iter(large.arrays))
    old, new = (nest.arrays[rows].shape[-1] for nest in (large, small))
    return reduced(text.replace(f"/ {old}", f"/ {new}"), instances)


def reduced(text: str, instances: int) -> Nest:
    small = reduce_sizes(parse_notation(text)[0], instances)
    assert small is not None
    return nest_of(small)


def drawn(nest: Nest) -> dict[str, Values]:
    random = np.random.default_rng(1)
    arrays = (a for a in nest.arrays.values() if a.intent is not None and a.intent.value == "in")
    return {a.name: random.standard_normal(a.shape).astype(np.float32) for a in arrays}


@pytest.mark.parametrize("name", MEANINGS)
@pytest.mark.parametrize("instances", [3_000, 6_000_000])
def test_interpreted_kernels_are_what_numpy_computes(name: str, instances: int) -> None:
    nest = resized(name, instances)
    inputs = drawn(nest)
    (got,) = interpret(nest, inputs).values()
    want = MEANINGS[name](*(v.astype(np.float64) for v in inputs.values()))
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, want, rtol=3e-5, atol=3e-5)
    if instances < 10_000:
        (stepwise,) = interpret_stepwise(nest, inputs).values()
        np.testing.assert_allclose(stepwise, want, rtol=3e-5, atol=3e-5)

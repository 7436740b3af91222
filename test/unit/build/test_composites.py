"""Cases that the table of operators has no samples of."""

from __future__ import annotations

import numpy as np
import pytest

from pdojo import build
from unit.build.references import run
from unit.build.test_primitives import check, inputs_of


def test_slopes_of_leaky_relu() -> None:
    check(
        "f64 2 3 4, f64 3 1",
        lambda a: build.leaky_relu(a[0], a[1]),
        lambda a: np.where(a[0] > 0, a[0], a[0] * a[1]),
        tolerance=1e-9,
    )


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
    found = run(build.exp(x), handles, values)
    np.testing.assert_array_equal(found, run(build.cast(build.exp(build.cast(x, "f32")), dtype), handles, values))

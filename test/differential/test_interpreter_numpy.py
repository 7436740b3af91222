"""The library kernels, interpreted in whole arrays and statement by statement, against NumPy in float64."""

from __future__ import annotations

import numpy as np
import pytest

from pdojo.dialect.semantics.interpreter import interpret, interpret_stepwise
from pdojo.dialect.semantics.rounding import Values
from pdojo.dialect.view.build import nest_of
from pdojo.dialect.view.nest import Nest
from pdojo.kernels import workload
from pdojo.kernels.reference import numpy_reference

SMALL = {"matmul": "8x12x16", "add": "8x64"}
LARGE = {"matmul": "96x128x160", "add": "2048x512"}
ROWS = ("softmax", "layernorm", "rmsnorm", "relu", "reducemean")


def shape(name: str, *, large: bool) -> str:
    return (LARGE if large else SMALL).get(name, "2048x512" if large else "8x64")


def drawn(nest: Nest) -> dict[str, Values]:
    random = np.random.default_rng(1)
    arrays = (a for a in nest.arrays.values() if a.intent is not None and a.intent.value == "in")
    return {a.name: random.standard_normal(a.shape).astype(np.float32) for a in arrays}


@pytest.mark.parametrize("name", ["matmul", "add", *ROWS])
@pytest.mark.parametrize("large", [False, True])
def test_interpreted_kernels_are_what_numpy_computes(name: str, *, large: bool) -> None:
    wanted = workload(f"{name}:{shape(name, large=large)}")
    nest = nest_of(wanted.instantiate())
    inputs = drawn(nest)
    (got,) = interpret(nest, inputs).values()
    (want,) = numpy_reference(wanted)(*inputs.values())
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, want, rtol=3e-5, atol=3e-5)
    if not large:
        (stepwise,) = interpret_stepwise(nest, inputs).values()
        np.testing.assert_allclose(stepwise, want, rtol=3e-5, atol=3e-5)

"""Elementwise nests behind contractions: the pass of CPUs computes them on blocks of results in registers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pdojo import build
from pdojo.build import Array
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.passes.scheduled_kernel import assume_alignment, make_moves


def kernel(behind: Callable[[Array, Array], Array]) -> KernelOp:
    """A product of [24, 16] and [32, 16], a bias, and functions of the sum and an array of its shape."""
    x, w = build.input("x", "f32", (24, 16)), build.input("w", "f32", (32, 16))
    b, r = build.input("b", "f32", (32,)), build.input("r", "f32", (24, 32))
    total = build.matmul(x, build.transpose(w)) + b
    return build.kernel("layer", [x, w, b, r], {"y": behind(total, r)})


FUSED: dict[str, Callable[[Array, Array], Array]] = {
    "bias": lambda total, r: total + r,
    "residual, activation": lambda total, r: build.relu(total + r),
    "quotient": lambda total, r: (total + r) / 3,
    "root": lambda total, r: build.sqrt(abs(total + r)),
    "hard swish": lambda total, r: (total + r) * build.clip(total + r + 3, 0, 6) * 0.16666667,
}
APART: dict[str, Callable[[Array, Array], Array]] = {
    "two readers": lambda total, r: build.gelu(total + r),
    "exp": lambda total, r: build.exp(total + r),
}


@pytest.mark.parametrize("name", [*FUSED, *APART])
def test_updates_in_place_join_up_to_the_fewest_arrays(name: str) -> None:
    plain = kernel((FUSED | APART)[name])
    after = make_moves(assume_alignment(plain, None), machine("x86-64-avx512"), "heuristic").after
    nests = print_notation(after).split("\n\n")[1].splitlines()
    starts = [number for number, line in enumerate(nests) if not line.startswith("|")]
    behind = "\n".join(nests[starts[-1] :])
    assert ("fma=" in behind) == (name in FUSED), behind
    # Behind the sum, the bias and the residual no array is stored but one.
    stored = {line.split("[")[0].split()[-1] for line in nests[: starts[-1]] if "] = " in line and " + r[" in line}
    assert name in FUSED or len(stored) == 1
    random = np.random.default_rng(0)
    inputs = {
        n: random.normal(size=s).astype(np.float32)
        for n, s in (("x", (24, 16)), ("w", (32, 16)), ("b", (32,)), ("r", (24, 32)))
    }
    assert np.allclose(interpret(after, inputs)["y"], interpret(plain, inputs)["y"], rtol=1e-5, atol=1e-5)

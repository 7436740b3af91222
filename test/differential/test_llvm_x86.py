"""Instructions of AVX-512 give the bits of the code for all processors."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from pdojo.backends.llvm.executable import compile as compile_kernel
from pdojo.dialect.machines.registry import host, machine
from pdojo.dialect.notation import parse_notation
from pdojo.transforms.game import Game

pytestmark = pytest.mark.skipif(
    not {"avx512f", "avx512dq", "avx512vl"} <= set(host().features), reason="this processor has no AVX-512"
)
COUNT = 1 << 16
BITS = {"f32": np.uint32, "f64": np.uint64}


def values(dtype: str, seed: int) -> NDArray[np.generic]:
    """Random bit patterns, NaN, infinities, denormals and both zeros among them, and moderate numbers."""
    random = np.random.default_rng(seed)
    words = random.integers(0, np.iinfo(BITS[dtype]).max, COUNT, BITS[dtype], endpoint=True)
    real = np.float32 if dtype == "f32" else np.float64
    patterns = words.view(real).copy()
    patterns[: COUNT // 2] = random.normal(0, 40, COUNT // 2)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, np.finfo(real).tiny, -np.finfo(real).smallest_subnormal]
    patterns[:: COUNT // 4096] = random.choice(np.array(special, real), len(patterns[:: COUNT // 4096]))
    return patterns


def run(machine_name: str, dtype: str, lanes: int, statement: str, *inputs: NDArray[np.generic]) -> NDArray[np.generic]:
    """The statement over all values, `lanes` at a time, with the instructions of a machine."""
    text = f"kernel k(a, b) -> (y)\na {dtype} [{COUNT}] heap\nb {dtype} [{COUNT}] heap\ny {dtype} [{COUNT}] heap\n\n"
    (kernel,) = parse_notation(text + f"{COUNT // lanes} {lanes}:v y[{{0}}*{lanes}+{{1}}] = {statement}")
    game = Game(kernel, machine(machine_name))
    return compile_kernel(game.kernel, machine(machine_name), threads=1)(*inputs)


@pytest.mark.parametrize(("dtype", "lanes"), [("f32", 16), ("f32", 8), ("f32", 4), ("f64", 8), ("f64", 4), ("f64", 2)])
@pytest.mark.parametrize("function", ["exp(a[{i}])", "max(a[{i}], b[{i}])", "min(a[{i}], b[{i}])"])
def test_same_bits(function: str, dtype: str, lanes: int) -> None:
    """With AVX-512 as without, up to the payload of a NaN."""
    inputs = values(dtype, 1), values(dtype, 2)
    statement = function.replace("{i}", f"{{0}}*{lanes}+{{1}}")
    first, second = (run(m, dtype, lanes, statement, *inputs) for m in ("x86-64-avx2", "host"))
    assert np.array_equal(np.isnan(first), np.isnan(second))
    numbers = ~np.isnan(first)
    bits = BITS[dtype]
    assert np.array_equal(first.view(bits)[numbers], second.view(bits)[numbers])

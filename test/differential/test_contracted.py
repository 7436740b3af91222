"""Contracted products and sums: compiled code against the interpreter, bit for bit where the order is fixed."""

from __future__ import annotations

import numpy as np
import pytest

from differential.compiled import compiled, kernel, random_inputs, run, same
from pdojo.backends.llvm.executable import compile
from pdojo.dialect.semantics.interpreter import interpret, interpret_stepwise

BODIES = {
    "elements": "24 z[{0}] fma= x[{0}] * y[{0}]",
    "threads": "24:p z[{0}] fma= x[{0}] * y[{0}]",
    "vectors": "3 8:v z[{0}*8+{1}] fma= x[{0}*8+{1}] * y[{0}]",
    "masked vectors": "4 8:v where ({0}*8+{1} < 22) z[{0}*8+{1}] fma= x[{0}*8+{1}] * y[{0}*8+{1}]",
    "unrolled": "6 4:u z[{0}] fma= x[{0}*4+{1}] * y[{0}*4+{1}]",
    "reduction": "24 z[0] fma= x[{0}] * y[{0}]",
    "columns": "6 4 z[{1}] fma= x[{0}*4+{1}] * y[{0}]",
    "guarded": "4 7 where ({0}*7+{1} < 24) z[{0}] fma= x[{0}*7+{1}] * y[{0}*7+{1}]",
    "constant factor": "24 z[{0}] fma= x[{0}] * 0.3",
}


@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "bf16"])
@pytest.mark.parametrize("name", BODIES)
def test_compiled_code_rounds_once(name: str, dtype: str) -> None:
    declared = "\n".join(f"{array} {dtype} [24] heap" for array in "xyz")
    text = f"kernel k(x, y, z) -> (z)\n{declared}\n\n{BODIES[name]}"
    executable = compile(kernel(text), threads=2, optimize="search")
    differs = False
    for seed in range(6):
        inputs = random_inputs(executable.parameters, seed)
        found = run(executable, inputs)["z"]
        assert same(found, interpret_stepwise(kernel(text), inputs)["z"], dtype)
        assert same(found, interpret(kernel(text), inputs)["z"], dtype)
        twice = interpret_stepwise(kernel(text.replace("fma=", "+=")), inputs)["z"]
        differs = differs or not np.array_equal(found, twice)
    assert differs, "the inputs do not tell one rounding from two"


def test_a_product_that_cancels() -> None:
    x = np.float32(1 + 2.0**-12)
    text = "kernel k(x, y, z) -> (z)\nx f32 [8] heap\ny f32 [8] heap\nz f32 [8] heap\n\n8:v z[{0}] fma= x[{0}] * y[{0}]"
    inputs = {"x": np.full(8, x), "y": np.full(8, x), "z": np.full(8, -1 - 2.0**-11, np.float32)}
    assert compiled(text, inputs)[1]["z"].tolist() == [2.0**-24] * 8

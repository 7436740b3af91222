"""Contracted products and sums: compiled code against the interpreter, bit for bit where the order is fixed."""

from __future__ import annotations

import numpy as np
import pytest

from differential.compiled import compiled, kernel, random_inputs, run, same
from pdojo.backends.llvm.executable import compile
from pdojo.dialect.semantics.interpreter import interpret, interpret_stepwise
from pdojo.dialect.semantics.rounding import from_interface, to_interface

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


def test_a_tie_is_broken_by_what_f64_loses() -> None:
    """The product is halfway between two bf16 numbers, and 85 places above the addend."""
    arrays = "\n".join(f"{name} bf16 [8] heap" for name in "xyz")
    text = f"kernel k(x, y, z) -> (z)\n{arrays}\n\n8:v z[{{0}}] fma= x[{{0}}] * y[{{0}}]"
    values = {"x": float.fromhex("2.8p0"), "y": float.fromhex("1.94p99"), "z": float.fromhex("1.d4p15")}
    inputs = {name: to_interface(np.full(8, value, np.float32), "bf16") for name, value in values.items()}
    found = from_interface(compiled(text, inputs)[1]["z"], "bf16")
    assert [float(value).hex() for value in found] == ["0x1.fa00000000000p+100"] * 8
    inputs["z"] = to_interface(np.full(8, -values["z"], np.float32), "bf16")
    found = from_interface(compiled(text, inputs)[1]["z"], "bf16")
    assert [float(value).hex() for value in found] == ["0x1.f800000000000p+100"] * 8

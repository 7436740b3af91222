"""`z fma= x * y` rounds once: in both paths of the interpreter, however the statement is batched, in every type."""

from __future__ import annotations

import numpy as np
import pytest

from pdojo.dialect.notation import parse_notation
from pdojo.dialect.semantics.interpreter import interpret, interpret_stepwise
from pdojo.dialect.semantics.rounding import INTERFACE, Values, from_interface, round_float64, to_interface
from pdojo.dialect.view.build import nest_of
from pdojo.dialect.view.nest import Nest

DIGITS = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8}

BODIES = {
    "one op": "z[0] fma= x[0] * x[0]",
    "elements": "12 z[{0}] fma= x[{0}] * x[{0}]",
    "vectors": "3 4:v z[{0}*4+{1}] fma= x[{0}*4+{1}] * x[{0}*4+{1}]",
    "threads": "12:p z[{0}] fma= x[{0}] * x[{0}]",
    "guarded": "3 5 where ({0}*5+{1} < 12) z[{0}*5+{1}] fma= x[{0}*5+{1}] * x[{0}*5+{1}]",
    "permuted": "12 z[{0}*5%12] fma= x[{0}] * x[{0}]",
    "in sequence": "12\n| z[{0}] fma= x[{0}] * x[{0}]\n| z[{0}] max= -4",
    "constant factor": "12 z[{0}] fma= x[{0}] * {x}",
}


def program(dtype: str, body: str, extents: str = "x [12]; z [12]") -> Nest:
    declared = "\n".join(
        f"{name} {dtype} {shape} heap" for name, shape in (e.split(" ", 1) for e in extents.split("; "))
    )
    arrays = ", ".join(e.split(" ", 1)[0] for e in extents.split("; "))
    return nest_of(parse_notation(f"kernel k({arrays}) -> (z)\n{declared}\n\n{body}")[0])


def stored(values: float | Values, dtype: str, count: int) -> Values:
    carried = round_float64(np.broadcast_to(np.asarray(values, np.float64), (count,)), dtype)
    return np.asarray(to_interface(carried, dtype), INTERFACE[dtype])


@pytest.mark.parametrize("dtype", DIGITS)
@pytest.mark.parametrize("name", BODIES)
def test_one_rounding(name: str, dtype: str) -> None:
    half = -(-DIGITS[dtype] // 2)
    # x * x is 1 + 2**(1 - half) + 2**(-2 * half), whose last term a rounding of the product drops.
    x, z = 1 + 2.0**-half, -1 - 2.0 ** (1 - half)
    body = BODIES[name].replace("{x}", repr(x))
    inputs = {"x": stored(x, dtype, 12), "z": stored(z, dtype, 12)}
    for text, want in ((body, 2.0 ** (-2 * half)), (body.replace("fma=", "+="), 0.0)):
        nest = program(dtype, text)
        for run in (interpret, interpret_stepwise):
            for seed in (None, 3):
                found = from_interface(run(nest, inputs, seed=seed)["z"], dtype)
                touched = found if name != "one op" else found[:1]
                assert touched.tolist() == [want] * len(touched)


@pytest.mark.parametrize("dtype", DIGITS)
@pytest.mark.parametrize(
    ("body", "extents"),
    [
        ("40 z[0] fma= x[{0}] * y[{0}]", "x [40]; y [40]; z [1]"),
        ("8 5 z[{0}%2] fma= x[{0}*5+{1}] * y[{0}*5+{1}]", "x [40]; y [40]; z [2]"),
        ("5 8 z[{0}] fma= x[{0}*8+{1}] * y[{1}*5+{0}]", "x [40]; y [40]; z [5]"),
        ("5 8 where ({0}+{1} > 2) z[{0}] fma= x[{0}*8+{1}] * y[{1}*5]", "x [40]; y [40]; z [5]"),
        ("10 4:v z[{1}] fma= x[{0}*4+{1}] * y[{0}]", "x [40]; y [40]; z [4]"),
    ],
)
def test_short_reductions_go_in_order(body: str, extents: str, dtype: str) -> None:
    random = np.random.default_rng(2)
    nest = program(dtype, body, extents)
    inputs = {a.name: stored(random.normal(0, 3, a.shape), dtype, a.shape[0]) for a in nest.arrays.values()}
    want, found = interpret_stepwise(nest, inputs)["z"], interpret(nest, inputs)["z"]
    assert found.tobytes() == want.tobytes()


@pytest.mark.parametrize("dtype", ["f64", "f32"])
def test_long_reductions_to_few_elements(dtype: str) -> None:
    random = np.random.default_rng(4)
    count = 3 * 2**15 + 5
    nest = program(dtype, f"{count} z[0] fma= x[{{0}}] * y[{{0}}]", f"x [{count}]; y [{count}]; z [1]")
    inputs = {n: stored(random.integers(-8, 9, c), dtype, c) for n, c in (("x", count), ("y", count), ("z", 1))}
    exact = inputs["z"][0] + inputs["x"].astype(np.float64) @ inputs["y"].astype(np.float64)
    assert interpret(nest, inputs)["z"][0] == exact


@pytest.mark.parametrize("sign", ["fma=", "+="])
@pytest.mark.parametrize("count", [4, 4096])
def test_a_sum_of_negative_zeros_keeps_its_sign(sign: str, count: int) -> None:
    nest = program("f32", f"{count} z[0] {sign} x[{{0}}] * y[{{0}}]", f"x [{count}]; y [{count}]; z [1]")
    inputs = {"x": np.full(count, -0.0, np.float32), "y": np.ones(count, np.float32), "z": np.full(1, -0.0, np.float32)}
    assert np.signbit(interpret(nest, inputs)["z"][0])


@pytest.mark.parametrize("dtype", DIGITS)
def test_fma_as_a_function_of_scalars(dtype: str) -> None:
    nest = program(dtype, "z[0] = fma(x[0], x[1], x[2])", "x [3]; z [1]")
    inputs = {"x": stored(np.array([2.0, 3.0, 1.0]), dtype, 3), "z": stored(0, dtype, 1)}
    for run in (interpret, interpret_stepwise):
        assert from_interface(run(nest, inputs)["z"], dtype).tolist() == [7]

"""Functions of moderate arguments by shorter recipes: the bits of the whole recipe, one test for several results."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pdojo.backends.snitch.executable import SimulatedRun, load
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.math.functions import FUNCTIONS

CORE = machine("snitch-xdiv")
TYPES: dict[str, Any] = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
NAMES = [name.partition(".")[2] for name, record in FUNCTIONS.items() if record.moderate is not None]
SCALAR = """kernel k(x) -> (y)
x {0} [8, 6] heap align 8
y {0} [8, 6] heap align 8

8
| 6:u y[{{0}},{{1}}] = {1}(x[{{0}},{{1}}])
"""
STREAMED = SCALAR.replace("8\n| 6:u y[{{0}},{{1}}]", "1:s 8\n| 6:u y[{{1}},{{2}}]").replace(
    "x[{{0}},{{1}}])", "x[{{1}},{{2}}])"
)
PACKED = SCALAR.replace("6:u y[{{0}},{{1}}]", "3:u 2:v y[{{0}},{{1}}*2+{{2}}]").replace(
    "x[{{0}},{{1}}])", "x[{{0}},{{1}}*2+{{2}}])"
)
LANES = """kernel k(x) -> (y)
x {0} [8, 8] heap align 8
y {0} [8, 8] heap align 8

1:s 8
| 2:u 4:v y[{{1}},{{2}}*4+{{3}}] = {1}(x[{{1}},{{2}}*4+{{3}}])
"""
TWICE = """kernel k(x) -> (y)
x {0} [8, 6] heap align 8
y {0} [8, 6] heap align 8
e {0} [8:N, 6] register

8
| 6:u e[{{0}},{{1}}] = -x[{{0}},{{1}}]
| 6:u e[{{0}},{{1}}] = {1}(e[{{0}},{{1}}])
| 6:u e[{{0}},{{1}}] = e[{{0}},{{1}}] + 1
| 6:u y[{{0}},{{1}}] = {1}(e[{{0}},{{1}}])
"""


def arguments(dtype: str, name: str, rare: float, columns: int = 6) -> NDArray[Any]:
    """Moderate numbers; a part `rare` of them are at the limit of moderate numbers, beyond it, or no numbers."""
    moderate = FUNCTIONS[f"math.{name}"].moderate
    assert moderate is not None
    shape = (8, columns)
    random = np.random.default_rng(int(100 * rare))
    limits = [TYPES[dtype](moderate.bound(dtype)), TYPES[dtype](moderate.far(dtype))]
    edges = [np.nextafter(limit, TYPES[dtype](to)) for limit in limits for to in (0, limit, np.inf)]
    special = [*edges, np.nan, np.inf, 3e4, 1.05 * limits[0], 1e-30, 0.0]
    chosen = random.choice(special, shape) * random.choice([-1, 1], shape)
    return np.where(random.random(shape) < rare, chosen, random.normal(0, 5, shape)).astype(TYPES[dtype])


def run(text: str, *inputs: NDArray[Any]) -> list[SimulatedRun]:
    (kernel,) = parse_notation(text)
    loaded = load(kernel, CORE)
    return [loaded.run({"x": x}) for x in inputs]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("template", "dtype"),
    [(SCALAR, "f32"), (STREAMED, "f64"), (PACKED, "f32"), (TWICE, "f32")],
)
def test_bits_of_the_whole_recipe(name: str, template: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = template.format(dtype, name)
    inputs = [arguments(dtype, name, rare) for rare in (0.0, 0.15, 1.0)]
    found = run(text, *inputs)
    record = FUNCTIONS[f"math.{name}"]
    monkeypatch.setitem(FUNCTIONS, record.name, replace(record, moderate=None))
    whole = run(text, *inputs)
    for one, other in zip(found, whole, strict=True):
        np.testing.assert_array_equal(one.outputs["y"], other.outputs["y"])
        numbers = ~np.isnan(other.outputs["y"])
        np.testing.assert_array_equal(np.signbit(one.outputs["y"][numbers]), np.signbit(other.outputs["y"][numbers]))
    assert not np.isnan(whole[0].outputs["y"]).any()
    assert np.isnan(whole[2].outputs["y"]).any()
    # The second function of a program has arguments that are not moderate.
    assert template is TWICE or found[0].result.cycles < whole[0].result.cycles


@pytest.mark.parametrize(("template", "tests"), [(SCALAR, 2), (PACKED, 1), (TWICE, 4)])
def test_several_results_share_a_test(template: str, tests: int) -> None:
    """Six results have two tests, three registers of two lanes one; both functions of a program have theirs."""
    (kernel,) = parse_notation(template.format("f32", "exp"))
    source = load(kernel, CORE).source.text
    assert sum("bltu" in line and "moderate" in line for line in source.splitlines()) == tests


@pytest.mark.parametrize(("template", "columns"), [(SCALAR, 6), (LANES, 8)])
def test_narrow_numbers_are_tested_one_by_one(template: str, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are rounded behind the function, so that they cannot wait for a test."""
    text, x = template.format("f16", "exp"), arguments("f16", "exp", 0.3, columns)
    (found,) = run(text, x)
    monkeypatch.setitem(FUNCTIONS, "math.exp", replace(FUNCTIONS["math.exp"], moderate=None))
    (whole,) = run(text, x)
    np.testing.assert_array_equal(found.outputs["y"], whole.outputs["y"])


@pytest.mark.parametrize(("template", "dtype"), [(STREAMED, "f64"), (SCALAR, "f32")])
def test_masked_elements_do_not_cost_the_whole_recipe(
    template: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the arguments are -inf: never slower than the whole recipe for all."""
    text, x = template.format(dtype, "exp"), arguments(dtype, "exp", 0.0)
    x[np.random.default_rng(0).random(x.shape) < 0.5] = -np.inf
    (found,) = run(text, x)
    monkeypatch.setitem(FUNCTIONS, "math.exp", replace(FUNCTIONS["math.exp"], moderate=None))
    (whole,) = run(text, x)
    np.testing.assert_array_equal(found.outputs["y"], whole.outputs["y"])
    assert found.result.cycles < whole.result.cycles

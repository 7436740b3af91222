"""The reference interpreter: its two paths agree, its inputs are checked, its seeds and storages do what they say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.parser import Parser

from pdojo.dialect.notation import parse_notation
from pdojo.dialect.ops import PDOJO, KernelOp
from pdojo.dialect.semantics import slicing
from pdojo.dialect.semantics.batching import Layout, is_batchable
from pdojo.dialect.semantics.interpreter import interpret, interpret_stepwise
from pdojo.dialect.semantics.rounding import Values
from pdojo.dialect.view.build import nest_of
from pdojo.dialect.view.nest import Nest
from pdojo.errors import PdojoError
from pdojo.kernels import workload


def program(text: str) -> Nest:
    return nest_of(parse_notation(text)[0])


def unverified(text: str) -> Nest:
    context = Context()
    context.load_dialect(Builtin)
    context.load_dialect(PDOJO)
    kernel = Parser(context, text).parse_module().body.block.first_op
    assert isinstance(kernel, KernelOp)
    return nest_of(kernel)


def random_inputs(nest: Nest, seed: int = 0) -> dict[str, Values]:
    """Small integers, exactly representable and exactly summed in every type."""
    random = np.random.default_rng(seed)
    inputs: dict[str, Values] = {}
    for array in nest.arrays.values():
        if array.intent is not None and array.intent.value != "out":
            values = random.integers(-4, 5, array.shape)
            if array.dtype == "bf16":
                inputs[array.name] = (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
            else:
                name = array.dtype.replace("i1", "bool") if array.dtype == "i1" else array.dtype
                inputs[array.name] = values.astype(
                    {"f": "float", "i": "int"}.get(name[0], "") + name[1:] if name != "bool" else name
                )
    return inputs


def assert_paths_agree(
    nest: Nest, *, seeds: tuple[int | None, ...] = (None, 0, 1), storages: tuple[str, ...] = ("elements", "cells")
) -> None:
    inputs = random_inputs(nest)
    want = interpret_stepwise(nest, inputs)
    for seed in seeds:
        for storage in storages:
            for run in (interpret, interpret_stepwise):
                got = run(nest, inputs, seed=seed, storage=storage)  # pyright: ignore[reportArgumentType]
                assert list(got) == list(want)
                for name, values in want.items():
                    assert got[name].dtype == values.dtype
                    np.testing.assert_array_equal(got[name], values)


PROGRAMS = {
    "fused rows": """
kernel k(x) -> (y)
x f32 [6, 8] heap
y f32 [6, 8] heap
m f32 [6:N] heap
e f32 [6:N, 8] heap

6{P}
| m[{0}] = -inf
| 8 m[{0}] max= x[{0},{1}]
| 8 e[{0},{1}] = x[{0},{1}] - m[{0}]
| 2 4:v y[{0},{1}*4+{2}] = e[{0},{1}*4+{2}]
""",
    "shared scalar": """
kernel k(x) -> (y)
x f32 [6] heap
y f32 [6] heap
t f32 [1] heap

6
| t[0] = x[{0}]
| y[{0}] = t[0]
""",
    "guarded tiles": """
kernel k(x) -> (y)
x f32 [10] heap
y f32 [10] heap

3 4 where ({0}*4+{1} < 10) y[{0}*4+{1}] = x[{0}*4+{1}]
""",
    "guarded reduction": """
kernel k(x) -> (y)
x f32 [10, 3] heap
y f32 [3] heap

3 y[{0}] = 0
3 4 where ({0}*4+{1} < 10) 3 y[{2}] += x[{0}*4+{1},{2}]
""",
    "digits": """
kernel k(x) -> (y, z)
x i32 [12] heap
y i32 [3, 4] heap
z i32 [12] heap

12 y[{0}//4,{0}%4] = x[{0}]
12 z[{0}] = y[{0}//4,{0}%4] + x[11-{0}]
""",
    "transposed convolution": """
kernel k(x, w) -> (y)
x f32 [6] heap
w f32 [3] heap
y f32 [8] heap
t f32 [6, 3] heap

8 y[{0}] = 0
6 3 t[{0},{1}] = x[{0}] * w[{1}]
6 3 y[{0}+{1}] += t[{0},{1}]
""",
    "running total": """
kernel k(x, y) -> (y)
x i16 [7] heap
y i16 [1] heap
s i16 [7] heap

7
| y[0] += x[{0}]
| s[{0}] = y[0]
7 y[0] max= s[{0}]
""",
    "index values": """
kernel k(x) -> (y)
x f16 [3, 4] heap
y f16 [3, 4] heap

3 4 y[{0},{1}] = x[{0},{1}] * ({0}*4+{1})
""",
    "bfloat16": """
kernel k(x) -> (y, s)
x bf16 [3, 4] heap
y bf16 [3, 4] heap
s bf16 [3] heap

3
| s[{0}] = 0
| 4 s[{0}] += x[{0},{1}]
3 4 y[{0},{1}] = x[{0},{1}] / s[{0}]
""",
    "booleans": """
kernel k(a, x) -> (b, y)
a i1 [5] heap
x i64 [5] heap
b i1 [1] heap
y i64 [5] heap

b[0] = true
5 b[0] and= a[{0}]
5 y[{0}] = select(a[{0}], x[{0}], 7)
""",
    "scalars": """
kernel k(x) -> (y)
x f64 [4] heap
y f64 [1] heap
t f64 [2] heap

t[1] = 3
y[0] = x[2] * t[1]
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_paths_agree(name: str) -> None:
    for mapping in ("", ":p", ":u") if "{P}" in PROGRAMS[name] else ("",):
        assert_paths_agree(program(PROGRAMS[name].replace("{P}", mapping)))


def test_half_precision_sums_round_at_each_step() -> None:
    text = "kernel k(x) -> (y)\nx {} [512] heap\ny {} [1] heap\n\ny[0] = 256\n512 y[0] += x[{{0}}]"
    half = program(text.format("f16", "f16"))
    assert interpret(half, {"x": np.full(512, 0.125, np.float16)})["y"][0] == 256  # 256.125 is a tie
    brain = program(text.format("bf16", "bf16"))
    ones = np.full(512, 0x3F80, np.uint16)
    assert interpret(brain, {"x": ones})["y"][0] == 0x4380  # 257 rounds to 256


def test_memory_starts_poisoned() -> None:
    text = "kernel k(x) -> (y, n)\nx f32 [4] heap\ny f32 [4] heap\nn i32 [2] heap\n\n3 y[{0}] = x[{0}]\nn[0] = 1"
    found = interpret(program(text), {"x": np.ones(4, np.float32)})
    assert np.isnan(found["y"][3])
    assert found["n"].tolist() == [1, -1520812861]


def test_inputs_are_not_changed() -> None:
    nest = program("kernel k(x, y) -> (y)\nx f32 [4] heap\ny f32 [4] heap\n\n4 y[{0}] += x[{0}]")
    inputs = {"x": np.ones(4, np.float32), "y": np.ones(4, np.float32)}
    assert interpret(nest, inputs)["y"].tolist() == [2] * 4
    assert inputs["y"].tolist() == [1] * 4


def test_cells_show_what_a_wrong_reuse_does() -> None:
    text = (
        "kernel k(x) -> (y)\nx f32 [4] heap\ny f32 [4] heap\nt f32 [4:N] heap\n\n4 t[{0}] = x[{0}]\n4 y[{0}] = t[{0}]"
    )
    inputs = {"x": np.arange(4, dtype=np.float32)}
    for run in (interpret, interpret_stepwise):
        assert run(program(text), inputs)["y"].tolist() == [0, 1, 2, 3]
        assert run(program(text), inputs, storage="cells")["y"].tolist() == [3, 3, 3, 3]


def test_a_seed_permutes_threads() -> None:
    text = "kernel k(x) -> (y)\nx f32 [16] heap\ny f32 [1] heap\n\n16:p y[0] = x[{0}]"
    inputs = {"x": np.arange(16, dtype=np.float32)}
    for run in (interpret, interpret_stepwise):
        assert run(program(text), inputs)["y"][0] == 15
        assert len({float(run(program(text), inputs, seed=s)["y"][0]) for s in range(12)}) > 3


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "kernel 'k': input array 'x' is missing"),
        ({"x": np.zeros(4, np.float32), "z": np.zeros(4)}, "kernel 'k' has no input array 'z'; its inputs: x"),
        ({"x": np.zeros(4, np.float32), "y": np.zeros(4)}, "kernel 'k' has no input array 'y'; its inputs: x"),
        ({"x": np.zeros((2, 2), np.float32)}, r"input array 'x' has shape \(2, 2\), not \(4,\)"),
        ({"x": np.zeros(4)}, "input array 'x' of type f32 has NumPy type float64, not float32"),
    ],
)
def test_inputs_are_checked(inputs: dict[str, Values], message: str) -> None:
    nest = program("kernel k(x) -> (y)\nx f32 [4] heap\ny f32 [4] heap\n\n4 y[{0}] = x[{0}]")
    with pytest.raises(PdojoError, match=message):
        interpret(nest, inputs)


@pytest.mark.parametrize(
    ("body", "batchable"),
    [
        ("5 4 t[{0}*4+{1}] = x[{0}*4+{1}]", (True, True)),
        ("4 5 t[{1}*4+{0}] = x[{1}*4+{0}]", (True, True)),
        ("20 t[{0}] = x[19-{0}]", (True,)),
        ("5 4 t[{0}*3+{1}] = x[{0}]", (False, True)),
        ("5 4 t[{0}+{1}] += x[{0}]", (True, True)),
        ("5\n| t[0] = x[{0}]\n| y[{0}] = t[0]", (False,)),
        ("20 z[{0}//5,{0}%5] = x[{0}]", (True,)),
        ("10 t[{0}//2] = x[{0}]", (False,)),
    ],
)
def test_scopes_are_batched_only_where_iterations_are_separate(body: str, batchable: tuple[bool, ...]) -> None:
    head = "kernel k(x) -> (y)\nx f32 [20] heap\ny f32 [20] heap\nt f32 [20] heap\nz f32 [4, 5] heap\n\n"
    nest = program(head + body)
    layout = Layout(nest, cells=False)
    assert tuple(is_batchable(scope, layout) for scope in nest.scopes) == batchable


@st.composite
def _texts(draw: st.DrawFn) -> str:
    """Two nested scopes around statements that read and write two arrays with any linear indices."""
    sizes = (draw(st.integers(1, 4)), draw(st.integers(1, 4)))
    # Statements that agree on what they touch are the ones that can be batched.
    outer = ["%i", "%i * 4", "%i * 5 + 2", "7 - %i"]
    inner = ["%i * 4 + %j", "%j * 4 + %i", "%i * 6 + %j + 1", "%i * 6 + %j", "%j * 5 - %i + 4", "(%i * 4 + %j) mod 16"]
    pool = [draw(st.sampled_from(names)) for names in (outer, outer, inner, inner)]

    def index(inside: bool) -> str:
        if draw(st.integers(0, 3)):
            return draw(st.sampled_from(pool if inside else pool[:2]))
        terms = ["%i", "%j"] if inside else ["%i"]
        form = draw(st.sampled_from(["{} * {} + {}", "({} * {} + {}) floordiv 2", "({} * {} + {}) mod 3"]))
        return " + ".join(form.format(t, draw(st.integers(0, 4)), draw(st.integers(0, 2))) for t in terms)

    def statement(inside: bool) -> str:
        sign = draw(st.sampled_from(["=", "+=", "max=", "="]))
        target, source, other = (draw(st.sampled_from("tuu")) for _ in range(3))
        operands = f"%{source}[{index(inside)}], %{other}[{index(inside)}]"
        return f"pdojo.op %{target}[{index(inside)}] {sign} arith.subi({operands})"

    body = "\n".join(statement(True) for _ in range(draw(st.integers(1, 2))))
    before = statement(False) if draw(st.booleans()) else ""
    after = statement(False) if draw(st.booleans()) else ""
    guard = draw(st.sampled_from(["", "where (%i + %j < 4)", "where (%j > 0)"]))
    return f"""
pdojo.kernel @k(inout t %t : memref<48xi32>, inout u %u : memref<48xi32>) {{
  pdojo.scope %i = {sizes[0]} {{
    {before}
    pdojo.scope %j = {sizes[1]} {guard} {{
      {body}
    }}
    {after}
  }}
}}
"""


@settings(max_examples=60, deadline=None)
@given(_texts())
def test_paths_agree_on_random_programs(text: str) -> None:
    assert_paths_agree(unverified(text), seeds=(None,), storages=("elements",))


# Slices of large temporaries


PRODUCTS = """kernel f(x, y) -> (z)
x f32 [6, 8] heap
y f32 [8, 5] heap
z f32 [6, 5] heap
t f32 [6, 5, 8] heap

6 5
| z[{0},{1}] = 0
| 8
| | t[{0},{1},{2}] = x[{0},{2}] * y[{2},{1}]
| | z[{0},{1}] += t[{0},{1},{2}]
"""
UNWRITTEN = """kernel f(x) -> (y)
x f32 [4, 8] heap
y f32 [4, 8] heap
t f32 [4, 8] heap

4
| 8 where ({0} < 1) t[{0},{1}] = x[{0},{1}]
| 8 y[{0},{1}] = t[{0},{1}]
"""
HANDED_ON = """kernel f(x) -> (y)
x f32 [4, 8] heap
y f32 [4, 8] heap
t f32 [4, 8] heap

4 8 t[{0},{1}] = x[{0},{1}]
4 8 y[{0},{1}] = t[3-{0},{1}]
"""


@pytest.fixture
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slicing, "LARGE", 8)
    monkeypatch.setattr(slicing, "SMALL", 1)


@pytest.mark.usefixtures("small_slices")
def test_one_slice_of_a_large_temporary_is_kept() -> None:
    nest = program(PRODUCTS)
    assert Layout(nest, cells=False).homes[nest.arrays["t"]].shape == (1, 1, 8)
    x, y = (np.random.default_rng(0).normal(size=n).astype(np.float32) for n in ((6, 8), (8, 5)))
    for seed in (None, 0):
        np.testing.assert_allclose(interpret(nest, {"x": x, "y": y}, seed=seed)["z"], x @ y, rtol=1e-5, atol=1e-6)


@pytest.mark.usefixtures("small_slices")
def test_a_new_slice_is_unwritten() -> None:
    """What another iteration wrote is not there."""
    nest = program(UNWRITTEN)
    assert Layout(nest, cells=False).homes[nest.arrays["t"]].shape == (1, 8)
    y = interpret(nest, {"x": np.ones((4, 8), np.float32)})["y"]
    assert (y[0] == 1).all()
    assert np.isnan(y[1:]).all()


@pytest.mark.usefixtures("small_slices")
def test_what_other_scopes_read_is_no_slice() -> None:
    nest = program(HANDED_ON)
    assert Layout(nest, cells=False).slices == {}
    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    assert (interpret(nest, {"x": x})["y"] == x[::-1]).all()


@pytest.mark.usefixtures("small_slices")
@pytest.mark.parametrize(
    "name", ["softmax:4x8", "conv:2x3x2x6x6x3", "layernorm:4x8", "batchnorm:2x2x4x4", "bmm:2x3x4x5"]
)
def test_slices_do_not_change_results(name: str) -> None:
    nest = nest_of(workload(name).instantiate())
    inputs = random_inputs(nest)
    kept, whole = interpret(nest, inputs), interpret_stepwise(nest, inputs)
    for array, values in whole.items():
        np.testing.assert_allclose(kept[array], values, rtol=1e-4, atol=1e-5)

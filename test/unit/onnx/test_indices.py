"""Indices that are data in ONNX models: kernels, results beside ONNX's reference evaluator, and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="needs onnx")

from onnx import ModelProto, numpy_helper, parser

from pdojo.errors import IndexOutOfRange, UsageError
from pdojo.onnx import load
from pdojo.onnx.reference import reference

Values = Any
R = np.random.default_rng(0)


def model_of(text: str, **initialisers: Values) -> ModelProto:
    proto = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]>\n{text}')
    proto.graph.initializer.extend(numpy_helper.from_array(v, name) for name, v in initialisers.items())
    return proto


def floats(*shape: int) -> Values:
    return R.normal(size=shape).astype(np.float32)


def check(proto: ModelProto, *given: Values) -> list[str]:
    """Compare a model with the reference evaluator, interpreted and compiled; the names of its kernels."""
    model = load(proto)
    evaluator: Any = reference(proto)
    wanted = evaluator.run(None, {each.name: value for each, value in zip(model.inputs, given, strict=True)})
    for found in (model.interpret(*given), model.compile(tune="none")(*given)):
        np.testing.assert_allclose(found, wanted[0], rtol=1e-5, atol=1e-6)
    assert not model.static
    return [kernel.sym_name.data for kernel in model.specialise(*given).kernels]


GATHER = "m (float[5, 4, 3] x, int64[2, 6] i) => (float[a, b, c, d] y) { y = Gather <axis = 1> (x, i) }"
ELEMENTS = "m (float[5, 4, 3] x, int32[5, 6, 3] i) => (float[a, b, c] y) { y = GatherElements <axis = 1> (x, i) }"
TUPLES = "m (float[5, 4, 3] x, int64[2, 6, %s] i) => (y) { y = GatherND (x, i) }"
BATCH = "m (float[5, 4, 3] x, int64[5, 2, %s] i) => (y) { y = GatherND <batch_dims = 1> (x, i) }"


@pytest.mark.parametrize(
    ("text", "indices", "kernels"),
    [
        (GATHER, R.integers(-4, 4, (2, 6)), ["gather"]),
        (ELEMENTS, R.integers(-4, 4, (5, 6, 3)).astype(np.int32), ["gatherelements"]),
        (TUPLES % 1, R.integers(-5, 5, (2, 6, 1)), ["gathernd"]),
        (TUPLES % 2, np.stack([R.integers(-5, 5, (2, 6)), R.integers(-4, 4, (2, 6))], -1), ["part", "gathernd"]),
        (BATCH % 1, R.integers(-4, 4, (5, 2, 1)), ["gathernd"]),
        (BATCH % 2, np.stack([R.integers(-4, 4, (5, 2)), R.integers(-3, 3, (5, 2))], -1), ["part", "gathernd"]),
    ],
)
def test_indices_that_are_inputs(text: str, indices: Values, kernels: list[str]) -> None:
    assert check(model_of(text), floats(5, 4, 3), indices) == kernels


def test_indices_that_are_computed_from_numbers() -> None:
    proto = model_of("""
    m (float[7, 9] f, float[9, 16] w) => (float[7, 16] y) {
      a = ArgMax <axis = 1, keepdims = 1> (f)
      g = GatherElements <axis = 1> (f, a)
      one = Constant <value = int64[1] {1}> ()
      b = Squeeze (a, one)
      r = Gather (w, b)
      s = Add (r, g)
      y = Softmax (s)
    }
    """)
    kernels = check(proto, floats(7, 9), floats(9, 16))
    assert kernels[0] == "argmax"
    assert len(kernels) == 2


def test_parts_of_indices() -> None:
    proto = model_of("""
    m (float[5, 4] x, int64[6] i) => (float[a, b] y) {
      s = Constant <value = int64[1] {1}> ()
      e = Constant <value = int64[1] {4}> ()
      j = Slice (i, s, e)
      r = Gather (x, j)
      y = Relu (r)
    }
    """)
    assert check(proto, floats(5, 4), np.array([99, 1, -5, 4, 99, -99])) == ["slice", "gather_relu"]


def test_more_known_indices_than_a_table_has() -> None:
    text = "m (float[3, 50] x) => (float[3, 10, 600] y) { y = Gather <axis = 1> (x, i) }"
    assert check(model_of(text, i=R.integers(-50, 50, (10, 600))), floats(3, 50)) == ["gather"]
    text = "m (float[3, 50] x) => (float[3, 5000] y) { y = GatherElements <axis = 1> (x, i) }"
    assert check(model_of(text, i=R.integers(-50, 50, (3, 5000))), floats(3, 50)) == ["gatherelements"]
    proto = model_of("m (float[9000] x) => (float[5000] y) { y = Gather (x, i) }", i=np.arange(3, 5003))
    assert check(proto, floats(9000)) == ["gather"]
    assert not load(proto).specialise(floats(9000)).kernels[0].index_arrays()


@pytest.mark.parametrize("place", [(0, 0, 0), (1, 5, 1)])
def test_indices_out_of_range(place: tuple[int, ...]) -> None:
    model = load(model_of(TUPLES % 2))
    indices = np.zeros((2, 6, 2), np.int64)
    indices[place] = 4 + (place[-1] == 0)
    for call in (model.interpret, model.compile(tune="none")):
        with pytest.raises(
            IndexOutOfRange, match=rf"has the index {indices[place]} at \[{place[0]}, {place[1]}\]; its"
        ):
            call(floats(5, 4, 3), indices)


SCATTER_ELEMENTS = """
m (float[5, 4, 3] x, int64[2, 4, 3] i, float[2, 4, 3] u) => (float[5, 4, 3] y) {
  y = ScatterElements <axis = 0, reduction = "%s"> (x, i, u)
}
"""
SCATTER_TUPLES = """
m (float[5, 4, 3] x, int64[6, %d] i, float[6, %s] u) => (float[5, 4, 3] y) {
  r = ScatterND <reduction = "%s"> (x, i, u)
  y = Relu (r)
}
"""
ONCE = np.array([[3, 1], [0, 2], [-1, -4], [2, 3], [1, 1], [0, 0]])
"""Different pairs."""


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
def test_writes_at_indices_that_are_inputs(reduction: str) -> None:
    is_joined = reduction != "none"
    axis = (
        R.integers(-5, 5, (2, 4, 3)) if is_joined else np.stack([np.zeros((4, 3), np.int64), R.integers(1, 5, (4, 3))])
    )
    proto = model_of(SCATTER_ELEMENTS % reduction)
    assert check(proto, floats(5, 4, 3), axis, floats(2, 4, 3)) == ["scatterelements"]
    pairs = np.stack([R.integers(-5, 5, 6), R.integers(-4, 4, 6)], -1) if is_joined else ONCE
    proto = model_of(SCATTER_TUPLES % (2, "3", reduction))
    assert check(proto, floats(5, 4, 3), pairs, floats(6, 3)) == ["part", "scatternd_relu"]
    if is_joined:
        proto = model_of(SCATTER_TUPLES % (1, "4, 3", reduction))
        assert check(proto, floats(5, 4, 3), pairs[:, :1], floats(6, 4, 3)) == ["scatternd_relu"]


@pytest.mark.parametrize("mode", ["linear", "circular"])
def test_a_cache_is_written_from_starts_that_are_inputs(mode: str) -> None:
    proto = model_of(f"""
    m (float[2, 3, 8, 4] x, float[2, 3, 2, 4] u, int64[2] i) => (float[2, 3, 8, 4] y) {{
      y = TensorScatter <mode = "{mode}"> (x, u, i)
    }}
    """)
    proto.opset_import[0].version = 24
    for starts in ([0, 6], [3, 3]) if mode == "linear" else ([7, 5], [0, 7]):
        assert check(proto, floats(2, 3, 8, 4), floats(2, 3, 2, 4), np.array(starts)) == ["tensorscatter"]
    with pytest.raises(IndexOutOfRange, match=r"the index -1 at \[1\]; its indices run from 0 to"):
        load(proto).compile(tune="none")(floats(2, 3, 8, 4), floats(2, 3, 2, 4), np.array([0, -1]))


LENGTHS = "m (float[%s, 3] x, int64[%s] l) => (y) { y = ReverseSequence <time_axis = %d, batch_axis = %d> (x, l) }"
ANGLES = """
m (float[2, 5, 16] x, int64[2, 1] start) => (float[2, 5, 16] y) {
  p = Add (start, steps)
  y = RotaryEmbedding <num_heads = 2> (x, cos, sin, p)
}
"""


@pytest.mark.parametrize(("shape", "batch"), [("6, 4", 1), ("4, 6", 0)])
def test_lengths_of_sequences_that_are_inputs(shape: str, batch: int) -> None:
    proto = model_of(LENGTHS % (shape, 4, 1 - batch, batch))
    x = floats(6, 4, 3) if batch else floats(4, 6, 3)
    for lengths in ([1, 6, 3, 2], [6, 0, 5, 4]):
        assert check(proto, x, np.array(lengths)) == ["part", "reversesequence"]
    for long in (7, 2**32 + 2):
        with pytest.raises(IndexOutOfRange):
            load(proto).interpret(x, np.array([1, long, 3, 2]))
    with pytest.raises(UsageError, match=r"rank|do not fit"):
        load(model_of(LENGTHS % (shape, shape, 1 - batch, batch))).interpret(x, np.ones(x.shape[:2], np.int64))


def test_positions_that_are_computed() -> None:
    proto = model_of(ANGLES.strip(), steps=np.arange(5), cos=np.cos(floats(40, 4)), sin=np.sin(floats(40, 4)))
    proto.opset_import[0].version = 23
    for start in ([[0], [35]], [[17], [3]]):
        assert check(proto, floats(2, 5, 16), np.array(start)) == ["add", "rotaryembedding"]


@pytest.mark.parametrize("upper", [0, 1])
def test_a_diagonal_that_is_an_input(upper: int) -> None:
    """Its value is data: one kernel for all, also for those far outside."""
    proto = model_of(f"m (float[3, 5] x, int64 k) => (float[3, 5] y) {{ y = Trilu <upper = {upper}> (x, k) }}")
    for k in (0, 2, -1, 5, -3, 9, -9, 2**62, -(2**62)):
        assert check(proto, floats(3, 5), np.array(k)) == ["trilu"]


def test_a_padding_that_is_an_input() -> None:
    text = "m (float[3, 5] x, float v) => (float[a, b] y) { n = Neg (v) y = Pad (x, w, n) }"
    for value in (0.5, -np.inf):
        assert check(model_of(text, w=np.array([1, 0, 0, 2])), floats(3, 5), np.float32(value)) == ["neg_pad"]


def test_caches_have_one_plan_for_batches_and_lengths() -> None:
    proto = model_of("""
    m (float[b, 3, 8, 4] x, float[b, 3, q, 4] u, int64[b] i) => (float[b, 3, 8, 4] y, float[b, 3, 8, 4] z) {
      y = TensorScatter (x, u, i)
      z = TensorScatter <mode = "circular"> (x, u, i)
    }
    """)
    proto.opset_import[0].version = 24
    call = load(proto).compile(tune="none")
    evaluator: Any = reference(proto)
    for batch, length in ((2, 2), (3, 3), (1, 1), (5, 4), (2, 5)):
        given = {"x": floats(batch, 3, 8, 4), "u": floats(batch, 3, length, 4), "i": R.integers(0, 9 - length, batch)}
        for found, wanted in zip(call(**given), evaluator.run(None, given), strict=True):
            np.testing.assert_array_equal(found, wanted)
    assert "one plan for B from 1 to 6, Q from 1 to 6" in str(call.explain(**given))


@pytest.mark.parametrize("text", [GATHER, ELEMENTS, TUPLES % 1, BATCH % 1])
def test_indices_of_an_axis_of_one_element_are_checked(text: str) -> None:
    one = text.replace("5, 4, 3", "1, 1, 3").replace("int32[5,", "int32[1,").replace("int64[5,", "int64[1,")
    given: Any = load(model_of(one)).inputs[1]
    x, inside = floats(1, 1, 3), np.zeros(given.shape, given.dtype)
    assert len(check(model_of(one), x, inside)) == 1
    assert len(check(model_of(one), x, inside - 1)) == 1
    for engine in (load(model_of(one)).interpret, load(model_of(one)).compile(tune="none")):
        with pytest.raises(IndexOutOfRange, match="has the index 1 at"):
            engine(x, inside + 1)


def test_computed_indices_of_an_axis_of_one_element() -> None:
    text = "m (float[1, 4] x, int64[3] i) => (float[3, 4] y) { j = Add (i, i) z = Abs (x) y = Gather (z, j) }"
    assert check(model_of(text), floats(1, 4), np.zeros(3, np.int64)) == ["add", "abs", "gather"]

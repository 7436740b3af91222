"""Graphs as public ONNX files have them: branches for two sampling rates or widths, long loops, unknown extents."""

from __future__ import annotations

from unittest.mock import Mock

import numpy as np
import pytest

pytest.importorskip("onnx", reason="needs onnx")

from pdojo.errors import UsageError
from pdojo.onnx import load
from unit.onnx.test_steps import model_of

UNFIT = """
m (float[a, b] x, float[4, 3] w, int64 rate) => (float[a, 3] y) {
  k = Constant <value = int64 {8000}> ()
  c = Equal (rate, k)
  y = If (c) <then_branch = t () => (float[a, 3] p) { p = MatMul (x, w) },
              else_branch = e () => (float[a, 3] q) { h = Concat <axis = 1> (x, x) q = MatMul (h, w) }>
}
"""


def test_a_branch_that_does_not_fit_the_inputs_fails_when_it_is_chosen() -> None:
    """As in models for two sampling rates, whose chunks have different lengths."""
    model = load(model_of(UNFIT))
    random = np.random.default_rng(0)
    w = random.normal(size=(4, 3)).astype(np.float32)
    for call in (model.interpret, model.compile(tune="none")):
        for columns, rate, other in ((4, 8000, 16000), (2, 16000, 8000)):
            x = random.normal(size=(2, columns)).astype(np.float32)
            wide = x if columns == 4 else np.concatenate([x, x], 1)
            np.testing.assert_allclose(call(x, w, np.array(rate)), wide @ w, rtol=1e-5)
            with pytest.raises(UsageError, match=r"MatMul.*"):
                call(x, w, np.array(other))
    with pytest.raises(UsageError, match="MatMul"):
        model.interpret(np.ones((2, 3), np.float32), w, np.array(8000))
    assert "the call fails if it chooses node" in str(model.explain(np.ones((2, 4), np.float32), w, np.array(8000)))


def test_a_loop_of_many_nodes_is_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of iterations is known, but unrolling them would take minutes."""
    proto = model_of("""m (float[4] x) => (float[4] y, float[n, 4] z) {
      count = Constant <value = int64 {30}> ()
      go = Constant <value = bool {1}> ()
      y, z = Loop (count, go, x) <body = b (int64 i, bool c, float[4] a) => (bool k, float[4] p, float[4] q) {
        k = Identity (c)  n = Cast <to = 1> (i)  q = Add (a, n)  p = Sin (q)
      }>
    }""")
    x = np.linspace(-1, 1, 4, dtype=np.float32)
    expected = load(proto).interpret(x)
    assert not load(proto).explain(x).steps
    monkeypatch.setattr("pdojo.onnx.control_flow._LARGEST", 100)
    model = load(proto)
    for call in (model.interpret, model.compile(tune="none")):
        for found, wanted in zip(call(x), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-6)
    assert ["more than 100 nodes" in step.reason for step in model.explain(x).steps] == [True]


def test_extents_with_a_question_mark_are_unknown() -> None:
    """PaddlePaddle's exporter writes them: each is one of its own."""
    proto = model_of("m (float[a, b] x) => (float[c, d] y) { y = Relu (x) }")
    for extent in proto.graph.input[0].type.tensor_type.shape.dim:
        extent.dim_param = "?"
    assert load(proto).inputs[0].shape == (None, None)
    assert load(proto).interpret(np.ones((2, 3), np.float32)).shape == (2, 3)


def test_layers_of_branches_are_no_shapes_of_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two branches with the same nodes and other widths: no program with sizes, whose weights would not be packed."""
    monkeypatch.setattr("pdojo.model.sized_programs.generalised", Mock(side_effect=AssertionError))
    text = """m (float[1, 8] x, float[8, 16] v, float[8, 24] w) => (float[1, k] y) {
      s = ReduceSum <keepdims = 0> (x)  z = Constant <value = float {0.0}> ()  c = Greater (s, z)
      y = If (c) <then_branch = t () => (float[1, 16] p) { a = MatMul (x, v) p = Relu (a) },
                  else_branch = e () => (float[1, 24] q) { b = MatMul (x, w) q = Relu (b) }>
    }"""
    random = np.random.default_rng(0)
    v, w = (random.normal(size=(8, columns)).astype(np.float32) for columns in (16, 24))
    call = load(model_of(text)).compile(tune="none")
    for sign, factor in ((1, v), (-1, w)):
        x = np.full((1, 8), sign, np.float32)
        np.testing.assert_allclose(call(x, v, w), np.maximum(x @ factor, 0), rtol=1e-5, atol=1e-5)

"""Models at many shapes: programs with sizes are made at the second one, and looked up at others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

onnx = pytest.importorskip("onnx", reason="needs the package onnx")

from onnx import TensorProto, helper, numpy_helper

import pdojo.onnx
from pdojo.backends.llvm.executable import LoadedKernel
from pdojo.model import sized_programs
from pdojo.model.compiling import KernelRequest, compile_kernels
from pdojo.onnx.model import CallableOnnxModel

Array = NDArray[np.float32]
WIDTH = 12
RANDOM = np.random.default_rng(3)
W = (RANDOM.standard_normal((WIDTH, 3 * WIDTH)) * 0.2).astype(np.float32)
B = RANDOM.standard_normal(3 * WIDTH).astype(np.float32)


def model_of(nodes: Sequence[Any], constants: dict[str, NDArray[Any]], shape: Sequence[str | int]) -> bytes:
    """A model from `x`, of this declared shape, to `y`."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    held = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "many", [x], [y], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9).SerializeToString()


def attention() -> bytes:
    """One head of attention over a sequence of any length, with packed projections."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Add", ["p", "b"], ["qkv"]),
        helper.make_node("Split", ["qkv"], ["q", "k", "v"], axis=2, num_outputs=3),
        helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["q", "kt"], ["s"]),
        helper.make_node("Softmax", ["s"], ["a"], axis=-1),
        helper.make_node("MatMul", ["a", "v"], ["o"]),
        helper.make_node("Add", ["o", "x"], ["y"]),
    ]
    return model_of(nodes, {"w": W, "b": B}, ["N", "L", WIDTH])


def attended(x: Array) -> Array:
    q, k, v = np.split(x.astype(np.float64) @ W + B, 3, axis=-1)
    scores = np.exp(q @ k.transpose(0, 2, 1))
    return (scores / scores.sum(-1, keepdims=True) @ v + x).astype(np.float32)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[KernelRequest]:
    """The kernels that are compiled, in order."""
    found: list[KernelRequest] = []

    def recorded(requests: Sequence[KernelRequest], **options: Any) -> Any:
        found.extend(requests)
        return compile_kernels(requests, **options)

    monkeypatch.setattr(sized_programs, "compile_kernels", recorded)
    return found


def is_right(model: CallableOnnxModel, *shape: int) -> None:
    x = RANDOM.standard_normal((*shape, WIDTH)).astype(np.float32)
    np.testing.assert_allclose(model(x), attended(x), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("tune", ["none", "pass"])
def test_a_third_shape_compiles_nothing(tune: Any, compiled: list[KernelRequest]) -> None:
    model = pdojo.onnx.load(attention()).compile(tune=tune, threads=2)
    is_right(model, 3, 8)
    assert not any("size" in each.text for each in compiled)
    first = len(compiled)
    is_right(model, 2, 11)
    assert len(compiled) == 2 * first
    assert all("size" in each.text for each in compiled[first:])
    for shape in ((3, 9), (2, 20), (5, 2), (3, 8), (2, 11)):
        is_right(model, *shape)
    assert len(compiled) == 2 * first


def test_a_shape_out_of_range_has_programs_of_its_own(compiled: list[KernelRequest]) -> None:
    model = pdojo.onnx.load(attention()).compile(tune="none")
    for shape in ((3, 8), (2, 11)):
        is_right(model, *shape)
    before = len(compiled)
    is_right(model, 3, 40)
    assert len(compiled) > before
    wider = len(compiled)
    for shape in ((2, 41), (3, 79), (6, 2)):
        is_right(model, *shape)
    assert len(compiled) == wider


def test_a_text_that_differs_has_a_program_of_its_own(compiled: list[KernelRequest]) -> None:
    """Slices end where the array does: at most 8 of its columns are read, which no expression of sizes says."""
    constants = {"start": np.array([0]), "end": np.array([8]), "axis": np.array([1])}
    node = helper.make_node("Slice", ["x", "start", "end", "axis"], ["part"])
    model = pdojo.onnx.load(model_of([node, helper.make_node("Exp", ["part"], ["y"])], constants, ["N", "L"]))
    run = model.compile(tune="none")
    for number, (rows, columns) in enumerate(((3, 10), (4, 12), (5, 13), (3, 6), (5, 16), (2, 5)), 1):
        x = RANDOM.standard_normal((rows, columns)).astype(np.float32)
        np.testing.assert_allclose(run(x), np.exp(x[:, :8]), rtol=1e-6)
        assert len(compiled) == (1, 2, 2, 3, 3, 4)[number - 1], (rows, columns)


def test_constants_are_computed_once_for_all_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[str] = []
    bind = LoadedKernel.bound_constants

    def counted(self: LoadedKernel, **named: Any) -> Any:
        counts.append(self.name)
        return bind(self, **named)

    monkeypatch.setattr(LoadedKernel, "bound_constants", counted)
    model = pdojo.onnx.load(attention()).compile(threads=1)
    for rows in (2, 3, 4, 5):
        is_right(model, rows, 7)
    assert len(counts) == 2, "weights are packed for the first shape, and for all others"

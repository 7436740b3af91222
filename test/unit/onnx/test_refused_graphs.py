"""Graphs that pdojo refuses with an error that names node, operator and reason; each case is a defect that escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="needs onnx")

from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper, parser

from pdojo.errors import UsageError
from pdojo.onnx import OnnxModel, UnsupportedNode, load
from qa.fuzz_inputs import Found, drawn_graph, fuzz
from qa.input_fuzz.graphs import odd_model, unclear

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def model_of(
    node: NodeProto,
    inputs: Mapping[str, Sequence[int]],
    known: Mapping[str, Any] | None = None,
    opset: int = 21,
    elements: int = FLOAT,
) -> ModelProto:
    """A model of one node, whose results are seen by their sizes."""
    sizes = [helper.make_node("Size", [name], [f"size_{name}"]) for name in node.output]
    given = [helper.make_tensor_value_info(name, elements, shape) for name, shape in inputs.items()]
    results = [helper.make_tensor_value_info(f"size_{name}", INT64, []) for name in node.output]
    constants = [numpy_helper.from_array(np.asarray(value), name) for name, value in (known or {}).items()]
    graph = helper.make_graph([node, *sizes], "g", given, results, constants)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.preview.training", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def ones(model: OnnxModel) -> list[Any]:
    return [np.ones([extent if isinstance(extent, int) else 1 for extent in each.shape or ()], each.dtype)
            for each in model.inputs]  # fmt: skip


def error_of(proto: ModelProto) -> str:
    """The message of the refusal."""
    with pytest.raises(UsageError) as caught:
        load(proto).interpret(*ones(load(proto)))
    assert unclear(caught.value, proto) is None, caught.value
    return str(caught.value)


def test_random_graphs_are_taken_or_refused_with_one_clear_error() -> None:
    """A spread; `python -m qa.fuzz_inputs --graphs --inputs 2000` is the long run."""
    found = Found()
    assert list(fuzz(1, range(150), found, drawn_graph)) == []
    assert found.refused["graph"] > 50
    assert found.taken["graph"] > 25


def test_graphs_repeat() -> None:
    assert odd_model(Random(3)) == odd_model(Random(3))
    assert odd_model(Random(3)) != odd_model(Random(4))


def node(operator: str, operands: str, results: str = "r", domain: str = "", **attributes: Any) -> NodeProto:
    return helper.make_node(operator, operands.split(), results.split(), "n", domain=domain, **attributes)


def f32(values: Any) -> NDArray[np.float32]:
    return np.asarray(values, np.float32)


CONTRADICTIONS: dict[str, tuple[ModelProto, str]] = {
    "widths of padding": (model_of(node("Pad", "x p"), {"x": [2, 3]}, {"p": [1, 1]}), ""),
    "a vector for a number": (
        model_of(node("Range", "a b c"), {}, {"a": f32([0, 0]), "b": f32(3), "c": f32(1)}),
        "",
    ),
    "operands by tensors": (
        model_of(node("Adagrad", "a t x", domain="ai.onnx.preview.training"), {"a": [], "x": [2]}, {"t": 1}),
        "",
    ),
    "infinite scales": (
        model_of(node("Upsample", "x s"), {"x": [1, 1, 2, 2]}, {"s": f32([1, 1, np.inf, 1])}, 9),
        "positive numbers",
    ),
    "indices of another rank": (model_of(node("GatherElements", "x i"), {"x": [2, 3]}, {"i": [0, 1]}), "dimensions"),
    "an index beyond an axis": (
        model_of(node("Gather", "x i"), {"x": [3]}, {"i": 3}),
        "an index is out of bounds for 3 elements",
    ),
    "indices beyond an array": (
        model_of(node("ScatterElements", "x i u"), {"x": [2, 1], "u": [2, 3]}, {"i": np.zeros((2, 3), int)}),
        "do not fit an array",
    ),
    "updates for indices": (
        model_of(node("ScatterElements", "x i u"), {"x": [2, 3], "u": [2, 1]}, {"i": np.zeros((2, 3), int)}),
        "do not fit indices",
    ),
    **{
        f"types of {name}": (model_of(node(name, "x y"), {"x": [2, 2]}, {"y": np.arange(4.0).reshape(2, 2)}), "type")
        for name in ("Add", "Less", "MatMul", "PRelu")
    },
    "types of pieces": (
        model_of(node("Concat", "x y", axis=0), {"x": [2, 2]}, {"y": np.arange(4.0).reshape(2, 2)}),
        "inconsistent type",
    ),
    "an array without axes": (model_of(node("GatherElements", "x i"), {"x": []}, {"i": 0}), ""),
    "recurrent weights": (model_of(node("GRU", "x w w"), {"x": [2, 1, 3], "w": [1, 6, 3]}), "shape"),
    "recurrent ranks": (model_of(node("GRU", "x x x"), {"x": []}), ""),
    "shapes before broadcasting": (model_of(node("Add", "x y"), {"x": [3], "y": [2, 3]}, None, 6), "broadcast"),
    "an operand that is larger": (
        model_of(node("Add", "x y", broadcast=1), {"x": [3], "y": [2, 3]}, None, 6),
        "not broadcast",
    ),
    "sums before version 8": (model_of(node("Sum", "x y"), {"x": [3], "y": [1]}, None, 6), "not broadcast"),
    "slopes": (model_of(node("PRelu", "x y"), {"x": [1, 3], "y": [2, 3]}), "slopes"),
    "a norm of order 3": (model_of(node("LpNormalization", "x", p=3), {"x": [3]}), "'p' is 3"),
    "no complex numbers": (model_of(node("DFT", "x", axis=1), {"x": [1, 4, 3]}, None, 17), "3 elements"),
    "comparisons of indices": (
        model_of(node("MaxUnpool", "x i", kernel_shape=[2, 2], strides=[2, 2]), {"x": [1, 8, 64, 64]},
                 {"i": np.zeros((1, 8, 64, 64), np.int64)}),
        "each of its 32768 indices would be compared with the 16384 places",
    ),
    "a condition with axes": (model_of(node("Compress", "x c"), {"x": [2]}, {"c": [[True, False]]}), "dimensions"),
    "operands that a function would broadcast": (
        model_of(node("SwiGLU", "x y"), {"x": [], "y": [2]}, None, 28),
        "",
    ),
    "a kind of remainder": (model_of(node("Mod", "x x", fmod=2), {"x": [3]}), "'fmod' is 2"),
    "an unknown word": (
        model_of(node("Resize", "x   s", coordinate_transformation_mode="half"), {"x": [2]}, {"s": f32([2])}, 10),
        "",
    ),
    "scales of quantised numbers": (
        model_of(node("QuantizeLinear", "x s", axis=1), {"x": [5, 1], "s": [18]}),
        "scales or zero points have shape [18]",
    ),
    "axes of a mean": (model_of(node("MeanVarianceNormalization", "x"), {"x": [2, 3]}), "out of bounds"),
    "classes of scores": (
        model_of(node("SoftmaxCrossEntropyLoss", "x c"), {"x": [2, 3, 1]}, {"c": np.zeros((2, 3, 4), np.int64)}),
        "classes of shape",
    ),
    "windows without extents": (model_of(node("LpPool", "x"), {"x": [1, 1, 4]}, None, 1), "kernel_shape"),
    "no channels": (model_of(node("LRN", "x", size=3), {"x": [2]}), "no axis of channels"),
    "axes of slices": (
        model_of(
            node("Scan", "x", "r", num_scan_inputs=1, scan_input_axes=[0, 1],
                 body=parser.parse_graph("body (float[1] b) => (float[1] d) { d = Abs (b) }")),
            {"x": [2, 1]},
        ),
        "'scan_input_axes' has 2 numbers",
    ),
    "values of a subgraph": (
        model_of(
            node("Loop", "m c x", "r", body=parser.parse_graph("b (int64 n) => (bool a, float[1] d) "
                                                               "{ a = Constant <value = bool {1}> () d = Abs (n) }")),
            {"x": [1]},
            {"m": 2, "c": True},
        ),
        "",
    ),
    "results of a branch": (
        model_of(node("If", "c", "r s", then_branch=parser.parse_graph("b () => (float a) { a = Abs (x) }"),
                      else_branch=parser.parse_graph("b () => (float a) { a = Abs (x) }")),
                 {"x": []}, {"c": True}),
        "",
    ),
    "parts of a split": (model_of(node("SplitToSequence", "x s"), {"x": [1 << 20]}, {"s": 1}), "more than 1024"),
    "a split into elements": (model_of(node("SplitToSequence", "x", keepdims=0), {"x": [1 << 20]}), "more than 1024"),
    "sizes of a split": (model_of(node("SplitToSequence", "x s"), {"x": [4]}, {"s": 0}), "0 is no size"),
    "dimensions of sizes": (model_of(node("SplitToSequence", "x s"), {"x": [4]}, {"s": [[2, 2]]}), "2 dimensions"),
}  # fmt: skip


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_nodes_that_contradict_themselves(case: str) -> None:
    proto, reason = CONTRADICTIONS[case]
    text = error_of(proto)
    assert text.startswith("node 'n' (")
    assert reason in text


def test_a_function_that_is_not_supported_is_named_by_its_call() -> None:
    text = error_of(model_of(node("Bernoulli", "x"), {"x": [2]}, None, 22))
    assert text.startswith("node 'n' (Bernoulli): its function is not supported: node ")


def test_a_sequence_map_whose_body_does_not_fit_is_refused() -> None:
    """The function that onnx makes of it ended the process."""
    body = parser.parse_graph("body (float[1] a) => (float[1] b, float[1] c) { b = Abs (a) c = Abs (a) }")
    made = helper.make_node("SequenceConstruct", ["x"], ["s"], "made")
    proto = model_of(node("SequenceMap", "s", body=body), {"x": [1]})
    proto.graph.node.insert(0, made)
    error_of(proto)


def test_operators_that_no_longer_exist_are_named_with_their_node() -> None:
    text = error_of(model_of(node("Upsample", "x s"), {"x": [1]}, {"s": f32([1])}, 13))
    assert text.startswith("node 'n' (Upsample): ")


@pytest.mark.parametrize("elements", [TensorProto.STRING, TensorProto.COMPLEX64, TensorProto.FLOAT8E4M3FN])
def test_types_without_kernels_are_named(elements: int) -> None:
    model = load(model_of(node("Identity", "x"), {"x": [2]}, elements=elements))
    with pytest.raises(
        UsageError, match=r"^node 'n' \(Identity\): no kernel takes or makes elements of its types, and so"
    ):
        model.specialise(*ones(model))


def test_functions_of_the_model_go_before_operators() -> None:
    proto = parser.parse_model("""
    <ir_version: 10, opset_import: ["" : 21]>
    called (float[2] x) => (float[2] y) { y = Relu (x) }
    <domain: "", opset_import: ["" : 21]>
    Relu (a) => (b) { b = Neg (a) }
    """)
    try:
        model = load(proto)
    except UsageError:
        pytest.skip("this version of onnx takes no functions of the names of operators")
    assert model.interpret(np.ones(2, np.float32)).tolist() == [-1, -1]


def test_places_of_half_pixels_for_nearest_neighbours() -> None:
    """`tf_half_pixel_for_nn` of versions 11 and 12 has no shift to the left."""
    made = node("Resize", "x roi s", mode="nearest", coordinate_transformation_mode="tf_half_pixel_for_nn",
                nearest_mode="floor")  # fmt: skip
    graph = helper.make_graph(
        [made], "g", [helper.make_tensor_value_info("x", FLOAT, [4])], [helper.make_tensor_value_info("r", FLOAT, [2])],
        [numpy_helper.from_array(f32([]), "roi"), numpy_helper.from_array(f32([0.5]), "s")],
    )  # fmt: skip
    model = load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=8))
    assert model.interpret(np.arange(4, dtype=np.float32)).tolist() == [1, 3]


def test_neighbours_beyond_all_channels_need_no_memory() -> None:
    made = helper.make_node("LRN", ["x"], ["y"], size=2**40 + 1, alpha=float(2**40 + 1), beta=1.0, bias=0.0)
    info = [helper.make_tensor_value_info(name, FLOAT, [1, 3, 1, 1]) for name in "xy"]
    graph = helper.make_graph([made], "g", info[:1], info[1:])
    model = load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8))
    x = np.array([1, 2, 3], np.float32).reshape(1, 3, 1, 1)
    np.testing.assert_allclose(model.interpret(x), x / 14, rtol=1e-6)


def test_a_reason_is_what_users_know() -> None:
    proto = model_of(node("Relu", "x"), {"x": [2]})
    assert unclear(UnsupportedNode("node 'n' (Relu): an operand is missing"), proto) is None
    for text in ("node 'n' (Relu): ", "node 'm' (Relu): x", "KeyError: 3", "node 'n' (Relu): KeyError: 3", "a\nb", ""):
        assert unclear(UnsupportedNode(text), proto) is not None


def test_the_cache_of_an_attention_has_four_dimensions() -> None:
    node = helper.make_node("Attention", ["q", "k", "v", "", "past", "past_v"], ["y"])
    shapes = {"q": [1, 2, 3, 4], "k": [1, 2, 3, 4], "v": [1, 2, 3, 4], "past": [2, 3], "past_v": [1, 2, 5, 4]}
    assert "operand 4 has 2 dimensions, not 4" in error_of(model_of(node, shapes, opset=23))

"""Whole ONNX graphs: against the reference evaluator, interpreted and compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier, BrokenBarrierError
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

onnx = pytest.importorskip("onnx", reason="needs onnx")

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper, parser

import pdojo
from pdojo.errors import UsageError
from pdojo.onnx import OnnxModel, UnsupportedNode, load
from pdojo.onnx.backend import PdojoBackend
from pdojo.onnx.reference import reference

Arrays = Sequence[NDArray[Any]]


def model_of(text: str) -> ModelProto:
    """A model in ONNX's text."""
    return parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]>\n{text}')


def numbers(*shape: int, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def agrees(proto: ModelProto, arrays: Arrays) -> OnnxModel:
    """Compare the interpreted and the compiled model with the reference."""
    model = load(proto)
    evaluator: Any = reference(proto)
    wanted: Sequence[NDArray[Any]] = evaluator.run(
        None, {each.name: a for each, a in zip(model.inputs, arrays, strict=True)}
    )
    calls: list[Callable[..., Any]] = [model.interpret, model.compile(tune="none")]
    for call in calls:
        found: Any = call(*arrays)
        rows = cast("Sequence[NDArray[Any]]", found if isinstance(found, tuple) else (found,))
        for ours, right in zip(rows, wanted, strict=True):
            assert (ours.dtype, ours.shape) == (right.dtype, right.shape)
            np.testing.assert_allclose(ours, right, rtol=1e-4, atol=1e-5)
    return model


def test_a_network_with_symbolic_extents_is_specialised_for_each_shape() -> None:
    weights = ", ".join(map(str, numbers(32)))
    proto = model_of(f"""
    mlp (float[batch, 8] x) => (float[batch, 4] y) {{
      w = Constant <value = float[8, 4] {{{weights}}}> ()
      m = MatMul(x, w)
      r = Relu(m)
      y = Softmax <axis = -1> (r)
    }}
    """)
    model = agrees(proto, [numbers(3, 8)])
    assert model.run(numbers(5, 8)).shape == (5, 4)
    with pytest.raises(UsageError, match=r"input 'x' has shape \(5, 7\), the model takes batchx8"):
        model.run(numbers(5, 7))
    with pytest.raises(UsageError, match="input 'x' has elements of type float64, the model takes float32"):
        model.run(numbers(5, 8).astype(np.float64))


def test_shapes_that_are_computed_are_found_out_while_the_model_runs() -> None:
    proto = model_of("""
    reshaped (float[2, 6] x, int64[n] shape) => (float[a, b] y) {
      two = Constant <value = int64 {2}> ()
      half = Div(shape, two)
      r = Reshape(x, half)
      y = Relu(r)
    }
    """)
    model = load(proto)
    assert model.run(numbers(2, 6), np.array([8, 6])).shape == (4, 3)
    assert model.run(numbers(2, 6), np.array([24, 2])).shape == (12, 1)
    assert not model.static
    with pytest.raises(UnsupportedNode, match=r"^node 'r' \(Reshape\): it needs a value that is computed"):
        model.specialise(numbers(2, 6), np.array([8, 6]))


def test_shapes_that_are_inputs_are_static() -> None:
    model = load(model_of("m (float[2, 6] x, int64[n] s) => (float[a, b] y) { r = Reshape (x, s) y = Relu (r) }"))
    assert model.run(numbers(2, 6), np.array([4, 3])).shape == (4, 3)
    assert model.static == {"s": "node 'r' (Reshape)"}
    assert len(model.specialise(numbers(2, 6), np.array([3, 4])).inputs) == 1


def test_threads_may_make_the_same_input_static_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every thread finds that it needs the value of the shape before one of them makes it static."""
    proto = model_of("""
    reshaped (float[n, 4] x, int64[k] s) => (float[p, q] y) {
      r = Reshape (x, s)
      y = Neg (r)
    }
    """)
    model, barrier = load(proto), Barrier(4)
    make_static = model._make_static  # pyright: ignore[reportPrivateUsage]

    def together(*arguments: Any) -> None:
        with suppress(BrokenBarrierError):
            barrier.wait(5)
        make_static(*arguments)

    monkeypatch.setattr(model, "_make_static", together)
    x = numbers(6, 4)
    shapes = [np.array(shape) for shape in ((24, 1), (1, 24), (8, 3), (3, 8))]
    with ThreadPoolExecutor(4) as pool:
        found: list[Any] = list(pool.map(model.interpret, [x] * 4, shapes))
    for shape, y in zip(shapes, found, strict=True):
        assert y.tolist() == (-x).reshape(shape).tolist()


def test_shapes_computed_from_shapes_are_known() -> None:
    agrees(
        model_of("""
    flat (float[2, 3, 4] x) => (float[a, b] y) {
      shape = Shape(x)
      zero = Constant <value = int64[1] {0}> ()
      first = Gather(shape, zero)
      rest = Constant <value = int64[1] {-1}> ()
      both = Concat <axis = 0> (first, rest)
      y = Reshape(x, both)
    }
    """),
        [numbers(2, 3, 4)],
    )


def test_known_branches_and_loops_are_unrolled() -> None:
    agrees(
        model_of("""
    looped (float[4] x) => (float[4] y, float[3, 4] rows) {
      count = Constant <value = int64 {3}> ()
      yes = Constant <value = bool {1}> ()
      y, rows = Loop (count, yes, x) <body = step (int64 number, bool go_on, float[4] state)
          => (bool again, float[4] next, float[4] row) {
        again = Identity (go_on)
        two = Constant <value = float {2.0}> ()
        next = Mul (state, two)
        row = Add (state, x)
      }>
    }
    """),
        [numbers(4)],
    )


def scan(backward: bool, stored_backward: bool) -> ModelProto:
    """Running sums of rows, from the first or the last one on, stored in this order or in reverse."""
    node = helper.make_node("Add", ["state", "row"], ["next"])
    copy = helper.make_node("Identity", ["next"], ["out"])
    state, row, after, out = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in ("state", "row", "next", "out")
    ]
    body = helper.make_graph([node, copy], "body", [state, row], [after, out])
    scanned = helper.make_node(
        "Scan",
        ["start", "x"],
        ["total", "sums"],
        body=body,
        num_scan_inputs=1,
        scan_input_directions=[int(backward)],
        scan_output_directions=[int(stored_backward)],
    )
    return one_graph([scanned], {"start": [3], "x": [5, 3]}, {"total": [3], "sums": [5, 3]})


def one_graph(nodes: Sequence[NodeProto], inputs: dict[str, Any], outputs: dict[str, Any]) -> ModelProto:
    graph: GraphProto = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("stored_backward", [False, True])
@pytest.mark.parametrize("backward", [False, True])
def test_scans_are_unrolled(backward: bool, stored_backward: bool) -> None:
    # The reference evaluator has no scans from the last to the first.
    start, x = numbers(3), numbers(5, 3)
    sums = start + np.cumsum(x[::-1] if backward else x, axis=0)
    total, found = load(scan(backward, stored_backward)).interpret(start, x)
    np.testing.assert_allclose(total, sums[-1], rtol=1e-5)
    np.testing.assert_allclose(found, sums[::-1] if stored_backward else sums, rtol=1e-5)


def test_casts_that_keep_all_bits_have_the_new_type() -> None:
    info = helper.make_tensor_value_info("x", TensorProto.INT32, [2])
    result = helper.make_tensor_value_info("y", TensorProto.UINT32, [2])
    node = helper.make_node("Cast", ["x"], ["y"], to=TensorProto.UINT32)
    graph = helper.make_graph([node], "g", [info], [result])
    agrees(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
        [np.array([7, 2**31 - 1], np.int32)],
    )


def test_functions_of_the_model_are_inlined() -> None:
    proto = parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 17, "own" : 1]>
    called (float[4, 4] x) => (float[4, 4] y) {
      y = own.Scaled <factor = 3.0> (x)
    }
    <domain: "own", opset_import: ["" : 17]>
    Scaled <factor> (a) => (b) {
      f = Constant <value_float: float = @factor> ()
      p = Mul (a, f)
      b = Relu (p)
    }
    """)
    agrees(proto, [numbers(4, 4)])


def test_a_model_that_calls_itself_is_refused() -> None:
    proto = parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 17, "own" : 1]>
    endless (float[4] x) => (float[4] y) { y = own.Self (x) }
    <domain: "own", opset_import: ["" : 17, "own" : 1]>
    Self (a) => (b) { b = own.Self (a) }
    """)
    with pytest.raises(UsageError):
        load(proto).specialise(numbers(4))


def test_outputs_may_be_inputs_constants_and_views() -> None:
    proto = model_of("""
    passed (float[2, 3] x) => (float[2, 3] same, float[6] flat, float[2] fixed, float[3, 2] turned) {
      same = Identity (x)
      all = Constant <value = int64[1] {-1}> ()
      flat = Reshape (x, all)
      fixed = Constant <value = float[2] {1.0, 2.0}> ()
      turned = Transpose (x)
    }
    """)
    model = agrees(proto, [numbers(2, 3)])
    x = numbers(2, 3)
    same, *_ = model.run(x)
    same[...] = 0
    assert x.any(), "an output shares the memory of an input"


def test_neighbouring_channels_of_one_image() -> None:
    """The evaluator of onnx itself normalises as many channels as there are images."""
    node = helper.make_node("LRN", ["x"], ["y"], size=4, alpha=2.0)
    x = numbers(1, 6, 2, 2)
    model = agrees(one_graph([node], {"x": [1, 6, 2, 2]}, {"y": [1, 6, 2, 2]}), [x])
    total = np.sum(x[0, 2:6] ** 2, axis=0)
    np.testing.assert_allclose(model.interpret(x)[0, 3], x[0, 3] / (1 + 2 / 4 * total) ** 0.75, rtol=1e-5)


def test_inputs_may_have_names_of_python_s_parameters() -> None:
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in ("self", "arrays", "y")]
    graph = helper.make_graph([helper.make_node("Sub", ["self", "arrays"], ["y"])], "m", infos[:2], infos[2:])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    given = {"self": numbers(4), "arrays": numbers(4, seed=1)}
    model = agrees(proto, list(given.values()))
    compiled = model.compile(tune="none")
    for y in (model.interpret(**given), compiled(**given), compiled.prepare(**given)[0](**given)):
        assert (y if isinstance(y, np.ndarray) else y[0]).tolist() == (given["self"] - given["arrays"]).tolist()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([[1.0], [1.0, 2.0]], "input 'x' is no array: "),
        (None, "input 'x' has elements of type object, the model takes float32"),
        (np.ones(4), "input 'x' has elements of type float64, the model takes float32"),
        (np.ones(3, np.float32), r"input 'x' has shape \(3,\), the model takes 4"),
    ],
)
def test_inputs_that_are_no_arrays_of_the_model_are_refused(value: object, message: str) -> None:
    model = load(model_of("m (float[4] x) => (float[4] y) { y = Neg (x) }"))
    for call in (model.run, model.interpret, model.specialise):
        with pytest.raises(UsageError, match=message):
            call(value)


def test_options_are_checked_when_a_model_is_compiled() -> None:
    model = load(model_of("m (float[4] x) => (float[4] y) { y = Neg (x) }"))
    with pytest.raises(UsageError, match="unknown machine 'nope'"):
        model.compile("nope")
    for threads in (0, 1.5):
        with pytest.raises(UsageError, match=f"a number of threads from 1, not on {threads}"):
            model.compile(threads=threads)  # pyright: ignore[reportArgumentType]


def test_arrays_larger_than_the_memory_are_refused() -> None:
    model = load(
        model_of("""
    large (float[1] x) => (float[n, m] y) {
      shape = Constant <value = int64[2] {2147483648, 1048576}> ()
      z = Neg (x)
      y = Expand (z, shape)
    }
    """)
    )
    with pytest.raises(UsageError, match="there is no memory for an array of 9007199254740992 bytes"):
        model.compile(tune="none")(np.ones(1, np.float32))


def test_sequences_of_known_length() -> None:
    split = helper.make_node("SplitToSequence", ["x"], ["parts"], axis=0, keepdims=1)
    number = helper.make_node("Constant", [], ["one"], value=numpy_helper.from_array(np.array(-1)))
    at = helper.make_node("SequenceAt", ["parts", "one"], ["y"])
    agrees(one_graph([split, number, at], {"x": [3, 4]}, {"y": [None, 4]}), [numbers(3, 4)])


def test_arrays_without_elements() -> None:
    joined = helper.make_node("Concat", ["x", "e"], ["y"], axis=0)
    relu = helper.make_node("Relu", ["e"], ["z"])
    proto = one_graph([joined, relu], {"x": [2, 4], "e": [0, 4]}, {"y": [2, 4], "z": [0, 4]})
    agrees(proto, [numbers(2, 4), np.zeros((0, 4), np.float32)])


@pytest.mark.parametrize("kind", [TensorProto.BFLOAT16, TensorProto.UINT8, TensorProto.FLOAT16, TensorProto.BOOL])
def test_element_types_are_those_of_numpy(kind: int) -> None:
    info = helper.make_tensor_value_info("x", kind, [2, 3])
    turned = helper.make_tensor_value_info("y", kind, [3, 2])
    graph = helper.make_graph([helper.make_node("Transpose", ["x"], ["y"])], "turn", [info], [turned])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    x = (numbers(2, 3) * 100 + 100).astype(helper.tensor_dtype_to_np_dtype(kind))
    for y in (load(proto).interpret(x), load(proto).compile(tune="none")(x)):
        assert y.dtype == x.dtype
        assert (y == x.T).all()


def test_the_backend_runs_models_and_nodes() -> None:
    x = numbers(2, 3)
    node = helper.make_node("Relu", ["x"], ["y"])
    (y,) = PdojoBackend.run_node(node, [x], opset_version=13)
    np.testing.assert_array_equal(y, np.maximum(x, 0))
    proto = one_graph([node], {"x": [2, 3]}, {"y": [2, 3]})
    outputs: Any = PdojoBackend.run_model(proto, {"x": x})
    assert outputs.y.tolist() == y.tolist()
    assert PdojoBackend.supports_device("CPU")
    assert not PdojoBackend.supports_device("CUDA")


def test_nodes_without_kernel_are_named_with_a_reason() -> None:
    node = helper.make_node("RandomNormalLike", ["x"], ["y"], name="noise")
    with pytest.raises(UnsupportedNode, match=r"^node 'noise' \(RandomNormalLike\): no kernel is known"):
        load(one_graph([node], {"x": [2]}, {"y": [2]})).run(numbers(2))


def test_pdojo_onnx_is_public() -> None:
    assert pdojo.onnx.load is load

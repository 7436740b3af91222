"""One plan of a model for ranges of shapes: right at all sizes, made once, and refused where shapes would differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Thread
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

onnx = pytest.importorskip("onnx", reason="needs the package onnx")

from onnx import TensorProto, helper, numpy_helper

import pdojo.onnx
from pdojo.onnx import model as model_module
from pdojo.onnx.model import CallableOnnxModel, OnnxModel

Array = NDArray[Any]
RANDOM = np.random.default_rng(7)
WIDTH, HEADS = 16, 2


@dataclass
class Made:
    """A model while it is made."""

    nodes: list[Any]
    constants: dict[str, Array]

    def add(self, operator: str, *operands: str | Array | None, outputs: int = 1, **attributes: Any) -> Any:
        """The names of the results of a node; arrays become constants."""
        names = [self.constant(each) if isinstance(each, np.ndarray) else each or "" for each in operands]
        made = [f"v{len(self.nodes)}_{k}" for k in range(outputs)]
        self.nodes.append(helper.make_node(operator, names, made, **attributes))
        return made[0] if outputs == 1 else made

    def constant(self, value: Array) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = value
        return name

    def extent(self, value: str, axis: int) -> str:
        """An extent as a vector, as exporters write it."""
        shape = self.add("Shape", value)
        return self.add("Unsqueeze", self.add("Gather", shape, np.array(axis), axis=0), np.array([0]))

    def file(self, inputs: Mapping[str, tuple[int, Sequence[Any]]], *outputs: str) -> bytes:
        given = [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in inputs.items()]
        made = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
        held = [numpy_helper.from_array(array, name) for name, array in self.constants.items()]
        graph = helper.make_graph(self.nodes, "ranges", given, made, held)
        opsets = [helper.make_opsetid("", 17)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def weights(*shape: int) -> Array:
    return (RANDOM.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)


def dense(made: Made, x: str, before: int, after: int) -> str:
    return made.add("Add", made.add("MatMul", x, weights(before, after)), weights(after))


def normed(made: Made, x: str) -> str:
    ones, zeros = np.ones(WIDTH, np.float32), np.zeros(WIDTH, np.float32)
    return made.add("LayerNormalization", x, ones, zeros, axis=-1)


def encoder() -> bytes:
    """An encoder of two layers over tokens, with positions, a mask, and heads split by shapes that are computed."""
    made = Made([], {})
    batch, length = made.extent("tokens", 0), made.extent("tokens", 1)
    words = made.add("Gather", weights(50, WIDTH), "tokens", axis=0)
    places = made.add("Slice", np.arange(64).reshape(1, 64), np.array([0]), length, np.array([1]))
    x = normed(made, made.add("Add", words, made.add("Gather", weights(64, WIDTH), places, axis=0)))
    mask = made.add("Cast", made.add("Unsqueeze", "mask", np.array([1, 2])), to=TensorProto.FLOAT)
    penalty = made.add("Mul", made.add("Sub", np.array(1, np.float32), mask), np.array(-1e4, np.float32))
    by_head = made.add("Concat", batch, length, np.array([HEADS]), np.array([WIDTH // HEADS]), axis=0)
    whole = made.add("Concat", batch, length, np.array([WIDTH]), axis=0)
    for _ in range(2):
        parts = [made.add("Reshape", dense(made, x, WIDTH, WIDTH), by_head) for _ in range(3)]
        q, v = (made.add("Transpose", part, perm=[0, 2, 1, 3]) for part in (parts[0], parts[2]))
        k = made.add("Transpose", parts[1], perm=[0, 2, 3, 1])
        scores = made.add("Add", made.add("Mul", made.add("MatMul", q, k), np.array(0.35, np.float32)), penalty)
        mixed = made.add("MatMul", made.add("Softmax", scores, axis=-1), v)
        joined = made.add("Reshape", made.add("Transpose", mixed, perm=[0, 2, 1, 3]), whole)
        x = normed(made, made.add("Add", dense(made, joined, WIDTH, WIDTH), x))
        inner = dense(made, x, WIDTH, 4 * WIDTH)
        x = normed(made, made.add("Add", dense(made, made.add("Relu", inner), 4 * WIDTH, WIDTH), x))
    first = made.add("Gather", x, np.array(0), axis=1)
    made.nodes.append(helper.make_node("Tanh", [dense(made, first, WIDTH, WIDTH)], ["pooled"]))
    made.nodes.append(helper.make_node("Identity", [x], ["states"]))
    shape = ["batch", "length"]
    return made.file({"tokens": (TensorProto.INT64, shape), "mask": (TensorProto.INT64, shape)}, "states", "pooled")


def recogniser() -> bytes:
    """Convolutions over an image of any width, then a sequence of columns."""
    made = Made([], {})
    x = made.add("Relu", made.add("Conv", "x", weights(8, 1, 3, 3), weights(8), pads=[1, 1, 1, 1]))
    x = made.add("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = made.add("Relu", made.add("Conv", x, weights(12, 8, 3, 3), weights(12), pads=[1, 1, 1, 1], strides=[2, 1]))
    x = made.add("ReduceMean", x, axes=[2], keepdims=1)
    rows = made.add("Transpose", made.add("Squeeze", x, np.array([2])), perm=[0, 2, 1])
    states, *_ = made.add("LSTM", made.add("Transpose", rows, perm=[1, 0, 2]), weights(1, 32, 12), weights(1, 32, 8),
                          outputs=3, hidden_size=8)  # fmt: skip
    columns = made.add("Transpose", made.add("Squeeze", states, np.array([1])), perm=[1, 0, 2])
    made.nodes.append(helper.make_node("LogSoftmax", [dense(made, columns, 8, 11)], ["y"], axis=-1))
    return made.file({"x": (TensorProto.FLOAT, [1, 1, 8, None])}, "y")


def perceptron() -> bytes:
    """Dense layers over a batch of any size, flattened as exporters do."""
    made = Made([], {})
    flat = made.add("Reshape", "x", made.add("Concat", made.extent("x", 0), np.array([-1]), axis=0))
    hidden = made.add("Sigmoid", dense(made, flat, 12, 20))
    made.nodes.append(helper.make_node("Softmax", [dense(made, hidden, 20, 5)], ["y"], axis=-1))
    return made.file({"x": (TensorProto.FLOAT, ["n", 3, 4])}, "y")


def pieces() -> bytes:
    """Parts of an open axis, put together again: the last elements, a frame around, numbers of the axis."""
    made = Made([], {})
    length = made.extent("x", 1)
    less = made.add("Sub", length, np.array([1]))
    rest = made.add("Slice", "x", np.array([1]), np.array([2**62]), np.array([1]))
    begun = made.add("Slice", "x", np.array([0]), less, np.array([1]))
    last = made.add("Unsqueeze", made.add("Gather", "x", np.array(-1), axis=1), np.array([1]))
    turned = made.add("Slice", "x", np.array([-1]), np.array([-(2**62)]), np.array([1]), np.array([-1]))
    joined = made.add("Concat", made.add("Sub", rest, begun), last, turned, axis=1)
    padded = made.add("Pad", joined, np.array([0, 1, 0, 0, 2, 0]), np.array(0.5, np.float32))
    count = made.add("Squeeze", made.add("Add", made.add("Mul", length, np.array([2])), np.array([3])))
    numbers = made.add("Cast", made.add("Range", np.array(0), count, np.array(1)), to=TensorProto.FLOAT)
    whole = made.add("Mul", padded, made.add("Unsqueeze", numbers, np.array([0, 2])))
    ones = made.add("ConstantOfShape", made.add("Shape", whole), value=numpy_helper.from_array(np.ones(1, np.float32)))
    mean = made.add("Div", whole, made.add("Cast", count, to=TensorProto.FLOAT))
    made.nodes.append(helper.make_node("Add", [mean, ones], ["y"]))
    made.nodes.append(
        helper.make_node("Expand", ["x", made.add("Concat", np.array([2]), made.add("Shape", "x"), axis=0)], ["z"])
    )
    return made.file({"x": (TensorProto.FLOAT, ["n", "length", 3])}, "y", "z")


def floats(*shape: int) -> dict[str, Array]:
    return {"x": RANDOM.standard_normal(shape).astype(np.float32)}


def image(width: int) -> dict[str, Array]:
    return floats(1, 1, 8, width)


def rows(count: int) -> dict[str, Array]:
    return floats(count, 3, 4)


def sequences(count: int, length: int) -> dict[str, Array]:
    return floats(count, length, 3)


def tokens(batch: int, length: int) -> dict[str, Array]:
    mask = np.ones((batch, length), np.int64)
    mask[0, length // 2 + 1 :] = 0
    return {"tokens": RANDOM.integers(0, 50, (batch, length)), "mask": mask}


@dataclass(frozen=True)
class Case:
    """A model, its inputs for some sizes, and sizes: two that open it, then the edges of the range and others."""

    file: Callable[[], bytes]
    inputs: Callable[..., dict[str, Array]]
    sizes: Sequence[tuple[int, ...]]


CASES = {
    "encoder": Case(encoder, tokens, ((3, 8), (2, 11), (2, 2), (6, 22), (5, 2), (2, 21), (4, 16))),
    "recogniser": Case(recogniser, image, ((20,), (33,), (2,), (66,), (65,), (3,), (34,))),
    "perceptron": Case(perceptron, rows, ((4,), (1,), (8,), (7,), (2,), (3,))),
    "pieces": Case(pieces, sequences, ((2, 5), (3, 9), (2, 2), (6, 18), (5, 17), (6, 3), (4, 4))),
}


@pytest.fixture
def imports(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """An entry for each import of a model."""
    found: list[object] = []
    plain = model_module.import_graph

    def counted(*given: Any) -> Any:
        found.append(given)
        return plain(*given)

    monkeypatch.setattr(model_module, "import_graph", counted)
    return found


def call(run: CallableOnnxModel, given: Mapping[str, Array]) -> list[Array]:
    """The results of a call into memory that holds no numbers."""
    compiled, arrays = run.prepare(**given)
    empty = {name: np.full(value.shape, np.nan, np.float32) for name, value in compiled.model.outputs}
    compiled(**arrays, **empty)
    return [*empty.values()]


def check(run: CallableOnnxModel, plain: OnnxModel, given: Mapping[str, Array]) -> None:
    result: Any = plain.interpret(**given)
    wanted: Sequence[Array] = result if len(run.model.outputs) > 1 else [result]
    for found, each in zip(call(run, given), wanted, strict=True):
        assert found.shape == each.shape
        np.testing.assert_allclose(found, each, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("tune", ["none", "pass"])
def test_one_plan_is_right_at_all_sizes(name: str, tune: Any, imports: list[object]) -> None:
    case = CASES[name]
    file = case.file()
    run, plain = pdojo.onnx.load(file).compile(tune=tune, threads=2), pdojo.onnx.load(file)
    given = [case.inputs(*sizes) for sizes in case.sizes]
    for each in given[:2]:
        call(run, each)
    before = len(imports)
    for each in given:
        call(run, each)
    assert len(imports) == before, "shapes of the range are planned anew"
    for each in given:
        check(run, plain, each)
    assert "one plan for" in str(run.explain(**given[1]))
    run.check_memory()


def test_threads_share_a_plan_at_different_sizes() -> None:
    case = CASES["encoder"]
    file = case.file()
    run, plain = pdojo.onnx.load(file).compile(tune="none"), pdojo.onnx.load(file)
    for sizes in case.sizes[:2]:
        call(run, case.inputs(*sizes))
    given = [case.inputs(*sizes) for sizes in case.sizes[2:6]]
    wanted: list[Sequence[Array]] = [plain.interpret(**each) for each in given]
    wrong: list[int] = []

    def repeat(number: int) -> None:
        for _ in range(20):
            for found, each in zip(call(run, given[number]), wanted[number], strict=True):
                if not np.allclose(found, each, rtol=2e-4, atol=2e-5):
                    wrong.append(number)

    threads = [Thread(target=repeat, args=[number]) for number in range(len(given))]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong


def first_columns() -> bytes:
    """The first 8 columns at most."""
    made = Made([], {})
    made.nodes.append(helper.make_node("Slice", ["x", *map(made.constant, map(np.array, ([0], [8], [1])))], ["y"]))
    return made.file({"x": (TensorProto.FLOAT, ["n", "length"])}, "y")


def test_a_range_ends_where_a_rule_decides_otherwise(imports: list[object]) -> None:
    file = first_columns()
    run, plain = pdojo.onnx.load(file).compile(tune="none"), pdojo.onnx.load(file)
    for shape in ((3, 10), (3, 12)):
        check(run, plain, floats(*shape))
    assert "LENGTH from 10 to 24" in str(run.explain(**floats(3, 12)))
    before = len(imports)
    call(run, floats(3, 24))
    assert len(imports) == before
    check(run, plain, floats(3, 6))
    check(run, plain, floats(3, 13))
    report = str(run.explain(**floats(3, 6)))
    assert "each is planned anew; node 'y' (Slice): " in report
    assert "whether LENGTH <= 8 depends on the size LENGTH" in report


def test_a_range_begins_where_all_sizes_have_an_index() -> None:
    made = Made([], {})
    row = made.add("Gather", "x", np.array(5), axis=0)
    file = made.file({"x": (TensorProto.FLOAT, ["n", 4])}, row)
    run, plain = pdojo.onnx.load(file).compile(tune="none"), pdojo.onnx.load(file)
    for rows in (9, 11):
        check(run, plain, floats(rows, 4))
    assert "N from 9 to 22" in str(run.explain(**floats(11, 4)))


def test_shapes_that_must_be_multiples_have_a_plan_for_multiples() -> None:
    """Two halves that are doubled are as long as the whole of even lengths only."""
    made = Made([], {})
    half = made.add("AveragePool", "x", kernel_shape=[2], strides=[2])
    shape = made.add("Concat", made.extent(half, 0), made.extent(half, 1), np.array([-1]), axis=0)
    twice = made.add(
        "Concat", made.add("Unsqueeze", half, np.array([3])), made.add("Unsqueeze", half, np.array([3])), axis=3
    )
    made.nodes.append(helper.make_node("Add", [made.add("Reshape", twice, shape), "x"], ["y"]))
    file = made.file({"x": (TensorProto.FLOAT, [1, 2, "length"])}, "y")
    run, plain = pdojo.onnx.load(file).compile(tune="none"), pdojo.onnx.load(file)
    for length in (12, 20, 4, 40, 16):
        check(run, plain, floats(1, 2, length))
    assert "LENGTH from 4 to 40" in str(run.explain(**floats(1, 2, 20)))


def test_extents_of_one_name_or_always_equal_have_one_size() -> None:
    made = Made([], {})
    made.nodes.append(helper.make_node("Add", ["a", "b"], ["y"]))
    file = made.file({"a": (TensorProto.FLOAT, ["p", 2]), "b": (TensorProto.FLOAT, ["q", 2])}, "y")
    run = pdojo.onnx.load(file).compile(tune="none")
    for count in (3, 5, 10, 2):
        given = {"a": floats(count, 2)["x"], "b": floats(count, 2)["x"]}
        np.testing.assert_array_equal(call(run, given)[0], given["a"] + given["b"])
    assert "one plan for P from 2 to 10" in str(run.explain(**given))
    given = {"a": floats(4, 2)["x"], "b": floats(1, 2)["x"]}
    np.testing.assert_array_equal(call(run, given)[0], given["a"] + given["b"])

"""Values that must be known before a model runs: which inputs become static, and errors that come at once."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="needs onnx")

from onnx import ModelProto, TensorProto, helper, parser

from pdojo.errors import UsageError
from pdojo.onnx import UnsupportedNode, load
from pdojo.onnx.importing import Importer
from pdojo.onnx.reference import reference


def model_of(text: str, opset: int = 17) -> ModelProto:
    return parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]>\n{text}')


def ones(*shape: int) -> Any:
    return np.ones(shape, np.float32)


BRANCH = """
m (float[2, 3] x) => (float[2, 3] y) {
  s = ReduceSum <keepdims = 0> (x)
  z = Constant <value = float {0.0}> ()
  c = Greater (s, z)
  y = If (c) <then_branch = t () => (float[2, 3] a) { a = Relu (x) },
              else_branch = e () => (float[2, 3] b) { b = Neg (x) }>
}
"""
LOOP = """
m (float[2] x) => (float[2] y) {
  n = Constant <value = int64 {50}> ()
  c = Constant <value = bool {1}> ()
  y = Loop (n, c, x) <body = b (int64 i, bool g, float[2] a) => (bool again, float[2] next) {
    l = Constant <value = float {20.0}> ()
    s = ReduceSum <keepdims = 0> (a)
    again = Less (s, l)
    next = Add (a, x)
  }>
}
"""
SHAPE = """
m (float[6] x, float[2] s) => (float[a, b] y) { i = Cast <to = 7> (s) r = Reshape (x, i) y = Neg (r) }
"""
COMPUTED = {"If": (BRANCH, "x"), "Loop": (LOOP, "x"), "Reshape": (SHAPE, "s")}


@pytest.mark.parametrize("operator", COMPUTED)
def test_values_that_are_computed_from_numbers_are_refused(operator: str) -> None:
    text, name = COMPUTED[operator]
    proto = model_of(text)
    model = load(proto)
    given = [np.array([2, 3], np.float32) if each.name == "s" else numbers(each.shape) for each in model.inputs]
    match = rf"^node '\w' \({operator}\): it needs a value that is computed from '{name}' when the model runs"
    for call in (model.run, model.interpret, model.specialise):
        with pytest.raises(UnsupportedNode, match=match):
            call(*given)
    assert not model.static
    special = load(proto, static_floats=True)
    evaluator: Any = reference(proto)
    for _ in range(2):
        wanted = evaluator.run(None, {each.name: value for each, value in zip(special.inputs, given, strict=True)})
        np.testing.assert_allclose(special.interpret(*given), wanted[0], rtol=1e-6)
        given[0] = -given[0]
    assert operator in special.static[name]


def numbers(shape: Any) -> Any:
    """Different whole numbers from 1."""
    return np.random.default_rng(0).permutation(prod(shape)).reshape(shape).astype(np.float32) + 1


def test_inputs_that_are_parameters_of_a_node_are_static() -> None:
    proto = model_of("""
    m (float[1, 1, 2, 2] x, float[4] scales) => (float[a, b, c, d] y) { y = Resize <mode = "nearest"> (x, , scales) }
    """)
    model = load(proto)
    assert model.interpret(ones(1, 1, 2, 2), np.array([1, 1, 2, 3], np.float32)).shape == (1, 1, 4, 6)
    assert model.static == {"scales": "node 'y' (Resize)"}


def loop(count: int, condition: str) -> ModelProto:
    """A loop of `count` iterations, or without a count if it is 0, that adds its input."""
    return model_of(f"""
    m (float[2] x) => (float[2] y) {{
      n = Constant <value = int64 {{{count}}}> ()
      c = Constant <value = bool {{1}}> ()
      y = Loop ({"n" if count else ""}, c, x)
        <body = b (int64 i, bool g, float[2] a) => (bool again, float[2] next) {{
        {condition}
        next = Add (a, x)
      }}>
    }}
    """)


CONDITIONS = ("again = Identity (g)", "again = Constant <value = bool {1}> ()", "again = Identity (c)",
              "t = Cast <to = 9> (g) again = Identity (t)")  # fmt: skip


@pytest.mark.parametrize("condition", CONDITIONS)
def test_long_loops_are_refused_before_they_are_unrolled(condition: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load(loop(3, condition)).interpret(ones(2)).tolist() == [4, 4]

    def fail(*_: Any) -> None:
        raise AssertionError("an iteration is unrolled")

    monkeypatch.setattr(Importer, "subgraph", fail)
    for count, said in ((10**9, "1000000000 iterations"), (0, "no end")):
        with pytest.raises(UnsupportedNode, match=rf"^node 'y' \(Loop\): it has {said}, and loops of up to 1024"):
            load(loop(count, condition)).specialise(ones(2))


def test_long_loops_that_end_early_are_unrolled() -> None:
    condition = "t = Constant <value = int64 {2}> () again = Less (i, t)"
    assert load(loop(10**9, condition)).interpret(ones(2)).tolist() == [4, 4]
    assert load(loop(10**9, "f = Constant <value = bool {0}> () again = Identity (f)")).interpret(ones(2)).tolist() == [
        2,
        2,
    ]


def fixed(node: str) -> str:
    """A model with an output whose size depends on known values only."""
    return f"m (float[2] x) => (float[2] y) {{ {node} r = ReduceMax <keepdims = 0> (c) y = Add (x, r) }}"


def range_of(kind: str, *values: object) -> str:
    names = [f"{name} = Constant <value = {kind} {{{value}}}> ()" for name, value in zip("abd", values, strict=True)]
    convert = "" if kind == "float" else "c = Cast <to = 1> (q)"
    return fixed(f"{' '.join(names)} {'c' if kind == 'float' else 'q'} = Range (a, b, d) {convert}")


ROOM = "there is no memory for its result: {} bytes; values that are known before the model runs have at most"
CERTAIN = {
    "a step of 0": (range_of("int64", 0, 10, 0), "(Range): its step is 0"),
    "a step of 0.0": (range_of("float", 0.0, 10.0, 0.0), "(Range): its step is 0"),
    "a long range": (range_of("int64", 0, 10**12, 1), "(Range): " + ROOM.format(8 * 10**12)),
    "a filled array": (
        fixed("s = Constant <value = int64[3] {100000, 100000, 100}> () c = ConstantOfShape (s)"),
        "(ConstantOfShape): " + ROOM.format(4 * 10**12),
    ),
    "a repeated constant": (
        fixed("s = Constant <value = int64[3] {100000, 100000, 100}> () o = Constant <value = float[1] {1.0}> () "
              "c = Expand (o, s)"),
        "(Expand): " + ROOM.format(4 * 10**12),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CERTAIN)
def test_certain_errors_are_not_tried_again_by_unrolling(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, message = CERTAIN[case]

    def fail(*_: Any) -> None:
        raise AssertionError("its function is unrolled")

    monkeypatch.setattr(Importer, "call", fail)
    with pytest.raises(UnsupportedNode) as caught:
        load(model_of(text)).specialise(ones(2))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "values", "last"),
    [
        ("int64", (2**60, 2**60 + 3, 2), 2**60 + 2),
        ("int64", (10, 0, -3), 1),
        ("int64", (3, 3, 1), None),
        ("float", (0.0, 1.0, 0.25), 0.75),
        ("float", (1.0, -1.0, -0.75), -0.5),
    ],
)
def test_ranges(kind: str, values: tuple[float, ...], last: float | None) -> None:
    names = [f"{name} = Constant <value = {kind} {{{value}}}> ()" for name, value in zip("abd", values, strict=True)]
    found = load(model_of(f"m (float x) => ({kind}[n] y) {{ {' '.join(names)} y = Range (a, b, d) }}")).interpret(
        np.array(0, np.float32)
    )
    assert (found.tolist()[-1] if found.size else None) == last


@pytest.mark.parametrize("domain", ["", "ai.onnx"])
def test_versions_of_operators_that_onnx_does_not_know_are_refused(domain: str) -> None:
    proto = model_of("m (float[2] x) => (float[2] y) { y = Relu (x) }")
    del proto.opset_import[:]
    proto.opset_import.append(helper.make_opsetid(domain, 99))
    with pytest.raises(
        UsageError, match=r"^the model needs version 99 of the operators of 'ai.onnx'; onnx [\d.]+ has "
    ):
        load(proto)


@pytest.mark.parametrize("extent", [-1, -7, 0])
def test_extents_below_1(extent: int) -> None:
    """A negative extent is unknown, and 0 is one without elements, as for ONNX Runtime."""
    proto = model_of("m (float[n, 3] x) => (float[n, 3] y) { y = Relu (x) }")
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value = extent
    model = load(proto)
    assert model.interpret(ones(0, 3)).shape == (0, 3)
    if extent:
        assert model.interpret(ones(2, 3)).tolist() == ones(2, 3).tolist()
    else:
        with pytest.raises(UsageError, match=r"input 'x' has shape \(2, 3\), the model takes 0x3"):
            model.interpret(ones(2, 3))


@pytest.mark.parametrize("output", ["a type", "nothing"])
def test_values_without_a_declared_shape(output: str, tmp_path: Any) -> None:
    proto = model_of("m (float[2] x) => (float[2] y) { y = Relu (x) }")
    proto.graph.input[0].type.tensor_type.ClearField("shape")
    proto.graph.output[0].ClearField("type")
    if output == "a type":
        proto.graph.output[0].type.tensor_type.elem_type = TensorProto.FLOAT
    before = proto.SerializeToString()
    (tmp_path / "m.onnx").write_bytes(before)
    for source in (proto, before, tmp_path / "m.onnx"):
        assert load(source).interpret(ones(4, 5)).shape == (4, 5)
    assert proto.SerializeToString() == before
    proto.graph.input[0].type.tensor_type.ClearField("elem_type")
    with pytest.raises(UsageError, match=r"^input 'x' has no element type$"):
        load(proto)

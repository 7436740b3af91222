"""What is decided when a model runs: branches, loops, computed indices and shapes, beside ONNX's own programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from math import prod
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

onnx = pytest.importorskip("onnx", reason="needs onnx")

from onnx import ModelProto, parser

from pdojo.errors import UsageError
from pdojo.model.model import Model
from pdojo.onnx import OnnxModel, UnsupportedNode, load
from pdojo.onnx.importing import Importer
from pdojo.onnx.reference import reference

Arrays = Sequence[NDArray[Any]]


def model_of(text: str, opset: int = 17) -> ModelProto:
    return parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}, "own" : 1]>\n{text}')


def f32(*shape: int, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).permutation(prod(shape)).reshape(shape).astype(np.float32) + 1


def programs(proto: ModelProto) -> list[Callable[[dict[str, Any]], Arrays]]:
    """ONNX's reference evaluator, and ONNX Runtime if it is installed and takes the model."""
    evaluator: Any = reference(proto)
    found: list[Callable[[dict[str, Any]], Arrays]] = [lambda given: evaluator.run(None, given)]
    try:
        onnxruntime: Any = import_module("onnxruntime")
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        session: Any = onnxruntime.InferenceSession(proto.SerializeToString(), options, ["CPUExecutionProvider"])
    except Exception:  # noqa: BLE001  # it is missing, or has no kernel for a node
        return found
    return [*found, lambda given: session.run(None, given)]


def agrees(proto: ModelProto, cases: Sequence[Arrays]) -> OnnxModel:
    """Compare interpreted and compiled results with those of ONNX's programs."""
    model = load(proto)
    names = [each.name for each in model.inputs]
    calls: list[Callable[..., Any]] = [model.interpret, model.compile(tune="none")]
    others = programs(proto)
    for case in cases:
        before = [each.copy() for each in case]
        for call in calls:
            found: Any = call(*case)
            rows = cast("Arrays", found if isinstance(found, tuple) else (found,))
            for other in others:
                for ours, right in zip(rows, other(dict(zip(names, case, strict=True))), strict=True):
                    right = np.asarray(right)
                    assert (ours.dtype, ours.shape) == (right.dtype, right.shape)
                    np.testing.assert_allclose(ours, right, rtol=1e-5)
            for ours in rows:
                ours[...] = 0
        for array, copy in zip(case, before, strict=True):
            assert array.tobytes() == copy.tobytes(), "an output shares the memory of an input"
    return model


class Counted:
    """The numbers of compilations and of imports."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.compiled = self.imported = 0
        compile_, new = Model.compile, Importer.__init__

        def counted_compile(model: Model, *arguments: Any, **named: Any) -> Any:
            self.compiled += 1
            return compile_(model, *arguments, **named)

        def counted_import(importer: Importer, *arguments: Any, **named: Any) -> None:
            self.imported += 1
            new(importer, *arguments, **named)

        monkeypatch.setattr(Model, "compile", counted_compile)
        monkeypatch.setattr(Importer, "__init__", counted_import)


BRANCH = """
m (float[2, 3] x) => (float[2, 3] y) {
  s = ReduceSum <keepdims = 0> (x)
  z = Constant <value = float {0.0}> ()
  c = Greater (s, z)
  d = Exp (x)
  y = If (c) <then_branch = t () => (float[2, 3] a) { a = Add (x, d) },
              else_branch = e () => (float[2, 3] b) { q = Mul (x, x) b = Sub (q, d) }>
}
"""
NESTED = """
m (float[4] x, float[4] w) => (float[4] y) {
  s = ReduceSum <keepdims = 0> (x)
  z = Constant <value = float {0.0}> ()
  c = Greater (s, z)
  y = If (c) <
    then_branch = t () => (float[4] a) {
      m = ReduceMax <keepdims = 0> (w)
      l = Less (m, s)
      u = Add (x, w)
      a = If (l) <then_branch = tt () => (float[4] aa) { aa = Mul (u, w) },
                  else_branch = te () => (float[4] ab) { ab = Identity (x) }>
    },
    else_branch = e () => (float[4] b) { b = Neg (w) }>
}
"""
SHAPES = """
m (float[2, 6] x) => (float[k] y) {
  s = ReduceSum <keepdims = 0> (x)
  z = Constant <value = float {0.0}> ()
  c = Greater (s, z)
  all = Constant <value = int64[1] {-1}> ()
  r = If (c) <then_branch = t () => (float[12] a) { a = Reshape (x, all) },
              else_branch = e () => (float[2] b) { b = ReduceMax <keepdims = 0, axes = [1]> (x) }>
  y = Neg (r)
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
COUNTED = """
m (float[3] x, int64 n, bool go) => (float[3] y, float[k, 3] rows, float[k, 1] sums, float[k, 3] after) {
  d = Mul (x, x)
  y, rows, sums = Loop (n, go, x) <body = b (int64 i, bool g, float[3] a)
      => (bool again, float[3] next, float[3] row, float[1] sum) {
    f = Cast <to = 1> (i)
    h = Add (a, f)
    next = Add (h, d)
    row = Sub (next, x)
    sum = ReduceSum (row)
    l = Constant <value = float {400.0}> ()
    q = Less (sum, l)
    o = Squeeze (q)
    again = Identity (o)
  }>
  after = Neg (rows)
}
"""
GROWING = """
m (float[2] x, int64 n) => (float[k] y) {
  yes = Constant <value = bool {1}> ()
  r = Loop (n, yes, x) <body = b (int64 i, bool g, float[k] a) => (bool again, float[l] next) {
    again = Identity (g)
    h = Neg (a)
    next = Concat <axis = 0> (h, x)
  }>
  y = Relu (r)
}
"""
MIXED = """
m (float[3] x, int64 n) => (float[3] y) {
  yes = Constant <value = bool {1}> ()
  y = Loop (n, yes, x) <body = b (int64 i, bool g, float[3] a) => (bool again, float[3] next) {
    again = Identity (g)
    s = ReduceSum <keepdims = 0> (a)
    l = Constant <value = float {30.0}> ()
    c = Less (s, l)
    next = If (c) <then_branch = t () => (float[3] p) { p = Add (a, x) },
                   else_branch = e () => (float[3] q) { q = Sub (a, x) }>
  }>
}
"""
TOPK = """
m (float[2, 8] x) => (float[2, 3] y) {
  k = Constant <value = int64[1] {3}> ()
  v, i = TopK (x, k)
  g = GatherElements <axis = 1> (x, i)
  y = Neg (g)
}
"""
GATHER = """
m (float[8, 2] x, float[8] s) => (float[3, 2] y) {
  k = Constant <value = int64[1] {3}> ()
  v, i = TopK (s, k)
  g = Gather <axis = 0> (x, i)
  y = Exp (g)
}
"""
EMBEDDING = "m (int64[2, 3] i, float[9, 4] t) => (float[2, 3, 4] y) { e = Gather (t, i) y = Neg (e) }"
NONZERO = """
m (float[6] x, float[6] w) => (float[n, 1] y) {
  z = Constant <value = float {3.0}> ()
  c = Greater (x, z)
  p = NonZero (c)
  perm = Transpose (p)
  e = Exp (w)
  g = GatherND (e, perm)
  a = Constant <value = int64[1] {1}> ()
  u = Unsqueeze (g, a)
  y = Mul (u, u)
}
"""
COMPRESS = """
m (float[4, 3] x) => (float[n, 3] y, float[k] z) {
  s = ReduceSum <keepdims = 0, axes = [1]> (x)
  l = Constant <value = float {15.0}> ()
  c = Greater (s, l)
  q = Compress <axis = 0> (x, c)
  y = Neg (q)
  z = Compress (x, c)
}
""".replace("ReduceSum <keepdims = 0, axes = [1]> (x)", "ReduceMax <keepdims = 0, axes = [1]> (x)")
SLICE = """
m (float[10] x) => (float[4] y) {
  i = ArgMax <axis = 0, keepdims = 0> (x)
  c = Constant <value = int64 {6}> ()
  s = Min (i, c)
  a = Constant <value = int64[1] {0}> ()
  b = Unsqueeze (s, a)
  l = Constant <value = int64[1] {4}> ()
  e = Add (b, l)
  p = Slice (x, b, e)
  y = Neg (p)
}
"""
SCATTER = """
m (float[5] x, float[2] u) => (float[5] y) {
  k = Constant <value = int64[1] {2}> ()
  v, i = TopK (x, k)
  s = ScatterElements (x, i, u)
  y = Neg (s)
}
"""
UNIQUE = """
m (float[6] x) => (float[n] y, float[m] z) {
  r = Floor (x)
  u, a, b, c = Unique <sorted = 1> (r)
  y = Neg (u)
  z = Cast <to = 1> (c)
}
"""
BOXES = """
m (float[1, 6, 4] boxes, float[1, 2, 6] scores) => (float[n, 4] y) {
  k = Constant <value = int64 {3}> ()
  o = Constant <value = float {0.5}> ()
  l = Constant <value = float {0.1}> ()
  s = Sigmoid (scores)
  p = NonMaxSuppression (boxes, s, k, o, l)
  two = Constant <value = int64 {2}> ()
  i = Gather <axis = 1> (p, two)
  z = Constant <value = int64[1] {0}> ()
  b = Squeeze (boxes, z)
  g = Gather <axis = 0> (b, i)
  y = Mul (g, g)
}
"""
PITCH = """
m (float[5, 16] x, float[16, 24] w, float[24] cents) => (float[5] y) {
  h = MatMul (x, w)
  p = Sigmoid (h)
  i = ArgMax <axis = 1, keepdims = 1> (p)
  o = Constant <value = int64[1, 5] {-2, -1, 0, 1, 2}> ()
  j = Add (i, o)
  least = Constant <value = int64 {0}> ()
  most = Constant <value = int64 {23}> ()
  k = Clip (j, least, most)
  v = GatherElements <axis = 1> (p, k)
  c = Gather (cents, k)
  q = Mul (v, c)
  a = ReduceMean <axes = [1], keepdims = 0> (q)
  b = ReduceMean <axes = [1], keepdims = 0> (v)
  y = Div (a, b)
}
"""
RESHAPE = "m (float[6] x, float[2] s) => (float[a, b] y) { i = Cast <to = 7> (s) r = Reshape (x, i) y = Neg (r) }"
FUNCTION = """
m (float[6] x) => (float[n] y) { e = Exp (x) p = own.Above (e) y = Neg (p) }
<domain: "own", opset_import: ["" : 17]>
Above (a) => (b) {
  z = Constant <value = float {5.0}> ()
  c = Greater (a, z)
  d = Log (a)
  b = Compress (d, c)
}
"""
STAGED = """
m (float[6] x) => (float[6] y) {
  yes = Constant <value = bool {1}> ()
  n = Constant <value = int64 {3}> ()
  y = Loop (n, yes, x) <body = b (int64 i, bool g, float[6] a) => (bool again, float[6] next) {
    again = Identity (g)
    z = Constant <value = float {4.0}> ()
    c = Greater (a, z)
    p = Compress (a, c)
    h = Neg (p)
    s = ReduceSum <keepdims = 0> (h)
    next = Add (a, s)
  }>
}
"""
SCAN = """
m (float[LENGTH, 3] x, float[3] start) => (float[3] total, float[LENGTH, 3] rows) {
  total, rows = Scan <num_scan_inputs = 1, body = b (float[3] a, float[3] r) => (float[3] next, float[3] row) {
    c = Greater (r, a)
    p = Compress (r, c)
    s = ReduceSum <keepdims = 0> (p)
    next = Add (a, s)
    row = Sub (next, start)
  }> (start, x)
}
"""
INT = np.int64
CASES: dict[str, tuple[str, Sequence[Arrays]]] = {
    "a branch": (BRANCH, [[f32(2, 3)], [-f32(2, 3)], [f32(2, 3, seed=1)]]),
    "a branch in a branch": (NESTED, [[f32(4), f32(4)], [f32(4), 9 * f32(4)], [-f32(4), f32(4)], [9 * f32(4), f32(4)]]),
    "branches of two shapes": (SHAPES, [[f32(2, 6)], [-f32(2, 6)], [f32(2, 6, seed=3)], [-f32(2, 6, seed=4)]]),
    "a condition of a loop": (LOOP, [[f32(2)], [9 * f32(2)], [f32(2, seed=1)]]),
    "a number of iterations": (
        COUNTED,
        [[f32(3), np.array(n, INT), np.array(go)] for n, go in ((4, True), (2, True), (100, True))],
    ),
    "shapes that grow": (GROWING, [[f32(2), np.array(n, INT)] for n in (3, 2, 1, 3)]),
    "a branch in a loop": (MIXED, [[f32(3), np.array(n, INT)] for n in (5, 2, 9)]),
    "the greatest": (TOPK, [[f32(2, 8)], [-f32(2, 8)], [f32(2, 8, seed=2)]]),
    "rows of the greatest": (GATHER, [[f32(8, 2), f32(8)], [f32(8, 2), -f32(8)]]),
    "rows of a table": (EMBEDDING, [[np.arange(6).reshape(2, 3), f32(9, 4)], [np.full((2, 3), -8), f32(9, 4)]]),
    "places": (NONZERO, [[f32(6), f32(6)], [f32(6, seed=1), f32(6)], [f32(6) * 9, f32(6)], [-f32(6), f32(6)]]),
    "rows that are chosen": (COMPRESS, [[2 * f32(4, 3)], [2 * f32(4, 3, seed=1)], [f32(4, 3)], [3 * f32(4, 3)]]),
    "a part that is chosen": (SLICE, [[f32(10)], [f32(10, seed=1)], [f32(10, seed=2)]]),
    "writes at computed places": (SCATTER, [[f32(5), f32(2)], [-f32(5), f32(2)]]),
    "different values": (UNIQUE, [[f32(6) / 3], [f32(6) / 2], [f32(6, seed=1) / 3]]),
    "boxes": (BOXES, [[f32(1, 6, 4, seed=seed), sign * (f32(1, 2, 6) - 5)] for seed, sign in ((0, 1), (1, -1))]),
    "a pitch": (PITCH, [[f32(5, 16, seed=s) / 80, f32(16, 24) / 384 - 0.5, f32(24)] for s in range(3)]),
    "a computed shape": (RESHAPE, [[f32(6), np.array(s, np.float32)] for s in ((2, 3), (3, 2), (2, 3), (6, 1))]),
    "a function that waits for a shape": (FUNCTION, [[f32(6) / 2], [f32(6, seed=1) / 2], [f32(6) / 3], [-f32(6)]]),
    "a loop that waits for a shape": (STAGED, [[f32(6)], [f32(6, seed=1)], [9 * f32(6)]]),
    "a scan that waits for shapes": (SCAN.replace("LENGTH", "4"), [[f32(4, 3), f32(3)], [-f32(4, 3), f32(3)]]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_is_computed_when_a_model_runs(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same values again need no compilation, and no import."""
    text, arrays = CASES[case]
    counted = Counted(monkeypatch)
    model = agrees(model_of(text), arrays)
    assert not model.static
    first = model.compile(tune="none")
    for each in arrays:
        first(*each)
    compiled, imported = counted.compiled, counted.imported
    for each in arrays:
        first(*each)
    assert (counted.compiled, counted.imported) == (compiled, imported)


KEPT = ("a branch", "a condition of a loop", "the greatest", "rows of a table", "a part that is chosen",
        "writes at computed places", "a pitch")  # fmt: skip


@pytest.mark.parametrize("case", KEPT)
def test_new_values_compile_nothing(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, arrays = CASES[case]
    proto = model_of(text)
    call = load(proto).compile(tune="none")
    for each in arrays[:2]:
        call(*each)
    counted = Counted(monkeypatch)
    others = programs(proto)
    for seed in range(5):
        random = np.random.default_rng(seed)
        given = {
            i.name: random.permutation(a.reshape(-1)).reshape(a.shape)
            for i, a in zip(load(proto).inputs, arrays[0], strict=True)
        }
        for other in others:
            np.testing.assert_allclose(call(**given), other(given)[0], rtol=1e-5)
    assert (counted.compiled, counted.imported) == (0, 0)


TEXTS: dict[str, tuple[str, Arrays, Sequence[Any]]] = {
    "joined": (
        "m (string[2] x, float[2] f) => (string[2] y, bool[2] z, float[2] g) { "
        "s = Constant <value_strings = [\"a\", \"b\"]> () y = StringConcat (x, s) z = Equal (x, s) g = Neg (f) }",
        [np.array(["a", "c"], object), f32(2)],
        [["aa", "cb"], [True, False], (-f32(2)).tolist()],
    ),
    "numbers": (
        "m (string[2] x) => (float[2] y) { n = Cast <to = 1> (x) y = Neg (n) }", [np.array(["1.5", "-2"])], [[-1.5, 2]]
    ),
    "of numbers": (
        "m (float[2] x) => (string[2] y, string[1, 2] z) { n = Neg (x) "
        "y = Cast <to = 8> (n) "
        "a = Constant <value = int64[1] {0}> () z = Unsqueeze (y, a) }",
        [np.array([1.5, -2.5], np.float32)], [["-1.5", "2.5"], [["-1.5", "2.5"]]],
    ),
    "split": (
        "m (string[2] x) => (string[a, b] y, int64[2] n) { y, n = StringSplit <delimiter = \",\"> (x) }",
        [np.array(["a,b", "c"], object)], [[["a", "b"], ["c", ""]], [2, 1]],
    ),
    "in a branch": (
        "m (string[2] x, bool c) => (string[2] y) { "
        "y = If (c) <then_branch = t () => (string[2] a) { a = Identity (x) }, "
        "else_branch = e () => (string[2] b) { b = StringConcat (x, x) }> }",
        [np.array(["a", "c"], object), np.array(False)], [["aa", "cc"]],
    ),
    "a narrow type": (
        "m (float[3] x) => (float[3] y) { n = Neg (x) q = Cast <to = 17> (n) f = Cast <to = 1> (q) y = Abs (f) }",
        [np.array([1.03, 17.1, 500], np.float32)], [[1, 18, 448]],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", TEXTS)
def test_types_without_kernels(case: str) -> None:
    text, arrays, wanted = TEXTS[case]
    model = load(model_of(text, opset=20))
    call = model.compile(tune="none")
    for found in (model.interpret(*arrays), call(*arrays), call(*arrays)):
        rows = cast("Arrays", found if isinstance(found, tuple) else (found,))
        assert [row.tolist() for row in rows] == wanted
    assert any("no kernel" in part.reason for part in call.explain(*arrays).steps)


def test_a_branch_is_compiled_when_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)
    call = load(model_of(BRANCH)).compile(tune="none")
    for sign, wanted in ((1, 2), (1, 2), (-1, 3), (1, 3), (-1, 3)):
        call(sign * f32(2, 3))
        assert counted.compiled == wanted


@pytest.mark.parametrize(("count", "go"), [(0, True), (3, False)])
def test_loops_without_iterations(count: int, go: bool) -> None:
    """ONNX's evaluator fails; the results of no iterations have the shapes of those of one."""
    model = load(model_of(COUNTED))
    for call in (model.interpret, model.compile(tune="none")):
        y, rows, sums, after = call(f32(3), np.array(count), np.array(go))
        assert y.tolist() == f32(3).tolist()
        assert (rows.shape, sums.shape, after.shape) == ((0, 3), (0, 1), (0, 3))
        assert rows.dtype == after.dtype == np.float32


def test_shapes_of_a_long_loop_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    model = load(model_of(GROWING))
    wanted = model.interpret(f32(2), np.array(40))
    counted = Counted(monkeypatch)
    assert model.interpret(f32(2), np.array(40)).tolist() == wanted.tolist()
    assert counted.imported == 0


def replaced(_: Any, update: Any) -> Any:
    return update


REDUCED: dict[str, Callable[[Any, Any], Any]] = {
    "none": replaced,
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gathers_and_scatters_on_long_axes(axis: int) -> None:
    """ONNX's own GatherElements is wrong on axes of more than 64 elements."""
    random = np.random.default_rng(0)
    x, u = f32(70, 80), f32(5, 6)
    i = random.integers(-x.shape[axis], x.shape[axis], (5, 6))
    places = list(np.ndindex(5, 6))
    where = [(place, (i[place], place[1]) if axis == 0 else (place[0], i[place])) for place in places]
    text = f"m (float[70, 80] x, int64[5, 6] i) => (float[5, 6] y) {{ y = GatherElements <axis = {axis}> (x, i) }}"
    assert load(model_of(text)).interpret(x, i).tolist() == np.array([x[to] for _, to in where]).reshape(5, 6).tolist()
    for name, function in REDUCED.items():
        text = f"""
        m (float[70, 80] x, int64[5, 6] i, float[5, 6] u) => (float[70, 80] y) {{
          y = ScatterElements <axis = {axis}, reduction = "{name}"> (x, i, u)
        }}
        """
        wanted = x.copy()
        for place, to in where:
            wanted[to] = function(wanted[to], u[place])
        np.testing.assert_allclose(load(model_of(text, opset=18)).interpret(x, i, u), wanted, rtol=1e-5)


def test_slices_at_several_indices() -> None:
    random = np.random.default_rng(0)
    x, u = f32(70, 80, 3), f32(2, 5, 3)
    i = random.integers(-70, 70, (2, 5, 2))
    text = "m (float[70, 80, 3] x, int64[2, 5, 2] i) => (float[2, 5, 3] y) { y = GatherND (x, i) }"
    found = load(model_of(text)).interpret(x, i)
    assert found.tolist() == [[x[tuple(i[a, b])].tolist() for b in range(5)] for a in range(2)]
    text = """
    m (float[70, 80, 3] x, int64[70, 2] i) => (float[70, 2, 3] y) {
      t = Constant <value = int64[1] {2}> ()
      j = Unsqueeze (i, t)
      y = GatherND <batch_dims = 1> (x, j)
    }
    """
    batched = load(model_of(text)).interpret(x, np.resize(i, (70, 2)))
    assert batched.tolist() == [[x[a, np.resize(i, (70, 2))[a, b]].tolist() for b in range(2)] for a in range(70)]
    for name, function in REDUCED.items():
        text = "m (float[70, 80, 3] x, int64[2, 5, 2] i, float[2, 5, 3] u) => (float[70, 80, 3] y) { y = ScatterND "
        text += f'<reduction = "{name}"> (x, i, u) }}'
        wanted = x.copy()
        for place in np.ndindex(2, 5):
            wanted[tuple(i[place])] = function(wanted[tuple(i[place])], u[place])
        np.testing.assert_allclose(load(model_of(text, opset=18)).interpret(x, i, u), wanted, rtol=1e-5)


def test_the_old_name_of_a_scatter() -> None:
    text = "m (float[4] x, int64[2] i, float[2] u) => (float[4] y) { y = Scatter (x, i, u) }"
    found = load(model_of(text, opset=10)).interpret(f32(4), np.array([3, 1]), -f32(2))
    assert found[[3, 1]].tolist() == (-f32(2)).tolist()


def test_loops_without_condition() -> None:
    """ONNX's evaluator runs no iteration."""
    text = GROWING.replace("(n, yes, x)", "(n, , x)")
    for count in (2, 0):
        found = load(model_of(text)).interpret(np.array([1, 2], np.float32), np.array(count))
        assert found.tolist() == ([1, 2, 0, 0, 1, 2] if count else [1, 2])


def test_long_scans_are_steps() -> None:
    text = SCAN.replace("LENGTH", "1500")
    x, start = f32(1500, 3, seed=1) % 7, f32(3)
    total, rows = load(model_of(text)).compile(tune="none")(x, start)
    state, wanted = start.copy(), list[Any]()
    for row in x:
        state = state + row[row > state].sum()
        wanted.append(state - start)
    assert total.tolist() == state.tolist()
    assert rows.tolist() == np.array(wanted).tolist()


def test_several_threads_take_different_branches() -> None:
    call = load(model_of(NESTED)).compile(tune="none")
    xs, ws = [f32(4), f32(4), -f32(4)], [f32(4), 9 * f32(4), f32(4)]
    wanted = [load(model_of(NESTED)).interpret(*case).tolist() for case in zip(xs, ws, strict=True)]
    with ThreadPoolExecutor(4) as pool:
        found: list[Any] = list(pool.map(call, xs * 20, ws * 20))
    assert [each.tolist() for each in found] == wanted * 20


def test_results_that_are_inputs_or_constants_are_copies() -> None:
    text = """
    m (float[2] x) => (float[2] y, float[2] z) {
      s = ReduceSum <keepdims = 0> (x)
      zero = Constant <value = float {0.0}> ()
      c = Greater (s, zero)
      k = Constant <value = float[2] {7.0, 8.0}> ()
      y = If (c) <then_branch = t () => (float[2] a) { a = Identity (x) },
                  else_branch = e () => (float[2] b) { b = Identity (k) }>
      z = Identity (y)
    }
    """
    agrees(model_of(text), [[f32(2)], [-f32(2)], [-f32(2)], [f32(2)]])


EXPLAINED = {
    "a branch": (BRANCH, "node 'y' (If); its condition is computed when the model runs"),
    "the greatest": (SLICE, "node 'p' (Slice); no kernel takes its operand 'b', which is computed"),
    "places": (NONZERO, "node 'p' (NonZero); no kernel is known for this operator"),
    "later nodes": (NONZERO, "later nodes; made for the shape of 'p'"),
    "a computed shape": (RESHAPE, "later nodes; made for the value of 'i', for node 'r' (Reshape)"),
    "a loop": (COUNTED, "node 'y' (Loop); its number of iterations is computed when the model runs"),
    "a loop that waits": (STAGED, "node 'y' (Loop); its body waits for node 'p' (Compress): the shape of its result"),
    "a function": (FUNCTION, "node 'p' (Above); its graph waits for node 'b' (Compress): the shape of its"),
}  # fmt: skip


@pytest.mark.parametrize("case", EXPLAINED)
def test_what_is_no_kernel_is_said(case: str) -> None:
    text, said = EXPLAINED[case]
    arrays = next(arrays for given, arrays in CASES.values() if given == text)[0]
    explained = load(model_of(text)).compile(tune="none").explain(*arrays)
    assert any(line.strip().startswith(said) for line in str(explained).splitlines()), explained
    assert any(f"{part.title}; {part.reason}".startswith(said) for part in explained.steps)
    assert explained.kernels


def test_an_explanation_has_all_parts_in_their_order() -> None:
    model = load(model_of(MIXED))
    explained = model.compile(tune="none").explain(f32(3), np.array(5))
    rows = [(part.depth, part.title.split(":")[0], part.runs) for part in explained.parts]
    assert rows == [
        (0, "node 'y' (Loop)", 1),
        (1, "1 calls of kernels", 5),
        (1, "node 'next' (If)", 5),
        (2, "1 calls of kernels", 4),
        (2, "1 calls of kernels", 1),
    ]
    plain = load(model_of("m (float[2] x) => (float[2] y) { y = Neg (x) }")).compile(tune="none").explain(f32(2))
    assert (len(plain.kernels), plain.steps, len(plain.parts)) == (1, (), 1)


def test_indices_computed_from_numbers_are_in_kernels() -> None:
    text, arrays = CASES["a pitch"]
    explained = load(model_of(text)).compile(tune="none").explain(*arrays[0])
    assert not explained.steps
    names = [kernel.sym_name.data for kernel in explained.kernels]
    assert names == ["matmul_sigmoid", "argmax", "add_clip", "gatherelements_reducemean", "gather_mul_reducemean_div"]


def test_kernels_of_a_model_with_steps() -> None:
    names = [kernel.sym_name.data for kernel in load(model_of(BRANCH)).kernels(f32(2, 3))]
    assert len(names) == 3, names


def branch(result: str) -> str:
    return f"""
    m (float[2] x, bool c) => (float[n] y) {{
      y = If (c) <then_branch = t () => (float[2] a) {{ a = Identity (x) }},
                  else_branch = e () => (float[2] b) {{ {result} }}>
    }}
    """


REFUSED: dict[str, tuple[str, Arrays, str]] = {
    "an index beyond an axis": (
        EMBEDDING,
        [np.full((2, 3), 9), f32(9, 4)],
        r"kernel 'gather_neg': '\w+' has the index 9 at \[0, 0\]",
    ),
    "a condition of two elements": (
        branch("b = Neg (x)").replace("bool c", "bool[2] c"),
        [f32(2), np.array([True, False])],
        r"node 'y' \(If\): an operand has 2 elements, not one",
    ),
    "a branch without kernel": (
        branch("b = RandomNormalLike (x)"),
        [f32(2), np.array(True)],
        r"node 'b' \(RandomNormalLike\): no kernel is known for this operator",
    ),
    "a branch of sequences": (
        branch("b = SequenceConstruct (x)"),
        [f32(2), np.array(True)],
        r"node 'y' \(If\): result 'y' is a sequence or an absent value, which no step computes",
    ),
    "rows of several shapes": (
        "m (float[2] x, int64 n) => (float[k, l] y) { yes = Constant <value = bool {1}> ()\n"
        "r, y = Loop (n, yes, x) <body = b (int64 i, bool g, float[k] a) => (bool again, float[l] next, float[l] row) "
        "{ again = Identity (g) next = Concat <axis = 0> (a, x) row = Neg (next) }> }",
        [f32(2), np.array(3)],
        r"node 'r' \(Loop\): arrays of shapes \[4\], \[6\], \[8\] are not joined",
    ),
    "an operator of nobody": (
        "m (float[2] x) => (float[2] y) { y = own.Magic (x) }",
        [f32(2)],
        r"node 'y' \(Magic\): no kernel is known for this operator of domain 'own'",
    ),
    "a long value": (
        "m (float[600000] x) => (float[n] y) { i = Cast <to = 7> (x) h = Abs (x) r = ConstantOfShape (i) y = Neg (r) }",
        [np.ones(600000, np.float32)],
        r"node 'r' \(ConstantOfShape\): it needs the value of 'i', which is 4800000 bytes; models are made anew",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_is_named(case: str) -> None:
    text, arrays, message = REFUSED[case]
    model = load(model_of(text))
    for call in (model.interpret, model.compile(tune="none")):
        with pytest.raises(UsageError, match=f"^{message}"):
            call(*arrays)


def test_models_with_steps_are_no_single_graph() -> None:
    message = r"^node 'p' \(Slice\): no kernel takes its operand 'b'.*; `explain` tells more$"
    for action in (load(model_of(SLICE)).specialise, load(model_of(SLICE)).compile(tune="none").prepare):
        with pytest.raises(UnsupportedNode, match=message):
            action(f32(10))

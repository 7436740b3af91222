"""The loop form, run by xDSL's interpreter, computes what NumPy computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects import get_all_dialects
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.interpreters.builtin import xtype_for_el_type
from xdsl.interpreters.shaped_array import ShapedArray
from xdsl.interpreters.utils.ptr import TypedPtr
from xdsl.ir import Attribute
from xdsl.parser import Parser
from xdsl.passes import PassPipeline
from xdsl.universe import Universe
from xdsl.utils.hints import isa

from pdojo.backends.loops.convert import ConvertPdojoToLoopsPass
from pdojo.backends.loops.functions import standard_operations
from pdojo.backends.loops.interpreter import loops_interpreter
from pdojo.dialect.functions import DTYPES, dtype_name
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.ops import PDOJO
from pdojo.dialect.semantics.functions import apply
from pdojo.dialect.semantics.rounding import CARRIERS
from pdojo.math.functions import FUNCTIONS, FUSED, Signature

EXAMPLES = Path(__file__).parents[3] / "examples"


def context() -> Context:
    ctx = Context()
    for name, factory in get_all_dialects().items():
        ctx.register_dialect(name, factory)
    ctx.load_dialect(PDOJO)
    return ctx


def execute(module: ModuleOp, function: str, *arrays: NDArray[Any]) -> list[NDArray[Any]]:
    """Run a function of a lowered module; the arrays after it."""
    module.verify()
    (callee,) = (op for op in module.walk() if isinstance(op, FuncOp) and op.sym_name.data == function)
    interpreter = loops_interpreter(module, context())
    arguments: list[ShapedArray[Any]] = []
    for array, block_argument in zip(arrays, callee.args, strict=True):
        memref = block_argument.type
        assert isa(memref, MemRefType[Attribute])
        element = xtype_for_el_type(memref.element_type, interpreter.index_bitwidth)
        arguments.append(ShapedArray(TypedPtr[Any].new(array.ravel().tolist(), xtype=element), list(array.shape)))
    interpreter.call_op(function, tuple(arguments))
    pairs = zip(arguments, arrays, strict=True)
    return [np.array(argument.data, array.dtype).reshape(array.shape) for argument, array in pairs]


def lowered(text: str, *, sequential: bool) -> ModuleOp:
    module = ModuleOp(list(parse_notation(text)))
    ConvertPdojoToLoopsPass(sequential).apply(context(), module)
    return module


SOFTMAX = """
kernel softmax(x) -> (y)
x f32 [6, 20] heap
y f32 [6, 20] heap
m f32 [6:N] heap
e f32 [6:N, 20] stack
s f32 [6] heap

6:p
| m[{0}] = -inf
| 2
| | 16 where ({1}*16+{2} < 20)
| | | m[{0}] max= x[{0},{1}*16+{2}]
| 20 e[{0},{1}] = x[{0},{1}] - m[{0}]
| 20:u e[{0},{1}] = exp(e[{0},{1}])
| s[{0}] = 0
| 5
| | 4:v s[{0}] += e[{0},{1}*4+{2}]
| 20 y[{0},{1}] = e[{0},{1}] / s[{0}]
"""


@pytest.mark.parametrize("sequential", [False, True])
def test_softmax(sequential: bool) -> None:
    x = np.random.default_rng(1).normal(size=(6, 20)).astype(np.float32) * 10
    _, y = execute(lowered(SOFTMAX, sequential=sequential), "softmax", x, np.full_like(x, np.nan))
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(axis=1, keepdims=True), rtol=1e-5)


def test_vector_lanes_of_a_reused_dimension() -> None:
    text = """
kernel square(x) -> (y)
x f64 [12] heap
y f64 [12] heap
t f64 [12:N] stack

3:p
| 4:v t[{0}*4+{1}] = x[{0}*4+{1}] * x[{0}*4+{1}]
| 4:v y[{0}*4+{1}] = t[{0}*4+{1}]
"""
    x = np.arange(12.0)
    for sequential in (False, True):
        np.testing.assert_array_equal(execute(lowered(text, sequential=sequential), "square", x, x * 0)[1], x * x)


def test_index_expressions_and_values() -> None:
    text = """
kernel f(x) -> (y, z)
x i32 [24] heap
y i32 [24] heap
z f32 [24] heap

24 y[{0}] = x[(23 - {0} + 5) % 24]
24 z[{0}] = {0} // 5 - 2
"""
    x = np.arange(24, dtype=np.int32) ** 2
    _, y, z = execute(lowered(text, sequential=False), "f", x, x * 0, np.zeros(24, np.float32))
    i = np.arange(24)
    np.testing.assert_array_equal(y, x[(28 - i) % 24])
    np.testing.assert_array_equal(z, i // 5 - 2)


SCALARS = {name: f for name, f in FUNCTIONS.items() if name != "arith.remf"}


def signature_types(function: str) -> list[tuple[str, ...]]:
    """Operand types and result type of some typed instances of a function."""
    spec = FUNCTIONS[function]
    match spec.signature:
        case Signature.FLOAT:
            return [(t,) * (spec.arity + 1) for t in ("f64", "f32", "f16")]
        case Signature.INTEGER:
            return [(t,) * (spec.arity + 1) for t in ("i64", "i32", "i8")]
        case Signature.COMPARE_FLOAT:
            return [("f32", "f32", "i1")]
        case Signature.COMPARE_INTEGER:
            return [("i16", "i16", "i1")]
        case Signature.SELECT:
            return [("i1", "f32", "f32", "f32")]
        case Signature.CAST:
            return [CASTS[function]]


CASTS = {
    "arith.extf": ("f32", "f64"),
    "arith.truncf": ("f64", "f16"),
    "arith.sitofp": ("i32", "f32"),
    "arith.uitofp": ("i8", "f32"),
    "arith.fptosi": ("f32", "i32"),
    "arith.fptoui": ("f32", "i64"),
    "arith.extsi": ("i8", "i32"),
    "arith.extui": ("i8", "i32"),
    "arith.trunci": ("i32", "i8"),
    "arith.bitcast": ("f32", "i32"),
}


@pytest.mark.parametrize("function", SCALARS)
def test_every_function(function: str) -> None:
    for *sources, target in signature_types(function):
        rng = np.random.default_rng(7)
        names = [f"a{k}" for k in range(len(sources))]
        operands = [operand(rng, dtype, function) for dtype in sources]
        inputs = ", ".join(f"%{name}[%i]" for name in names)
        declared = ", ".join(f"in {n} %{n} : memref<16x{t}>" for n, t in zip(names, sources, strict=True))
        text = f"""pdojo.kernel @k({declared}, out y %y : memref<16x{target}>) {{
          pdojo.scope %i = 16 {{ pdojo.op %y[%i] = {function}({inputs}) }} }}"""
        module = Parser(context(), text).parse_module()
        ConvertPdojoToLoopsPass().apply(context(), module)
        *_, y = execute(module, "k", *operands, np.zeros(16, CARRIERS[target]))
        np.testing.assert_array_equal(y, apply(function, operands, sources, target), err_msg=f"{sources} {target}")


def operand(rng: np.random.Generator, dtype: str, function: str) -> NDArray[Any]:
    """Sixteen values that the function is defined for."""
    carrier = CARRIERS[dtype]
    if dtype == "i1":
        return rng.integers(0, 2, 16).astype(carrier)
    if carrier.kind == "f":
        positive = function in ("arith.fptoui", "math.powf") or "log" in function or "sqrt" in function
        values = rng.uniform(0.125 if positive else -4, 4, 16)
        return values.astype(carrier)
    shifts = function.startswith("arith.sh")
    divides = "div" in function or "rem" in function
    return rng.integers(1 if divides else 0 if shifts else -100, 7 if shifts else 100, 16).astype(carrier)


def test_every_function_has_an_operation() -> None:
    # Fused differences are two operations.
    single = [n for n in SCALARS if FUSED.get(n) is None]
    names = {n.rsplit(".", 1)[0] if ".cmp" in n else FUNCTIONS[n].denotes for n in single}
    assert names <= standard_operations().keys()
    assert {dtype_name(t) for t in DTYPES.values()} == set(DTYPES)


@pytest.mark.parametrize("pipeline", ["", "convert-linalg-to-loops,canonicalize,cse,convert-scf-to-cf"])
def test_embedding(pipeline: str) -> None:
    """The worked example of docs/embedding.md, lowered only as far as needed, and down to branches."""
    ctx = context()
    path = EXAMPLES / "embedding" / "host.mlir"
    module = Parser(ctx, path.read_text(), str(path)).parse_module()
    sequential = "convert-pdojo-to-loops{sequential=true}"
    passes = Universe.get_multiverse().all_passes
    PassPipeline.parse_spec(passes, f"{sequential},{pipeline}".rstrip(",")).apply(ctx, module)
    x = np.random.default_rng(3).normal(size=(4, 8)).astype(np.float32)
    _, y = execute(module, "layer", x, np.full_like(x, np.nan))
    e = np.exp(x - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(y, x + e / e.sum(axis=1, keepdims=True), rtol=1e-5)


def test_tables_are_global_constants() -> None:
    text = """
kernel gather(x) -> (y)
x f64 [5, 4] heap
y f64 [6, 4] heap
idx i64 [6] table 4, 0, 4, 2, 1, 3
part i64 [2] table 3, 0

6:p 4 y[{0},{1}] = x[idx[{0}],{1}]
3 2 y[idx[{0}*2],part[{1}]] += idx[part[{1}]+{0}]
"""
    x = np.arange(20.0).reshape(5, 4)
    wanted = x[[4, 0, 4, 2, 1, 3]]
    for i, j in np.ndindex(3, 2):
        wanted[[4, 4, 1][i], [3, 0][j]] += [4, 0, 4, 2, 1, 3][[3, 0][j] + i]
    for sequential in (False, True):
        found = execute(lowered(text, sequential=sequential), "gather", x, np.zeros((6, 4)))[1]
        np.testing.assert_array_equal(found, wanted)

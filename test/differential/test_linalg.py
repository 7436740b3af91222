"""Random linalg operations: their kernels compute what xDSL's own loops compute (`convert-linalg-to-loops`)."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.builtin import Float64Type, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.interpreters.shaped_array import ShapedArray
from xdsl.interpreters.utils.ptr import TypedPtr
from xdsl.passes import PassPipeline
from xdsl.universe import Universe

from pdojo.api.programs import kernel_in
from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.loops.interpreter import loops_interpreter
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.view.build import nest_of
from pdojo.frontends.text import TextContext, given, parse

EXTENTS = [2, 3, 4]
PROGRAMS = 60
UNARY = ("math.absf", "arith.negf", "math.exp")
BINARY = ("arith.addf", "arith.subf", "arith.mulf", "arith.maximumf")


def index(random: Random, dims: list[int]) -> tuple[str, list[int]]:
    """An index over some of the iterations, in any order, and the shape that it needs."""
    chosen = random.sample(dims, random.randint(0, len(dims)))
    parts: list[str] = []
    shape: list[int] = []
    while chosen:
        d = chosen.pop()
        if chosen and random.random() < 0.3:
            # A window: the sum of two iterations, one with a stride.
            e, stride = chosen.pop(), random.randint(1, 2)
            parts.append(f"d{d} * {stride} + d{e}")
            shape.append((EXTENTS[d] - 1) * stride + EXTENTS[e])
        elif random.random() < 0.2:
            parts.append(f"{EXTENTS[d] - 1} - d{d}")
            shape.append(EXTENTS[d])
        else:
            parts.append(f"d{d}")
            shape.append(EXTENTS[d])
    return ", ".join(parts), shape


def body(random: Random, arguments: list[str], outputs: list[str]) -> list[str]:
    """Statements on random values, of which the last are yielded."""
    lines: list[str] = []
    values = [*arguments, *outputs]
    if random.random() < 0.4:
        d = random.randrange(3)
        lines += [f"%i = linalg.index {d} : index", "%j = arith.index_cast %i : index to i64"]
        lines.append("%k = arith.sitofp %j : i64 to f64")
        values.append("%k")
    for n in range(random.randint(1, 4)):
        if random.random() < 0.3:
            lines.append(f"%v{n} = {random.choice(UNARY)} {random.choice(values)} : f64")
        else:
            lines.append(f"%v{n} = {random.choice(BINARY)} {random.choice(values)}, {random.choice(values)} : f64")
        values.append(f"%v{n}")
    yielded = [random.choice(values[len(arguments) :]) for _ in outputs]
    if random.random() < 0.5:
        lines.append(f"%s = {random.choice(BINARY)} {outputs[0]}, {values[-1]} : f64")
        yielded[0] = "%s"
    return [*lines, f"linalg.yield {', '.join(yielded)} : {', '.join(['f64'] * len(outputs))}"]


def memref(shape: list[int]) -> str:
    return f"memref<{''.join(f'{extent}x' for extent in shape)}f64>"


def program(random: Random) -> str:
    """A function of one operation: inputs with random maps, outputs over the parallel dimensions."""
    dims = list(range(len(EXTENTS)))
    parallel = sorted(random.sample(dims, random.randint(0, 3)))
    inputs = [index(random, dims) for _ in range(random.randint(0, 2))]
    # Every iteration has a size: the first input has all dimensions.
    order = random.sample(dims, 3)
    inputs.insert(0, (", ".join(f"d{d}" for d in order), [EXTENTS[d] for d in order]))
    outputs: list[tuple[str, list[int]]] = []
    for _ in range(random.randint(1, 2)):
        mixed = random.sample(parallel, len(parallel))
        outputs.append((", ".join(f"d{d}" for d in mixed), [EXTENTS[d] for d in mixed]))
    names = [f"%x{k}" for k in range(len(inputs))], [f"%y{k}" for k in range(len(outputs))]
    types = [memref(shape) for _, shape in inputs], [memref(shape) for _, shape in outputs]
    maps = ", ".join(f"affine_map<(d0, d1, d2) -> ({text})>" for text, _ in (*inputs, *outputs))
    kinds = ", ".join('"parallel"' if d in parallel else '"reduction"' for d in dims)
    pairs = zip((*names[0], *names[1]), (*types[0], *types[1]), strict=True)
    scalars = [f"%a{k}" for k in range(len(inputs))], [f"%o{k}" for k in range(len(outputs))]
    lines = "\n    ".join(body(random, *scalars))
    return f"""func.func @f({", ".join(f"{name}: {kind}" for name, kind in pairs)}) {{
  linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}
      ins({", ".join(names[0])} : {", ".join(types[0])}) outs({", ".join(names[1])} : {", ".join(types[1])}) {{
  ^bb0({", ".join(f"{name}: f64" for name in (*scalars[0], *scalars[1]))}):
    {lines}
  }}
  func.return
}}
"""


def by_loops(text: str, arrays: dict[str, NDArray[Any]]) -> list[NDArray[Any]]:
    """The arrays after the loops that xDSL makes of the operation."""
    context = TextContext()
    module: ModuleOp = parse(given(text, "<text>"), context, "mlir").module
    passes = Universe.get_multiverse().all_passes
    PassPipeline((passes["convert-linalg-to-loops"]()(),)).apply(context, module)
    shaped = [
        ShapedArray(TypedPtr[Any].new(array.ravel().tolist(), xtype=Float64Type()), list(array.shape))
        for array in arrays.values()
    ]
    (function,) = (op for op in module.ops if isinstance(op, FuncOp))
    loops_interpreter(module, context).call_op(function.sym_name.data, tuple(shaped))
    return [np.array(s.data).reshape(a.shape) for s, a in zip(shaped, arrays.values(), strict=True)]


@pytest.mark.parametrize("group", range(6))
def test_random_operations(group: int) -> None:
    for seed in range(group, PROGRAMS, 6):
        text = program(Random(seed))
        kernel = kernel_in(given(text, "<text>"))
        rng = np.random.default_rng(seed)
        parameters = parameters_of(nest_of(kernel))
        arrays = {p.name: rng.normal(size=p.shape) / 2 for p in parameters}
        wanted = dict(zip(arrays, by_loops(text, arrays), strict=True))
        read = {p.name: arrays[p.name] for p in parameters if p.intent.value != "out"}
        for name, values in interpret(kernel, read).items():
            np.testing.assert_allclose(values, wanted[name], rtol=1e-9, atol=1e-12, err_msg=text)

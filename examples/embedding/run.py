"""Run the host function of `host.mlir` in xDSL's interpreter and compare it with NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import f32
from xdsl.interpreters.shaped_array import ShapedArray
from xdsl.interpreters.utils.ptr import TypedPtr
from xdsl.parser import Parser
from xdsl.passes import PassPipeline
from xdsl.universe import Universe

from pdojo.backends.loops.interpreter import loops_interpreter

universe = Universe.get_multiverse()
context = Context()
for name, dialect in universe.all_dialects.items():
    context.register_dialect(name, dialect)

module = Parser(context, Path(__file__).with_name("host.mlir").read_text()).parse_module()
pipeline = 'pdojo-join-scopes{at="m:0"},convert-pdojo-to-loops,convert-linalg-to-loops,canonicalize,cse'
PassPipeline.parse_spec(universe.all_passes, pipeline).apply(context, module)

x = np.random.default_rng(0).normal(size=(4, 8)).astype(np.float32)
arguments = [ShapedArray(TypedPtr[Any].new(a.ravel().tolist(), xtype=f32), [4, 8]) for a in (x, 0 * x)]
loops_interpreter(module, context).call_op("layer", tuple(arguments))

e = np.exp(x - x.max(axis=1, keepdims=True))
expected = x + e / e.sum(axis=1, keepdims=True)
error = np.abs(np.reshape(arguments[1].data, (4, 8)) - expected).max()
print("the largest difference is below 1e-6" if error < 1e-6 else f"wrong: the largest difference is {error}")

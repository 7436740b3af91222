"""The library's kernels as loops: xDSL's interpreter and the kernel's agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.interpreters.builtin import xtype_for_el_type
from xdsl.interpreters.shaped_array import ShapedArray
from xdsl.interpreters.utils.ptr import TypedPtr

from differential.compiled import random_inputs
from differential.library import close, small
from differential.mlir import context, loops
from pdojo.backends.calling.arrays import Parameter, parameters_of
from pdojo.backends.loops.interpreter import loops_interpreter
from pdojo.dialect.functions import DTYPES
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.view.build import nest_of
from sample import sampled

WITHOUT_BF16 = "xDSL's interpreter has no memory of bf16"


def executed(
    module: ModuleOp, parameters: Sequence[Parameter], arrays: dict[str, NDArray[Any]], *sizes: int
) -> dict[str, Any]:
    """The arrays after a call of the only function."""
    interpreter = loops_interpreter(module, context())
    shaped: dict[str, ShapedArray[Any]] = {}
    for parameter in parameters:
        element = xtype_for_el_type(DTYPES[parameter.dtype], interpreter.index_bitwidth)
        values = arrays[parameter.name].ravel().tolist()
        shaped[parameter.name] = ShapedArray(TypedPtr[Any].new(values, xtype=element), list(parameter.shape))
    (function,) = (op for op in module.ops if isinstance(op, FuncOp))
    interpreter.call_op(function.sym_name.data, (*shaped.values(), *sizes))
    return {n: np.array(s.data, arrays[n].dtype).reshape(arrays[n].shape) for n, s in shaped.items()}


@pytest.mark.parametrize("name", sampled())
def test_interpreted(name: str) -> None:
    kernel = small(name)
    parameters = parameters_of(nest_of(kernel))
    if any(buffer.dtype == "bf16" for buffer in nest_of(kernel).buffers):
        pytest.skip(WITHOUT_BF16)
    inputs = random_inputs(parameters, 0)
    wanted = interpret(kernel, inputs)
    arrays = {p.name: inputs[p.name] if p.name in inputs else np.zeros_like(wanted[p.name]) for p in parameters}
    close(executed(loops(kernel), parameters, arrays), wanted, kernel)

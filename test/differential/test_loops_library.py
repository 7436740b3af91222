"""The library's kernels as loops: xDSL's interpreter and the kernel's agree, and MLIR accepts the loops."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects import get_all_dialects
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.interpreters.builtin import xtype_for_el_type
from xdsl.interpreters.shaped_array import ShapedArray
from xdsl.interpreters.utils.ptr import TypedPtr
from xdsl.printer import Printer

from differential.compiled import random_inputs
from differential.library import close
from pdojo.backends.calling.arrays import Parameter, parameters_of
from pdojo.backends.loops.convert import ConvertPdojoToLoopsPass
from pdojo.backends.loops.interpreter import loops_interpreter
from pdojo.dialect.functions import DTYPES
from pdojo.dialect.ops import PDOJO, KernelOp
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.view.build import nest_of
from pdojo.errors import NotationError
from pdojo.kernels import Workload, kernel_names, workload
from sample import sampled

WITHOUT_BF16 = "xDSL's interpreter has no memory of bf16"


def small(name: str) -> KernelOp:
    """A library kernel at the smallest sizes of at least 3 that have a program."""
    own = workload(name).sizes
    for size in range(3, 20):
        try:
            return Workload(name, tuple((n, min(default, size)) for n, default in own.items())).instantiate()
        except NotationError:
            continue
    raise AssertionError(name)


def context() -> Context:
    ctx = Context()
    for name, factory in get_all_dialects().items():
        ctx.register_dialect(name, factory)
    ctx.load_dialect(PDOJO)
    return ctx


def loops(kernel: KernelOp) -> ModuleOp:
    module = ModuleOp([kernel.clone()])
    ConvertPdojoToLoopsPass().apply(context(), module)
    module.verify()
    return module


def executed(module: ModuleOp, parameters: Sequence[Parameter], arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """The arrays after a call of the only function."""
    interpreter = loops_interpreter(module, context())
    shaped: dict[str, ShapedArray[Any]] = {}
    for parameter in parameters:
        element = xtype_for_el_type(DTYPES[parameter.dtype], interpreter.index_bitwidth)
        values = arrays[parameter.name].ravel().tolist()
        shaped[parameter.name] = ShapedArray(TypedPtr[Any].new(values, xtype=element), list(parameter.shape))
    (function,) = (op for op in module.ops if isinstance(op, FuncOp))
    interpreter.call_op(function.sym_name.data, tuple(shaped.values()))
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


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the loops of all kernels of the library, in MLIR's generic form."""
    folder = tmp_path_factory.mktemp("loops")
    for name in kernel_names():
        with (folder / f"{name}.mlir").open("w") as file:
            Printer(stream=file, print_generic_format=True).print_op(loops(small(name)))
    return folder


def test_mlir_accepts_the_loops(printed: Path) -> None:
    """MLIR reads and verifies the loops: the one of jaxlib, and `mlir-opt` where it is installed."""
    tools = [[tool] for tool in [shutil.which("mlir-opt")] if tool]
    if importlib.util.find_spec("jaxlib") is not None:
        tools.append([sys.executable, str(Path(__file__).parents[1] / "jax_scripts/generic_forms.py")])
    if not tools:
        pytest.skip("needs mlir-opt, or jaxlib, which brings MLIR along")
    for tool in tools:
        for path in sorted(printed.glob("*.mlir")) if len(tool) == 1 else [printed]:
            done = subprocess.run([*tool, str(path)], capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr

"""Kernels as loops that MLIR's tools, where they are installed, lower to LLVM IR; it runs in this process."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from io import StringIO
from typing import Any

import llvmlite.binding as binding
import pytest
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects import get_all_dialects
from xdsl.dialects.builtin import ModuleOp
from xdsl.printer import Printer

from pdojo.backends.calling.arrays import Parameter, parameters_of
from pdojo.backends.llvm.optimize import parse, processor, run_passes
from pdojo.backends.loops.convert import ConvertPdojoToLoopsPass
from pdojo.dialect.ops import PDOJO, KernelOp
from pdojo.dialect.view.build import nest_of
from toolchain import tool_fault

_SUFFIXES = ("", *(f"-{version}" for version in range(40, 17, -1)))
"""Ends of the names of tools: Debian's have the version of LLVM, from 18 on."""
_PASSES = (
    "convert-scf-to-cf",
    "expand-strided-metadata",
    "lower-affine",
    "convert-math-to-llvm{approximate-log1p=false}",
    "convert-math-to-libm",
    "convert-arith-to-llvm",
    "arith-expand",
    "convert-arith-to-llvm",
    "finalize-memref-to-llvm",
    "convert-func-to-llvm{use-bare-ptr-memref-call-conv=true}",
    "convert-cf-to-llvm",
    "reconcile-unrealized-casts",
)
"""Passes of `mlir-opt` from loops to the llvm dialect; a memref argument becomes a pointer to its elements.

`arith-expand` would lose the signs of zeros in maxima and minima, so it gets only what has no other lowering.
"""
_ROUNDING = ("__extendhfsf2", "__truncdfhf2", "__truncsfhf2")
"""Functions of the compiler's runtime library that LLVM may call for f16."""


def tools(*names: str) -> list[str] | None:
    """The paths of MLIR's tools, all of one version; None if the search path has not all of them."""
    for suffix in _SUFFIXES:
        paths = [shutil.which(name + suffix) for name in names]
        found = [path for path in paths if path and tool_fault(path, "--version") is None]
        if len(found) == len(names):
            return found
    return None


def context() -> Context:
    """A context with xDSL's dialects and pdojo's."""
    ctx = Context()
    for name, factory in get_all_dialects().items():
        ctx.register_dialect(name, factory)
    ctx.load_dialect(PDOJO)
    return ctx


def loops(kernel: KernelOp, *, sequential: bool = False) -> ModuleOp:
    """A module with the loops of a kernel."""
    module = ModuleOp([kernel.clone()])
    ConvertPdojoToLoopsPass(sequential=sequential).apply(context(), module)
    module.verify()
    return module


@dataclass(frozen=True)
class CompiledLoops:
    """The loops of a kernel as machine code; keeps the engine alive."""

    parameters: tuple[Parameter, ...]
    address: int
    engine: Any

    def __call__(self, **arrays: NDArray[Any]) -> None:
        """Run on interface arrays."""
        prototype = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(self.parameters))
        prototype(self.address)(*(arrays[p.name].ctypes.data for p in self.parameters))


def compiled_loops(kernel: KernelOp, *, sequential: bool = False) -> CompiledLoops:
    """Machine code that MLIR and LLVM make of the loops of a kernel; skips the test if MLIR is not installed."""
    found = tools("mlir-opt", "mlir-translate")
    if found is None:
        pytest.skip("needs mlir-opt and mlir-translate")
    optimizer, translator = found
    nest = nest_of(kernel)
    if any(buffer.dtype == "f16" for buffer in nest.buffers) and not _rounds_f16():
        pytest.skip("needs a libgcc with functions for f16 (version 12)")
    module = loops(kernel, sequential=sequential)
    lowered = _output([optimizer, f"--pass-pipeline=builtin.module({','.join(_PASSES)})"], generic_form(module))
    parsed = parse(_output([translator, "--mlir-to-llvmir"], lowered))
    machine = processor().target_machine("search")
    run_passes(parsed, machine, "search")
    engine: Any = binding.create_mcjit_compiler(parsed, machine)  # pyright: ignore[reportUnknownMemberType]
    engine.finalize_object()
    return CompiledLoops(parameters_of(nest), engine.get_function_address(nest.name), engine)


def generic_form(module: ModuleOp) -> str:
    """The text of a module in MLIR's generic form."""
    stream = StringIO()
    Printer(stream=stream, print_generic_format=True).print_op(module)
    return stream.getvalue()


@cache
def _rounds_f16() -> bool:
    """Whether this process has the functions for f16; loads the library."""
    try:
        library = ctypes.CDLL("libgcc_s.so.1", ctypes.RTLD_GLOBAL)
    except OSError:
        return False
    return all(hasattr(library, name) for name in _ROUNDING)


def _output(command: Sequence[str], text: str) -> str:
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stderr}\n{text}"
    return done.stdout

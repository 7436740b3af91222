"""Kernels as C, compiled by the system's compiler and loaded into this process, on guarded memory."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

from differential.compiled import Arrays, Guarded
from pdojo.backends.c.names import Identifiers
from pdojo.backends.c.targets import c_text
from pdojo.backends.calling.arrays import Parameter, aligned_empty, parameters_of
from pdojo.backends.common.placement import plan_memory
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.build import nest_of
from toolchain import C_COMPILERS, c_compiler

THREADS = 3
# A random program may well compare a value with itself, or find an unsigned number at least zero.
_SILLY = ("-Wno-tautological-compare", "-Wno-type-limits")
_FLAGS = ("-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", *_SILLY, "-shared", "-fPIC")


@cache
def openmp(compiler: str) -> tuple[str, ...]:
    """The option for OpenMP, or for quiet about its pragmas where there is none."""
    test = "#include <omp.h>\nint main(void) { return omp_get_max_threads() < 1; }\n"
    command = [compiler, "-xc", "-", "-fopenmp", "-o", "/dev/null"]
    works = subprocess.run(command, input=test, text=True, capture_output=True, check=False).returncode == 0
    return ("-fopenmp",) if works else ("-Wno-unknown-pragmas",)


def require() -> str:
    """The C compiler; skips the test, with the reason, where there is none."""
    return C_COMPILERS[0] if C_COMPILERS else c_compiler()


def run_c(
    kernel: KernelOp,
    inputs: Arrays,
    folder: Path,
    *,
    compiler: str = "",
    flags: tuple[str, ...] = (),
    machine: Machine | None = None,
) -> Arrays:
    """The arrays that the C code of a kernel writes; `flags` are for the compiler."""
    return compiled_c(kernel, folder, compiler=compiler, flags=flags, machine=machine)(inputs)


def compiled_c(
    kernel: KernelOp,
    folder: Path,
    *,
    compiler: str = "",
    flags: tuple[str, ...] = (),
    machine: Machine | None = None,
) -> Callable[[Arrays], Arrays]:
    """The C code of a kernel as a function from the arrays that it reads to those that it writes."""
    compiler = compiler or require()
    text = c_text(kernel, machine=machine)
    # A fresh name each time: the loader knows libraries by theirs.
    number = sum(1 for _ in folder.glob("kernel*.c"))
    source, library = folder / f"kernel{number}.c", folder / f"kernel{number}.so"
    source.write_text(text)
    command = [compiler, *_FLAGS, *openmp(compiler), *flags, str(source), "-o", str(library), "-lm"]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, f"{built.stderr}\n{text}"
    nest = nest_of(kernel)
    function = getattr(ctypes.CDLL(str(library)), Identifiers().fresh(nest.name))
    plan = plan_memory(nest)
    scratch = plan.shared_bytes + THREADS * plan.thread_bytes
    return lambda inputs: _call(function, parameters_of(nest), inputs, scratch)


def _call(function: object, parameters: tuple[Parameter, ...], inputs: Arrays, scratch: int) -> Arrays:
    kinds = [*([ctypes.c_void_p] * (len(parameters) + 1)), ctypes.c_int]
    typed = ctypes.cast(function, ctypes.CFUNCTYPE(None, *kinds))  # pyright: ignore[reportArgumentType]
    guarded = {p.name: Guarded.of(p) for p in parameters}
    for name, values in inputs.items():
        guarded[name].array[...] = values
    workspace = aligned_empty((scratch + 512,), np.dtype(np.uint8))
    workspace[:] = 0xA5
    typed(*(guarded[p.name].array.ctypes.data for p in parameters), workspace.ctypes.data, THREADS)
    assert (workspace[scratch:] == 0xA5).all(), "memory behind the workspace was written"
    for parameter in parameters:
        guarded[parameter.name].check(parameter.name)
        if not parameter.written:
            after = guarded[parameter.name].array
            assert after.tobytes() == np.ascontiguousarray(inputs[parameter.name]).tobytes(), parameter.name
    return {p.name: guarded[p.name].array for p in parameters if p.written}

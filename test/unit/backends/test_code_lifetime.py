"""Machine code lives as long as a callable or a bound call, and no longer."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import pdojo
from pdojo.backends.llvm.build import Native
from pdojo.backends.llvm.executable import LoadedKernel, assemble, load
from pdojo.backends.llvm.objects import LoadedObject
from pdojo.dialect.notation import parse_notation

TEXT = """
kernel count(c) -> (c)
c f32 [8] heap

8{mapping} c[{{0}}] += 1
"""

COMPILE = """
import gc
from pathlib import Path
import pdojo

kernel = pdojo.load("relu:8x3")

def resident() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

def compile_times(times: int) -> int:
    before = resident()
    for _ in range(times):
        pdojo.compile(kernel)
    return resident() - before

compile_times(30)
print(compile_times(300))
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")
def test_three_hundred_compiled_kernels_leave_no_memory_behind() -> None:
    grown = int(subprocess.run([sys.executable, "-c", COMPILE], check=True, capture_output=True, text=True).stdout)
    # A pass manager that is not freed takes 30 KiB before it runs; llvmlite itself loses 1.5 KiB per pass builder.
    assert grown < 300 * 10 * 1024


def compiled(mapping: str = "") -> LoadedKernel:
    (kernel,) = parse_notation(TEXT.format(mapping=mapping))
    return pdojo.compile(kernel, threads=2 if mapping else 1)


def loaded(mapping: str = "") -> LoadedKernel:
    (kernel,) = parse_notation(TEXT.format(mapping=mapping))
    return load(kernel, assemble(kernel), 2 if mapping else 1)


def engine_of(kernel: LoadedKernel) -> weakref.ref[object]:
    assert isinstance(kernel.code, Native | LoadedObject)
    return weakref.ref(kernel.code.engine)


@pytest.mark.parametrize("make", [compiled, loaded])
def test_the_code_goes_with_the_callable(make: Callable[[], LoadedKernel]) -> None:
    gc.disable()
    try:
        kernel = make()
        kernel(np.zeros(8, np.float32))
        engine = engine_of(kernel)
        del kernel
        assert engine() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("mapping", ["", ":p"])
@pytest.mark.parametrize("make", [compiled, loaded])
def test_a_bound_call_keeps_the_code(make: Callable[[str], LoadedKernel], mapping: str) -> None:
    c = np.zeros(8, np.float32)
    kernel = make(mapping)
    engine, call = engine_of(kernel), kernel.bind(c)
    del kernel
    gc.collect()
    others = [make("") for _ in range(8)]  # would reuse the memory of freed code
    call()
    call()
    assert np.array_equal(c, np.full(8, 2, np.float32))
    assert engine() is not None
    del call, others
    gc.collect()
    assert engine() is None

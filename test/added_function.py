"""A scalar function that pdojo lacks, added by a record and a recipe: `added_function.py FOLDER` runs it everywhere.

A process of its own, because modules read the records when they are imported.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pdojo.math.functions import FUNCTIONS, Function, Signature, UlpBound
from pdojo.math.recipes.trig import cos, sin
from pdojo.math.values import Real

BOUND = 3.0
KERNEL = """\
kernel k(x) -> (y)
x {dtype} [4, 16] heap align 64
y {dtype} [4, 16] heap align 64

4{rows} 16{columns} y[{{0}},{{1}}] = tan(x[{{0}},{{1}}])
"""


def tan(x: Real) -> Real:
    """sin(x) / cos(x); the errors of both and of the division add up."""
    return sin(x) / cos(x)


def _meaning() -> Any:
    import numpy

    return numpy.tan


def add() -> None:
    """Add the record."""
    FUNCTIONS["math.tan"] = Function(
        "math.tan",
        Signature.FLOAT,
        1,
        call="tan",
        numpy=_meaning,
        bound=UlpBound(BOUND, BOUND),
        recipe=lambda: tan,
        cycles=55.0,
        instructions=45.0,
    )


def check(dtype: str, folder: Path) -> None:
    """Run the function in every backend, and judge it."""
    import numpy as np

    from differential.c_code import run_c
    from differential.compiled import kernel, run
    from differential.device_code import run_fibers
    from differential.math_harness import ulp_errors
    from differential.snitch import run_snitch
    from pdojo.backends.gpu.spelling import CudaSpelling, HipSpelling
    from pdojo.backends.gpu.targets import device_text
    from pdojo.backends.llvm.executable import compile as compile_here
    from pdojo.dialect.machines.registry import machine
    from pdojo.dialect.notation import print_notation
    from pdojo.dialect.semantics.interpreter import interpret
    from pdojo.dialect.view.build import nest_of, nest_on
    from pdojo.passes.cpu.cost_model import cycles
    from pdojo.passes.gpu.cost_model import estimate_gpu
    from pdojo.search.features.structure import structure
    from toolchain import C_COMPILERS, fibers_fault

    plain, vector, grid = (
        kernel(KERNEL.format(dtype=dtype, rows=rows, columns=columns))
        for rows, columns in (("", ""), ("", ":v"), (":g", ":b"))
    )
    assert "= tan(x[{0},{1}])" in print_notation(plain)
    element = np.dtype({"f32": np.float32, "f64": np.float64}[dtype])
    x = np.concatenate([np.linspace(-9, 9, 60), [0.0, -0.0, 1e-30, 1e30]]).astype(element).reshape(4, 16)
    exact = np.tan(x.astype(np.longdouble))

    def judge(found: Any, bound: float = BOUND) -> None:
        assert ulp_errors(found.reshape(-1), exact.reshape(-1)).max() <= bound

    judge(interpret(plain, {"x": x})["y"], 1.0)
    scalar = run(compile_here(plain), {"x": x})["y"]
    judge(scalar)
    np.testing.assert_array_equal(run(compile_here(vector), {"x": x})["y"], scalar)
    np.testing.assert_array_equal(run_snitch(plain, {"x": x})[0]["y"], scalar)
    if C_COMPILERS:
        judge(run_c(plain, {"x": x}, folder)["y"])
    nvidia, amd = machine("nvidia-sm90"), machine("amd-gfx942")
    letter = "f" if dtype == "f32" else ""
    assert f"= tan{letter}(" in device_text(grid, spelling=CudaSpelling(), machine=nvidia).text
    assert f"= pd_tan_{dtype}(" in device_text(grid, spelling=HipSpelling(), machine=amd).text
    if fibers_fault() is None:
        for outputs in (*run_fibers(grid, {"x": x}, described=nvidia), *run_fibers(grid, {"x": x}, described=amd)):
            judge(outputs["y"])
    host = machine("x86-64-avx2")
    nest = nest_of(vector)
    assert cycles(nest.children[0], nest, host) > 55.0
    assert estimate_gpu(nest_on(grid, nvidia), nvidia) is not None
    assert structure(nest_of(plain), host)


def check_narrow() -> None:
    """Run the function in f16 and bf16, which compute in f32."""
    import numpy as np

    from differential.compiled import kernel, random_inputs, run
    from pdojo.backends.llvm.executable import compile as compile_here
    from pdojo.dialect.semantics.interpreter import interpret
    from pdojo.dialect.semantics.rounding import from_interface

    for dtype, step in (("f16", 1e-3), ("bf16", 1e-2)):
        program = kernel(KERNEL.format(dtype=dtype, rows="", columns=""))
        executable = compile_here(program)
        inputs = random_inputs(executable.parameters, 0)
        found, wanted = run(executable, inputs)["y"], interpret(program, inputs)["y"]
        np.testing.assert_allclose(from_interface(found, dtype), from_interface(wanted, dtype), step)


if __name__ == "__main__":
    add()
    for name in ("f32", "f64"):
        check(name, Path(sys.argv[1]))
    check_narrow()

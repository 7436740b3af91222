"""The loops of kernels: MLIR accepts them, and compiles them to code that agrees with the reference interpreter."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from differential.compiled import Arrays, kernel, random_inputs, run, same
from differential.library import close, library_kernel, small
from differential.mlir import compiled_loops, generic_form, loops, tools
from differential.test_llvm_functions import agrees, special_values, text_of
from differential.test_llvm_random import FEATURES
from pdojo.dialect.functions import DTYPES
from pdojo.dialect.machines.registry import host
from pdojo.dialect.semantics.interpreter import interpret, interpret_stepwise
from pdojo.dialect.view.build import nest_of
from pdojo.kernels import kernel_names
from pdojo.math.functions import FUNCTIONS
from pdojo.passes.scheduled_kernel import make_moves
from property.kernels import kernel_texts
from sample import sampled

WITHOUT_LOOPS = frozenset({"arith.remf"})
"""Functions that xDSL has no operation for."""
ROUGH = frozenset({"math.expm1"})
"""Functions that MLIR expands to a difference, which loses the digits of small results."""
KNOWN = tuple(dtype for dtype in DTYPES if dtype != "bf16")
"""Element types of arithmetic; LLVM rounds to bf16 by calls of functions that few systems have."""
UNDEFINED = frozenset(
    f"arith.{name}" for name in "divsi divui remsi remui floordivsi shli shrsi shrui fptosi fptoui".split()
)
"""Functions with undefined results for some operands."""
RANDOM = replace(FEATURES, dtypes=KNOWN, functions=FEATURES.functions - WITHOUT_LOOPS)


@pytest.mark.parametrize("name", sampled())
def test_library(name: str) -> None:
    program = small(name)
    executable = compiled_loops(program)
    inputs = random_inputs(executable.parameters, 0)
    close(run(executable, inputs), interpret(program, inputs), program)


@pytest.mark.parametrize("name", sampled())
def test_tuned_library(name: str) -> None:
    program = library_kernel(name, 0)
    executable = compiled_loops(make_moves(program, host(), "heuristic").after)
    inputs = random_inputs(executable.parameters, 0)
    close(run(executable, inputs), interpret(program, inputs), program)


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(text=kernel_texts(RANDOM), seed=st.integers(0, 1 << 20), sequential=st.booleans())
def test_random_kernels(text: str, seed: int, sequential: bool) -> None:
    program = kernel(text)
    # The interpreter rounds contracted sums twice.
    assume(not any(leaf.contracted for leaf in nest_of(program).leaves))
    executable = compiled_loops(program, sequential=sequential)
    inputs = random_inputs(executable.parameters, seed)
    wanted, found = interpret_stepwise(program, inputs), run(executable, inputs)
    for parameter in executable.parameters:
        if parameter.written:
            assert same(found[parameter.name], wanted[parameter.name], parameter.dtype), parameter.name


def defined(function: str, arrays: Arrays) -> Arrays:
    """Inputs of `text_of`, changed to be in the domain of a function with undefined results."""
    match FUNCTIONS[function].mnemonic:
        case "divsi" | "divui" | "remsi" | "remui" | "floordivsi":
            # A divisor -1 overflows for the least dividend.
            return {
                n: np.where((a == 0) | (a == -1), a.dtype.type(3), a) if n[0] == "b" else a for n, a in arrays.items()
            }
        case "shli" | "shrsi" | "shrui":
            return {n: a & (8 * a.dtype.itemsize - 1) if n[0] == "b" else a for n, a in arrays.items()}
        case "fptosi" | "fptoui":
            least = 0 if function == "arith.fptoui" else -100
            return {n: np.nan_to_num(a).clip(least, 100) for n, a in arrays.items()}
        case _:
            return arrays


@pytest.mark.parametrize("function", sorted(set(FUNCTIONS) - WITHOUT_LOOPS))
def test_functions(function: str) -> None:
    # An integer of one bit has neither divisors other than -1 nor room for casts.
    dtypes = [d for d in KNOWN if d != "i1" or function not in UNDEFINED]
    text, inputs = text_of(function, dtypes)
    program = kernel(text)
    executable = compiled_loops(program)
    for turn in range(3):
        arrays = defined(function, {n: special_values(d, "abc".index(n[0]) * turn) for n, d in inputs.items()})
        wanted, found = interpret(program, arrays), run(executable, arrays)
        for parameter in executable.parameters:
            if parameter.written:
                name, dtype = parameter.name, parameter.dtype
                if function in ROUGH:
                    assert np.allclose(found[name], wanted[name], 2e-3, 1e-7, equal_nan=True), name
                else:
                    assert agrees(found[name], wanted[name], dtype, function), (name, dtype)


def test_the_library_is_accepted(tmp_path: Path) -> None:
    """MLIR reads and verifies the loops: the MLIR of jaxlib, and `mlir-opt` where it is installed."""
    commands = [[tool] for tool in tools("mlir-opt") or ()]
    if importlib.util.find_spec("jaxlib") is not None:
        commands.append([sys.executable, str(Path(__file__).parents[1] / "jax_scripts/generic_forms.py")])
    if not commands:
        pytest.skip("needs mlir-opt, or jaxlib, which brings MLIR along")
    for name in kernel_names():
        (tmp_path / f"{name}.mlir").write_text(generic_form(loops(small(name))))
    for command in commands:
        for path in sorted(tmp_path.glob("*.mlir")) if len(command) == 1 else [tmp_path]:
            done = subprocess.run([*command, str(path)], capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr

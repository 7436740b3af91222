"""The library's kernels, rebuilt: the same texts up to names, or the same values in exact arithmetic."""

from __future__ import annotations

import re

import numpy as np
import pytest

from pdojo import build
from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.measure.arrays import random_inputs
from pdojo.dialect.attributes import Intent
from pdojo.dialect.flow.program import Program
from pdojo.dialect.machines.registry import host
from pdojo.dialect.notation import print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.rules.validate import validate
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.semantics.oracle.compare import equivalent
from pdojo.dialect.view.build import nest_of
from pdojo.kernels import Workload, kernel_names, workload
from unit.build.rebuilt import REBUILT, rebuilt

ONLY_EQUIVALENT = {
    *("argmax", "argmin", "avgpool_ceil", "batchnorm", "conv_transpose", "conv_winograd", "groupnorm"),
    *("maxpool_ceil", "rotary", "rotary_interleaved"),
}
"""Kernels whose text in f32 differs from the library's by more than names."""
REAL = {"attention_online"}
"""Kernels that are equal by a law of the exponential, which exact arithmetic does not know."""
FIXED_TYPES = ("matmul_bf16", "matmul_i8")


def both(name: str, dtype: str | None) -> tuple[KernelOp, KernelOp]:
    """A library kernel, and the same kernel by `pdojo.build`."""
    found = workload(f"{name}:{REBUILT[name][0]}")
    found = Workload(found.kernel, found.given, dtype)
    library = found.instantiate()
    arrays = list(nest_of(library).arrays.values())
    inputs = [build.input(a.name, a.dtype, a.shape) for a in arrays if a.intent is Intent.IN]
    (output,) = (a for a in arrays if a.intent is Intent.OUT)
    numerics = None if library.numerics is None else [each.value for each in library.permitted]
    result = {output.name: rebuilt(name, inputs, found.sizes)}
    return library, build.kernel(name, inputs, result, numerics=numerics)


def without_names(kernel: KernelOp) -> str:
    """The text of a kernel with temporaries numbered in the order of their use, and declarations sorted."""
    head, _, tree = print_notation(kernel).partition("\n\n")
    numbers = {name: name for name in re.findall(r"\w+", head.splitlines()[0])}
    tree = re.sub(r"[A-Za-z_]\w*(?=\[)", lambda name: numbers.setdefault(name[0], f"t{len(numbers)}"), tree)
    facts = [re.sub(r"^\w+(?= \w+ \[)", lambda name: numbers[name[0]], line) for line in head.splitlines()[1:]]
    return "\n".join([*sorted(facts), tree])


def test_every_library_kernel_is_rebuilt() -> None:
    assert set(REBUILT) == set(kernel_names())


@pytest.mark.parametrize("name", REBUILT)
def test_f32(name: str) -> None:
    library, kernel = both(name, None)
    validate(Program(kernel, host()))
    if name in REAL:
        inputs = random_inputs(parameters_of(nest_of(kernel)), 1)
        found, wanted = (interpret(each, inputs) for each in (kernel, library))
        assert all(np.abs(found[key] - wanted[key]).max() < 1e-5 for key in wanted)
        return
    same = without_names(kernel) == without_names(library)
    assert same is (name not in ONLY_EQUIVALENT), print_notation(kernel)
    assert same or equivalent(nest_of(library), nest_of(kernel)) is None, print_notation(kernel)


@pytest.mark.parametrize("name", [name for name in REBUILT if name not in {*FIXED_TYPES, *REAL}])
def test_bf16(name: str) -> None:
    library, kernel = both(name, "bf16")
    difference = equivalent(nest_of(library), nest_of(kernel))
    assert difference is None, f"{difference}\n{print_notation(kernel)}"


def test_another_kernel_is_noticed() -> None:
    library, kernel = both("layernorm", None)
    x, g, b = (build.input(n, "f32", shape) for n, shape in (("x", (5, 8)), ("g", (8,)), ("b", (8,))))
    wrong = build.kernel("layernorm", [x, g, b], {"y": build.layer_norm(x, b, g)})
    assert without_names(wrong) != without_names(kernel) == without_names(library)
    assert equivalent(nest_of(library), nest_of(wrong)) is not None

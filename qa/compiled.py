"""Compares machine code with the reference interpreter on one program and ordinary numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdojo.backends.calling.arrays import aligned_empty
from pdojo.backends.llvm.executable import compile  # Here `compile` is pdojo's, not Python's.
from pdojo.dialect.attributes import Intent
from pdojo.dialect.flow.program import Program
from pdojo.dialect.functions import is_float
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.semantics.rounding import INTERFACE, round_float64, to_interface
from pdojo.dialect.view.nest import Array
from qa.walks import Failure

TOLERANCE = {"f64": 1e-9, "f32": 1e-3, "f16": 0.1, "bf16": 0.5}
"""Tolerance relative to the largest magnitude of an output: each step may round differently in another order."""


class Expected:
    """The interpreter's results of a program on ordinary numbers."""

    def __init__(self, program: Program, seed: int) -> None:
        random = np.random.default_rng(seed)
        self.arrays = [a for a in program.nest.arrays.values() if a.intent is not None]
        self.inputs = {a.name: ordinary_values(a, random) for a in self.arrays if a.intent is not Intent.OUT}
        self._results = interpret(program.nest, self.inputs)

    def difference(self, found: Mapping[str, NDArray[Any]]) -> str | None:
        """The first array that differs from the interpreter's by more than rounding; None if there is none."""
        for array in self.arrays:
            if array.intent is not Intent.IN:
                one, other = found[array.name], self._results[array.name]
                if not is_close(one, other, array.dtype):
                    return f"'{array.name}' is\n{one}\nand should be\n{other}"
        return None


def machine_code_differs(program: Program, seed: int) -> Failure | None:
    """A difference between the compiled program and the interpreter on the same program; None if there is none."""
    expected = Expected(program, seed)
    given = {a.name: _memory(a, expected.inputs.get(a.name)) for a in expected.arrays}
    compile(program.kernel, program.machine, threads=2, optimize="search")(**given)
    found = expected.difference(given)
    return None if found is None else Failure("machine code", found)


def _memory(array: Array, values: NDArray[Any] | None) -> NDArray[Any]:
    """Memory with the array's alignment, holding the values or zeros."""
    memory = aligned_empty(array.shape, np.dtype(INTERFACE[array.dtype]), array.buffer.alignment)
    memory[...] = 0 if values is None else values
    return memory


def ordinary_values(array: Array, random: np.random.Generator) -> NDArray[Any]:
    """Random numbers of moderate size, as interface arrays hold them."""
    match array.dtype:
        case "i1":
            return np.asarray(random.integers(0, 2, array.shape), np.bool_)
        case dtype if is_float(dtype):
            values = round_float64(np.asarray(random.uniform(0.5, 2, array.shape)), dtype)
            return np.asarray(to_interface(values, dtype), INTERFACE[dtype]).reshape(array.shape)
        case dtype:
            return np.asarray(random.integers(-100, 100, array.shape), INTERFACE[dtype])


def is_close(found: NDArray[Any], wanted: NDArray[Any], dtype: str) -> bool:
    """True if two results are equal up to rounding in another order."""
    wanted = wanted.reshape(found.shape)
    if not is_float(dtype):
        return bool(np.array_equal(found, wanted))
    left, right = (_numbers(a, dtype) for a in (found, wanted))
    finite = right[np.isfinite(right)]
    scale = float(np.abs(finite).max(initial=0.0))
    with np.errstate(invalid="ignore"):
        return bool(np.allclose(left, right, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] * scale, equal_nan=True))


def _numbers(values: NDArray[Any], dtype: str) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore"):
        if dtype == "bf16":
            return (values.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
        return values.astype(np.float64)

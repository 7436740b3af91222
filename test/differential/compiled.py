"""Compiled kernels on guarded memory: outputs poisoned first, guard zones and inputs checked after."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from pdojo.backends.calling.arrays import Parameter, aligned_empty
from pdojo.backends.llvm.executable import Executable, compile
from pdojo.dialect.attributes import Intent
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.rounding import INTERFACE, round_float64, to_interface

Arrays = dict[str, NDArray[Any]]
GUARD = 256
"""Bytes of guard zone on either side of an array."""
_PATTERN = 0xA5


@dataclass
class Guarded:
    """An array between two guard zones."""

    memory: NDArray[Any]
    array: NDArray[Any]

    @staticmethod
    def of(parameter: Parameter) -> Guarded:
        """Memory for a parameter, filled with a pattern."""
        dtype = INTERFACE[parameter.dtype]
        size = int(np.prod(parameter.shape, dtype=np.int64)) * dtype.itemsize
        memory = aligned_empty((size + 2 * GUARD,), np.dtype(np.uint8), max(64, parameter.alignment))
        memory[:] = _PATTERN
        return Guarded(memory, memory[GUARD : GUARD + size].view(dtype).reshape(parameter.shape))

    def check(self, name: str) -> None:
        """Assert that the guard zones are intact."""
        assert (self.memory[:GUARD] == _PATTERN).all(), f"memory before '{name}' was written"
        assert (self.memory[len(self.memory) - GUARD :] == _PATTERN).all(), f"memory behind '{name}' was written"


class Callee(Protocol):
    """A compiled kernel."""

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The interface, in order."""
        ...

    def __call__(self, **arrays: NDArray[Any]) -> object:
        """Run on arrays, by name."""
        ...


def kernel(text: str) -> KernelOp:
    """The one kernel of a text in the notation."""
    (found,) = parse_notation(text)
    return found


def random_inputs(parameters: tuple[Parameter, ...], seed: int) -> Arrays:
    """Fresh values of moderate size for the arrays that a kernel reads."""
    random = np.random.default_rng(seed)
    return {p.name: random_values(p.dtype, p.shape, random) for p in parameters if p.intent is not Intent.OUT}


def random_values(dtype: str, shape: tuple[int, ...], random: np.random.Generator) -> NDArray[Any]:
    """Values of an element type, as interface arrays hold them."""
    match dtype:
        case "i1":
            return random.integers(0, 2, shape).astype(np.bool_)
        case "i8" | "i16" | "i32" | "i64":
            return random.integers(-100, 100, shape).astype(INTERFACE[dtype])
        case _:
            values = round_float64(np.asarray(random.normal(0, 2, shape)), dtype)
            return np.asarray(to_interface(values, dtype), INTERFACE[dtype]).reshape(shape)


def run(executable: Callee, inputs: Arrays) -> Arrays:
    """Call a compiled kernel on guarded copies of the inputs; the arrays that it writes."""
    guarded = {p.name: Guarded.of(p) for p in executable.parameters}
    for name, values in inputs.items():
        guarded[name].array[...] = values
    executable(**{name: g.array for name, g in guarded.items()})
    for parameter in executable.parameters:
        guarded[parameter.name].check(parameter.name)
        if not parameter.written:
            after = guarded[parameter.name].array
            assert after.tobytes() == np.ascontiguousarray(inputs[parameter.name]).tobytes(), parameter.name
    return {p.name: guarded[p.name].array for p in executable.parameters if p.written}


def compiled(
    text: str, inputs: Arrays | None = None, *, threads: int = 2, optimize: Literal["search", "full"] = "search"
) -> tuple[Executable, Arrays]:
    """Compile a kernel given in the notation and run it; the executable, and the arrays that it writes."""
    executable = compile(kernel(text), threads=threads, optimize=optimize)
    return executable, run(executable, inputs if inputs is not None else random_inputs(executable.parameters, 0))


def same(left: NDArray[Any], right: NDArray[Any], dtype: str) -> bool:
    """Whether two interface arrays hold the same bits; all NaN are the same."""
    right = right.reshape(left.shape)
    if dtype == "bf16":
        nan = [(a & 0x7FFF) > 0x7F80 for a in (left, right)]
        return bool(np.all((left == right) | (nan[0] & nan[1])))
    if left.dtype.kind != "f":
        return bool(np.array_equal(left, right))
    equal = (left == right) & (np.signbit(left) == np.signbit(right))
    return bool(np.all(equal | (np.isnan(left) & np.isnan(right))))

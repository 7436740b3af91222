"""Running kernels of `pdojo.build` on random arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdojo import build
from pdojo.build import Array
from pdojo.dialect.flow.program import Program
from pdojo.dialect.machines.registry import host
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.rules.validate import validate
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.semantics.rounding import from_interface

Values: TypeAlias = NDArray[Any]

NUMPY = {
    **{"f64": np.float64, "f32": np.float32, "f16": np.float16, "i64": np.int64, "i32": np.int32, "i16": np.int16},
    **{"i8": np.int8, "i1": np.bool_, "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64},
}


def random(dtype: str, shape: Sequence[int], seed: int) -> Values:
    """Random values of an element type of handles, small ones of integers."""
    generator = np.random.default_rng(seed)
    if dtype == "i1":
        return generator.integers(0, 2, shape).astype(np.bool_)
    if dtype in ("f64", "f32", "f16"):
        return generator.normal(size=shape).astype(NUMPY[dtype])
    least = 0 if dtype[0] == "u" else -100
    return generator.integers(least, 200 if dtype[0] == "u" else 100, shape).astype(NUMPY[dtype])


def made(result: Array, *inputs: Array) -> KernelOp:
    """A kernel with one output, valid."""
    kernel = build.kernel("made", inputs, [result])
    validate(Program(kernel, host()))
    return kernel


def run(result: Array, inputs: Sequence[Array], values: Sequence[Values]) -> Values:
    """The elements of a handle, by the reference interpreter."""
    kernel = made(result, *inputs)
    names = [name.data for name in kernel.arg_names]
    rows = zip(names, inputs, values, strict=False)
    given = {n: v.view(f"i{v.itemsize}") if x.dtype.startswith("u") else v for n, x, v in rows}
    found = interpret(kernel, given)[names[-1]]
    if result.dtype == "bf16":
        return from_interface(found, "bf16")
    return found.view(NUMPY[result.dtype])

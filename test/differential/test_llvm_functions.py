"""Every leaf function, on every element type, as scalar and as vector code, against the reference interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from differential.compiled import Arrays, kernel, random_values, run, same
from differential.math_harness import BOUNDS
from pdojo.backends.llvm.executable import compile
from pdojo.dialect.functions import DTYPES, check_types, is_float
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.semantics.rounding import INTERFACE, from_interface, round_float64, to_interface
from pdojo.math.functions import FUNCTIONS, Signature

COUNT = 64
_SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-45, 3e38, 6e4, -1e30, 2.5, 0.5, -0.5, 1.5, 65519.0, 1e-8)
_BOUNDS = (
    127.9,
    128.0,
    -128.9,
    255.9,
    256.0,
    -0.9,
    32768.0,
    -32769.0,
    65536.0,
    2147483520.0,
    2147483648.0,
    -2147483904.0,
)
"""Numbers at the bounds of integers."""
_EITHER_ZERO = ("arith.maxnumf", "arith.minnumf")
"""Functions that may return either of two zeros."""


def signatures(function: str, dtypes: Sequence[str] = tuple(DTYPES)) -> list[tuple[tuple[str, ...], str]]:
    """The operand and result types that a function takes, out of some element types."""
    spec = FUNCTIONS[function]
    if spec.signature is Signature.SELECT:
        return [(("i1", d, d), d) for d in dtypes]
    pairs = [((d,) * spec.arity, r) for d in dtypes for r in dtypes]
    return [(operands, r) for operands, r in pairs if check_types(function, operands, r) is None]


def text_of(function: str, dtypes: Sequence[str] = tuple(DTYPES)) -> tuple[str, dict[str, str]]:
    """A kernel that applies a function to every combination of some types; and the types of its inputs."""
    inputs: dict[str, str] = {}
    outputs: list[str] = []
    lines: list[str] = []
    for number, (operands, result) in enumerate(signatures(function, dtypes)):
        names = [f"{n}{number}" for n in "abc"[: len(operands)]]
        inputs.update(zip(names, operands, strict=True))
        listed = ", ".join(f"{n}[{{0}}*16+{{1}}]" for n in names)
        for kind, mapping in (("s", ""), ("v", ":v")):
            outputs.append(f"{kind}{number} {result}")
            lines.append(f"{COUNT // 16} 16{mapping} {kind}{number}[{{0}}*16+{{1}}] = {function}({listed})")
    declared = [*(f"{n} {d}" for n, d in inputs.items()), *outputs]
    head = f"kernel k({', '.join(inputs)}) -> ({', '.join(o.split()[0] for o in outputs)})"
    return "\n".join([head, *(f"{d} [{COUNT}] heap" for d in declared), "", *lines]) + "\n", inputs


def special_values(dtype: str, turn: int) -> NDArray[Any]:
    """Random values, and at their start all pairings of special ones as `turn` varies."""
    random = np.random.default_rng(turn)
    if dtype == "i1":
        return random_values(dtype, (COUNT,), random)
    if not is_float(dtype):
        values = random_values(dtype, (COUNT,), random)
        least, greatest = np.iinfo(values.dtype).min, np.iinfo(values.dtype).max
        values[:12] = np.roll([0, -1, 1, least, greatest, 7, -7, 3, least, 0, -1, 2], turn)
        return values
    rest = COUNT - len(_SPECIAL) - len(_BOUNDS)
    values = np.concatenate([np.roll(_SPECIAL, turn), random.normal(0, 3, rest), _BOUNDS])
    with np.errstate(all="ignore"):
        return np.asarray(to_interface(round_float64(values, dtype), dtype), INTERFACE[dtype])


def agrees(found: NDArray[Any], wanted: NDArray[Any], dtype: str, function: str) -> bool:
    """Bit by bit, within 1e-5 for approximations (one step of narrow types), or up to the sign of a zero."""
    if same(found, wanted, dtype):
        return True
    if function not in BOUNDS and function not in _EITHER_ZERO:
        return False
    left, right = (from_interface(v, dtype).astype(np.float64) for v in (found, wanted))
    step = {"f16": 2e-3, "bf16": 1e-2}.get(dtype, 1e-5) if function in BOUNDS else 0.0
    return bool(np.allclose(left, right, step, 1e-40, equal_nan=True))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_function(function: str) -> None:
    text, inputs = text_of(function)
    program = kernel(text)
    executable = compile(program, optimize="search")
    for turn in range(3):
        arrays: Arrays = {n: special_values(d, "abc".index(n[0]) * turn) for n, d in inputs.items()}
        wanted = interpret(program, arrays)
        found = run(executable, arrays)
        for parameter in executable.parameters:
            if parameter.written:
                name = parameter.name
                assert agrees(found[name], wanted[name], parameter.dtype, function), (name, parameter.dtype)

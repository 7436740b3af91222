"""Recurrences on a simulated Snitch core: carried values are in registers, a product and a sum are one instruction."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from differential.snitch import DIVIDES, run_snitch
from pdojo.dialect.flow.program import Program
from pdojo.dialect.notation import parse_notation
from pdojo.passes.scheduled_kernel import make_moves
from qa.simulated import simulated_code_differs

STEPS = 85
"""No multiple of four."""

KERNELS = {
    "linear": (
        "x $T [85] heap\na $T [] heap\ns $T [85] heap\nt $T [85] heap",
        "s[0] = x[0]\n84\n| t[{0}] = a[] * s[{0}]\n| s[{0}+1] = t[{0}] + x[{0}+1]",
        {"f64": 5.8, "f32": 7},
    ),
    "gates": (
        "x $T [85] heap\na $T [85] heap\ns $T [85] heap\nt $T [85] heap",
        "s[0] = x[0]\n84\n| t[{0}] = a[{0}+1] * s[{0}]\n| s[{0}+1] = t[{0}] + x[{0}+1]",
        {"f64": 5.8, "f32": 7},
    ),
    "scalar": (
        "x $T [85] heap\na $T [] heap\ns $T [85] heap\nc $T [] heap",
        "c[] = 0\n85\n| c[] *= a[]\n| c[] += x[{0}]\n| s[{0}] = c[]",
        {"f64": 5.8, "f32": 8.2},
    ),
    "sums": (
        "x $T [85] heap\na $T [] heap\ns $T [85] heap\nc $T [] heap",
        "c[] = a[]\n85\n| c[] += x[{0}]\n| s[{0}] = c[]",
        {"f64": 5.8, "f32": 8.2},
    ),
    "second order": (
        "x $T [85] heap\na $T [2] heap\ns $T [87] heap\nr $T [85] heap",
        "2 s[{0}] = 0\n85\n| r[{0}] = x[{0}]\n| r[{0}] += a[0] * s[{0}+1]\n| r[{0}] += a[1] * s[{0}]\n"
        "| s[{0}+2] = r[{0}]",
        {"f64": 12.5, "f32": 12.5},
    ),
    "difference": (
        "x $T [85] heap\na $T [2] heap\ns $T [87] heap\nt $T [] heap\nu $T [] heap",
        "2 s[{0}] = 0\n85\n| t[] = s[{0}+1] * a[0]\n| u[] = s[{0}] * a[1]\n| t[] = t[] - u[]\n"
        "| s[{0}+2] = x[{0}] + t[]",
        {"f64": 8.7, "f32": 8.7},
    ),
}
"""Declarations, statements, and the most cycles of a step by type, set-up included."""


@pytest.mark.parametrize("dtype", ["f64", "f32"])
@pytest.mark.parametrize("name", KERNELS)
def test_one_recurrence(name: str, dtype: str) -> None:
    """The latency of one multiply-add, and the copy to memory."""
    arrays, tree, most = KERNELS[name]
    (kernel,) = parse_notation(f"kernel k(x, a) -> (s)\n{arrays}\n\n{tree}\n".replace("$T", dtype))
    tuned = make_moves(kernel, DIVIDES, "heuristic").after
    assert simulated_code_differs(Program(tuned, DIVIDES), 3) is None
    random, kind = np.random.default_rng(5), np.dtype(dtype.replace("f", "float"))
    shapes = {"x": (STEPS,), "a": {"gates": (STEPS,), "second order": (2,), "difference": (2,)}.get(name, ())}
    inputs = {n: random.uniform(-0.5, 0.5, shape).astype(kind) for n, shape in shapes.items()}
    outputs, simulated = run_snitch(tuned, inputs)
    assert np.allclose(outputs["s"], _reference(name, inputs["x"], inputs["a"]), rtol=1e-5, atol=1e-6)
    assert simulated.cycles <= most[dtype] * STEPS


def _reference(name: str, x: NDArray[Any], a: NDArray[Any]) -> list[float]:
    """The recurrence in Python's floats."""
    factors = np.ones(len(x)) if name == "sums" else a if name == "gates" else np.full(len(x), a.flat[0])
    found = [0.0, float(a)] if name == "sums" else [0.0, 0.0]
    for value, factor in zip(x, factors, strict=True):
        older = {"second order": 1, "difference": -1}.get(name, 0) * float(a.flat[-1]) * found[-2]
        found.append(float(value) + float(factor) * found[-1] + older)
    return found if name in ("second order", "difference") else found[2:]


@pytest.mark.parametrize("dtype", ["f64", "f32"])
def test_rows(dtype: str) -> None:
    """Four rows at a time hide the latency: less than a third of the cycles of one row at a time."""
    (kernel,) = parse_notation(
        f"kernel rows(x, a) -> (s)\nx {dtype} [8, 24] heap\na {dtype} [8] heap\ns {dtype} [8, 24] heap\n"
        f"t {dtype} [8, 24] heap\n\n8\n| s[{{0}},0] = x[{{0}},0]\n| 23\n"
        "| | t[{0},{1}] = a[{0}] * s[{0},{1}]\n"
        f"| | s[{{0}},{{1}}+1] = t[{{0}},{{1}}] + x[{{0}},{{1}}+1]\n"
    )
    tuned = make_moves(kernel, DIVIDES, "heuristic").after
    assert simulated_code_differs(Program(tuned, DIVIDES), 3) is None
    random = np.random.default_rng(6)
    kind = np.dtype(dtype.replace("f", "float"))
    inputs = {"x": random.standard_normal((8, 24)).astype(kind), "a": random.uniform(-1, 1, 8).astype(kind)}
    outputs, simulated = run_snitch(tuned, inputs)
    wanted = np.array([_reference("linear", x, a) for x, a in zip(inputs["x"], inputs["a"], strict=True)])
    assert np.allclose(outputs["s"], wanted, rtol=1e-5, atol=1e-6)
    assert simulated.cycles <= {"f64": 3.2, "f32": 4.4}[dtype] * 8 * 24


@pytest.mark.parametrize("dtype", ["f64", "f32"])
def test_horner(dtype: str) -> None:
    """A product and a sum in place are one instruction, for four points at a time."""
    (kernel,) = parse_notation(
        f"kernel horner(x, c) -> (y)\nx {dtype} [64] heap\nc {dtype} [8] heap\ny {dtype} [64] heap\n\n"
        "64\n| y[{0}] = c[7]\n| 7\n| | y[{0}] *= x[{0}]\n| | y[{0}] += c[6-{1}]\n"
    )
    tuned = make_moves(kernel, DIVIDES, "heuristic").after
    assert simulated_code_differs(Program(tuned, DIVIDES), 4) is None
    random = np.random.default_rng(7)
    kind = np.dtype(dtype.replace("f", "float"))
    inputs = {"x": random.uniform(-1, 1, 64).astype(kind), "c": random.standard_normal(8).astype(kind)}
    outputs, simulated = run_snitch(tuned, inputs)
    assert np.allclose(
        outputs["y"], np.polyval(inputs["c"][::-1].astype(np.float64), inputs["x"]), rtol=1e-5, atol=1e-5
    )
    assert simulated.cycles <= 12 * 64

"""Rows of an odd number of f32 on Snitch cores: every second row begins in the middle of a word."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray

from differential.compiled import Arrays, random_inputs
from differential.snitch import DIVIDES, run_snitch
from pdojo.backends.calling.arrays import parameters_of
from pdojo.dialect.assumptions import with_alignment
from pdojo.dialect.flow.program import Program
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.view.build import nest_of
from pdojo.passes.scheduled_kernel import make_moves
from qa.simulated import simulated_code_differs

Values = NDArray[np.float64]
Reference = Callable[[dict[str, Values]], Values]

FORMS: dict[str, tuple[str, Reference]] = {
    "a number for each row": (
        "(x, b) -> (y)\nx T [M, N]\nb T [M]\ny T [M, N]\nt T [M, N]\n\n"
        "M N t[{0},{1}] = x[{0},{1}] * 0.5\nM N t[{0},{1}] = t[{0},{1}] + b[{0}]\nM N y[{0},{1}] = max(t[{0},{1}], 0)",
        lambda v: np.maximum(v["x"] / 2 + v["b"][:, None], 0),
    ),
    "a number for each column": (
        "(x, s) -> (y)\nx T [M, N]\ns T [N]\ny T [M, N]\nt T [M, N]\n\n"
        "M N t[{0},{1}] = x[{0},{1}] * x[{0},{1}]\nM N t[{0},{1}] = t[{0},{1}] + 2\n"
        "M N y[{0},{1}] = t[{0},{1}] * s[{1}]",
        lambda v: (v["x"] ** 2 + 2) * v["s"],
    ),
    "sums of rows": (
        "(x) -> (y)\nx T [M, N]\ny T [M, N]\nq T [M]\n\n"
        "M\n| q[{0}] = 0\n| N q[{0}] += x[{0},{1}] * x[{0},{1}]\n| q[{0}] = sqrt(q[{0}])\n"
        "| N y[{0},{1}] = x[{0},{1}] * q[{0}]",
        lambda v: v["x"] * np.sqrt((v["x"] ** 2).sum(1, keepdims=True)),
    ),
    "sums of columns": (
        "(x) -> (y)\nx T [M, N]\ny T [N]\n\nN\n| y[{0}] = 0\n| M y[{0}] += x[{1},{0}]",
        lambda v: v["x"].sum(0),
    ),
    "maxima of columns": (
        "(x) -> (y)\nx T [M, N]\ny T [N]\n\nN\n| y[{0}] = -inf\n| M y[{0}] max= x[{1},{0}]",
        lambda v: v["x"].max(0),
    ),
    "a vector by a matrix": (
        "(a, x) -> (y)\na T [M, N]\nx T [M]\ny T [N]\n\nN\n| y[{0}] = 0\n| M y[{0}] += a[{1},{0}] * x[{1}]",
        lambda v: v["x"] @ v["a"],
    ),
    "a product of matrices": (
        "(a, b, c) -> (c)\na T [6, M]\nb T [M, N]\nc T [6, N]\n\n6 N M c[{0},{1}] += a[{0},{2}] * b[{2},{1}]",
        lambda v: v["c"] + v["a"] @ v["b"],
    ),
    "squares of distances": (
        "(x, y) -> (d)\nx T [M, 5]\ny T [N+1, 5]\nd T [M, N+1]\nt T []\n\n"
        "M N+1\n| d[{0},{1}] = 0\n| 5\n| | t[] = x[{0},{2}] - y[{1},{2}]\n| | d[{0},{1}] += t[] * t[]",
        lambda v: ((v["x"][:, None] - v["y"]) ** 2).sum(2),
    ),
    "an update by two vectors": (
        "(a, x, y) -> (a)\na T [M, N]\nx T [M]\ny T [N]\nt T [M, N]\n\n"
        "M N t[{0},{1}] = x[{0}] * y[{1}]\nM N a[{0},{1}] = a[{0},{1}] + t[{0},{1}]",
        lambda v: v["a"] + np.outer(v["x"], v["y"]),
    ),
}


def ran(form: str, dtype: str, sizes: tuple[int, int]) -> tuple[Arrays, Arrays, int]:
    """Inputs, outputs and cycles of the heuristic pass's program, whose code gives the interpreter's bits."""
    rows, columns = sizes
    text = FORMS[form][0].replace("N+1", str(columns + 1)).replace("M", str(rows)).replace("N", str(columns))
    head, *rest = [f"{line} heap" if " T [" in line else line for line in text.splitlines()]
    body = "\n".join(rest).replace(" T [", f" {dtype} [")
    (kernel,) = parse_notation(f"kernel k{head}\nnumerics contract reassociate numbers\n{body}\n")
    kernel = with_alignment(kernel, 8)
    program = make_moves(kernel, DIVIDES, "heuristic").after
    assert simulated_code_differs(Program(program, DIVIDES), 11) is None
    inputs = random_inputs(parameters_of(nest_of(kernel)), 7)
    outputs, result = run_snitch(program, inputs)
    return inputs, outputs, result.cycles


@pytest.mark.parametrize("form", FORMS)
def test_odd_rows(form: str) -> None:
    random = Random(form)
    sizes = random.randint(6, 15), 2 * random.randint(3, 9) + 1
    inputs, outputs, packed = ran(form, "f32", sizes)
    expected = FORMS[form][1]({name: values.astype(np.float64) for name, values in inputs.items()})
    (found,) = outputs.values()
    assert np.allclose(found, expected, rtol=1e-4, atol=1e-4)
    _, _, scalar = ran(form, "f64", sizes)
    assert packed < 2 * scalar

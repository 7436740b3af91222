"""Windows by steps of at least two, on Snitch cores: sums of whole rows, then of the numbers of a row."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

from differential.compiled import random_inputs
from differential.snitch import DIVIDES, run_snitch
from pdojo.backends.calling.arrays import parameters_of
from pdojo.dialect.assumptions import with_alignment
from pdojo.dialect.flow.program import Program
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.view.build import nest_of
from pdojo.passes.scheduled_kernel import make_moves
from qa.simulated import simulated_code_differs


@pytest.mark.parametrize(("step", "width"), [(2, 2), (4, 4), (4, 2), (2, 3), (3, 3)])
@pytest.mark.parametrize(("spelling", "start"), [("max", "-inf"), ("+", "0")])
def test_pools(step: int, width: int, spelling: str, start: str) -> None:
    random = Random(10 * step + width)
    rows, height, columns = random.randint(2, 5), random.randint(2, 3), random.randint(3, 8)
    shape = rows * height + 1, 2 * (step * columns + width)
    (kernel,) = parse_notation(
        "kernel k(x) -> (y)\nnumerics reassociate numbers\n"
        f"x f32 [{shape[0]}, {shape[1]}] heap\ny f32 [{rows}, {columns}] heap\n\n{rows} {columns}\n"
        f"| y[{{0}},{{1}}] = {start}\n"
        f"| {height} {width} y[{{0}},{{1}}] {spelling}= x[{{0}}*{height}+{{2}},{{1}}*{step}+{{3}}]\n"
        f"| y[{{0}},{{1}}] = y[{{0}},{{1}}] * 0.5\n"
    )
    program = make_moves(with_alignment(kernel, 8), DIVIDES, "heuristic").after
    assert simulated_code_differs(Program(program, DIVIDES), 11) is None
    inputs = random_inputs(parameters_of(nest_of(kernel)), 7)
    outputs, result = run_snitch(program, inputs)
    windows = sliding_window_view(inputs["x"].astype(np.float64), (height, width))
    windows = windows[: rows * height : height, : columns * step : step]
    expected = (windows.max((2, 3)) if spelling == "max" else windows.sum((2, 3))) / 2
    assert np.allclose(outputs["y"], expected, rtol=1e-5, atol=1e-5)
    # A load, an operation for each number, and a few for each result; a packed sum takes half as many.
    assert result.cycles < rows * columns * (2 * height * width + 5) + 150

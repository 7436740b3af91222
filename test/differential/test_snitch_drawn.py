"""The heuristic pass on drawn kernels: right bits, NumPy's results, and the cycles of interleaved statements."""

from __future__ import annotations

import pytest

from benchmarks.snitch.drawn.draw import DrawnKernel, drawn_kernels
from benchmarks.snitch.kernels import DTYPES
from differential.snitch import run_snitch
from differential.test_snitch import agree, inputs_for, is_exact
from differential.test_snitch_passes import sums_lanes
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.semantics.interpreter import interpret_stepwise
from pdojo.passes.scheduled_kernel import make_moves

HARDSWISH = """
type T = f64
kernel hardswish(x) -> (y)
numerics contract reassociate numbers
x T [256] heap align 64
y T [256] heap align 64
r T {shape} {place}
h T {shape} {place}

256
| r[{at}] = x[{{0}}] + 3
| r[{at}] = max(r[{at}], 0)
| r[{at}] = min(r[{at}], 6)
| h[{at}] = x[{{0}}] * r[{at}]
| y[{{0}}] = h[{at}] * 0.125
"""


@pytest.mark.parametrize("kernel", drawn_kernels(), ids=lambda kernel: kernel.text)
@pytest.mark.parametrize("dtype", DTYPES)
def test_heuristic(kernel: DrawnKernel, dtype: str) -> None:
    before, core = kernel.instantiate(dtype), kernel.machine(machine("snitch"))
    inputs = inputs_for(before, 3)
    program = make_moves(before, core, "heuristic").after
    found, _ = run_snitch(program, inputs, core)
    exact = is_exact(program) and not sums_lanes(program)
    agree(program, found, interpret_stepwise(program, inputs), exact=exact)
    kernel.check(dtype, inputs, found)


@pytest.mark.parametrize(
    ("shape", "place", "at"), [("[256:N]", "heap", "{0}"), ("[256]", "heap", "{0}"), ("[]", "stack", "")]
)
def test_copies_go_operation_by_operation(shape: str, place: str, at: str) -> None:
    """Whatever the memory of temporaries: the five operations of a result take little more than five cycles."""
    (kernel,) = parse_notation(HARDSWISH.format(shape=shape, place=place, at=at))
    program = make_moves(kernel, machine("snitch"), "heuristic").after
    _, result = run_snitch(program, inputs_for(kernel, 0), machine("snitch"))
    assert 5 * 256 < result.cycles < 5.7 * 256


@pytest.mark.parametrize("terms", ["x, x, x", "x, 0.5, x", "0.5, x, x", "x, x, 0.5"])
def test_streamed_factors_that_are_addends(terms: str) -> None:
    """An element of a stream is read once, though a packed multiply-add copies its addend."""
    value = terms.replace("x", "x[{1}*2+{2}]")
    arrays = "x f32 [16] heap align 64\ny f32 [16] heap align 64"
    (program,) = parse_notation(f"kernel k(x) -> (y)\n{arrays}\n\n1:s 8 2:v y[{{1}}*2+{{2}}] = fma({value})\n")
    inputs = inputs_for(program, 0)
    found, _ = run_snitch(program, inputs, machine("snitch"))
    agree(program, found, interpret_stepwise(program, inputs), exact=True)

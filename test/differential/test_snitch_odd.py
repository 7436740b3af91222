"""The library on a simulated core at odd sizes, by every expert pass and in every element type."""

from __future__ import annotations

from itertools import product
from math import prod

import pytest

from differential.compiled import kernel
from differential.library import close
from differential.snitch import DIVIDES, run_snitch
from differential.test_snitch import ITERATIONS, agree, inputs_for, is_exact
from differential.test_snitch_passes import sums_lanes
from pdojo.dialect.assumptions import with_alignment, with_permission
from pdojo.dialect.attributes import Numerics
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.interpreter import interpret_stepwise
from pdojo.dialect.view.build import nest_of
from pdojo.errors import NotationError
from pdojo.kernels import Workload, kernel_names, workload
from pdojo.names import EXPERT_PASSES
from pdojo.passes.scheduled_kernel import make_moves

SIZES = ((5, 7, 3, 9, 11), (3, 5, 7), (5, 3), (3,), (3, 5, 4), (4, 6), (6, 4, 8, 5), (1, 3, 1, 3, 5))
"""The sizes of a kernel in turn, odd ones first; then for kernels that halve an axis, and for large ones."""
GUARDED = ("causal_softmax", "cumsum", "conv", "maxpool")
"""Kernels with guards on packed scopes, and others with windows at the border."""
QUICK = [(name, "f32") for name in GUARDED] + [("softmax", "f16"), ("matmul", "f32"), ("rmsnorm", "f32")]


def odd(name: str, dtype: str | None) -> KernelOp:
    """A library kernel at odd sizes, few enough iterations for the simulator."""
    own = workload(name).sizes
    for sizes in SIZES:
        given = {n: min(most, default) for (n, default), most in zip(own.items(), sizes * len(own), strict=False)}
        try:
            program = Workload(name, tuple(given.items()), dtype).instantiate()
        except NotationError:
            continue
        if sum(prod(leaf.extents) for leaf in nest_of(program).leaves) <= ITERATIONS // 4:
            return program
    raise AssertionError(name)


def check(program: KernelOp, expert: str) -> None:
    """Compare the code that a pass makes with the interpreter, and the pass's program with the plain one."""
    tuning = make_moves(with_alignment(program, 8), DIVIDES, expert)
    inputs = inputs_for(tuning.before, 5)
    found, _ = run_snitch(tuning.after, inputs)
    exact = is_exact(tuning.after) and not sums_lanes(tuning.after)
    agree(tuning.after, found, interpret_stepwise(tuning.after, inputs), exact=exact)
    close(found, interpret_stepwise(tuning.before, inputs), tuning.before)


def cases() -> list[object]:
    """All kernels in all types; f64 and f16 are slow."""
    found: list[object] = []
    for name in kernel_names(long=False):
        for dtype in ("f32", "f64", "f16") if "T" in workload(name).names.parameters else (None,):
            marks = [pytest.mark.slow] if dtype in ("f64", "f16") else []
            found.append(pytest.param(name, dtype, marks=marks))
    return found


@pytest.mark.parametrize(("name", "dtype"), QUICK)
def test_some_kernels(name: str, dtype: str) -> None:
    check(odd(name, dtype), "greedy")


@pytest.mark.parametrize("expert", EXPERT_PASSES)
@pytest.mark.parametrize(("name", "dtype"), cases())
def test_every_kernel(name: str, dtype: str | None, expert: str) -> None:
    check(odd(name, dtype), expert)


@pytest.mark.parametrize("expert", EXPERT_PASSES)
@pytest.mark.parametrize("name", GUARDED)
def test_guards_with_numbers(name: str, expert: str) -> None:
    """With maxima that may lose NaN, and at even sizes, so that more statements are packed."""
    own = workload(name).sizes
    even = Workload(name, tuple((n, min(4, default)) for n, default in own.items()), "f32").instantiate()
    check(with_permission(even, Numerics.NUMBERS), expert)


GUARDS = ("{0}-{1} >= 2", "{1} <= {0}", "{0} >= 2", "{1} < 1", "{0}+{1} < 9", "{0}*2+{1} < 3")
STATEMENTS = (
    "+= x[{0},{1}]",
    "= x[{0},{1}]",
    "= 3",
    "= sqrt(x[{0},{1}])",
    "max= x[{0},{1}]",
    "+= x[{0},{1}] * p[{0},{1}]",
)


@pytest.mark.parametrize("rows", ["4", "4:u"])
@pytest.mark.parametrize(("dtype", "lanes"), [("f32", 2), ("f16", 4), ("f64", 2)])
def test_guards_of_lanes_in_a_register(dtype: str, lanes: int, rows: str) -> None:
    """A guard of a vector scope whose lanes share a register, or have one each, decides for every lane."""
    for guard, statement in product(GUARDS, STATEMENTS):
        cell = "p[{0},{1}]"
        program = kernel(
            f"kernel k(x) -> (y)\nx {dtype} [4, {lanes}] heap align 64\ny {dtype} [4, {lanes}] heap\n"
            f"p {dtype} [4:N, {lanes}] register\n\n{rows}\n| {lanes}:v {cell} = 0.5\n"
            f"| {lanes}:v where ({guard}) {cell} {statement}\n| {lanes}:u y[{{0}},{{1}}] = {cell}\n"
        )
        inputs = inputs_for(program, 1)
        found, _ = run_snitch(program, inputs)
        agree(program, found, interpret_stepwise(program, inputs))


@pytest.mark.parametrize("statement", STATEMENTS)
def test_fewer_lanes_than_a_register_has(statement: str) -> None:
    """Two lanes of a register with four; the other two keep their values."""
    program = kernel(
        "kernel k(x) -> (y)\nx f16 [4, 4] heap align 64\ny f16 [4, 4] heap\np f16 [4:N, 4] register\n\n4\n"
        "| 4:v p[{0},{1}] = 0.5\n| 2:v p[{0},{1}] " + statement + "\n| 4:u y[{0},{1}] = p[{0},{1}]\n"
    )
    inputs = inputs_for(program, 1)
    found, _ = run_snitch(program, inputs)
    agree(program, found, interpret_stepwise(program, inputs))

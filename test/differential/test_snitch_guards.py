"""Guards on a simulated Snitch core: loops with computed bounds, and triangles and bands cut by the heuristic pass."""

from __future__ import annotations

from random import Random

import pytest

from differential.snitch import DIVIDES
from pdojo.dialect.flow.program import Program
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.ops import KernelOp
from pdojo.passes.scheduled_kernel import make_moves
from qa.simulated import simulated_code_differs

FORMS = (
    "{own} <= {other}+%d",
    "{own} >= {other}-%d",
    "{own} < {other}*2-%d",
    "{own}*2 <= {other}+%d",
    "{own}*2 >= {other}-%d",
    "{own}+{other} <= %d",
    "{own}+{other} >= %d",
)


def _guard(random: Random, own: int) -> str:
    """One or two bounds of the variable at a depth by variables around it."""
    found = [random.choice(FORMS) % random.randrange(5) for _ in range(random.choice((1, 1, 2)))]
    return ", ".join(f.format(own=f"{{{own}}}", other=f"{{{random.randrange(own)}}}") for f in found)


def _drawn(seed: int) -> KernelOp:
    """A kernel with guards around an assignment, a sum along the guarded loop, or sums inside of it."""
    random = Random(seed)
    dtype = random.choice(("f64", "f64", "f32", "i32"))
    n, m, k = (random.choice((3, 4, 6, 8, 9, 12)) for _ in range(3))
    trees = (
        f"y {dtype} [{n}, {m}] heap\n\n{n} {m} y[{{0}},{{1}}] = x[{{0}},{{1}}]\n"
        f"{n} {m} where ({_guard(random, 1)}) y[{{0}},{{1}}] = x[{{0}},{{1}}] + w[{{1}},0]\n",
        f"y {dtype} [{n}] heap\n\n{n}\n| y[{{0}}] = 0\n"
        f"| {m} where ({_guard(random, 1)}) y[{{0}}] += x[{{0}},{{1}}] * w[{{1}},1]\n",
        f"y {dtype} [{n}, {k}] heap\n\n{n} {k}\n| y[{{0}},{{1}}] = 0\n"
        f"| {m} where ({_guard(random, 2)}) y[{{0}},{{1}}] += x[{{0}},{{2}}] * w[{{2}},{{1}}]\n",
        f"y {dtype} [{n}, {k}] heap\n\n{n} {k} y[{{0}},{{1}}] = 0\n"
        f"{n} {k} where ({_guard(random, 1)}) {m} y[{{0}},{{1}}] += x[{{0}},{{2}}] * w[{{2}},{{1}}]\n",
    )
    header = f"kernel drawn(x, w) -> (y)\nx {dtype} [{n}, {m}] heap\nw {dtype} [{m}, {k}] heap\n"
    (kernel,) = parse_notation(header + random.choice(trees))
    return kernel


@pytest.mark.parametrize("seed", range(24))
def test_drawn_guards(seed: int) -> None:
    """Bounds above and below, by one loop around or two, also where some rows are empty."""
    kernel = _drawn(seed)
    for expert in ("naive", "heuristic"):
        tuned = make_moves(kernel, DIVIDES, expert).after
        assert simulated_code_differs(Program(tuned, DIVIDES), seed) is None, expert


TRIANGLES = {
    "product": "| y[{0}] = 0\n| 18 where ({1} <= {0}) y[{0}] += a[{0},{1}] * x[{1}]",
    "strict": "| y[{0}] = 0\n| 18 where ({1} < {0}) y[{0}] += a[{0},{1}] * x[{1}]",
    "upper": "| y[{0}] = 0\n| 18 where ({1} >= {0}) y[{0}] += a[{0},{1}] * x[{1}]",
    "band": "| y[{0}] = 0\n| 18 where ({1} <= {0}+2, {1} >= {0}-2) y[{0}] += a[{0},{1}] * x[{1}]",
    "solver": "| t[{0}] = x[{0}]\n| 18 where ({1} < {0}) t[{0}] += a[{0},{1}] * y[{1}]\n| y[{0}] = t[{0}] * x[{0}]",
}


@pytest.mark.parametrize("dtype", ["f64", "f32"])
@pytest.mark.parametrize("name", TRIANGLES)
def test_triangles(name: str, dtype: str) -> None:
    """Blocks of rows, with a rest of two, have no guards but in small triangles, which are straight code."""
    (kernel,) = parse_notation(
        f"kernel k(a, x) -> (y)\na {dtype} [18, 18] heap\nx {dtype} [18] heap\ny {dtype} [18] heap\n"
        f"t {dtype} [18] heap\n\n18\n{TRIANGLES[name]}\n"
    )
    tuned = make_moves(kernel, DIVIDES, "heuristic").after
    program = Program(tuned, DIVIDES)
    assert simulated_code_differs(program, 1) is None
    assert all(scope.extent <= 8 for scope in program.nest.scopes if scope.guard)

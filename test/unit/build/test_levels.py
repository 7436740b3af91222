"""Long sums in levels: their programs, and their errors against f64, as they are and with the expert pass's moves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pdojo
from pdojo import build
from pdojo.build import Array
from pdojo.build.reductions import reduced
from pdojo.dialect.affine import var
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import print_notation
from pdojo.passes.scheduled_kernel import assume_alignment, make_moves
from unit.build.references import Values, made, run

TERMS = 1 << 22
UNITS = 32 * float(np.finfo(np.float32).eps)
"""32 units in the last place of a number."""


def text(result: Array, *inputs: Array) -> str:
    return print_notation(made(result, *inputs))


def test_a_long_row_is_a_sum_of_parts() -> None:
    x = build.input("x", "f32", (3, 6144))
    assert text(build.sum(x, -1), x).endswith(
        """
3 3
| s[{0},{1}] = 0
| 2048 s[{0},{1}] += x[{0},{1}*2048+{2}]
3
| y[{0}] = 0
| 3 y[{0}] += s[{0},{1}]
""".replace("y[", "y[")[1:]
    )


def test_rows_that_fit_are_parts() -> None:
    x = build.input("x", "f32", (4, 2048))
    assert "\n4\n| s[{0}] = 0\n| 2048 s[{0}] += x[{0},{1}]\n" in text(build.sum(x), x)


# 7147 terms are 7 equal parts, but of less than half of 2048.
@pytest.mark.parametrize(("terms", "whole"), [(5003, 2), (7147, 3)])
def test_the_last_part_has_what_is_left(terms: int, whole: int) -> None:
    x = build.input("x", "f32", (terms,))
    assert text(build.sum(x), x).endswith(
        f"""
{whole}
| s[{{0}}] = 0
| 2048 s[{{0}}] += x[{{0}}*2048+{{1}}]
s[{whole}] = 0
{terms - whole * 2048} s[{whole}] += x[{{0}}+{whole * 2048}]
y[] = 0
{whole + 1} y[] += s[{{0}}]
"""
    )


def test_rows_are_added_up_in_the_order_of_memory() -> None:
    x = build.input("x", "f32", (2, 8192, 4))
    assert text(build.sum(x, 1), x).endswith(
        """
2 4 4
| s[{0},{1},{2}] = 0
| 2048 s[{0},{1},{2}] += x[{0},{1}*2048+{3},{2}]
2 4
| y[{0},{1}] = 0
| 4 y[{0},{1}] += s[{0},{2},{1}]
"""[1:]
    )


def test_results_of_a_part_of_a_product_lie_together() -> None:
    a, b = build.input("a", "f32", (4, 1 << 15)), build.input("b", "f32", (1 << 15, 8))
    assert "s f32 [16, 4, 8] heap" in text(build.matmul(a, b), a, b)
    assert "heap\ny f32 [4, 8] heap\nt " in text(build.matmul(a[:, : 1 << 14], b[: 1 << 14]), a, b)


def test_there_are_as_many_levels_as_a_sum_needs() -> None:
    for extent, arrays in ((4096, 0), (4097, 1), (1 << 23, 1), (1 << 24, 2), (1 << 35, 3)):
        x = build.input("x", "f32", (extent,))
        assert text(build.sum(x), x).count("heap") == 2 + arrays, extent


def test_reductions_whose_order_does_not_matter_are_whole() -> None:
    for dtype, function in (("i32", build.sum), ("f32", build.max), ("f32", build.prod), ("f32", build.argmax)):
        x = build.input("x", dtype, (1 << 20,))
        assert "{0}*" not in text(function(x), x)
    x = build.input("x", "f32", (1 << 20,))
    assert "{0}*" not in text(build.cumulative("+", x), x)


def test_the_terms_of_parts_are_computed_part_by_part() -> None:
    """Moves can then join the nests; the arrays keep their shapes, so that they can share memory."""
    x = build.input("x", "f32", (4, 32000))
    printed = text(build.softmax(x), x)
    assert "4 20 1600 d[{0},{1}*1600+{2}] = exp(d[{0},{1}*1600+{2}])" in printed
    assert "d f32 [4, 32000] heap" in printed


def test_guarded_terms() -> None:
    x = build.input("x", "f64", (5, 5003))
    values = np.random.default_rng(0).random((5, 5003))
    found = run(reduced("+", x, [1], guard=[var(1) - var(0) * 1100]), [x], [values])
    np.testing.assert_allclose(found, [row[k * 1100 :].sum() for k, row in enumerate(values)], rtol=1e-13)


def test_a_sum_begins_with_its_initial_value_once() -> None:
    x = build.input("x", "f64", (2, 5003))
    values = np.random.default_rng(0).random((2, 5003))
    found = run(build.reduce("+", x, 1, initial=7), [x], [values])
    np.testing.assert_allclose(found, values.sum(1) + 7, rtol=1e-13)


def test_sums_inside_a_loop() -> None:
    x, h = build.input("x", "f64", (3, 5003)), build.input("h", "f64", ())
    values = np.random.default_rng(0).random((3, 5003))
    (found,) = build.scan(lambda s, e: [s[0] * 0.5 + build.sum(e[0] * s[0])], [h], [x])
    state, wanted = 1.0, list[float]()
    for row in values:
        state = state * 0.5 + float((row * state).sum())
        wanted.append(state)
    np.testing.assert_allclose(run(found, [x, h], [values, np.array(1.0)]), wanted, rtol=1e-12)


def _squares(x: Values, axis: int) -> Values:
    return ((x - x.mean(axis, keepdims=True)) ** 2).mean(axis)


def _softmax(x: Values, axis: int) -> Values:
    return (np.exp(x) / np.exp(x).sum(axis, keepdims=True)).max(axis)


def _dot(x: Array, axis: int) -> Array:
    letters = "abc"[: x.rank]
    return build.contract(f"{letters},{letters}->{letters.replace(letters[axis], '')}", x, x)


SHAPES = {0: (TERMS, 2), 1: (2, TERMS, 2), -1: (2, TERMS)}
SUMS: dict[str, tuple[Callable[[Array, int], Array], Callable[[Values, int], Values]]] = {
    "sum": (build.sum, lambda x, d: x.sum(d)),
    "mean": (build.mean, lambda x, d: x.mean(d)),
    "var": (build.var, _squares),
    "norm": (lambda x, d: build.sqrt(build.sum(x * x, d)), lambda x, d: np.sqrt((x * x).sum(d))),
    "logsumexp": (build.logsumexp, lambda x, d: np.log(np.exp(x).sum(d))),
    "softmax": (lambda x, d: build.max(build.softmax(x, d), d), _softmax),
    "dot": (_dot, lambda x, d: (x * x).sum(d)),
    "loss": (lambda x, d: build.mse_loss(x, x * 2), lambda x, d: (x * x).mean()),
}


def check_errors(name: str, axis: int) -> None:
    """Compare a sum of `TERMS` terms with f64, as it is and with the moves of the expert pass."""
    function, reference = SUMS[name]
    values = np.random.default_rng(0).random(SHAPES[axis], np.float32) + np.float32(0.5)
    x = build.input("x", "f32", SHAPES[axis])
    kernel = build.kernel("long", [x], [function(x, axis)])
    tuned = make_moves(assume_alignment(kernel, None), machine("host"), "heuristic").after
    wanted = reference(values.astype(np.float64), axis)
    for each in (kernel, tuned):
        found: Any = pdojo.run(each, pdojo.aligned(values))
        np.testing.assert_allclose(found, wanted, rtol=UNITS, atol=0)


def test_errors_of_a_mean() -> None:
    check_errors("mean", -1)


@pytest.mark.parametrize("axis", [0, 1, -1], ids=["first", "middle", "last"])
@pytest.mark.parametrize("name", SUMS)
def test_errors_of_all_sums(name: str, axis: int) -> None:
    check_errors(name, axis)

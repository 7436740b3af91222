"""Recurrences: results of all steps, states that depend on each other, and statements that are computed before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import pdojo
from pdojo import build
from pdojo.build import Array
from pdojo.dialect.notation import print_notation
from pdojo.errors import UsageError
from unit.build.references import Values, made, random, run

Arrays = Sequence[Array]


def check(
    results: Sequence[Array], inputs: Sequence[Array], values: Sequence[Values], wanted: Sequence[Values]
) -> None:
    """Compare the results of a scan, by the interpreter and compiled."""
    for result, expected in zip(results, wanted, strict=True):
        assert result.shape == expected.shape
        np.testing.assert_allclose(run(result, inputs, values), expected, rtol=1e-12)
    kernel = build.kernel("made", inputs, results)
    found: Any = pdojo.run(kernel, *values)
    for each, expected in zip(found if len(wanted) > 1 else [found], wanted, strict=True):
        np.testing.assert_allclose(each, expected, rtol=1e-12)


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_states_depend_on_each_other(steps: int) -> None:
    x, a, b = build.input("x", "f64", (steps, 3)), build.input("a", "f64", (3,)), build.input("b", "f64", (3,))
    values = [random("f64", array.shape, seed) for seed, array in enumerate((x, a, b))]

    def step(states: Arrays, elements: Arrays) -> list[Array]:
        first, second = states
        return [second, first * 0.5 + elements[0], build.sum(first * second)]

    first, second, wanted = values[1], values[2], list[list[Values]]()
    for row in values[0]:
        wanted.append([second, first * 0.5 + row, np.asarray((first * second).sum())])
        first, second = wanted[-1][:2]
    check(build.scan(step, [a, b], [x]), [x, a, b], values, [np.stack(each) for each in zip(*wanted, strict=True)])


def test_statements_that_read_their_state() -> None:
    x, h = build.input("x", "f64", (6, 4)), build.input("h", "f64", (4,))
    values = [random("f64", (6, 4), 1), random("f64", (4,), 2)]
    results = build.scan(lambda s, e: [build.maximum(s[0], e[0])], [h], [x])
    wanted = np.maximum.accumulate(np.concatenate([values[1][None], values[0]]))[1:]
    check(results, [x, h], values, [wanted])
    kept = build.scan(lambda s, e: [s[0], s[0] + e[0]], [h], [x])
    check(kept, [x, h], values, [np.stack([values[1]] * 6), values[0] + values[1]])


def test_sequences_are_views() -> None:
    x = build.input("x", "f64", (3, 8))
    values = random("f64", (3, 8), 1)
    rows = build.reshape(build.flip(build.transpose(x), 0), (4, 2, 3))
    results = build.scan(lambda s, e: [s[0] * 2 + e[0] + build.cast(e[1], "f64")],
                         [build.constant(0, "f64", (2, 3))], [rows, build.iota((4,), "i32")])  # fmt: skip
    state, wanted = np.zeros((2, 3)), list[Values]()
    for t, row in enumerate(values.T[::-1].reshape(4, 2, 3)):
        wanted.append(state := state * 2 + row + t)
    check(results, [x], [values], [np.stack(wanted)])


def test_products_with_windows_inside_a_step() -> None:
    x, w = build.input("x", "f64", (3, 5)), build.input("w", "f64", (3,))
    values = [random("f64", (3, 5), 1), random("f64", (3,), 2)]

    def step(states: Arrays, elements: Arrays) -> list[Array]:
        padded = build.pad(states[0], ((1, 1),))
        return [build.contract("pk,k->p", build.windows(padded, (3,)), w) + elements[0]]

    state, wanted = np.zeros(5), list[Values]()
    for row in values[0]:
        padded = np.pad(state, 1)
        wanted.append(state := np.array([padded[p : p + 3] @ values[1] for p in range(5)]) + row)
    check(build.scan(step, [build.constant(0, "f64", (5,))], [x]), [x, w], values, [np.stack(wanted)])


def test_what_a_step_does_not_change_is_computed_before() -> None:
    x, w = build.input("x", "f32", (4, 3)), build.input("w", "f32", (3,))
    (h,) = build.scan(lambda s, e: [s[0] * build.exp(w) + e[0]], [build.constant(0, "f32", (3,))], [x])
    text = print_notation(made(h, x, w))
    assert text.index("exp(") < text.index("\n4\n"), text


def test_causal_softmax_inside_a_step() -> None:
    x = build.input("x", "f64", (2, 3, 3))
    values = random("f64", (2, 3, 3), 1)
    results = build.scan(lambda s, e: [s[0] + build.causal_softmax(e[0])], [build.constant(0, "f64", (3, 3))], [x])
    lower = np.exp(values) * np.tri(3)
    check(results, [x], [values], [np.cumsum(lower / lower.sum(-1, keepdims=True), 0)])


def test_mistakes() -> None:
    x = build.input("x", "f32", (4, 3))
    zero = build.constant(0, "f32", (3,))
    with pytest.raises(UsageError, match="a step turns a state <Array f32 \\[3\\]> into <Array f32 \\[1\\]>"):
        build.scan(lambda s, e: [s[0][:1]], [zero], [x])
    with pytest.raises(UsageError, match="a step returns 0 arrays for 1 states"):
        build.scan(lambda s, e: [], [zero], [x])
    with pytest.raises(UsageError, match="have no common number of steps"):
        build.scan(lambda s, e: [s[0]], [zero], [x, build.input("y", "f32", (5,))])
    with pytest.raises(UsageError, match="no scan of its own"):
        build.scan(lambda s, e: [build.scan(lambda t, f: [t[0] + f[0]], [s[0]], [x])[0][3]], [zero], [x])

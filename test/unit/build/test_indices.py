"""Indices that callers give: `x[i]`, `take` and `gather` at elements of inputs, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import pdojo
from pdojo import build
from pdojo.dialect.notation import print_notation
from pdojo.errors import IndexOutOfRange
from unit.build.references import made, random, run

X = build.input("x", "f32", (5, 4, 3))
B = build.input("i", "i64", (2, 3))
J = build.input("j", "i32", (3,))
K = build.input("k", "i16", ())
HANDLES = [X, B, J, K]
VALUES = [random("f32", (5, 4, 3), 0), np.array([[0, -1, 2], [2, 1, -3]]), np.array([-1, 0, 2], np.int32),
          np.array(-2, np.int16)]  # fmt: skip
SELECTIONS: list[Callable[[Any, Any, Any, Any], Any]] = [
    lambda x, i, j, k: x[i],
    lambda x, i, j, k: x[:, :, j],
    lambda x, i, j, k: x[j, :, k],
    lambda x, i, j, k: x[0, :, j],
    lambda x, i, j, k: x[:, 1, j],
    lambda x, i, j, k: x[None, :, 1, None, j],
    lambda x, i, j, k: x[::-1, k],
    lambda x, i, j, k: x[i][1:, ::2, 1],
    lambda x, i, j, k: x[:, i[1:], None],
    lambda x, i, j, k: x[..., j[::-1]][1],
]


@pytest.mark.parametrize("select", SELECTIONS)
def test_elements_are_those_of_numpy(select: Callable[[Any, Any, Any, Any], Any]) -> None:
    result, wanted = select(*HANDLES), select(*VALUES)
    assert result.shape == wanted.shape
    np.testing.assert_array_equal(run(result, HANDLES, VALUES), wanted)


def test_axes_of_one_length_may_share_indices() -> None:
    square, i = build.input("s", "f32", (4, 4)), build.input("i", "i64", (3,))
    given, values = random("f32", (4, 4), 1), np.array([0, -1, 2])
    np.testing.assert_array_equal(run(square[i, i], [square, i], [given, values]), given[values, values])


def test_the_range_of_an_input_is_that_of_the_axis() -> None:
    text = print_notation(build.kernel("rows", [X, J], [build.take(X, J, outside="clamp") * 2]))
    assert "j i32 [3] heap in 0..4 clamp\n" in text
    assert "y[{0},{1},{2}] = x[j[{0}],{1},{2}] * 2" in text


@pytest.mark.parametrize(
    ("outside", "given", "wanted"),
    [
        ("wrap", [-5, 4, 0], [0, 4, 0]),
        ("wrap", [5, 0, 0], "the index 5 at [0]; its indices run from -5 to 4"),
        ("refuse", [0, 1, -1], "the index -1 at [2]; its indices run from 0 to 4"),
        ("clamp", [-9, 9, 3], [0, 4, 3]),
    ],
)
def test_indices_outside_of_their_axis(outside: Any, given: list[int], wanted: list[int] | str) -> None:
    kernel = made(build.take(X, J, outside=outside), X, J)
    arrays = VALUES[0], np.array(given, np.int32)
    calls: list[Callable[..., Any]] = [pdojo.compile(kernel), partial(pdojo.run, kernel)]
    for call in calls:
        if isinstance(wanted, str):
            with pytest.raises(IndexOutOfRange) as raised:
                call(*arrays)
            assert isinstance(raised.value, IndexError)
            assert str(raised.value) == f"kernel 'made': 'j' has {wanted}"
        else:
            np.testing.assert_array_equal(call(*arrays), VALUES[0][wanted])


def test_functions_of_gathered_elements() -> None:
    rows, found = build.input("w", "f16", (2, 4)), build.input("i", "i64", (7,))
    weights, values = random("f16", (2, 4), 2), np.array([0, 1, -1, 1, 0, 0, -2])
    result = build.cast(build.exp(rows[found]), "f32") + 1
    wanted = np.exp(weights[values].astype(np.float32)).astype(np.float16).astype(np.float32) + 1
    np.testing.assert_allclose(run(result, [rows, found], [weights, values]), wanted, rtol=1e-3)


def test_the_last_value_at_a_place_counts() -> None:
    x, values = build.input("x", "f32", (5, 4, 3)), build.input("v", "f32", (5, 2, 3, 3))
    given = random("f32", (5, 2, 3, 3), 3)
    wanted = VALUES[0].copy()
    wanted[:, VALUES[1]] = given
    written = VALUES[0].copy()
    for at in np.ndindex(2, 3):
        written[:, VALUES[1][at]] = given[:, *at]
    np.testing.assert_array_equal(wanted, written)
    result = build.put(x, B, build.transpose(build.transpose(values, (3, 2, 1, 0)) * 1, (3, 2, 1, 0)), axis=1)
    kernel = made(result, x, B, values)
    assert "y[{0},i[{1},{2}],{3}] = " in print_notation(kernel)
    for found in (pdojo.run(kernel, VALUES[0], VALUES[1], given), pdojo.compile(kernel)(VALUES[0], VALUES[1], given)):
        np.testing.assert_array_equal(found, wanted)


WRITES: list[tuple[Callable[[Any, Any, Any], Any], list[list[int]]]] = [
    (lambda x, i, v: build.put(x, i, v, accumulation="+"), [[0, 1, 2], [4, 5, 0]]),
    (lambda x, i, v: build.put(x, i, v, outside="refuse"), [[0, 1, 2], [4, -1, 0]]),
    (lambda x, i, v: build.put_along(x, i, v[:, :, 0], 0), [[0, 1, 2], [4, -6, 0]]),
    (lambda x, i, v: build.put_from(x, i[1, 1], v[1]), [[0, 0, 0], [0, 3, 0]]),
    (lambda x, i, v: build.take_from(x, i[1, 1], 2) + v[0, :2], [[0, 0, 0], [0, 4, 0]]),
]


@pytest.mark.parametrize(("write", "given"), WRITES)
def test_writes_outside_of_their_axis_are_refused(write: Callable[[Any, Any, Any], Any], given: list[Any]) -> None:
    x, v = build.input("x", "f32", (5, 3)), build.input("v", "f32", (2, 3, 3))
    kernel = made(write(x, B, v), x, B, v)
    arrays = random("f32", (5, 3), 4), np.array(given), random("f32", (2, 3, 3), 5)
    calls: list[Callable[..., Any]] = [pdojo.compile(kernel), partial(pdojo.run, kernel)]
    for call in calls:
        with pytest.raises(IndexOutOfRange, match="has the index"):
            call(*arrays)


def test_sums_at_indices_of_half_precision_are_computed_in_single() -> None:
    x, i, v = build.input("x", "f16", (1,)), build.input("i", "i64", (4096,)), build.input("v", "f16", (4096,))
    ones = np.ones(4096, np.float16)
    kernel = made(build.put(x, i, v, accumulation="+"), x, i, v)
    assert pdojo.run(kernel, ones[:1], np.zeros(4096, np.int64), ones) == 4097 - 1  # f16 has no 4097.


EQUAL: list[Callable[[build.Array, build.Array], build.Array]] = [
    lambda x, i: x[:1][i],
    lambda x, i: (x[:1] * 2)[i],
    lambda x, i: build.broadcast_to(x[:1], (3, 4))[i],
    lambda x, i: build.constant(2.0, "f32", (3, 4))[i],
    lambda x, i: build.put_at(x[:1], [i], x[:2]),
    lambda x, i: build.take(x[:1], i, outside="refuse"),
]


@pytest.mark.parametrize("element", EQUAL)
def test_indices_of_equal_elements_are_checked(element: Callable[[build.Array, build.Array], build.Array]) -> None:
    """The result is the same at all indices; those outside of the axis are refused nevertheless."""
    x, i = build.input("x", "f32", (5, 4)), build.input("i", "i64", (2,))
    kernel = build.kernel("element", [x, i], [element(x, i)])
    values = random("f32", (5, 4), 0)
    expected = pdojo.run(kernel, values, np.array([0, 0]))
    assert np.isfinite(expected).all()
    for outside in (3, -5, 2**40):
        with pytest.raises(IndexOutOfRange, match=f"has the index {outside} at"):
            pdojo.run(kernel, values, np.array([0, outside]))

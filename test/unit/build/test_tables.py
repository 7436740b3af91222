"""Constant integers: tables, gathering and scattering at constant places, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from pdojo import build
from pdojo.dialect.notation import print_notation
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.errors import UsageError
from unit.build.references import random, run

X = build.input("x", "f32", (5, 8))
V = build.input("v", "f32", (4,))


def text(result: build.Array, *inputs: build.Array) -> str:
    return print_notation(build.kernel("k", inputs, [result]))


def test_many_runs_are_a_table_and_few_are_pieces() -> None:
    places = [3, 0, 4, -1, 1, 0, 2]
    taken = build.take(X, places)
    assert "idx i64 [7] table 3, 0, 4, 4, 1, 0, 2\n\n7 8 y[{0},{1}] = x[idx[{0}],{1}]\n" in text(taken, X)
    assert "table" not in text(build.take(X, [3, 4, 0, 1, 2]), X)
    x = random("f32", (5, 8), 0)
    np.testing.assert_array_equal(run(taken, [X], [x]), x[places])


def test_tables_are_operands() -> None:
    numbers = np.array([[3, 0, -2], [1, 3, 3]])
    handle, x = build.input("x", "f64", (2, 3)), random("f64", (2, 3), 2)
    result = build.table(numbers.tolist(), "f64") * handle
    np.testing.assert_array_equal(run(result, [handle], [x]), numbers * x)


def test_elements_at_constant_places() -> None:
    x = random("f32", (5, 8), 3)
    rows, columns = [[3], [0], [-1]], [7, 1, 2, 2, 0]
    found = run(build.gather(X, [rows, columns]), [X], [x])
    np.testing.assert_array_equal(found, x[rows, columns])
    along = build.gather(X, [build.expand_dims(build.iota((5,)), 1), [[7, 1], [0, 2], [3, 3], [6, 5], [1, 0]]])
    wanted = np.take_along_axis(x, np.array([[7, 1], [0, 2], [3, 3], [6, 5], [1, 0]]), 1)
    np.testing.assert_array_equal(run(along, [X], [x]), wanted)


def test_values_at_constant_places() -> None:
    x, v = random("f32", (5, 8), 4), random("f32", (4,), 5)
    rows, columns = [4, 0, 3, 2], [3, 0, 2, -1]
    found = run(build.scatter(X, [rows, columns], V * 2), [X, V], [x, v])
    wanted = x.copy()
    wanted[rows, columns] = v * np.float32(2)
    np.testing.assert_array_equal(found, wanted)


def test_tables_have_names_of_their_own() -> None:
    idx = build.input("idx", "f32", (5, 8))
    result = build.gather(idx, [[3, 0, 4], [1, 1, 0]]) + build.table([5, 3, 9], "f32")
    assert "idx1 i64 [3] table 3, 0, 4\nidx2 i64 [3] table 1, 1, 0\nidx3 i64 [3] table 2, 0, 6\n" in text(result, idx)


def test_even_steps_need_no_table() -> None:
    handle = build.input("x", "f32", (3,))
    assert "3 y[{0}] = x[{0}] + ({0}*2+3)\n" in text(handle + build.table([3, 5, 7], "f32"), handle)


def test_places_of_a_large_array_are_not_compared_one_by_one() -> None:
    """Strides tell that 2^40 places differ; a table and an axis are independent."""
    whole = build.input("x", "f32", (1 << 20, 1 << 20))
    own = [build.iota(whole.shape, axis=axis) for axis in (0, 1)]
    assert build.scatter(whole, own, whole).shape == whole.shape
    flat = build.reshape(whole, (1 << 40,))
    assert build.scatter(flat, [build.iota((1 << 40,))], flat).shape == flat.shape
    rows = whole[:3]
    assert build.scatter(whole, [[[5], [2], [9]], build.iota((1, 1 << 20), axis=1)], rows).shape == whole.shape
    with pytest.raises(UsageError, match=r"^element \[5, 0\] is given several values$"):
        build.scatter(whole, [[[5], [2], [5]], build.iota((1, 1 << 20), axis=1)], rows)
    quotients = build.reshape(build.iota((1 << 20, 1 << 20), axis=0), flat.shape)
    with pytest.raises(UsageError, match="1099511627776 places are too many"):
        build.scatter(whole, [quotients, quotients], flat)


def test_the_nests_of_repeated_places_are_a_logarithm_of_their_number() -> None:
    updates = build.input("u", "f64", (1024, 8))
    handle = build.input("x", "f64", (5, 8))
    result = build.put(handle, [k % 3 for k in range(1024)], updates, accumulation="+")
    assert sum(" = " in line for line in text(result, handle, updates).splitlines()) < 64
    x, u = random("f64", (5, 8), 8), random("f64", (1024, 8), 9)
    wanted = x.copy()
    np.add.at(wanted, np.arange(1024) % 3, u)
    kernel = build.kernel("k", [handle, updates], {"y": result})
    np.testing.assert_allclose(interpret(kernel, {"x": x, "u": u})["y"], wanted, rtol=1e-12)


def test_more_repeated_places_than_a_table_has() -> None:
    places = np.random.default_rng(0).integers(0, 700, 9000)
    handle, updates = build.input("x", "f64", (700,)), build.input("u", "f64", (9000,))
    x, u = random("f64", (700,), 10), random("f64", (9000,), 11)
    wanted = x.copy()
    np.add.at(wanted, places, u)
    result = build.put(handle, places.tolist(), updates, accumulation="+")
    kernel = build.kernel("k", [handle, updates], {"y": result})
    np.testing.assert_allclose(interpret(kernel, {"x": x, "u": u})["y"], wanted, rtol=1e-12)

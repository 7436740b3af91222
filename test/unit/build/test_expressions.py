"""Random expressions of handles against NumPy, exact; kernels of several outputs; empty arrays; texts of kernels."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib.stride_tricks import sliding_window_view

import pdojo
from pdojo import build
from pdojo.build import Array
from pdojo.build.reductions import reduced
from pdojo.dialect.affine import var
from pdojo.dialect.flow.program import Program
from pdojo.dialect.machines.registry import host
from pdojo.dialect.notation import parse_notation, print_notation
from pdojo.dialect.notation.equality import same_program
from pdojo.dialect.rules.validate import validate
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.errors import UsageError
from unit.build.references import NUMPY, Values, random, run

Pair: TypeAlias = tuple[Array, Values]
Draw: TypeAlias = Callable[[st.SearchStrategy[Any]], Any]

_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "//": lambda x, y: x // (y * y + 1),
    "<": lambda x, y: x < y,
}


def _broadcasts(x: Values, y: Values) -> bool:
    try:
        np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        return False
    return True


def _binary(draw: Draw, pool: list[Pair]) -> Pair:
    x, values = draw(st.sampled_from(pool))
    y, others = draw(st.sampled_from([pair for pair in pool if _broadcasts(pair[1], values)]))
    name = draw(st.sampled_from(sorted(_BINARY)))
    result: Array = _BINARY[name](x, y)
    wanted: Values = _BINARY[name](values, others)
    if name == "<":
        return build.where(result, x, y), np.minimum(values, others)
    return result, wanted


def _number(draw: Draw, pool: list[Pair]) -> Pair:
    x, values = draw(st.sampled_from(pool))
    number = draw(st.integers(-5, 5))
    name = draw(st.sampled_from(["+", "-", "*"]))
    return _BINARY[name](x, number), _BINARY[name](values, number)


def _transpose(draw: Draw, pool: list[Pair]) -> Pair:
    x, values = draw(st.sampled_from(pool))
    axes = draw(st.permutations(range(x.rank)))
    return build.transpose(x, axes), values.transpose(axes)


def _reshape(draw: Draw, pool: list[Pair]) -> Pair:
    x, values = draw(st.sampled_from(pool))
    shape: list[int] = []
    rest = x.size
    while rest > 1 and len(shape) < 3:
        shape.append(draw(st.sampled_from([n for n in range(2, rest + 1) if rest % n == 0])))
        rest //= shape[-1]
    shape.insert(draw(st.integers(0, len(shape))), rest)
    return build.reshape(x, shape), values.reshape(shape)


def _slice(draw: Draw, pool: list[Pair]) -> Pair:
    x, values = draw(st.sampled_from(pool))
    items: list[slice] = []
    for extent in x.shape:
        start = draw(st.integers(0, extent - 1))
        stop = draw(st.integers(start + 1, extent))
        step = draw(st.integers(1, 3))
        items.append(
            slice(start, stop, step) if draw(st.booleans()) else slice(stop - 1, start - 1 if start else None, -step)
        )
    return x[tuple(items)], values[tuple(items)]


def _reduce(draw: Draw, pool: list[Pair]) -> Pair:
    x, values = draw(st.sampled_from([pair for pair in pool if pair[0].rank]))
    axis, keepdims = draw(st.integers(-x.rank, x.rank - 1)), draw(st.booleans())
    if draw(st.booleans()):
        return build.sum(x, axis, keepdims=keepdims), values.sum(axis, keepdims=keepdims)
    return build.max(x, axis, keepdims=keepdims), values.max(axis, keepdims=keepdims)


def _cumulative(draw: Draw, pool: list[Pair]) -> Pair:
    x, values = draw(st.sampled_from([pair for pair in pool if pair[0].rank]))
    axis = draw(st.integers(-x.rank, x.rank - 1))
    return build.cumulative("+", x, axis), values.cumsum(axis)


def _concatenate(draw: Draw, pool: list[Pair]) -> Pair:
    x, values = draw(st.sampled_from([pair for pair in pool if pair[0].rank]))
    axis = draw(st.integers(0, x.rank - 1))
    rest = (*x.shape[:axis], *x.shape[axis + 1 :])
    fits = [p for p in pool if p[0].rank == x.rank and (*p[0].shape[:axis], *p[0].shape[axis + 1 :]) == rest]
    y, others = draw(st.sampled_from(fits))
    return build.concatenate([x, y], axis), np.concatenate([values, others], axis)


def _pad(draw: Draw, pool: list[Pair]) -> Pair:
    x, values = draw(st.sampled_from(pool))
    widths = [(draw(st.integers(0, 2)), draw(st.integers(0, 1))) for _ in x.shape]
    return build.pad(x, widths, 3), np.pad(values, widths, constant_values=3) if widths else values


def _product(draw: Draw, pool: list[Pair]) -> Pair:
    x, values = draw(st.sampled_from([pair for pair in pool if pair[0].rank]))
    y, others = draw(st.sampled_from([pair for pair in pool if pair[0].rank]))
    if x.shape[-1] != y.shape[0]:
        y, others = build.transpose(x), values.T
    left, right = build.reshape(x, (-1, x.shape[-1])), build.reshape(y, (y.shape[0], -1))
    return build.matmul(left, right), values.reshape(-1, x.shape[-1]) @ others.reshape(y.shape[0], -1)


_STEPS = (_binary, _binary, _number, _transpose, _reshape, _slice, _reduce, _cumulative, _concatenate, _pad, _product)
_MOST = 400
"""Most elements of an array."""
_GREATEST = 1 << 50
"""Bound of numbers, so that floating-point numbers are exact."""


@st.composite
def expressions(draw: Draw) -> tuple[list[Pair], list[Pair]]:
    """Inputs and outputs with their values."""
    shapes = [(2, 3), (3,), (4, 1), (2, 1, 3), ()]
    chosen = draw(st.lists(st.sampled_from(shapes), min_size=1, max_size=3))
    dtype = draw(st.sampled_from(["f64", "i64"]))
    whole = [random("i64", shape, k) for k, shape in enumerate(chosen)]
    inputs = [
        (build.input(f"x{k}", dtype, values.shape), values.astype(NUMPY[dtype])) for k, values in enumerate(whole)
    ]
    pool: list[Pair] = [*inputs, (build.iota((3,), dtype, start=1, step=2), np.arange(3) * 2 + 1)]
    for _ in range(draw(st.integers(1, 8))):
        pool.append(draw(st.sampled_from(_STEPS))(draw, pool))
        if pool[-1][0].size > _MOST or np.abs(pool[-1][1]).max() > _GREATEST:
            pool.pop()
    outputs = draw(st.lists(st.sampled_from(pool[-3:]), min_size=1, max_size=2))
    return inputs, outputs


@given(expressions())
def test_random_expressions(case: tuple[list[Pair], list[Pair]]) -> None:
    inputs, outputs = case
    kernel = build.kernel("made", [x for x, _ in inputs], [y for y, _ in outputs])
    validate(Program(kernel, host()))
    text = print_notation(kernel)
    found = interpret(kernel, {f"x{k}": values for k, (_, values) in enumerate(inputs)}, storage="cells")
    for (_, wanted), name in zip(outputs, ("y", "y1"), strict=False):
        np.testing.assert_array_equal(found[name], wanted, text)
    assert same_program(parse_notation(text)[0], kernel)


VIEWS: dict[str, tuple[Callable[[Array], Array], Callable[[Values], Values]]] = {
    "the array": (lambda x: x, lambda x: x),
    "first rows": (lambda x: x[:2], lambda x: x[:2]),
    "every second row": (lambda x: x[::2], lambda x: x[::2]),
    "reversed": (lambda x: x[:, ::-1], lambda x: x[:, ::-1]),
    "a column": (lambda x: x[:, 1], lambda x: x[:, 1]),
    "transposed": (build.transpose, np.transpose),
    "joined": (lambda x: build.reshape(x, (24,)), lambda x: x.reshape(24)),
    "split": (lambda x: build.reshape(x, (2, 2, 3, 2)), lambda x: x.reshape(2, 2, 3, 2)),
    "in other rows": (lambda x: build.reshape(x, (3, 8)), lambda x: x.reshape(3, 8)),
    "repeated": (lambda x: build.repeat(x, 2, 1), lambda x: x.repeat(2, 1)),
    "windows": (lambda x: build.windows(x, (3,))[:, :2], lambda x: sliding_window_view(x, 3, 1)[:, :2]),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_as_outputs(name: str) -> None:
    """A view of an input is copied; a view of all of another array is computed in its place."""
    x, values = build.input("x", "i64", (4, 6)), random("i64", (4, 6), 0)
    built, reference = VIEWS[name]
    np.testing.assert_array_equal(run(built(x), [x], [values]), reference(values))
    np.testing.assert_array_equal(run(built(x * 2), [x], [values]), reference(values * 2))
    np.testing.assert_array_equal(run(built(build.cumulative("+", x)), [x], [values]), reference(values.cumsum(1)))


def test_arrays_that_are_read_elsewhere_are_kept() -> None:
    x = build.input("x", "f64", (3, 3))
    e, product, read_twice = x * x + 1, x * 5, x * 6
    results = {
        "mirrored": (e - build.transpose(e)) * 2,
        "product": product,
        "turned": build.transpose(x * 7) + x,
        "sum": product + x,
        "early": read_twice + 1,
        "late": (read_twice - 1) * 3,
    }
    values = random("f64", (3, 3), 0)
    kernel = build.kernel("kept", [x], results)
    validate(Program(kernel, host()))
    found = interpret(kernel, {"x": values}, storage="cells")
    square = values * values + 1
    np.testing.assert_array_equal(found["mirrored"], (square - square.T) * 2)
    np.testing.assert_array_equal(found["product"], values * 5)
    np.testing.assert_array_equal(found["turned"], (values * 7).T + values)
    np.testing.assert_array_equal(found["sum"], values * 5 + values)
    np.testing.assert_array_equal(found["early"], values * 6 + 1)
    np.testing.assert_array_equal(found["late"], (values * 6 - 1) * 3)


def test_outputs_are_not_updated_in_place() -> None:
    x = build.input("x", "i64", (4,))
    first = x * 3
    total = first + x
    for results in ({"a": first, "b": total}, {"a": total, "b": (total - 1) * 2}):
        kernel = build.kernel("k", [x], results)
        found = interpret(kernel, {"x": np.arange(4)})
        assert found["a"].tolist() == ([0, 3, 6, 9] if results["a"] is first else [0, 4, 8, 12])
        assert found["b"].tolist() == ([0, 4, 8, 12] if results["a"] is first else [-2, 6, 14, 22])


def test_outputs_that_share_a_definition() -> None:
    x = build.input("x", "f32", (2, 3))
    e = build.exp(x)
    kernel = build.kernel("shared", [x], {"a": e, "b": e, "c": build.transpose(e), "d": e + 1, "s": x})
    values = random("f32", (2, 3), 0)
    a, b, c, d, s = pdojo.run(kernel, values)
    np.testing.assert_array_equal(b, a)
    np.testing.assert_array_equal(c, a.T)
    np.testing.assert_array_equal(d, a + 1)
    np.testing.assert_array_equal(s, values)


def test_made_kernels_are_compiled_and_tuned() -> None:
    x, w = build.input("x", "f32", (6, 64)), build.input("w", "f32", (64,))
    kernel = build.kernel("rmsnorm", [x, w], [build.rms_norm(x, w)])
    values = [random("f32", shape, k) for k, shape in enumerate(((6, 64), (64,)))]
    tuned = pdojo.tune(kernel, measure=False)
    assert tuned.is_verified
    wide = values[0].astype(np.float64)
    wanted = wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-5) * values[1]
    np.testing.assert_allclose(pdojo.run(kernel, *values), wanted, rtol=1e-5)
    np.testing.assert_allclose(pdojo.run(tuned.kernel, *map(pdojo.aligned, values)), wanted, rtol=1e-5)


def test_unsigned_arrays_are_passed_with_the_same_bits() -> None:
    x = build.input("x", "u8", (4,))
    kernel = build.kernel("halves", [x], [build.cast(x // 2, "f32")])
    values = np.array([0, 1, 200, 255], np.uint8)
    assert pdojo.run(kernel, values.view(np.int8)).tolist() == [0, 0, 100, 127]


# Arrays without elements


def test_empty_arrays_end_in_the_builder() -> None:
    x = build.input("x", "f64", (3, 2))
    empty = x[:, 2:]
    nothing = build.input("nothing", "f64", (3, 0))
    assert empty.shape == (3, 0)
    results = {
        "concatenated": build.concatenate([empty, x, nothing], 1),
        "summed": build.sum(empty * 2 + nothing, 1),
        "multiplied": build.matmul(empty, build.transpose(nothing)),
        "greatest": build.reduce("max", nothing, 1, initial=7),
        "padded": build.pad(empty, ((0, 0), (1, 1)), 5),
        "every": build.all(nothing > 1),
    }
    kernel = build.kernel("of_nothing", [x], results)
    validate(Program(kernel, host()))
    values = random("f64", (3, 2), 0)
    found = interpret(kernel, {"x": values})
    np.testing.assert_array_equal(found["concatenated"], values)
    np.testing.assert_array_equal(found["summed"], np.zeros(3))
    np.testing.assert_array_equal(found["multiplied"], np.zeros((3, 3)))
    np.testing.assert_array_equal(found["greatest"], np.full(3, 7))
    np.testing.assert_array_equal(found["padded"], np.full((3, 2), 5))
    assert found["every"]


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0, 3)])
def test_views_of_empty_arrays(shape: tuple[int, ...]) -> None:
    x, values = build.input("x", "f64", shape), np.zeros(shape)
    for found, wanted in (
        (build.transpose(x), values.T),
        (build.reshape(x, (*shape[::-1], 5)), values.reshape(*shape[::-1], 5)),
        (build.flip(x), values),
        (build.expand_dims(x, 0), values[None]),
        (build.tile(x, [2] * len(shape)), np.tile(values, [2] * len(shape))),
        (build.cumulative("+", x), values.cumsum(-1)),
        (build.exp(x)[..., None] + x[..., None], values[..., None]),
    ):
        assert found.shape == wanted.shape
        assert not prod(found.shape)
        with pytest.raises(UsageError, match="output 'y' has no elements"):
            build.kernel("k", [], [found])


def test_constants_alone() -> None:
    result = build.iota((3,), "f32") * 2 + build.constant(1, "f32")
    assert run(result, [], []).tolist() == [1, 3, 5]


# Texts


def text(result: Array, *inputs: Array) -> str:
    """The tree of a kernel."""
    return print_notation(build.kernel("k", inputs, [result])).partition("\n\n")[2]


def test_a_person_would_write_it_so() -> None:
    x, y = build.input("x", "f32", (4, 6)), build.input("y", "f32", (6,))
    assert (
        text(build.exp(x * y + 1) / 2, x, y)
        == """\
4 6
| t[{0},{1}] = x[{0},{1}] * y[{1}]
| s[{0},{1}] = t[{0},{1}] + 1
4 6 s[{0},{1}] = exp(s[{0},{1}])
4 6 y1[{0},{1}] = s[{0},{1}] / 2
"""
    )


def test_slices_are_taken_before_functions_and_repetitions_behind() -> None:
    x = build.input("x", "f32", (4, 6))
    assert text(build.exp(x)[:2], x) == "4 6 e[{0},{1}] = exp(x[{0},{1}])\n2 6 y[{0},{1}] = e[{0},{1}]\n"
    assert text(build.exp(x[:2]), x) == "2 6 y[{0},{1}] = exp(x[{0},{1}])\n"
    assert (
        text(build.repeat(x, 2, 1) + 1, x) == "4 6 s[{0},{1}] = x[{0},{1}] + 1\n4 6 2 y[{0},{1}*2+{2}] = s[{0},{1}]\n"
    )


def test_reshapes_stay_affine() -> None:
    x, b = build.input("x", "f32", (4, 6)), build.input("b", "f32", (24,))
    assert text(build.reshape(x, (24,)) + b, x, b) == "4 6 y[{0}*6+{1}] = x[{0},{1}] + b[{0}*6+{1}]\n"
    assert text(build.reshape(build.exp(x), (2, 2, 6)), x) == "2 2 6 y[{0},{1},{2}] = exp(x[{0}*2+{1},{2}])\n"


def test_pieces_are_computed_in_their_places() -> None:
    x = build.input("x", "f32", (4, 6))
    assert (
        text(build.pad(build.exp(x), ((0, 0), (1, 1))), x)
        == """\
4 8 y[{0},{1}] = 0
4 6 y[{0},{1}+1] = exp(x[{0},{1}])
"""
    )
    assert (
        text(build.concatenate([build.sum(x, 0), build.exp(x[0])]), x)
        == """\
6
| y[{0}] = 0
| 4 y[{0}] += x[{1},{0}]
6 y[{0}+6] = exp(x[0,{0}])
"""
    )


def test_an_array_is_cast_once() -> None:
    x, w = build.input("x", "bf16", (4, 4)), build.input("w", "bf16", (4,))
    found = text(build.matmul(x, w) + build.matmul(build.transpose(x), w) * build.sum(w[:2]), x, w)
    assert found.count("cast(x") == 1
    assert found.count("cast(w") == 2, "a slice is cast by itself"


def test_guards_of_reductions_follow_the_axes() -> None:
    x, values = build.input("x", "i64", (3, 4)), random("i64", (3, 4), 0)
    total = reduced("+", x, [0], guard=[var(1) - var(0)])
    np.testing.assert_array_equal(run(total, [x], [values]), np.triu(values).sum(0))

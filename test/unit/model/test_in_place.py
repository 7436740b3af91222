"""Concatenations whose operands are computed in their places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from pdojo import build
from pdojo.model.element_types import numpy_type
from pdojo.model.graph import Graph, Known, Operand, Tensor
from pdojo.model.model import Model
from unit.model.graphs import Graphs, constant


def branches(join: Callable[[build.Array, build.Array], build.Array], *shape: int) -> tuple[Graphs, list[Operand]]:
    """Three results of an input, put together two by two, and the sum of all elements in rows."""
    made = Graphs()
    x = made.input("x", *shape)
    one, two, three = (made(f"times{k}", lambda a, k=k: a * float(k), x) for k in (2, 3, 4))
    first = made("join", join, one, two)
    second = made("join", join, first, three)
    return made, [x, one, first, second, made("double", lambda a: a + a, second)]


def rows(a: build.Array, b: build.Array) -> build.Array:
    return build.concatenate([a, b], 0)


def columns(a: build.Array, b: build.Array) -> build.Array:
    return build.concatenate([a, b], 1)


@pytest.mark.parametrize(
    ("join", "shape", "kept", "calls"),
    [
        (rows, (4, 16), (4,), 4),
        (rows, (4, 16), (3, 4), 4),
        # An operand that is an output has memory of its own.
        (rows, (4, 16), (1, 4), 4),
        (rows, (4, 16), (2, 3), 3),
        # The second operand would not be aligned: one kernel computes both.
        (rows, (4, 5), (4,), 2),
        (columns, (4, 16), (4,), 2),
        (columns, (1, 16), (4,), 4),
    ],
)
def test_operands_are_computed_side_by_side(
    join: Callable[[build.Array, build.Array], build.Array], shape: tuple[int, int], kept: tuple[int, ...], calls: int
) -> None:
    made, values = branches(join, *shape)
    model = Model.of(made.finish(*(values[k] for k in kept)))
    x = constant(*shape)
    axis = 0 if join is rows else 1
    first = np.concatenate([x * 2, x * 3], axis)
    second = np.concatenate([first, x * 4], axis)
    right = [x, x * 2, first, second, second * 2]
    run = model.compile(tune="none")
    found: Any = run(x)
    compiled: tuple[Known, ...] = found if len(kept) > 1 else (found,)
    for outputs in (model.interpret(x), compiled):
        for ours, k in zip(outputs, kept, strict=True):
            assert np.array_equal(ours, right[k])
    assert len(run.profile(x)) == len(model.calls) == calls
    values = {model.inputs[0]: x}
    for step, alone in zip(model.steps, run.apart(), strict=True):
        values[step.outputs[0]] = alone(*(values[each] for each in step.inputs if isinstance(each, Tensor)))
    for (_, tensor), k in zip(model.outputs, kept, strict=True):
        assert isinstance(tensor, Tensor)
        assert np.array_equal(values[tensor], right[k])


def joined(kept: Sequence[int], follow: bool = False) -> tuple[Graph, Callable[[Known], list[Known]]]:
    """Concatenations of three results: `a b`, `d (a b)`, `d a` and `b d a`; those kept, or a function of their rows."""
    made = Graphs()
    x = made.input("x", 4, 16)
    a, b, d = (made(f"times{k}", lambda a, k=k: a * float(k), x) for k in (2, 3, 4))
    first = made("join", rows, a, b)
    nested = made("join", rows, d, first)
    again = made("join", rows, d, a)
    last = made("join", rows, b, again)
    outputs = [[first, nested, again, last][k] for k in kept]
    if follow:
        outputs = [made("softmax", lambda u: build.softmax(u, axis=0), each) for each in outputs]

    def right(v: Known) -> list[Known]:
        values = [[2, 3], [4, 2, 3], [4, 2], [3, 4, 2]]
        found = [np.concatenate([v * np.float32(k) for k in values[n]]) for n in kept]
        return [np.exp(u) / np.exp(u).sum(0) for u in found] if follow else found

    return made.finish(*outputs), right


@pytest.mark.parametrize("follow", [False, True])
@pytest.mark.parametrize(
    ("kept", "calls"),
    [
        # All three are computed in their places: `a` and `b` in `a b`, which is a part of `d (a b)` behind `d`.
        ((1,), 3),
        ((0, 1), None),
        # `a`, or `b`, is in two concatenations, and can be computed in place in none.
        ((0, 2), None),
        ((1, 2), None),
        ((1, 3), None),
        ((0, 1, 2, 3), None),
    ],
)
def test_concatenations_inside_others_and_of_one_tensor(kept: tuple[int, ...], calls: int | None, follow: bool) -> None:
    graph, right = joined(kept, follow)
    model, x = Model.of(graph), constant(4, 16)
    found: Any = model.compile(tune="none")(x)
    compiled: Sequence[Known] = found if len(kept) > 1 else [found]
    for outputs in (model.interpret(x), compiled):
        for ours, theirs in zip(outputs, right(x), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    if calls is not None:
        assert len(model.calls) == calls + follow


def test_memory_is_taken_from_the_first_part_on() -> None:
    """A part of a concatenation is written long before the others; nothing else may lie there in between."""
    made = Graphs()
    x = made.input("x", 4, 16)
    first = made("first", build.matmul, x, constant(16, 16))
    between = made("between", build.matmul, x, constant(16, 64))
    second = made("second", build.matmul, between, constant(64, 16))
    both = made("join", rows, first, second)
    graph = made.finish(made("last", build.matmul, both, constant(16, 8)))
    v = constant(4, 16)
    wanted = np.concatenate([v @ constant(16, 16), v @ constant(16, 64) @ constant(64, 16)]) @ constant(16, 8)
    model = Model.of(graph)
    assert len(model.calls) == len(model.steps) - 1
    np.testing.assert_allclose(model.compile(tune="none")(v), wanted, rtol=1e-4, atol=1e-4)


def test_parts_in_reverse_order_are_not_computed_in_place() -> None:
    """The first elements of both parts are where those of a concatenation would be; the rest is elsewhere."""

    def around(a: build.Array, b: build.Array) -> build.Array:
        return build.assemble((4, 16), [(slice(0, 4, 3), a), (slice(2, 0, -1), b)], None)

    made = Graphs()
    x = made.input("x", 2, 16)
    first, second = (made(f"times{k}", lambda a, k=k: a * float(k), x) for k in (2, 3))
    graph = made.finish(made("double", lambda a: a + a, made("around", around, first, second)))
    v = constant(2, 16)
    wanted = np.stack([v[0] * 2, v[1] * 3, v[0] * 3, v[1] * 2]) * 2
    for found in (*Model.of(graph).interpret(v), Model.of(graph).compile(tune="none")(v)):
        assert np.array_equal(found, wanted)


@pytest.mark.parametrize("dtype", ["f64", "f16", "i8"])
def test_places_of_parts_are_in_bytes(dtype: str) -> None:
    made = Graphs()
    x = made.builder.input("x", dtype, (4, 32))
    double = made("double", lambda a: a + a, x)
    graph = made.finish(made("join", rows, double, made("square", lambda a: a * a, x)))
    v = (constant(4, 32) * 8).astype(numpy_type(dtype))
    assert len((model := Model.of(graph)).calls) == 2
    assert np.array_equal(model.compile(tune="none")(v), np.concatenate([v + v, v * v]))


def test_copies_before_and_after_concatenations_in_place() -> None:
    made = Graphs()
    x, y = made.input("x", 16, 4), made.input("y", 4, 16)
    double, triple, fourfold = (made(f"times{k}", lambda a, k=k: a * float(k), y) for k in (2, 3, 4))
    # No kernel computes the copy, which others read through.
    one = made("join", rows, made("turn", build.transpose, x), fourfold)
    # The copy is the only use of the concatenation.
    other = made("turn", build.transpose, made("join", rows, double, triple))
    graph = made.finish(made("exp", build.exp, one), made("product", build.matmul, other, constant(8, 16)))
    u, v = constant(16, 4), constant(4, 16) + 1
    wanted = np.exp(np.concatenate([u.T, v * 4])), np.concatenate([v * 2, v * 3]).T @ constant(8, 16)
    model = Model.of(graph)
    for outputs in (model.interpret(u, v), model.compile(tune="none")(u, v)):
        for ours, right in zip(outputs, wanted, strict=True):
            np.testing.assert_allclose(ours, right, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("doubled", [True, False])
def test_views_of_inputs_are_copied(doubled: bool) -> None:
    """An operation makes a view of an input, but no kernel writes its elements."""
    made = Graphs()
    x, y = made.input("x", 8, 8), made.input("y", 4, 16)
    view = made("flat", lambda a: build.reshape(a, (4, 16)), x)
    beside = made("double", lambda a: a + a, y) if doubled else made("other", lambda a: build.reshape(a, (4, 16)), y)
    graph = made.finish(made("join", rows, view, beside))
    u, v = constant(8, 8), constant(4, 16) + 1
    assert np.array_equal(
        Model.of(graph).compile(tune="none")(u, v), np.concatenate([u.reshape(4, 16), v * (1 + doubled)])
    )

"""Models with indices that are data: groups of operations, arrays of indices in memory, and checks of calls."""

from __future__ import annotations

import numpy as np
import pytest

from pdojo import build
from pdojo.build import indexing
from pdojo.dialect.notation import print_notation
from pdojo.errors import IndexOutOfRange
from pdojo.model.graph import Graph, Operand
from pdojo.model.model import Model
from pdojo.model.partition import partition
from unit.model.graphs import Graphs, constant


def names(graph: Graph) -> list[list[str]]:
    return [[operation.name for operation in group.operations] for group in partition(graph)]


def embedding(made: Graphs, rows: int, indices: Operand) -> Operand:
    return made("rows", build.take, constant(rows, 16), indices)


def add(a: build.Array, b: build.Array) -> build.Array:
    return a + b


def layer_norm(x: build.Array) -> build.Array:
    return build.layer_norm(x)


def embeddings() -> Graph:
    """A sum of rows of three arrays, two of which have the same indices, and a normalisation."""
    made = Graphs()
    words, kinds = made.builder.input("words", "i64", (2, 5)), made.builder.input("kinds", "i32", (2, 5))
    total = made("add", add, embedding(made, 40, words), embedding(made, 3, kinds))
    return made.finish(made("norm", layer_norm, made("add", add, total, embedding(made, 30, words))))


def test_a_sum_of_embeddings_and_the_normalisation_after_it_are_one_kernel() -> None:
    graph = embeddings()
    assert names(graph) == [["rows", "rows", "rows", "add", "add", "norm"]]
    model = Model.of(graph)
    (kernel,) = model.kernels
    text = print_notation(kernel)
    assert text.count(" in 0..39 wrap") == text.count(" in 0..29 wrap") == text.count(" in 0..2 wrap") == 1
    words, kinds = np.array([[0, 29, -1, -30, 5], [1, 2, 3, 4, 5]]), np.array([[0, 1, 2, -3, 0]] * 2, np.int32)
    total = constant(40, 16)[words] + constant(3, 16)[kinds] + constant(30, 16)[words]
    wanted = (total - total.mean(-1, keepdims=True)) / np.sqrt(total.var(-1, keepdims=True) + 1e-5)
    for found in (model.interpret(words, kinds)[0], model.compile()(words, kinds)):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    words[1, 2] = 30
    with pytest.raises(IndexOutOfRange, match=r"has the index 30 at \[1, 2\]; its indices run from -30 to 29$"):
        model.compile()(words, kinds)


def computed() -> Graph:
    """Rows at indices that are computed, one of which is beside their computation."""
    made = Graphs()
    x, i = made.input("x", 6, 16), made.builder.input("i", "i64", (4,))
    doubled = made("double", lambda a: a * 2, i)
    found = made("rows", build.take, made("scale", lambda a: a * 0.5, x), doubled)
    return made.finish(made("exp", build.exp, found), doubled)


@pytest.mark.parametrize("tune", ["none", "pass"])
def test_computed_indices_are_checked_between_kernels(tune: str) -> None:
    graph = computed()
    assert names(graph) == [["double"], ["scale"], ["rows", "exp"]]
    compiled = Model.of(graph).compile(tune="none" if tune == "none" else "pass")
    x, i = constant(6, 16), np.array([0, 2, -1, -3])
    np.testing.assert_allclose(compiled(x, i)[0], np.exp(x[i * 2] * 0.5), rtol=1e-5)
    for call in (compiled, compiled.profile, Model.of(graph).interpret):
        with pytest.raises(IndexOutOfRange, match=r"the index 6 at \[3\]; its indices run from -6 to 5$"):
            call(x, np.array([0, 2, -1, 3]))
    np.testing.assert_allclose(compiled(x, i)[0], np.exp(x[i * 2] * 0.5), rtol=1e-5)


def test_only_used_parts_of_arrays_of_indices_are_checked() -> None:
    made = Graphs()
    x, i = made.input("x", 6, 16), made.builder.input("i", "i64", (3, 4))
    part = made("part", lambda a: build.reshape(a[1:, ::2], (4,)), i)
    graph = made.finish(made("rows", build.take, x, part), made("all", lambda a: a * 1, i))
    assert names(graph) == [["part"], ["rows"], ["all"]]
    given, values = constant(6, 16), np.full((3, 4), 99)
    values[1:, ::2] = [[0, 5], [-6, 2]]
    found, _ = Model.of(graph).compile(tune="none")(given, values)
    np.testing.assert_array_equal(found, given[values[1:, ::2].reshape(-1)])


def test_reshaped_indices_and_elements_beside_them_are_read_in_place() -> None:
    made = Graphs()
    x, i = made.input("x", 6, 16), made.builder.input("i", "i64", (4, 1))
    flat = made("flat", lambda a: build.reshape(a, (4,)), i)
    graph = made.finish(made("sum", lambda a, b: a + build.cast(b, "f32"), made("rows", build.take, x, flat), i))
    assert names(graph) == [["rows", "sum"]]
    given, values = constant(6, 16), np.array([[1], [-1], [0], [3]])
    found = Model.of(graph).compile(tune="none")(given, values)
    np.testing.assert_array_equal(found, given[values[:, 0]] + values.astype(np.float32))


def test_products_do_not_gather() -> None:
    made = Graphs()
    x, i = made.input("x", 6, 16), made.builder.input("i", "i64", (4,))
    rows, other = made("rows", build.take, x, i), embedding(made, 9, i)
    graph = made.finish(made("sum", add, made("product", build.matmul, rows, constant(16, 16)), other))
    assert names(graph) == [["rows"], ["rows"], ["product", "sum"]]
    given, values = constant(6, 16), np.array([1, -1, 0, 3])
    found = Model.of(graph).compile()(given, values)
    wanted = given[values] @ constant(16, 16) + constant(9, 16)[values]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_one_array_of_indices_of_axes_of_two_lengths() -> None:
    made = Graphs()
    x, i = made.input("x", 6, 5), made.builder.input("i", "i32", (4,))
    graph = made.finish(made("diagonal", lambda a, b: indexing.take_at(a, [b, b]), x, i))
    model = Model.of(graph)
    given, values = constant(6, 5), np.array([0, -1, 4, 2], np.int32)
    for found in (model.interpret(given, values)[0], model.compile(tune="none")(given, values)):
        np.testing.assert_array_equal(found, given[values, values])
    with pytest.raises(IndexOutOfRange, match=r"the index 5 at \[2\]; its indices run from -5 to 4$"):
        model.compile(tune="none")(given, np.array([0, -1, 5, 2], np.int32))

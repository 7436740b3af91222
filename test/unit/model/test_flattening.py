"""Kernels with fewer dimensions in the same memory."""

from __future__ import annotations

import numpy as np
import pytest

from differential.library import small
from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.measure.arrays import random_inputs
from pdojo.dialect.canonical import canonicalize
from pdojo.dialect.notation import parse_notation, print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.view.build import nest_of
from pdojo.kernels import kernel_names, workload
from pdojo.model.flattening import flattened


def assert_same(kernel: KernelOp) -> str:
    """Assert that the flattened kernel computes the same in the same memory; its text is returned."""
    text = flattened(kernel)
    (flat,) = parse_notation(text)
    assert print_notation(flat) == text
    assert flattened(flat) == text
    given = random_inputs(parameters_of(nest_of(kernel)), 5)
    shapes = {p.name: p.shape for p in parameters_of(nest_of(flat))}
    wanted = interpret(kernel, given)
    found = interpret(flat, {name: array.reshape(shapes[name]) for name, array in given.items()})
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name].reshape(array.shape), array)
    return text


@pytest.mark.parametrize("name", kernel_names(long=False))
def test_kernels_of_the_library(name: str) -> None:
    kernel = small(name)
    canonicalize(kernel)
    assert_same(kernel)


@pytest.mark.parametrize(
    ("spec", "shapes"),
    [
        ("softmax:1x24", ["24", "24"]),
        ("layernorm:6x8", ["6, 8", "8", "8", "6, 8"]),
        ("matmul:6x8x4", ["6, 8", "8, 4", "6, 4"]),
        ("relu:3x4", ["12", "12"]),
        ("attention:2x3x8x4", ["2, 3, 4", "2, 8, 4", "2, 8, 4", "2, 3, 4"]),
    ],
)
def test_dimensions_that_are_left(spec: str, shapes: list[str]) -> None:
    kernel = workload(spec).instantiate()
    canonicalize(kernel)
    lines = assert_same(kernel).split("\n\n")[0].split("\n")
    assert [line.split("[")[1].split("]")[0] for line in lines[1:] if "heap" in line][: len(shapes)] == shapes


ROWS = """kernel k(x, s) -> (y)
x f32 [6, 5] heap
s f32 [2, 3, 5] heap
y f32 [2, 3, 5] heap

2 3 5 y[{0},{1},{2}] = s[{0},{1},{2}] + x[{0}*3+{1},{2}]
"""


def test_products_of_iterations_and_extents_disappear() -> None:
    (kernel,) = parse_notation(ROWS)
    text = assert_same(kernel)
    assert "30 y[{0}] = s[{0}] + x[{0}]" in text


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        # Rows of `x` are in another order, or overlap, or their elements are; some rows are left out, or concurrent.
        ("x[{0}*3+{1},{2}]", "x[{1}*2+{0},{2}]", "2 3 5 y[{0},{1},{2}]"),
        ("x[{0}*3+{1},{2}]", "x[{0}+{1},{2}]", "2 3 5 y[{0},{1},{2}]"),
        ("x[{0}*3+{1},{2}]", "x[{0}*3+{1},4-{2}]", "6 5 y[{0},{1}]"),
        ("2 3 5 y", "2 3 where ({1} < 2) 5 y", "2 3 where ({1} < 2) 5 y[{0},{1},{2}]"),
        ("2 3 5 y", "2:p 3 5 y", "2:p 3 5 y[{0},{1},{2}]"),
    ],
)
def test_dimensions_that_stay(old: str, new: str, line: str) -> None:
    assert old in ROWS
    (kernel,) = parse_notation(ROWS.replace(old, new))
    assert line in assert_same(kernel)

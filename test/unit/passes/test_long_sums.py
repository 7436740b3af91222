"""The CPU's pass and sums in parts: rows stay one nest, and every statement is a vector."""

from __future__ import annotations

from dataclasses import replace

from pdojo import build
from pdojo.build import Array
from pdojo.dialect.attributes import Mapping
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.view.nest import Nest, Scope
from pdojo.passes.scheduled_kernel import assume_alignment, make_moves


def tuned(x: Array, result: Array) -> Nest:
    kernel = build.kernel("tuned", [x], [result])
    single = replace(machine("x86-64-avx2"), threads=1)
    return make_moves(assume_alignment(kernel, None), single, "heuristic").game.program.nest


def test_rows_in_parts_stay_one_nest() -> None:
    """The sum of two neighbouring parts of a row is no contraction of its own."""
    x = build.input("x", "f32", (256, 8192))
    for result in (build.softmax(x), build.rms_norm(x, axis=-1), build.layer_norm(x)):
        (rows,) = tuned(x, result).children
        assert isinstance(rows, Scope)
        assert rows.extent == 256


def test_parts_of_rows_are_vectors() -> None:
    """The block of the sum of all parts seals no loops of the parts' own sums."""
    x = build.input("x", "f32", (1 << 20, 8))
    nest = tuned(x, build.sum(x, 0))
    assert all(leaf.parent is not None and leaf.parent.mapping is Mapping.VECTOR for leaf in nest.leaves)


def test_rows_of_a_part_of_an_image_are_one_loop() -> None:
    x = build.input("x", "f32", (32, 64, 56, 56))
    assert not {28, 56} & {scope.extent for scope in tuned(x, build.sum(x, (0, 2, 3))).scopes}


def test_reductions_of_turned_images_read_in_the_order_of_memory() -> None:
    x = build.input("x", "f32", (1, 32, 40, 24))
    nest = tuned(x, build.max(build.transpose(x, (0, 3, 1, 2))))
    reading = [leaf for leaf in nest.leaves if any(read.array.name == "x" for read in leaf.reads)]
    assert reading
    assert all(leaf.parent is not None and leaf.parent.mapping is Mapping.VECTOR for leaf in reading)

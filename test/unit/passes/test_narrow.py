"""Products with constants that are expanded from narrow numbers: no array has all of them in f32."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import pdojo
from pdojo import build
from pdojo.dialect.functions import byte_width
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.build import nest_of
from pdojo.passes.scheduled_kernel import PASS, assume_alignment, make_moves

GROUP = 32


def by_column(w: build.Array, s: build.Array) -> build.Array:
    return build.cast(w, "f32") * build.reshape(s, (-1, 1))


def by_group(w: build.Array, s: build.Array) -> build.Array:
    return build.cast(build.cast(w, "i32") - 3, "f32") * build.repeat(s, GROUP, 1)


def of_halves(w: build.Array, s: build.Array) -> build.Array:
    shift = build.cast(build.iota((2 * w.shape[1],), "i32") % 2 * 4, "u8")
    numbers = (build.repeat(w, 2, 1) >> shift) & 15
    return build.cast(build.cast(numbers, "i32") - 8, "f32") * build.repeat(s, GROUP, 1)


def kernel(expand: Callable[..., build.Array], rows: int, terms: int, columns: int) -> KernelOp:
    halves = expand is of_halves
    x = build.input("x", "f32", (rows, terms))
    w = build.input("w", "u8" if halves else "i8", (columns, terms // 2 if halves else terms), const=True)
    s = build.input("s", "f32", (columns,) if expand is by_column else (columns, terms // GROUP), const=True)
    return build.kernel("product", [x, w, s], [build.matmul(x, build.transpose(expand(w, s)))])


def expected(expand: Callable[..., build.Array], x: Any, w: Any, s: Any) -> NDArray[np.float64]:
    if expand is by_column:
        wide = w.astype(np.float64) * s[:, None]
    elif expand is by_group:
        wide = (w.astype(np.float64) - 3) * np.repeat(s, GROUP, 1)
    else:
        halves = np.stack([w & 15, w >> 4], -1).reshape(len(w), -1)
        wide = (halves.astype(np.float64) - 8) * np.repeat(s, GROUP, 1)
    return x.astype(np.float64) @ wide.T


@pytest.mark.parametrize("name", ["x86-64-avx2", "x86-64-avx512", "aarch64-neon"])
@pytest.mark.parametrize("rows", [1, 5, 16, 70])
@pytest.mark.parametrize("expand", [by_column, by_group, of_halves])
def test_no_array_has_all_numbers_in_f32(expand: Callable[..., build.Array], rows: int, name: str) -> None:
    terms, columns = 256, 192
    target = replace(machine(name), threads=1)
    program = make_moves(assume_alignment(kernel(expand, rows, terms, columns), None), target, PASS).after
    sizes = {
        array.name: prod(n for n, reused in zip(array.shape, array.buffer.reuse, strict=True) if not reused)
        for array in nest_of(program).arrays.values()
        if byte_width(array.dtype) == 4
    }
    assert max(sizes.values()) < terms * columns, sizes


@pytest.mark.parametrize(("rows", "terms", "columns"), [(1, 256, 192), (7, 320, 200), (70, 256, 192)])
@pytest.mark.parametrize("expand", [by_column, by_group, of_halves])
def test_results_are_those_of_the_whole_factor(
    expand: Callable[..., build.Array], rows: int, terms: int, columns: int
) -> None:
    made = kernel(expand, rows, terms, columns)
    target = replace(machine("host"), threads=2)
    compiled = pdojo.compile(make_moves(assume_alignment(made, None), target, PASS).after, target)
    given = compiled.random_inputs(3)
    random = np.random.default_rng(rows)
    given["w"] = pdojo.aligned(random.integers(*((0, 256) if expand is of_halves else (-127, 128)), given["w"].shape,
                                               given["w"].dtype if expand is not of_halves else np.uint8)
                               .view(given["w"].dtype))  # fmt: skip
    wanted = expected(expand, given["x"], given["w"].view(np.uint8) if expand is of_halves else given["w"], given["s"])
    found = compiled.bind_constants(w=given["w"], s=given["s"])(given["x"])
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=2e-6 * np.abs(wanted).max())

"""Sizes that callers give in `pdojo.build`: extents as numbers, kernels for all values, refusals."""

from __future__ import annotations

import itertools
import operator
import random
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import numpy as np
import pytest

import pdojo
from pdojo import build
from pdojo.build import Array
from pdojo.build.sizes import Open, bounds_of
from pdojo.dialect.notation import parse_notation, print_notation
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.errors import UsageError

SIGNS: list[Any] = [getattr(operator, name) for name in ("add", "sub", "mul", "floordiv", "mod")]
N, M = build.size("N", 1, 40), build.size("M", 8, 48, multiple=8)


def at(extent: int, n: int, m: int) -> int:
    """The value of an extent for values of N and M."""
    if not isinstance(extent, Open):
        return extent
    known = {size: {"N": n, "M": m}[size.name] for size in extent.sizes}
    return sum(int(np.prod([each.evaluate((), known) for each in factors])) for factors in extent.products)


def test_extents_are_numbers_for_all_sizes() -> None:
    """Random arithmetic and comparisons, against each value of the sizes."""
    chosen, values = random.Random(0), [*itertools.product((1, 2, 3, 17, 40), (8, 16, 40, 48))]
    decided = 0
    for _ in range(300):
        known: Any = [(N, [n for n, _ in values]), (M, [m for _, m in values]), (3, [3] * len(values))]
        for _ in range(4):
            sign: Any = chosen.choice(SIGNS)
            (left, lefts), (right, rights) = chosen.choices(known, k=2)
            if sign in SIGNS[3:]:
                right, rights = (divisor := chosen.choice((1, 2, 3, 8))), [divisor] * len(values)
            try:
                found = sign(left, right)
            except UsageError as error:
                assert "linear in sizes" in str(error)  # noqa: PT017
                continue
            known.append((found, [*map(sign, lefts, rights)]))
        (left, lefts), (right, rights) = chosen.choices(known, k=2)
        assert [at(left, *each) for each in values] == lefts
        assert all(bounds_of(left)[0] <= value <= bounds_of(left)[1] for value in lefts)
        if left == right:
            assert lefts == rights
        for sign in (operator.lt, operator.le, operator.gt, operator.ge):
            try:
                assert {sign(left, right)} == {*map(sign, lefts, rights)}
                decided += 1
            except UsageError as error:
                assert "depends on the size" in str(error)  # noqa: PT017
    assert decided > 200


def test_equal_extents_are_equal_and_have_one_hash() -> None:
    assert (N + M) * 2 - M == M + 2 * N
    assert len({N * 8, 8 * N, N * 8 + 0}) == 1
    assert N * M // M == N
    assert M // 8 * 8 == M
    assert N != M
    few = build.size("N", 1, 2)
    assert few * few >= few  # each value is tried, where -1 is a bound of the difference
    assert str(N * M + 2) == "2+M*N"


def _softmax(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _scan(x: Array) -> Array:
    return build.scan(lambda states, elements: [states[0] * 0.5 + elements[0]], [x[0]], [x])[0]


def _scanned(x: Any) -> Any:
    found: list[Any] = [x[0]]
    for row in x:
        found.append(found[-1] * np.float32(0.5) + row)
    return np.array(found[1:])


X, XY = (N, M), ((N, M), (M, N))
CALLS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], tuple[tuple[int, ...], ...]]] = {
    "reshape": (lambda x: build.reshape(x, (N, M // 8, 2, 4)), lambda x: x.reshape(len(x), -1, 2, 4), (X,)),
    "merged": (lambda x: build.reshape(x, (-1,)) * 2, lambda x: x.reshape(-1) * 2, ((N, 3, 5),)),
    "split": (lambda x: build.reshape(x, (-1, 4)) + 1, lambda x: x.reshape(-1, 4) + 1, ((M,),)),
    "broadcast_to": (lambda x: build.broadcast_to(x, (2, N, M)), lambda x: np.stack([x, x]), (X,)),
    "of one row": (lambda x: x[0] + x[1], lambda x: x[0] + x[1], (X, (1, M))),
    "slices": (lambda x: x[:1, M // 8 :: 2], lambda x: x[:1, x.shape[1] // 8 :: 2], (X,)),
    "all of a range": (lambda x: x[:40, :8] + x[-40:, -8:], lambda x: x[:, :8] + x[:, -8:], (X,)),
    "last": (lambda x: x[N - 1, -8:], lambda x: x[-1, -8:], (X,)),
    "reversed": (lambda x: x[::-1, ::-3], lambda x: x[::-1, ::-3], (X,)),
    "concatenate": (lambda x: build.concatenate([x[0], x[1], x[0]], 1),
                    lambda x: np.concatenate([x[0], x[1], x[0]], 1), (X, (N, 3))),
    "pad": (lambda x: build.pad(x, ((1, 2), (0, -3)), 7),
            lambda x: np.pad(x[:, :-3], ((1, 2), (0, 0)), constant_values=7), (X,)),
    "matmul": (lambda x: build.matmul(*x), lambda x: np.matmul(*x), XY),
    "mean": (build.mean, lambda x: x.mean(dtype=np.float64), (X,)),
    "var": (lambda x: build.var(x, 1, correction=1), lambda x: x.var(1, ddof=1), (X,)),
    "numbers": (lambda x: (x * N - M) / (N + 2), lambda x: (x * len(x) - x.shape[1]) / (len(x) + 2), (X,)),
    "softmax": (build.softmax, _softmax, (X,)),
    "cumulative": (lambda x: build.cumulative("+", x, 0, reverse=True), lambda x: x[::-1].cumsum(0)[::-1], (X,)),
    "scan": (_scan, _scanned, (X,)),
    "iota": (lambda x: x + build.iota((N, M), "f32", 0), lambda x: x + np.arange(len(x))[:, None], (X,)),
    "long sum": (lambda x: build.sum(x, 1), lambda x: x.sum(1, dtype=np.float64), ((3, build.size("L", 1, 9000)),)),
}  # fmt: skip
"""A function of a handle, or of a list of them; the same one of arrays; and their shapes."""


@pytest.mark.parametrize("name", CALLS)
def test_kernels_are_right_at_the_ends_and_between(name: str) -> None:
    function, reference, shapes = CALLS[name]
    inputs = [build.input(f"x{k}", "f32", shape) for k, shape in enumerate(shapes)]
    kernel = build.kernel("k", inputs, [function(inputs if len(inputs) > 1 else inputs[0])])
    text = print_notation(kernel)
    assert print_notation(parse_notation(text)[0]) == text
    compiled: Any = pdojo.compile(kernel, threads=1)
    generator = np.random.default_rng(0)
    for n, m, long in ((1, 8, 1), (40, 48, 9000), (7, 24, 2048), (2, 16, 4097)):
        dims = [tuple(long if str(extent) == "L" else at(extent, n, m) for extent in shape) for shape in shapes]
        arrays = [generator.normal(size=shape).astype(np.float32) for shape in dims]
        with np.errstate(invalid="ignore", divide="ignore"):
            right = reference(arrays if len(arrays) > 1 else arrays[0])
        given = {f"x{k}": each for k, each in enumerate(arrays)}
        for found in (interpret(kernel, given)["y"], compiled(*arrays)):
            np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-5)


def test_indices_of_an_axis_of_any_size() -> None:
    x, ids = build.input("x", "f32", (N, 3)), build.input("ids", "i64", (M,))
    kernel = build.kernel("k", [x, ids], [x[ids] * 2])
    rows = np.arange(12, dtype=np.float32).reshape(4, 3)
    places = np.array([3, 0, -1, -4, 2, 2, 1, 0])
    compiled: Any = pdojo.compile(kernel, threads=1)
    for run in (partial(pdojo.run, kernel), compiled):
        assert np.array_equal(run(rows, places), rows[places] * 2)
        with pytest.raises(pdojo.UsageError, match="index 4"):
            run(rows, np.full(8, 4))


def test_the_text_is_what_a_person_writes() -> None:
    x = build.input("x", "f32", (N, 8))
    kernel = build.kernel("mean", [x], {"m": build.mean(x, 0)})
    assert (
        print_notation(kernel)
        == """\
kernel mean(x) -> (m)
size N in 1..40
x f32 [N, 8] heap
m f32 [8] heap

8
| m[{0}] = 0
| N m[{0}] += x[{1},{0}]
8 m[{0}] = m[{0}] / N
"""
    )


def test_functions_of_parts_are_computed_for_the_parts() -> None:
    x = build.input("x", "f32", (N, M))
    text = print_notation(build.kernel("k", [x], [build.exp(x[:1, :8])]))
    assert text.endswith("\n8 y[0,{0}] = exp(x[0,{0}])\n")


A = build.input("a", "f32", (N, M))
REFUSALS: dict[str, tuple[Callable[[], Any], str]] = {
    "two sizes": (lambda: A + build.input("b", "f32", (M, M)), "axis -2 has N and M elements"),
    "size and number": (lambda: A + build.input("b", "f32", (4, 1)), "axis -2 has N and 4 elements"),
    "a slice": (lambda: build.split(A[:4], 2), "whether N <= 4 depends on the size N, from 1 to 40"),
    "a product": (lambda: build.reshape(A, (-1,)), "linear in sizes, not M\\*N"),
    "a number": (lambda: build.topk(A, 3, 0), "'topk': whether .* depends on the size N, from 1 to 40"),
    "a constant": (lambda: build.det(build.input("b", "f32", (N, N))), "'det': whether .* depends on the size N"),
    "an inner axis": (lambda: build.reshape(build.input("b", "f32", (2, N)), (-1,)), "'reshape': a constant extent"),
    "none": (lambda: build.kernel("k", [A], [A[1:]]), "is 0 depends on the size M"),
    "negative": (lambda: build.input("b", "f32", (N - 2,)), "'input': whether N-2 < 0 depends on the size N"),
    "an axis": (lambda: build.sum(A, N), "axis is an integer"),
    "a range": (lambda: build.size("N", 8, 4), "a value that is not less"),
    "multiples": (lambda: build.size("N", 1, 9, multiple=4), "multiples of 4"),
    "a name": (lambda: build.size("1", 1, 9), "is no name"),
    "two ranges": (lambda: A + build.input("b", "f32", (build.size("N", 1, 41), 1)), "axis -2"),
    "an array": (lambda: build.kernel("k", [b := build.input("N", "f32", (N,))], [b + 1]), "'N' is a size and an"),
    "a zero": (lambda: N // 0, "divisors are positive integers"),
    "a float": (lambda: build.broadcast_to(A, (N * cast("int", 0.5), M)), "integers, not with 0.5"),
}  # fmt: skip
"""Calls, and the words of their errors."""


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals(name: str) -> None:
    call, words = REFUSALS[name]
    with pytest.raises(UsageError, match=words):
        call()


def test_two_sizes_of_one_name() -> None:
    x, y = (build.input(f"x{k}", "f32", (build.size("S", 1, k),)) for k in (4, 5))
    with pytest.raises(UsageError, match="two sizes 'S' with different ranges"):
        build.kernel("k", [x, y], [x + 1, y + 1])


def test_a_size_that_no_shape_gives() -> None:
    x = build.input("x", "f32", (3,))
    kernel: Any = pdojo.compile(build.kernel("k", [x], [x / N]), threads=1)
    given = np.ones(3, np.float32)
    assert np.array_equal(kernel(given, N=4), given / 4)

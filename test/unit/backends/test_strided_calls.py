"""Calls with strided arrays: what is read and written in place, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import pdojo
from pdojo import build
from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.llvm.executable import compile
from pdojo.backends.measure.arrays import ArraySet, random_inputs
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.build import nest_of
from pdojo.errors import UsageError

TWICE = """\
kernel twice(x) -> (y)
size N in 1..64
x f32 [N, 12] heap strided
y f32 [N, 12] heap strided

N 12 y[{0},{1}] = x[{0},{1}] * 2
"""
FIXED = """\
kernel fixed(x) -> (y)
x i32 [3, 2, 4] heap strided ?, 0
y i32 [3, 2, 4] heap strided 20, 6

3 2 4 y[{0},{1},{2}] = x[{0},{1},{2}] + 1
"""
VERSIONS = """\
kernel few(x) -> (y)
size N in 1..8
x f32 [N, 4] heap strided
y f32 [N] heap

N y[{0}] = x[{0},3]

kernel many(x) -> (y)
size N in 1..64
x f32 [N, 4] heap strided
y f32 [N] heap

N y[{0}] = x[{0},3]

versions last = few, many
"""


def kernel(text: str) -> KernelOp:
    (found,) = parse_notation(text)
    return found


def numbers(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def test_views_are_read_and_written_in_place() -> None:
    twice, whole, x = compile(kernel(TWICE)), np.full((2, 9, 40), 7, np.float32), numbers(9, 50)[:, 3:15]
    y = whole[1, :, 8:20]
    assert twice(x, y) is y
    np.testing.assert_array_equal(y, x * 2)
    assert (np.delete(whole[1], range(8, 20), 1) == 7).all()
    assert (whole[0] == 7).all()
    twice.bind(y, np.ascontiguousarray(x))()
    np.testing.assert_array_equal(twice(x), y)
    assert twice(x).flags.c_contiguous


def test_views_of_one_array_are_in_and_output() -> None:
    whole = numbers(9, 40)
    before = whole.copy()
    compile(kernel(TWICE))(whole[:, :12], whole[:, 12:24])
    np.testing.assert_array_equal(whole[:, 12:24], before[:, :12] * 2)
    np.testing.assert_array_equal(np.delete(whole, range(12, 24), 1), np.delete(before, range(12, 24), 1))
    with pytest.raises(UsageError, match="arrays 'x' and 'y' overlap in memory"):
        compile(kernel(TWICE))(whole[:, :12], whole[:, 11:23])


def test_inputs_may_overlap() -> None:
    windows = np.lib.stride_tricks.sliding_window_view(numbers(75), 12)
    np.testing.assert_array_equal(compile(kernel(TWICE))(windows), windows * 2)
    one = np.broadcast_to(numbers(12), (9, 12))
    np.testing.assert_array_equal(compile(kernel(TWICE))(one), one * 2)
    with pytest.raises(UsageError, match="'y' has elements that overlap, but the kernel writes it"):
        compile(kernel(TWICE))(numbers(64, 12), np.lib.stride_tricks.as_strided(numbers(75), (64, 12), (4, 4)))
    row, made = numbers(1, 12), np.zeros(12, np.float32)
    compile(kernel(TWICE))(row, np.lib.stride_tricks.as_strided(made, (1, 12), (0, 4)))
    np.testing.assert_array_equal(made, row[0] * 2)


def test_arrays_that_do_not_fit() -> None:
    twice, x = compile(kernel(TWICE)), numbers(12, 12)
    with pytest.raises(UsageError, match="'x' is not contiguous along its last dimension; pass a copy"):
        twice(x.T)
    with pytest.raises(UsageError, match="'x' has negative strides; pass a copy"):
        twice(x[::-1])
    odd = np.lib.stride_tricks.as_strided(x, (3, 12), (50, 4))
    with pytest.raises(UsageError, match="'x' has elements at distances that are no multiples of an element"):
        twice(odd)
    broadcast = np.broadcast_to(np.zeros((3, 1, 4), np.int32), (3, 2, 4))
    with pytest.raises(UsageError, match="'y' has a stride of 8 elements, where the kernel takes 20"):
        compile(kernel(FIXED))(broadcast, np.zeros((3, 2, 4), np.int32))


def test_strides_of_the_declaration() -> None:
    fixed = compile(kernel(FIXED))
    x = np.broadcast_to(np.arange(12, dtype=np.int32).reshape(3, 1, 4), (3, 2, 4))
    y = fixed(x)
    np.testing.assert_array_equal(y, x + 1)
    assert y.strides == (80, 24, 4)
    np.testing.assert_array_equal(fixed(**fixed.random_inputs())[:, 0], fixed.random_inputs()["x"][:, 0] + 1)


def test_measured_arrays_have_guarded_gaps() -> None:
    found = kernel(FIXED)
    parameters = parameters_of(nest_of(found))
    arrays = ArraySet(parameters, random_inputs(parameters, 0))
    compile(found).bind(*arrays.arrays)()
    assert arrays.damage() is None
    y = arrays.arrays[1]
    np.lib.stride_tricks.as_strided(y[0, 0], (6,), (4,))[4] = 1
    assert arrays.damage() == "memory between elements of array 'y' was written"


def test_versions_take_strides() -> None:
    last = pdojo.compile(VERSIONS)
    for rows in (3, 50):
        x = numbers(rows, 11)[:, 2:6]
        np.testing.assert_array_equal(last(x), x[:, 3])


def test_tensors_are_read_in_place() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x = torch.arange(120, dtype=torch.bfloat16).reshape(6, 20).split(12, 1)[0]
    twice = compile(kernel(TWICE.replace("f32", "bf16")))
    y = torch.zeros(6, 30, dtype=torch.bfloat16)
    twice(x, y[:, 5:17])
    assert torch.equal(y[:, 5:17], x * 2)
    assert not y[:, :5].any()
    assert not y[:, 17:].any()


def test_inputs_of_built_kernels() -> None:
    n = build.size("N", 1, 64)
    x = build.input("x", "f32", (n, 8), strided=True)
    w = build.input("w", "f32", (3, 4, 8), strided=(None, 16))
    built = build.kernel("sums", [x, w], [x + 1, build.sum(w, 0)])
    program = compile(built)
    a, b = numbers(7, 20)[:, 3:11], numbers(3, 9, 16)[:, 2:6, :8]
    found = program(a, b)
    np.testing.assert_allclose(found[0], a + 1, rtol=1e-6)
    np.testing.assert_allclose(found[1], b.sum(0), rtol=1e-5, atol=1e-6)
    for given, message in [
        ({"strided": (8, 1)}, "strided input 'x': an array of 2 dimensions has 1 strides"),
        ({"strided": True, "const": True}, "strided input 'x': it is constant, which must be dense"),
        ({"strided": (-1,)}, "strided input 'x': a stride is at least 0"),
    ]:
        with pytest.raises(UsageError, match=message):
            build.input("x", "f32", (4, 8), **given)  # pyright: ignore[reportArgumentType]

"""Functions of a generated library: results, error codes, sizes that were never tuned, threads."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import pdojo
from differential.compiled import random_inputs
from loaded_library import Loaded, build_unproved, placed, poisoned, require_compiler, small_spec
from pdojo.backends.calling.arrays import parameters_of
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.view.build import nest_of

CODES = ("OK", "NULL", "SIZES", "ALIGNMENT", "OVERLAP", "BUSY", "MEMORY", "THREADS", "LEVEL", "ARGUMENT", "INDICES")
CODE = {name: number for number, name in enumerate(CODES)}


def random(seed: int, *shape: int) -> NDArray[np.float32]:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def softmax(x: NDArray[np.float32]) -> NDArray[Any]:
    return interpret(pdojo.load(f"softmax:{x.shape[0]}x{x.shape[1]}"), {"x": x})["y"]


@pytest.mark.parametrize("offset", [0, 4])
@pytest.mark.parametrize("sizes", [(6, 16)])
def test_exact_sizes(small: Loaded, handle: object, sizes: tuple[int, int], offset: int) -> None:
    x, y = placed(random(1, *sizes), offset), poisoned(sizes, offset)
    assert small.call("softmax_f32", handle, sizes, [x, y]) == 0
    np.testing.assert_allclose(y, softmax(x), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("sizes", [(6, 10, 8), (3, 5, 7), (3, 5, 6), (2, 9, 9)])
def test_tuned_and_plain_products(small: Loaded, handle: object, sizes: tuple[int, int, int]) -> None:
    m, k, n = sizes
    a, b, c = placed(random(2, m, k)), placed(random(3, k, n)), poisoned((m, n))
    assert small.call("matmul_f32", handle, sizes, [a, b, c]) == 0
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("offset", [0, 4])
@pytest.mark.parametrize("rows", [1, 3, 4, 9, 2000])
def test_any_number_of_rows(small: Loaded, rows: int, offset: int, threads: int) -> None:
    """No size of these was in the specification; 2000 rows are enough for all threads."""
    made = small.create(threads)
    x, y = placed(random(rows, rows, 16), offset), poisoned((rows + 1, 16), offset)
    assert small.call("softmax_f32", made, (rows, 16), [x, y]) == 0
    np.testing.assert_allclose(y[:rows], softmax(x), rtol=1e-5, atol=1e-7)
    assert np.isnan(y[rows]).all()
    small.function("destroy")(made)


def test_threads_leave_the_processor_of_the_caller(small: Loaded) -> None:
    """The results are right, and the threads may run on all processors of the process afterwards, also on one."""
    everywhere = os.sched_getaffinity(0)
    before = set(os.listdir("/proc/self/task"))
    made = small.create(2)
    (worker,) = {int(task) for task in set(os.listdir("/proc/self/task")) - before}
    try:
        for processors in ({min(everywhere)}, everywhere):
            for thread in (0, worker):
                os.sched_setaffinity(thread, {min(everywhere)})  # both are on this processor now
                os.sched_setaffinity(thread, processors)
            for rows in (2000, 2001):
                x, y = placed(random(rows, rows, 16)), poisoned((rows, 16))
                assert small.call("softmax_f32", made, (rows, 16), [x, y]) == 0
                np.testing.assert_allclose(y, softmax(x), rtol=1e-5, atol=1e-7)
            assert os.sched_getaffinity(worker) == processors
    finally:
        os.sched_setaffinity(0, everywhere)
    small.function("destroy")(made)


def test_no_rows(small: Loaded, handle: object) -> None:
    x, y = placed(random(1, 1, 16)), poisoned((1, 16))
    assert small.call("softmax_f32", handle, (0, 16), [x, y]) == 0
    assert np.isnan(y).all()


@pytest.mark.parametrize("sizes", [(6, 17), (-1, 16), (1 << 62, 16)])
def test_unknown_sizes(small: Loaded, handle: object, sizes: tuple[int, int]) -> None:
    x, y = placed(random(1, 6, 17)), poisoned((6, 17))
    assert small.call("softmax_f32", handle, sizes, [x, y]) == CODE["SIZES"]
    assert np.isnan(y).all()


def test_unknown_sizes_of_an_operator_without_rows(small: Loaded, handle: object) -> None:
    a = placed(random(1, 8, 8))
    assert small.call("matmul_f32", handle, (8, 8, 8), [a, a, poisoned((8, 8))]) == CODE["SIZES"]


@pytest.mark.parametrize("sizes", [(6, 16), (9, 16)])
def test_refused_arrays(small: Loaded, handle: object, sizes: tuple[int, int]) -> None:
    """Constant sizes, and sizes of a range."""
    x, y, odd = placed(random(1, *sizes)), poisoned(sizes), poisoned(sizes, 2)
    both = placed(random(1, 2 * sizes[0], sizes[1]))
    cases = {
        "NULL": [[None, y], [x, None]],
        "ALIGNMENT": [[x, odd], [odd, y]],
        "OVERLAP": [[x, x], [both[: sizes[0]], both[sizes[0] - 1 : 2 * sizes[0] - 1]]],
    }
    for name, rows in cases.items():
        for arrays in rows:
            assert small.call("softmax_f32", handle, sizes, arrays) == CODE[name], name
    assert np.isnan(y).all()
    assert small.call("softmax_f32", handle, sizes, [both[: sizes[0]], both[sizes[0] :]]) == 0
    assert small.call("softmax_f32", None, sizes, [x, y]) == CODE["NULL"]


def test_inputs_may_overlap(small: Loaded, handle: object) -> None:
    both, c = placed(random(1, 80)), poisoned((6, 8))
    assert small.call("matmul_f32", handle, (6, 10, 8), [both, both, c]) == 0
    a, b = both[:60].reshape(6, 10), both.reshape(10, 8)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["bf16", "f16", "f64"])
def test_element_types(dtype: str, tmp_path: Path) -> None:
    """Types of 16 bits are passed as their bits."""
    require_compiler()
    row = {"kernel": "relu", "plain": ["4x8"], "dtypes": [dtype]}
    build_unproved(small_spec(operators=[row], levels=["host"]), tmp_path / "dist")
    library = Loaded.of(tmp_path / "dist")
    kernel = pdojo.load("relu:4x8", dtype=dtype)
    (x,) = random_inputs(parameters_of(nest_of(kernel)), 1).values()
    given, y = placed(x), placed(np.full_like(x, 7))
    made = library.create()
    assert library.call(f"relu_{dtype}", made, (4, 8), [given, y]) == 0
    assert y.tobytes() == interpret(kernel, {"x": x})["y"].tobytes()
    library.function("destroy")(made)
    kind = {"f64": "double"}.get(dtype, "uint16_t")
    header = (tmp_path / "dist" / "include" / "small.h").read_text()
    assert f"int64_t R, int64_t C, const {kind} *x, {kind} *y);" in header


def test_levels(small: Loaded) -> None:
    """Every level that this processor runs gives right results."""
    lines = [path.stem for path in sorted((small.folder / "machines").iterdir())]
    x, ran = placed(random(5, 6, 16)), 0
    for level in lines:
        made = ctypes.c_void_p()
        code = small.function("create_level")(ctypes.byref(made), 1, level.encode())
        assert code in (0, CODE["LEVEL"])
        if code == 0:
            assert small.function("level")(made) == level.encode()
            y = poisoned((6, 16))
            assert small.call("softmax_f32", made, (6, 16), [x, y]) == 0
            np.testing.assert_allclose(y, softmax(x), rtol=1e-5, atol=1e-7)
            small.function("destroy")(made)
            ran += 1
    assert ran


def test_handles_that_cannot_be_made(small: Loaded) -> None:
    made = ctypes.c_void_p(1)
    assert small.function("create")(ctypes.byref(made), -1) == CODE["ARGUMENT"]
    assert made.value is None
    assert small.function("create")(None, 1) == CODE["NULL"]
    assert small.function("create_level")(ctypes.byref(made), 1, b"x86-64-avx1") == CODE["LEVEL"]
    small.function("destroy")(None)


def test_messages_and_version(small: Loaded) -> None:
    texts = [small.function("message")(code) for code in range(len(CODES))]
    assert len(set(texts)) == len(CODES)
    assert b"unknown" not in b"".join(texts)
    assert small.function("message")(99) == b"unknown code"
    assert small.function("version")() == b"2.1.0"
    header = (small.folder / "include" / "small.h").read_text()
    assert [f"SMALL_{name} = {number} " in header for name, number in CODE.items()] == [True] * len(CODES)


def test_busy(small: Loaded, handle: object) -> None:
    """A call on a handle that is in a call of another thread is refused and writes nothing."""
    long, short = placed(random(7, 400_000, 16)), placed(random(8, 6, 16))
    codes, ends = set[int](), threading.Event()

    def work() -> None:
        y = poisoned(long.shape)
        while not ends.is_set():
            codes.add(small.call("softmax_f32", handle, long.shape, [long, y]))

    thread = threading.Thread(target=work)
    thread.start()
    found: set[int] = set()
    deadline = time.monotonic() + 60
    while CODE["BUSY"] not in found and time.monotonic() < deadline:
        y = poisoned(short.shape)
        code = small.call("softmax_f32", handle, short.shape, [short, y])
        found.add(code)
        if code == 0:
            np.testing.assert_allclose(y, softmax(short), rtol=1e-5, atol=1e-7)
        else:
            assert np.isnan(y).all()
    ends.set()
    thread.join()
    assert CODE["BUSY"] in found
    assert codes | found <= {0, CODE["BUSY"]}


def test_many_handles_at_once(small: Loaded) -> None:
    x, wrong = placed(random(8, 2000, 16)), list[int]()
    expected = softmax(x)

    def work() -> None:
        made = small.create(3)
        for _ in range(50):
            y = poisoned((2000, 16))
            if small.call("softmax_f32", made, (2000, 16), [x, y]) or not np.allclose(y, expected, rtol=1e-5):
                wrong.append(1)
        small.function("destroy")(made)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong

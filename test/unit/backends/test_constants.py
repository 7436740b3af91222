"""Kernels with constants as callables: what binding computes, what it holds, what it refuses."""

from __future__ import annotations

import json
from threading import Thread
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import pdojo
from pdojo import build
from pdojo.backends.common.binding import binding_note, split_kernel
from pdojo.backends.llvm.executable import Executable, assemble, load
from pdojo.backends.llvm.objects import ObjectCode
from pdojo.backends.llvm.worker import CpuWorker
from pdojo.backends.measure import MeasuredProgram, Ok, Options, Request
from pdojo.dialect.machines.registry import host, machine
from pdojo.dialect.notation import parse_notation, print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.build import nest_of
from pdojo.errors import UsageError
from pdojo.passes.cpu.cost_model import estimate

SCALED = """
kernel scaled(x, w, v) -> (y, c)
x f32 [8] heap
w f32 [8] heap const
v f32 [8] heap const
y f32 [8] heap
c f32 [8] heap
p f32 [8] heap const
q f32 [8] heap const

8 q[{0}] = w[{0}] * 2
8 c[{0}] = x[{0}] + v[{0}]
8 p[{0}] = q[{0}] * v[{0}]
8 y[{0}] = x[{0}] * p[{0}]
"""
IDLE = """
kernel idle(w, c) -> (c)
w f32 [4] heap const
c f32 [4] heap
p f32 [4] heap const

4 p[{0}] = w[{0}]
"""
SUMS = """
kernel sums(x, w) -> (y)
x f32 [4] heap
w f32 [4, 4000] heap const
y f32 [4] heap
p f32 [4] heap const

4 p[{0}] = 0
4 4000 p[{0}] += w[{0},{1}]
4 y[{0}] = x[{0}] * p[{0}]
"""
SIZED = """
kernel scaled(x, w, v, at) -> (y)
size N in 1..16
size L in 2..9
x f32 [N, 8] heap
w f32 [8] heap const
v f32 [L, 8] heap const
at i64 [8] heap const in 0..L-1
y f32 [N, 8] heap
p f32 [8] heap const

8 p[{0}] = w[{0}] * 2
N 8 y[{0},{1}] = x[{0},{1}] * p[{1}]
N 8 y[{0},{1}] += v[at[{1}],{1}]
"""
X, W, V = (np.arange(8, dtype=np.float32) + n for n in (1, 3, 5))


def kernel(text: str = SCALED) -> KernelOp:
    (found,) = parse_notation(text)
    return found


def compiled(text: str = SCALED, **options: Any) -> Executable:
    found = pdojo.compile(kernel(text), **options)
    assert isinstance(found, Executable)
    return found


def is_right(results: tuple[NDArray[Any], NDArray[Any]], x: NDArray[Any]) -> bool:
    y, c = results
    return np.array_equal(y, x * 2 * W * V) and np.array_equal(c, x + V)


def test_unbound_calls_compute_constants() -> None:
    run = compiled()
    assert is_right(run(X, W, V), X)
    y, _ = run(X, W + 1, V)
    assert np.array_equal(y, X * 2 * (W + 1) * V)


def test_bound_calls_keep_constants() -> None:
    weights, factors = W.copy(), V.copy()
    bound = compiled().bind_constants(w=weights, v=factors)
    assert is_right(bound(X), X)
    # Only the binding part reads `w`, and calls read a copy of `v`.
    weights[:] = 0
    factors[:] = 0
    assert is_right(bound(x=X + 1), X + 1)
    assert sorted(bound.held) == ["p", "v"]
    assert [p.name for p in bound.parameters] == ["x", "y", "c"]
    assert "scaled" in repr(bound)


def test_bind_computes_constants_once() -> None:
    weights, y, c = W.copy(), np.empty_like(X), np.empty_like(X)
    run = compiled().bind(X, weights, V, y, c)
    weights[:] = 0
    run()
    assert is_right((y, c), X)
    again = compiled().bind_constants(w=W, v=V).bind(X, y=y, c=c)
    y[:] = 0
    again()
    assert is_right((y, c), X)


def test_constant_inputs_without_constant_temporaries() -> None:
    text = "kernel f(x, w) -> (y)\nx f32 [8] heap\nw f32 [8] heap const\ny f32 [8] heap\n\n"
    run = compiled(f"{text}8 y[{{0}}] = x[{{0}}] * w[{{0}}]\n")
    bound = run.bind_constants(w=W)
    assert np.array_equal(bound(X), X * W)


def test_refusals() -> None:
    run = compiled()
    with pytest.raises(UsageError, match="needs v"):
        run.bind_constants(w=W)
    with pytest.raises(UsageError, match="no array 'x'"):
        run.bind_constants(w=W, v=V, x=X)
    bound = run.bind_constants(w=W, v=V)
    with pytest.raises(UsageError, match="no array 'w'"):
        bound(X, w=W)
    memory = V.copy()
    with pytest.raises(UsageError, match="'v' and 'y' overlap"):
        run(X, W, memory, y=memory)
    with pytest.raises(UsageError, match="no constant arrays"):
        pdojo.compile("relu:2x4").bind_constants()


def test_constants_without_inputs() -> None:
    text = "kernel f(x) -> (y)\nx f32 [8] heap\ny f32 [8] heap\np f32 [8] heap const\n\n"
    run = compiled(f"{text}8 p[{{0}}] = {{0}}\n8 y[{{0}}] = x[{{0}}] + p[{{0}}]\n")
    assert np.array_equal(run.bind_constants()(X), X + np.arange(8))


def test_threads_share_a_bound_kernel() -> None:
    bound = compiled().bind_constants(w=W, v=V)
    wrong: list[int] = []

    def use(n: int) -> None:
        wrong.extend(n for _ in range(200) if not is_right(bound(X + n), X + n))

    threads = [Thread(target=use, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_object_code() -> None:
    code = ObjectCode.from_json(assemble(kernel(), host()).to_json())
    loaded = load(kernel(), code, 1)
    assert is_right(loaded(X, W, V), X)
    assert is_right(loaded.bind_constants(w=W, v=V)(X), X)


def test_sizes_and_indices_are_those_of_calls() -> None:
    x, v, at = np.arange(40, dtype=np.float32).reshape(5, 8), np.stack([V, W, X]), np.array([0, 1, 2, 0, 1, 2, 2, 2])
    wanted = x * 2 * W + v[at, np.arange(8)]
    code = ObjectCode.from_json(json.loads(json.dumps(assemble(kernel(SIZED), host()).to_json())))
    for run in (compiled(SIZED), load(kernel(SIZED), code, 1)):
        assert np.array_equal(run(x, W, v, at), wanted)
        bound, y = run.bind_constants(w=W, v=v, at=at), np.empty_like(x)
        bound.bind(x, y)()
        for rows in (5, 1, 3):
            assert np.array_equal(bound(x[:rows]), wanted[:rows])
        run.run([x, v, at, y, W * 3])
        assert np.array_equal(y, wanted + x * W)
        for name, call in (
            ("has its size L by its constants", lambda bound=bound: bound(x, L=3)),
            ("the size N is 1 to 16, not 0", lambda bound=bound: bound(x[:0])),
            ("the size L is 2 to 9, not 1", lambda run=run: run.bind_constants(w=W, v=v[:1], at=at)),
            ("'at' has the index 3", lambda run=run: run.bind_constants(w=W, v=v, at=at + 1)),
        ):
            with pytest.raises(UsageError, match=name):
                call()


@pytest.mark.parametrize("text", [SCALED, SIZED])
def test_parts_are_ordinary_kernels(text: str) -> None:
    parts = split_kernel(nest_of(kernel(text)))
    assert parts is not None
    for part in (parts.binding, parts.calling):
        part.verify()
        text = print_notation(part)
        assert print_notation(parse_notation(text)[0]) == text
        assert split_kernel(nest_of(part)) is None
    assert "size" not in print_notation(parts.binding)
    assert split_kernel(nest_of(kernel(SCALED.replace(" const", "")))) is None


def test_calls_with_nothing_to_do_bind_nothing() -> None:
    """`bind_array` is legal where no statement writes an output."""
    assert split_kernel(nest_of(kernel(IDLE))) is None
    c = np.ones(4, np.float32)
    compiled(IDLE).bind_constants(w=W[:4])(c)
    assert (c == 1).all()


def test_reports_say_what_is_timed() -> None:
    nest = nest_of(kernel())
    assert binding_note(nest, host()) == "the times are those of calls after binding, which computes 'p', 'q' once"
    assert "every call computes the constants 'p', 'q'" in binding_note(nest, machine("snitch"))
    assert not binding_note(nest_of(kernel(SCALED.replace(" const", ""))), host())


def test_measured_calls_are_bound() -> None:
    """Most of the work is that of the constants; the worker is right about the rest, and the model leaves it out."""
    with CpuWorker() as worker:
        outcome = worker.measure(Request(MeasuredProgram(SUMS), Options(samples=3)))
    assert isinstance(outcome, Ok)
    bound, whole = (estimate(nest_of(kernel(text)), host()) for text in (SUMS, SUMS.replace(" const", "")))
    assert bound is not None
    assert whole is not None
    assert bound.cycles * 10 < whole.cycles


@pytest.mark.parametrize(("rows", "dtype"), [(6, "f32"), (1, "f32"), (6, "bf16")])
def test_the_pass_packs_constants_at_binding(rows: int, dtype: str) -> None:
    x = build.input("x", dtype, (rows, 64))
    w = build.input("w", dtype, (64, 80), const=True)
    plain = build.kernel("linear", [x, w], [build.matmul(x, w)])
    tuned = pdojo.tune(plain, "x86-64-avx2", measure=False)
    text = print_notation(tuned.kernel)
    assert any(step.move.name == "bind_array" for step in tuned.trace.steps), text
    parts = split_kernel(nest_of(tuned.kernel))
    assert parts is not None
    assert not any(b.names[0] == "w" for b in nest_of(parts.calling).buffers), text
    assert tuned.is_verified

"""The softmax trace made by hand: it replays, and every state on the way keeps the meaning."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import pdojo.kernels
from pdojo.backends.llvm.executable import compile as compile_kernel
from pdojo.dialect.assumptions import with_alignment
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.semantics.oracle import equivalent, meaning
from pdojo.kernels import workload
from pdojo.transforms.game import Game
from pdojo.transforms.trace import Trace

FOLDER = Path(pdojo.kernels.__file__).parent
TRACE = FOLDER / "traces" / "softmax-x86-64-avx512.trace"


def softmax(rows: int, columns: int) -> KernelOp:
    """The library's softmax with aligned arrays of another size."""
    return with_alignment(workload(f"softmax:{rows}x{columns}").instantiate(), 64)


def test_every_state_keeps_the_meaning() -> None:
    """Exact arithmetic on three rows of two blocks, under adversarial schedules, after each move."""
    game = Game(softmax(3, 128), machine("x86-64-avx512"))
    expected = meaning(game.program.nest, 7)
    for step in Trace.load(TRACE).steps:
        game.apply(step.move)
        difference = equivalent(expected, game.program.nest, schedules=2, seed=7)
        assert difference is None, f"{step.move}: {difference}"


def test_surface_and_identifiers_name_the_same_moves() -> None:
    """Replaying by identifier gives the same program as replaying what people read."""
    by_surface, by_id = (Game(softmax(24576, 512), machine("x86-64-avx512")) for _ in range(2))
    trace = Trace.load(TRACE)
    by_surface.apply_all(trace.moves)
    assert by_id.replay(trace.steps) == []
    assert [s.resolved for s in by_surface.trace.steps] == [s.resolved for s in by_id.trace.steps]
    assert str(by_surface.kernel) == str(by_id.kernel)


def test_compiled_against_the_interpreter() -> None:
    """The machine code of the final state computes softmax."""
    plain = softmax(37, 256)
    game = Game(plain, machine("host"))
    game.replay(Trace.load(TRACE).steps)
    x = np.random.default_rng(11).standard_normal((37, 256), dtype=np.float32)
    result = compile_kernel(game.kernel, threads=2)(x=aligned_copy(x))
    np.testing.assert_allclose(result, interpret(plain, {"x": x})["y"], rtol=2e-6, atol=1e-8)


def aligned_copy(array: np.ndarray) -> np.ndarray:
    """A copy that starts at a multiple of 64 bytes."""
    memory = np.empty(array.nbytes + 64, np.uint8)
    start = -memory.ctypes.data % 64
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy

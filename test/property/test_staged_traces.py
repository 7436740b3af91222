"""Traces that work on copies: a packed matrix product, a convolution by gathered windows, a row in registers.

Every state on the way is valid and keeps the meaning, at small sizes that the blocks divide and do not divide; all
moves are taken back to the letter; the code of the last state computes what NumPy computes in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray

import pdojo.kernels
from pdojo.backends.llvm.executable import compile as compile_kernel
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation, plain_mlir
from pdojo.dialect.ops import KernelOp, ScopeOp, StatementOp
from pdojo.dialect.rules.validate import validate
from pdojo.dialect.semantics.oracle import check_valid, equivalent, meaning
from pdojo.kernels import workload
from pdojo.transforms.apply import apply
from pdojo.transforms.game import Game
from pdojo.transforms.trace import Trace
from qa.inverses import lost_on_the_way_back

KERNELS = Path(pdojo.kernels.__file__).parent
TRACES = KERNELS / "traces"

Sizes: TypeAlias = tuple[int, ...]
Arrays: TypeAlias = dict[str, NDArray[Any]]


def matmul(sizes: Sizes) -> KernelOp:
    """The product of an M by K and a K by N matrix."""
    rows, columns, depth = sizes
    return parse_notation(
        f"""kernel matmul(a, b) -> (c)
a f32 [{rows}, {depth}] heap
b f32 [{depth}, {columns}] heap
c f32 [{rows}, {columns}] heap
t f32 [{rows}:N, {columns}:N, {depth}:N] stack

{rows} {columns}
| c[{{0}},{{1}}] = 0
| {depth}
| | t[{{0}},{{1}},{{2}}] = a[{{0}},{{2}}] * b[{{2}},{{1}}]
| | c[{{0}},{{1}}] += t[{{0}},{{1}},{{2}}]
"""
    )[0]


def conv(sizes: Sizes) -> KernelOp:
    """The kernel of the trace for other numbers of images, pixels in each direction, channels in and out."""
    images, pixels, channels, out = sizes
    text = (TRACES / "conv.pdojo").read_text()
    for old, new in (
        ("58, 58, 64", f"{pixels + 2}, {pixels + 2}, {channels}"),
        ("64, 72]", f"{channels}, {out}]"),
        ("56, 56, 72", f"{pixels}, {pixels}, {out}"),
        ("56:N, 56:N, 72:N, 3:N, 3:N, 64:N", f"{pixels}:N, {pixels}:N, {out}:N, 3:N, 3:N, {channels}:N"),
        ("8 56 56 72", f"{images} {pixels} {pixels} {out}"),
        ("3 3 64", f"3 3 {channels}"),
        ("[8,", f"[{images},"),
        ("[8:N", f"[{images}:N"),
    ):
        assert old in text
        text = text.replace(old, new)
    return parse_notation(text)[0]


def layernorm(sizes: Sizes) -> KernelOp:
    """The kernel of the trace for other numbers of rows and columns."""
    rows, columns = sizes
    text = (TRACES / "layernorm.pdojo").read_text()
    return parse_notation(text.replace("16384", str(rows)).replace("300", str(columns)))[0]


def product(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """The matrix product."""
    return a @ b


def convolved(x: NDArray[Any], w: NDArray[Any]) -> NDArray[Any]:
    """The convolution of 3 by 3, channels last."""
    height, width = x.shape[1] - 2, x.shape[2] - 2
    total = np.zeros((x.shape[0], height, width, w.shape[3]))
    for r in range(3):
        for s in range(3):
            total += x[:, r : r + height, s : s + width] @ w[r, s]
    return total


def normalised(x: NDArray[Any], g: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """Rows of mean 0 and variance 1, scaled and shifted."""
    difference = x - x.mean(axis=1, keepdims=True)
    return difference / np.sqrt((difference**2).mean(axis=1, keepdims=True) + 1e-5) * g + b


@dataclass(frozen=True)
class Case:
    """A trace, the kernel that it is for at any sizes, what that means, and sizes to try."""

    trace: str
    kernel: Callable[[Sizes], KernelOp]
    reference: Callable[..., NDArray[Any]]
    small: tuple[Sizes, ...]
    """For the exact oracle."""
    large: tuple[Sizes, ...]
    """For the compiled code."""


CASES = {
    "matmul": Case(
        "matmul-x86-64-avx512.trace",
        matmul,
        product,
        ((24, 64, 2), (14, 36, 3)),
        ((300, 508, 7), (192, 256, 128), (301, 509, 70)),
    ),
    "conv": Case(
        "conv-x86-64-avx512.trace",
        conv,
        convolved,
        ((2, 4, 2, 33),),
        ((2, 28, 16, 64), (3, 15, 5, 40)),
    ),
    "layernorm": Case(
        "layernorm-x86-64-avx512.trace",
        layernorm,
        normalised,
        ((3, 70), (2, 64)),
        ((37, 300), (64, 256)),
    ),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


def fingerprint(kernel: KernelOp) -> tuple[str, list[str]]:
    ids = [op.id.data for op in kernel.walk() if isinstance(op, ScopeOp | StatementOp) and op.id is not None]
    return plain_mlir(kernel), ids


def replayed(case: Case, sizes: Sizes) -> Game:
    trace = Trace.load(TRACES / case.trace)
    game = Game(case.kernel(sizes), machine(trace.machine))
    assert game.replay(trace.steps) == []
    return game


def test_every_state_keeps_the_meaning(case: Case) -> None:
    """Exact arithmetic after each move; the rules of validity after some moves and at the end."""
    trace = Trace.load(TRACES / case.trace)
    for sizes in case.small:
        game = Game(case.kernel(sizes), machine(trace.machine))
        expected = meaning(game.program.nest, 7)
        for number, step in enumerate(trace.steps, start=1):
            game.apply(step.resolved)
            difference = equivalent(expected, game.program.nest, schedules=2, seed=7)
            assert difference is None, f"{sizes}, {step.move}: {difference}"
            if number % 5 == 0 or number == len(trace.steps):
                assert check_valid(game.program.nest, schedules=1) is None, f"{sizes}, {step.move}"
        validate(game.program)


def test_every_inverse_leads_back(case: Case) -> None:
    for sizes in (case.small[0], case.large[0]):
        program, *others = replayed(case, sizes).programs
        for after, step in zip(others, Trace.load(TRACES / case.trace).steps, strict=True):
            made = apply(program, step.resolved)
            assert lost_on_the_way_back(program, made.program, made.inverse) is None
            program = after


def test_the_full_size(case: Case) -> None:
    """What people read and the identifiers name the same moves, for the kernel that the trace is for."""
    trace = Trace.load(TRACES / case.trace)
    path = TRACES / f"{trace.kernel}.pdojo"
    kernel = parse_notation(path.read_text())[0] if path.exists() else workload(trace.kernel).instantiate()
    by_surface, by_id = (Game(kernel, machine(trace.machine)) for _ in range(2))
    by_surface.apply_all(trace.moves)
    assert by_id.replay(trace.steps) == []
    assert fingerprint(by_surface.kernel) == fingerprint(by_id.kernel)


def test_compiled_against_numpy(case: Case) -> None:
    """The machine code computes what NumPy does with float64."""
    for sizes in case.large:
        executable = compile_kernel(replayed(case, sizes).kernel, threads=2)
        random = np.random.default_rng(sum(sizes))
        *inputs, output = executable.parameters
        arrays = {p.name: random.standard_normal(p.shape, dtype=np.float32) for p in inputs}
        result = np.full(output.shape, np.nan, np.float32)
        executable(**arrays, **{output.name: result})
        wanted = case.reference(**{name: a.astype(np.float64) for name, a in arrays.items()})
        np.testing.assert_allclose(result, wanted, rtol=0, atol=4e-6 * np.abs(wanted).max(), err_msg=str(sizes))

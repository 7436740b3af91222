"""Traces made by hand: copies on a CPU, threads of a graphics processor, streams of a Snitch core, tails.

Every state on the way is valid and keeps the meaning, at small sizes that the blocks divide and do not divide; moves
are taken back to the letter; what people read and the identifiers name the same moves; code computes what NumPy does.
Under the schedules of the oracle, threads interleave at random and streams run as far ahead, or behind, as they may.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray

import pdojo.kernels
from pdojo.backends.calling.arrays import aligned_empty
from pdojo.backends.llvm.executable import compile as compile_kernel
from pdojo.dialect.assumptions import with_alignment
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.rules.conditions import conditions_of
from pdojo.dialect.rules.validate import validate
from pdojo.dialect.semantics.oracle import check_valid, equivalent, meaning
from pdojo.kernels import workload
from pdojo.transforms.apply import apply
from pdojo.transforms.game import Game
from pdojo.transforms.move import Move
from pdojo.transforms.trace import Trace
from qa.inverses import lost_on_the_way_back
from qa.walks import fingerprint

TRACES = Path(pdojo.kernels.__file__).parent / "traces"
HERE = Path(__file__).parent / "traces"
TAILS = ("fill_tail", "drop_guard")
Values: TypeAlias = NDArray[Any]


def matmul(rows: int, columns: int, depth: int, align: str = "") -> KernelOp:
    """The product of two matrices."""
    return parse_notation(
        f"""kernel matmul(a, b) -> (c)
a f32 [{rows}, {depth}] heap{align}
b f32 [{depth}, {columns}] heap{align}
c f32 [{rows}, {columns}] heap{align}
t f32 [{rows}:N, {columns}:N, {depth}:N] stack

{rows} {columns}
| c[{{0}},{{1}}] = 0
| {depth}
| | t[{{0}},{{1}},{{2}}] = a[{{0}},{{2}}] * b[{{2}},{{1}}]
| | c[{{0}},{{1}}] += t[{{0}},{{1}},{{2}}]
"""
    )[0]


def conv(images: int, pixels: int, channels: int, out: int) -> KernelOp:
    """The kernel of the trace for other numbers of images, pixels in each direction, channels in and out."""
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


def layernorm(rows: int, columns: int) -> KernelOp:
    """The kernel of the trace for other numbers of rows and columns."""
    text = (TRACES / "layernorm.pdojo").read_text()
    return parse_notation(text.replace("16384", str(rows)).replace("300", str(columns)))[0]


def library(text: str, align: int = 16) -> KernelOp:
    """A library kernel at some sizes, whose arrays are aligned."""
    return with_alignment(workload(text).instantiate(), align)


def dot() -> KernelOp:
    """The scalar product of 256 numbers."""
    return parse_notation((HERE / "dot.pdojo").read_text())[0]


def product(a: Values, b: Values) -> Values:
    """The matrix product."""
    return a @ b


def convolved(x: Values, w: Values) -> Values:
    """The convolution of 3 by 3, channels last."""
    height, width = x.shape[1] - 2, x.shape[2] - 2
    total = np.zeros((x.shape[0], height, width, w.shape[3]))
    for r in range(3):
        for s in range(3):
            total += x[:, r : r + height, s : s + width] @ w[r, s]
    return total


def normalised(x: Values, g: Values, b: Values) -> Values:
    """Rows of mean 0 and variance 1, scaled and shifted."""
    difference = x - x.mean(axis=1, keepdims=True)
    return difference / np.sqrt((difference**2).mean(axis=1, keepdims=True) + 1e-5) * g + b


def softmax(x: Values) -> Values:
    """Rows of positive numbers with sum 1."""
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


@dataclass(frozen=True)
class Case:
    """A trace, the kernel that it is for, and kernels of the same shape."""

    trace: Path
    full: KernelOp
    small: tuple[KernelOp, ...]
    """For the exact oracle."""
    last: tuple[str, ...] = ()
    """Lines of the program at the end, at full size."""
    reference: Callable[..., Values] | None = None
    large: tuple[KernelOp, ...] = ()
    """For the compiled code."""
    every: int = 1
    """One state in this many is judged, and those after moves about tails."""
    smaller: Callable[[Move], Move] = lambda move: move
    """The move for small kernels."""

    def steps(self) -> Iterator[tuple[int, Move]]:
        """The moves by identifier, with their numbers."""
        return enumerate((step.resolved for step in Trace.load(self.trace).steps), 1)


SMALLER = {128: 16, 132: 20, 64: 8, 16: 8, 8: 4, 4: 4}
"""Sizes of tiles in the trace of tails, and in one for products of 20 by 20 by 20: two, two and three tiles."""


def with_smaller_tiles(move: Move) -> Move:
    """The move with the sizes of smaller tiles."""
    params = ((key, SMALLER[int(value)] if key in ("size", "to") else value) for key, value in move.params)
    return replace(move, params=tuple(params))


CASES = {
    "softmax, rows in registers": Case(
        TRACES / "softmax-x86-64-avx512.trace",
        library("softmax:24576x512", 64),
        (library("softmax:3x128", 64),),
        reference=softmax,
        large=(library("softmax:37x256", 64),),
    ),
    "matmul, packed": Case(
        TRACES / "matmul-x86-64-avx512.trace",
        workload("matmul").instantiate(),
        (matmul(24, 64, 2), matmul(14, 36, 3)),
        reference=product,
        large=(matmul(300, 508, 7), matmul(192, 256, 128), matmul(301, 509, 70)),
    ),
    "conv, gathered windows": Case(
        TRACES / "conv-x86-64-avx512.trace",
        parse_notation((TRACES / "conv.pdojo").read_text())[0],
        (conv(2, 4, 2, 33),),
        reference=convolved,
        large=(conv(2, 28, 16, 64), conv(3, 15, 5, 40)),
    ),
    "layernorm, a row in registers": Case(
        TRACES / "layernorm-x86-64-avx512.trace",
        parse_notation((TRACES / "layernorm.pdojo").read_text())[0],
        (layernorm(3, 70), layernorm(2, 64)),
        reference=normalised,
        large=(layernorm(37, 300), layernorm(64, 256)),
    ),
    "softmax, a warp per row": Case(
        TRACES / "softmax-nvidia-sm90.trace",
        library("softmax:24576x512"),
        (library("softmax:8x256"),),
        (
            "m f32 [24576:N] register",
            "e f32 [24576:N, 512] register",
            "6144:g 4:b",
            "r f32 [6144:N, 4:N, 512] register",
            "| | 4:v m[{0}*4+{1}] max= r[{0},{1},{2}*4+{3}*128+{4}]",
            "| | 4:v s[{0}*4+{1}] += e[{0}*4+{1},{2}*4+{3}*128+{4}]",
        ),
    ),
    "add, vectors of two rows for a block": Case(
        TRACES / "add-nvidia-sm90.trace",
        library("add:3072x4096"),
        (library("add:2x1024"),),
        (
            "6144:g 256:b 2:u 4:v z[{0}//2,{1}*4+{2}*1024+{3}+{0}%2*2048]!streaming = "
            "x[{0}//2,{1}*4+{2}*1024+{3}+{0}%2*2048]!streaming + y[{0}//2,{1}*4+{2}*1024+{3}+{0}%2*2048]"
            "!readonly!streaming",
        ),
    ),
    "layernorm, a block per row": Case(
        TRACES / "layernorm-nvidia-sm90.trace",
        library("layernorm:16384x1024"),
        (library("layernorm:2x256"),),
        (
            "r f32 [16384:N, 1024] register",
            "| | 4:v v[{0}] += q[{0},{1}*128+{2}*4+{3}]",
            "| v[{0}] = rsqrt(v[{0}])",
        ),
    ),
    "reducesum, partial sums in shared memory": Case(
        TRACES / "reducesum-nvidia-sm90.trace",
        library("reducesum:4096x4096"),
        (library("reducesum:2x4096"),),
        (
            "p f32 [4096:N, 8] shared",
            "| | 32:w 4:u 4:v p[{0},{1}] += x[{0},{1}*512+{2}*4+{3}*128+{4}]",
            "| 8:w y[{0}] += p[{0},{1}]",
        ),
    ),
    "dot, streams and a hardware loop": Case(
        HERE / "dot-snitch.trace",
        dot(),
        (dot(),),
        ("p f64 [1, 4] register", "1:s 64:f 4:u p[0,{2}] fma= x[{1}*4+{2}] * y[{1}*4+{2}]"),
    ),
    "matmul of odd sizes, without guards in its sums": Case(
        HERE / "matmul1000-nvidia-sm90.trace",
        matmul(1000, 1000, 1000, " align 16"),
        (matmul(20, 20, 20, " align 16"),),
        (
            "| 16:b 16:b 8:u 2:u 4:v acc[{0},{1},{2},{3},{4},{5},{6}] = 0",
            "| | | 64:b 4:b 2:u 4:v ar[{0},{1},{2},{4}+{6}*64,{5}*4+{7}] = -0.0",
            "| | 1 where ({2} >= 1) 16:b 16:b 16:u",
            "| | | 8:u 2:u 4:v acc[{0},{1},{4},{5},{7},{8},{9}] fma= ra[{0},{1},{2}-1,{4},{5},{6},{7}] * "
            "rb[{0},{1},{2}-1,{4},{5},{6},{8},{9}]",
        ),
        every=20,
        smaller=with_smaller_tiles,
    ),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


def played(case: Case, kernel: KernelOp) -> Game:
    trace = Trace.load(case.trace)
    game = Game(kernel, machine(trace.machine))
    assert game.replay(trace.steps) == []
    return game


def test_every_state_keeps_the_meaning(case: Case) -> None:
    for kernel in case.small:
        game = Game(kernel, machine(Trace.load(case.trace).machine))
        expected = meaning(game.program.nest, 7)
        for number, move in case.steps():
            game.apply(case.smaller(move))
            if number % case.every == 0 or move.name in TAILS:
                assert conditions_of(game.program).problems == {}
                difference = equivalent(expected, game.program.nest, schedules=1, seed=7)
                assert difference is None, f"{move}: {difference}"
            if number % 5 == 0 and case.every == 1:
                assert check_valid(game.program.nest, schedules=1) is None, move
        validate(game.program)
        assert check_valid(game.program.nest, schedules=4) is None
        assert equivalent(expected, game.program.nest, schedules=3, seed=8) is None


@pytest.mark.parametrize("name", [name for name, each in CASES.items() if each.every == 1])
def test_the_full_size(name: str) -> None:
    """What people read and the identifiers name the same moves."""
    check_full_size(CASES[name])


@pytest.mark.parametrize("name", [name for name, each in CASES.items() if each.every > 1])
def test_the_full_size_of_many_moves(name: str) -> None:
    check_full_size(CASES[name])


def check_full_size(case: Case) -> None:
    by_id = played(case, case.full)
    by_surface = Game(case.full, by_id.machine)
    by_surface.apply_all(Trace.load(case.trace).moves)
    assert [s.resolved for s in by_surface.trace.steps] == [s.resolved for s in by_id.trace.steps]
    assert fingerprint(by_surface.kernel) == fingerprint(by_id.kernel)
    assert set(case.last) <= set(by_id.program.text.splitlines())


def test_every_inverse_leads_back(case: Case) -> None:
    """Of all moves, but where there are very many only of those about tails."""
    program = Game(case.full, machine(Trace.load(case.trace).machine)).program
    for _, move in case.steps():
        made = apply(program, move)
        if case.every == 1 or move.name in TAILS:
            assert lost_on_the_way_back(program, made.program, made.inverse) is None
        assert move.name not in TAILS or made.inverse is not None
        program = made.program


@pytest.mark.parametrize("name", [name for name, each in CASES.items() if each.large])
def test_compiled_against_numpy(name: str) -> None:
    """The machine code computes what NumPy does with float64."""
    case = CASES[name]
    assert case.reference is not None
    for number, kernel in enumerate(case.large):
        executable = compile_kernel(played(case, kernel).kernel, threads=2)
        random = np.random.default_rng(number)
        arrays = {p.name: aligned_empty(p.shape, np.dtype(np.float32), 64) for p in executable.parameters}
        *inputs, output = arrays
        for each in inputs:
            arrays[each][...] = random.standard_normal(arrays[each].shape, dtype=np.float32)
        arrays[output][...] = np.nan
        executable(**arrays)
        wanted = case.reference(*(arrays[each].astype(np.float64) for each in inputs))
        np.testing.assert_allclose(arrays[output], wanted, rtol=0, atol=4e-6 * np.abs(wanted).max())

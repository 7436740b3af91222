"""Traces for a graphics processor and for a Snitch core, made by hand: every state keeps the meaning, all moves undo.

Under the schedules of the oracle, threads interleave at random and streams run as far ahead, or behind, as they may.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

import pdojo.kernels
from pdojo.dialect.assumptions import with_alignment
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation, print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.rules.conditions import conditions_of
from pdojo.dialect.rules.validate import validate
from pdojo.dialect.semantics.oracle import check_valid, equivalent, meaning
from pdojo.kernels import workload
from pdojo.transforms.apply import apply
from pdojo.transforms.game import Game
from pdojo.transforms.trace import Trace
from qa.inverses import lost_on_the_way_back

KERNELS = Path(pdojo.kernels.__file__).parent
HERE = Path(__file__).parent / "traces"


@dataclass(frozen=True)
class Case:
    """A trace, the kernel that it is for, and a smaller kernel of the same shape."""

    trace: Path
    full: KernelOp
    small: KernelOp
    last: tuple[str, ...]
    """The nest at the end, at full size."""


def library(text: str) -> KernelOp:
    """A library kernel at some sizes, whose arrays are aligned to vectors of four."""
    return with_alignment(workload(text).instantiate(), 16)


def dot() -> KernelOp:
    """The scalar product of 256 numbers."""
    return parse_notation((HERE / "dot.pdojo").read_text())[0]


CASES = {
    "softmax, a warp per row": Case(
        KERNELS / "traces" / "softmax-nvidia-sm90.trace",
        library("softmax:24576x512"),
        library("softmax:8x256"),
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
        KERNELS / "traces" / "add-nvidia-sm90.trace",
        library("add:3072x4096"),
        library("add:2x1024"),
        (
            "6144:g 256:b 2:u 4:v z[{0}//2,{1}*4+{2}*1024+{3}+{0}%2*2048]!streaming = "
            "x[{0}//2,{1}*4+{2}*1024+{3}+{0}%2*2048]!streaming + y[{0}//2,{1}*4+{2}*1024+{3}+{0}%2*2048]"
            "!readonly!streaming",
        ),
    ),
    "layernorm, a block per row": Case(
        KERNELS / "traces" / "layernorm-nvidia-sm90.trace",
        library("layernorm:16384x1024"),
        library("layernorm:2x256"),
        (
            "r f32 [16384:N, 1024] register",
            "| | 4:v v[{0}] += q[{0},{1}*128+{2}*4+{3}]",
            "| v[{0}] = rsqrt(v[{0}])",
        ),
    ),
    "reducesum, partial sums in shared memory": Case(
        KERNELS / "traces" / "reducesum-nvidia-sm90.trace",
        library("reducesum:4096x4096"),
        library("reducesum:2x4096"),
        (
            "p f32 [4096:N, 8] shared",
            "| | 32:w 4:u 4:v p[{0},{1}] += x[{0},{1}*512+{2}*4+{3}*128+{4}]",
            "| 8:w y[{0}] += p[{0},{1}]",
        ),
    ),
    "dot, streams and a hardware loop": Case(
        HERE / "dot-snitch.trace",
        dot(),
        dot(),
        ("p f64 [1, 4] register", "1:s 64:f 4:u p[0,{2}] fma= x[{1}*4+{2}] * y[{1}*4+{2}]"),
    ),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


def test_every_state_keeps_the_meaning(case: Case) -> None:
    trace = Trace.load(case.trace)
    game = Game(case.small, machine(trace.machine))
    expected = meaning(game.program.nest, 7)
    for step in trace.steps:
        game.apply(step.move)
        assert conditions_of(game.program).problems == {}
        difference = equivalent(expected, game.program.nest, schedules=1, seed=7)
        assert difference is None, f"{step.move}: {difference}"
    validate(game.program)
    assert check_valid(game.program.nest, schedules=4) is None
    assert equivalent(expected, game.program.nest, schedules=3, seed=8) is None


def test_at_full_size_by_surface_and_by_identifier(case: Case) -> None:
    trace = Trace.load(case.trace)
    by_surface, by_id = (Game(case.full, machine(trace.machine)) for _ in range(2))
    by_surface.apply_all(trace.moves)
    assert by_id.replay(trace.steps) == []
    assert [s.resolved for s in by_surface.trace.steps] == [s.resolved for s in by_id.trace.steps]
    lines = print_notation(by_id.kernel).splitlines()
    assert set(case.last) <= set(lines)


def test_every_inverse_leads_back(case: Case) -> None:
    trace = Trace.load(case.trace)
    program = Game(case.full, machine(trace.machine)).program
    for step in trace.steps:
        made = apply(program, step.resolved)
        assert lost_on_the_way_back(program, made.program, made.inverse) is None
        program = made.program

"""Asynchronous copies of vectors and elements: device code against the interpreter, and what moves leave of them."""

from __future__ import annotations

import re

import pytest

from differential.compiled import kernel, random_inputs
from differential.device_code import first_line, run_fibers, unnoticed
from differential.library import close
from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.gpu import nvrtc
from pdojo.backends.gpu.resources import MissingTool
from pdojo.backends.gpu.spelling import CudaSpelling, FiberSpelling
from pdojo.backends.gpu.targets import device_text
from pdojo.dialect.flow.program import Program
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.rules.conditions import conditions_of
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.view.build import nest_of
from pdojo.errors import IllegalMove, LoweringError
from pdojo.transforms.apply import legal_moves
from pdojo.transforms.game import Game
from toolchain import require_fibers

NVIDIA = machine("nvidia-sm90")
COPIES = {
    "eight halves": (
        """kernel k(x) -> (y)
        x f16 [4, 64] heap align 16
        y f16 [4, 64] heap
        t f16 [4:N, 64] shared

        4:g
        | 8:b 8:v t[{0},{1}*8+{2}] = x[{0},{1}*8+{2}]
        | 64:b y[{0},{1}] = t[{0},-{1}+63]
        """,
        ["pd_copy_async16"],
    ),
    "a tail of whole vectors": (
        """kernel k(x) -> (y)
        x bf16 [4, 62] heap align 4
        y bf16 [4, 62] heap
        t bf16 [4:N, 66] shared

        4:g
        | 32:b 2:v where ({1}*2+{2} < 62) t[{0},{1}*2+{2}] = x[{0},{1}*2+{2}]
        | 62:b y[{0},{1}] = t[{0},-{1}+61]
        """,
        ["pd_copy_async4"],
    ),
    "swizzled": (
        """kernel k(x) -> (y)
        x bf16 [4, 8, 64] heap align 16
        y bf16 [4, 8, 64] heap
        t bf16 [4:N, 8, 64^1*8] shared

        4:g
        | 8:b 8 8:v t[{0},{1},{2}*8+{3}] = x[{0},{1},{2}*8+{3}]
        | 64:b 8 y[{0},{2},{1}] = t[{0},-{2}+7,{1}]
        """,
        ["pd_copy_async16"],
    ),
    "bytes": (
        """kernel k(x) -> (y)
        x i8 [4, 64] heap align 8
        y i8 [4, 64] heap
        t i8 [4:N, 64] shared

        4:g
        | 8:b 8:v t[{0},{1}*8+{2}] = x[{0},{1}*8+{2}]
        | 64:b y[{0},{1}] = t[{0},-{1}+63]
        """,
        ["pd_copy_async8"],
    ),
    "a tail in a vector": (
        """kernel k(x) -> (y)
        x f32 [4, 64] heap align 16
        y f32 [4, 62] heap
        t f32 [4:N, 64] shared

        4:g
        | 16:b 4:v where ({1}*4+{2} < 62) t[{0},{1}*4+{2}] = x[{0},{1}*4+{2}]
        | 62:b y[{0},{1}] = t[{0},-{1}+61]
        """,
        ["pd_copy_async4"] * 4,
    ),
    "one number for all lanes": (
        """kernel k(x) -> (y)
        x f32 [4, 64] heap align 16
        y f32 [4, 32] heap
        t f32 [4:N, 32] shared

        4:g
        | 8:b 4:v t[{0},{1}*4+{2}] = x[{0},{1}*4]
        | 32:b y[{0},{1}] = t[{0},-{1}+31]
        """,
        ["pd_copy_async4"] * 4,
    ),
}
"""Kernels with an ordinary copy to t, and the calls that copy it when it runs on its own."""


@pytest.mark.parametrize("name", COPIES)
def test_copies(name: str) -> None:
    require_fibers()
    text, calls = COPIES[name]
    game = Game(kernel(text), NVIDIA)
    game.apply("async_copy@t")
    inputs = random_inputs(parameters_of(nest_of(game.kernel)), 1)
    wanted = interpret(game.kernel, inputs)
    made = device_text(game.kernel, spelling=FiberSpelling(), machine=NVIDIA).text
    body = made[made.index("// kernel") :]
    assert re.findall(r"pd_copy_async\d+", body) == calls
    assert unnoticed(made, without_waits(made), game.kernel, game.kernel, inputs, wanted, warp=32, scratch=0) == []


def without_waits(text: str) -> dict[str, dict[int, str]]:
    """The text without its barrier, and without its wait."""
    lines = text.split("\n")
    found: dict[str, dict[int, str]] = {}
    for call in ("__syncthreads();", "pd_copy_wait<0>();"):
        (number,) = (k for k in range(first_line(text), len(lines)) if lines[k].strip() == call)
        found[f"without {call}"] = {number: ""}
    return found


WAITS = {
    "the reader is in the same threads": (
        """kernel k(b) -> (c)
        b f32 [3, 32] heap
        c f32 [3, 32] heap
        t f32 [3:N, 32] shared

        3:g 32:b
        | t[{0},{1}] = b[{0},{1}]
        | c[{0},{1}] = t[{0},{1}]
        """,
        ["async_copy@t"],
    ),
    "both are in a guarded scope of one iteration": (
        """kernel k(a, b) -> (c)
        a f32 [2, 32] heap
        b f32 [2, 32] heap
        c f32 [2, 32] heap
        as f32 [2, 32] shared
        bs f32 [2:N, 32] shared

        1:g 2
        | 32:b as[{1},{2}] = a[{1},{2}]
        | 32:b bs[{1},{2}] = b[{1},{2}]
        | 32:b c[{1},{2}] = as[{1},31-{2}] * bs[{1},31-{2}]
        """,
        ["async_copy@bs", "pipeline@as:1{stages=2}"],
    ),
    "warps of a block wait for their own copies": (
        """kernel k(b) -> (c)
        b f32 [3, 2, 32] heap
        c f32 [3, 2, 32] heap
        t f32 [3:N, 2, 32] shared

        3:g 2:b
        | 32:w t[{0},{1},{2}] = b[{0},{1},{2}]
        | 32:w c[{0},{1},{2}] = t[{0},{1},31-{2}]
        """,
        ["async_copy@t"],
    ),
    "each thread waits for its own copies, in a part of the block": (
        """kernel k(b) -> (c)
        b f32 [3, 4, 24] heap
        c f32 [3, 4, 24] heap
        t f32 [3:N, 4, 24] shared

        3:g
        | 4:b 24:b c[{0},{1},{2}] = 0
        | 4:b where ({1} < 3)
        | | 24:b t[{0},{1},{2}] = b[{0},{1},{2}]
        | | 24:b c[{0},{1},{2}] = t[{0},{1},{2}]
        """,
        ["async_copy@t"],
    ),
    "a loop in the threads": (
        """kernel k(b) -> (c)
        b f32 [2, 32, 4] heap
        c f32 [2, 32, 4] heap
        t f32 [2:N, 32, 4:N] shared

        2:g 32:b 4
        | t[{0},{1},{2}] = b[{0},{1},{2}]
        | c[{0},{1},{2}] = t[{0},{1},{2}]
        """,
        ["async_copy@t"],
    ),
    "another thread reads in the next iteration": (
        """kernel k(b) -> (c)
        b f32 [1, 8, 32] heap
        c f32 [1, 8, 32] heap
        t f32 [1:N, 8, 32] shared

        1:g
        | 32:b 8 c[{0},{2},{1}] = 0
        | 8 1
        | | 1 where ({1} >= 1) 32:b c[{0},{1},{4}] = t[{0},{1}-1,31-{4}]
        | | 32:b t[{0},{1},{3}] = b[{0},{1},{3}]
        """,
        ["async_copy@t"],
    ),
    "a loop that skips iterations": (
        """kernel k(b) -> (c)
        b f32 [1, 8, 32] heap
        c f32 [1, 8, 32] heap
        t f32 [1:N, 8, 32] shared

        1:g
        | 32:b 8 c[{0},{2},{1}] = 0
        | 8 where ({1}%3 < 1)
        | | 1 where ({1} >= 3) 32:b c[{0},{1},{3}] = t[{0},{1}-3,31-{3}]
        | | 32:b t[{0},{1},{2}] = b[{0},{1},{2}]
        """,
        ["async_copy@t"],
    ),
    "a loop that is read several iterations later": (
        """kernel k(b) -> (c)
        b f32 [1, 8, 32] heap
        c f32 [1, 8, 32] heap
        t f32 [1:N, 8, 32] shared

        1:g
        | 32:b 8 c[{0},{2},{1}] = 0
        | 8
        | | 1 where ({1} >= 3) 32:b c[{0},{1},{3}] = t[{0},{1}-3,31-{3}]
        | | 32:b t[{0},{1},{2}] = b[{0},{1},{2}]
        """,
        ["async_copy@t"],
    ),
    "the source is written after the copy": (
        """kernel k(b) -> (c)
        b f32 [1, 32] heap
        c f32 [1, 32] heap
        h f32 [1, 32] heap
        s f32 [1:N, 32] shared
        t f32 [1:N, 32] shared

        1:g
        | 32:b h[{0},{1}] = b[{0},{1}]
        | 32:b t[{0},{1}] = h[{0},{1}]
        | 32:b
        | | h[{0},{1}] = 7
        | | s[{0},{1}] = b[{0},{1}]
        | 32:b
        | | c[{0},{1}] = t[{0},31-{1}] + s[{0},31-{1}]
        | | c[{0},{1}] += h[{0},{1}]
        """,
        ["async_copy@t"],
    ),
    "copies of one thread to one place": (
        """kernel k(b) -> (c)
        b f32 [1, 32, 4] heap
        c f32 [1, 32] heap
        t f32 [1:N, 32] shared

        1:g
        | 32:b 4 t[{0},{1}] = b[{0},{1},{2}]
        | 32:b c[{0},{1}] = t[{0},31-{1}]
        """,
        ["async_copy@t"],
    ),
}
"""Kernels in which the place of the wait for a copy to t or bs matters, and the moves that make it asynchronous."""


@pytest.mark.parametrize("name", WAITS)
def test_waits_stand_between_a_copy_and_what_touches_its_cells(name: str) -> None:
    require_fibers()
    text, moves = WAITS[name]
    game = Game(kernel(text), NVIDIA)
    for move in moves:
        game.apply(move)
    inputs = random_inputs(parameters_of(nest_of(game.kernel)), 1)
    wanted = interpret(game.kernel, inputs)
    for found in run_fibers(game.kernel, inputs, described=NVIDIA):
        close(found, wanted, game.kernel)


def test_copies_compile() -> None:
    programs: list[KernelOp] = []
    for number, (text, _) in enumerate(COPIES.values()):
        game = Game(kernel(text.replace("kernel k(", f"kernel copies{number}(")), NVIDIA)
        game.apply("async_copy@t")
        programs.append(game.kernel)
    try:
        image = nvrtc.compile_cuda(device_text(*programs, spelling=CudaSpelling(), machine=NVIDIA).text)
    except MissingTool as error:
        pytest.skip(str(error))
    if nvrtc.disassembler() is not None:
        _, *parts = re.split(r"^\.text\.copies\d+_0:$", nvrtc.disassemble(image.cubin), flags=re.MULTILINE)
        assert ["LDGSTS" in part for part in parts] == [True] * len(COPIES)


@pytest.mark.parametrize("name", COPIES)
def test_every_move_leaves_copies_that_the_machine_has(name: str) -> None:
    """Whatever is legal of a program with an asynchronous copy leads to device code."""
    game = Game(kernel(COPIES[name][0]), NVIDIA)
    game.apply("async_copy@t")
    moves = legal_moves(game.program)
    assert moves
    for move in moves:
        fork = game.fork()
        fork.apply(move)
        assert not conditions_of(fork.program).problems
        if any(leaf.asynchronous for leaf in fork.program.nest.leaves):
            device_text(fork.kernel, spelling=FiberSpelling(), machine=NVIDIA)


@pytest.mark.parametrize(
    ("name", "move"),
    [
        ("eight halves", "unmap@t:2"),
        ("a tail of whole vectors", "unmap@t:2"),
        ("swizzled", "unmap@t:3"),
    ],
)
def test_moves_that_would_leave_others_are_refused(name: str, move: str) -> None:
    game = Game(kernel(COPIES[name][0]), NVIDIA)
    game.apply(move)
    game = Game(kernel(COPIES[name][0]), NVIDIA)
    game.apply("async_copy@t")
    with pytest.raises(IllegalMove, match=r"copies 4, 8, 16 bytes asynchronously, not 2"):
        game.apply(move)


def test_copies_of_other_machines_are_refused() -> None:
    """A kernel that is given with a copy of two bytes has no device code."""
    text = COPIES["eight halves"][0].replace(
        "8:b 8:v t[{0},{1}*8+{2}] = x[{0},{1}*8+{2}]", "64:b t[{0},{1}] async= x[{0},{1}]"
    )
    given = kernel(text)
    (problem,) = conditions_of(Program(given, NVIDIA)).problems.values()
    assert problem.text == "nvidia-sm90 copies 4, 8, 16 bytes asynchronously, not 2"
    with pytest.raises(LoweringError, match=r"asynchronous copy of 2 bytes, of which nvidia-sm90 has 4, 8, 16"):
        device_text(given, spelling=CudaSpelling(), machine=NVIDIA)

"""Where a memory is nearly full: every move that is listed can be made."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.rules.capacity import load_of
from pdojo.errors import IllegalMove
from pdojo.kernels import workload
from pdojo.search.contract.candidates import choices
from pdojo.search.neighbourhoods.drawing import UNIFORM, each_legal
from pdojo.transforms.apply import legal
from pdojo.transforms.game import Game
from pdojo.transforms.move import Move

KERNELS = ("matmul:8x8x8", "softmax:8x16", "maxpool:1x2x8x8x3")


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("spare", [0, 64, 400])
def test_listed_moves_fit(kernel: str, spare: int) -> None:
    """The machine has `spare` bytes more on the stack than the program takes, at each step of a walk."""
    random = Random(f"{kernel} {spare}")
    state = Game(workload(kernel).instantiate(), machine("toy"))
    refused: Counter[str] = Counter()
    made = 0
    for _ in range(7):
        taken = load_of(state.program).stack
        tight = Game(state.kernel, replace(state.machine, stack_bytes=taken + spare))
        program = tight.program
        some = choices(program)
        for choice in random.sample(some, min(30, len(some))):
            if choice.is_legal(program):
                near = tight.fork()
                try:
                    near.apply(choice.move)
                    made += 1
                except IllegalMove as error:
                    refused[f"{choice.move}: {error}"] += 1
        following = next(each_legal(UNIFORM, state.program, (), random), None)
        assert following is not None
        state.apply(following.move)
    assert not refused
    assert made > 30


TEXT = """kernel k(x) -> (z)
x f32 [64, 64] heap
z f32 [64] heap
s f32 [64] stack

64
| s[{0}] = 0
| 64 s[{0}] += x[{0},{1}]
| z[{0}] = s[{0}]
"""


@pytest.mark.parametrize(
    "text",
    [
        "split_reduction@s:1{size=8}",
        "stage_in@s:0{array=x location=stack}",
        "pad_dim@s:0{to=200}",
        "tile_dim@s:0{size=48}",
    ],
)
@pytest.mark.parametrize("fits", [True, False])
def test_room_is_foreseen(text: str, *, fits: bool) -> None:
    """Partial sums, copies, padding: refused before they are made iff the stack is too small for them."""
    stack = 1 << 20 if fits else 256 + 64
    game = Game(parse_notation(TEXT)[0], replace(machine("toy"), stack_bytes=stack))
    move = Move.parse(text)
    if fits:
        game.apply(move)
        return
    with pytest.raises(IllegalMove, match=r"stack buffers would take \d+ bytes; toy allows 320"):
        game.apply(move)
    with pytest.raises(IllegalMove, match="stack buffers would take"):
        legal(game.program, move)


ALIGNED = """kernel k(x) -> (y)
x f32 [8, 4] heap align 16
y f32 [8, 4] heap align {align}
e f32 [8, 4] heap

8 4:v e[{{0}},{{1}}] = exp(x[{{0}},{{1}}])
8 4 y[{{0}},{{1}}] = e[{{0}},{{1}}] + 1
"""


@pytest.mark.parametrize("align", [4, 16])
def test_lost_alignment_is_foreseen(align: int) -> None:
    """Vectors of an array would not be aligned in the memory of an output that is not."""
    described = replace(machine("toy"), aligned_vectors=True)
    program = Game(parse_notation(ALIGNED.format(align=align))[0], described).program
    move = Move.parse("share_buffer@e{with=y}")
    if align == 16:
        legal(program, move)
        return
    with pytest.raises(IllegalMove, match="must start at a multiple of 16"):
        legal(program, move)

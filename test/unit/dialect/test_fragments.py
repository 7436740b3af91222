"""Tiles that the threads of a warp hold: what is legal, and what the exact oracle thinks of it."""

from __future__ import annotations

import pytest

from pdojo.backends.gpu.spelling import CudaSpelling
from pdojo.backends.gpu.targets import device_text
from pdojo.dialect.flow.program import Program
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.rules.conditions import conditions_of
from pdojo.dialect.rules.validate import validate
from pdojo.dialect.semantics.oracle import check_valid
from pdojo.dialect.view.build import nest_on
from pdojo.errors import InvalidKernel, LoweringError
from pdojo.transforms.game import Game

HEADER = """kernel k(x, z) -> (y)
x f32 [16, 4] heap
z f32 [4, 4] heap
y f32 [16, 4] heap
s f32 [2:N, 2, 4, 2] register
t f32 [2:N, 2, 4, 2] register

"""
INIT = "| 2:b 2:u 4:w s[{0},{1},{2}*2+{3}//2,{3}%2] = 0\n"
PRODUCT = "| 2:b 2 4:m(toy_mma) 2 2 s[{0},{1},{3},{4}] += x[{0}*8+{1}*4+{3},{2}*2+{5}] * z[{2}*2+{5},{4}]\n"
STORE = "| 2:b 2:u 4:w y[{0}*8+{1}*4+{2}*2+{3}//2,{3}%2] = s[{0},{1},{2}*2+{3}//2,{3}%2]\n"
REST = "| 2:b 4:w 2 y[{0}*8+{1}*4+{2},{3}+2] = x[{0}*8+{1}*4+{2},{3}]\n"
GOOD = HEADER + "2:g\n" + INIT + PRODUCT + STORE + REST


def test_a_tile_in_registers_is_legal() -> None:
    (kernel,) = parse_notation(GOOD)
    toy = machine("toy-gpu")
    validate(Program(kernel, toy))
    assert check_valid(nest_on(kernel, toy)) is None


GROUPS = (
    INIT.replace("2:u 4:w", "2:u 2:b 2:w").replace("{2}*2+{3}//2,{3}%2", "{2}*2+{3},{4}")
    + PRODUCT
    + "| 2:b 2:u 2:b m[{0},{1},{2}*2+{3}] = -inf\n"
    + "| 2:b 2:u 2:b 2:w m[{0},{1},{2}*2+{3}] max= s[{0},{1},{2}*2+{3},{4}]\n"
    + "| 2:b 2:u 2:b 2:w 2 y[{0}*8+{1}*4+{2}*2+{3},{4}*2+{5}] = s[{0},{1},{2}*2+{3},{4}] - m[{0},{1},{2}*2+{3}]\n"
)
IN_GROUPS = HEADER.replace("\n\n", "\nm f32 [2:N, 2, 4] register\n\n") + "2:g\n" + GROUPS
"""Each row of a tile is in two neighbouring threads, which have its maximum."""


def test_threads_of_a_warp_in_groups_are_legal() -> None:
    (kernel,) = parse_notation(IN_GROUPS)
    toy = machine("toy-gpu")
    validate(Program(kernel, toy))
    assert check_valid(nest_on(kernel, toy)) is None


FIRST = "| 2:b 2:u 2:b 2:w s[{0},{1},{2}*2+{3},{4}] = 0"
GAPS = {
    "groups": "| 2:b 2:u 2:b\n| | 2:w s[{0},{1},{2}*2+{3},{4}] = 0\n",
    "blocks": "| 2:b 2:u 4:b\n| | s[{0},{1},{2}*2+{3}//2,{3}%2] = 0\n",
}


@pytest.mark.parametrize("case", GAPS)
def test_threads_of_a_warp_with_gaps(case: str) -> None:
    """Another statement gives each iteration of the scope of the groups four threads."""
    text = IN_GROUPS.replace(FIRST, GAPS[case] + "| | 4:w w[{0},{1},{2},{3},{4}] = x[{4},0]")
    (kernel,) = parse_notation(text.replace("m f32", "w f32 [2:N, 2:N, 2:N, 4:N, 4] heap\nm f32"))
    problems = conditions_of(Program(kernel, machine("toy-gpu"))).problems
    assert any("must be all threads of a warp, which holds 's'" in problem for problem in problems)
    with pytest.raises(LoweringError, match="distributed over the threads of a block in two ways"):
        device_text(kernel, spelling=CudaSpelling(), machine=machine("toy-gpu"))


WRONG = {
    "another group": (
        IN_GROUPS.replace("= s[{0},{1},{2}*2+{3},{4}] - m", "= s[{0},{1},{2}*2+{4},{3}] - m"),
        "'s' is in registers, but two threads access one of its cells",
    ),
    "the maximum of another row": (
        IN_GROUPS.replace("- m[{0},{1},{2}*2+{3}]", "- m[{0},{1},{2}*2+{4}]"),
        "'m' is in registers, but two threads access one of its cells",
    ),
    "another lane": (
        GOOD.replace(
            "y[{0}*8+{1}*4+{2}*2+{3}//2,{3}%2] = s[{0},{1},{2}*2+{3}//2,{3}%2]",
            "y[{0}*8+{1}*4+{2}*2+{3}%2,{3}//2] = s[{0},{1},{2}*2+{3}%2,{3}//2]",
        ),
        "'s' is in registers, but two threads access one of its cells",
    ),
    "one thread": (
        GOOD.replace(STORE, "| 2:b 4:u 2:u y[{0}*8+{1}*4+{2},{3}] = s[{0},{1},{2},{3}]\n"),
        "every access must be indexed by the same threads",
    ),
    "a part of the warp": (
        GOOD.replace("2:u 4:w s[{0},{1},{2}*2+{3}//2,{3}%2] = 0", "4:u 2:w s[{0},{1},{2},{3}] = 0"),
        "every access must be indexed by the same threads",
    ),
}
"""Programs that read values in threads that do not have them."""


@pytest.mark.parametrize("case", WRONG)
def test_values_in_other_threads(case: str) -> None:
    text, expected = WRONG[case]
    (kernel,) = parse_notation(text)
    toy = machine("toy-gpu")
    with pytest.raises(InvalidKernel) as caught:
        Game(kernel, toy)
    assert expected in str(caught.value)
    assert check_valid(nest_on(kernel, toy)) is not None


REFUSED = {
    "a lane of its own": (
        GOOD.replace("2:N, 2, 4, 2] register", "2:N, 3, 4, 2] register", 1).replace(
            REST, "| 4:w 2 s[{0},2,{1},{2}] = x[{1},{2}]\n| 2:b 4:w 2 y[{0}*8+{1}*4+{2},{3}+2] = s[{0},2,{2},{3}]\n"
        ),
        "every access must be indexed by the same threads",
    ),
    "a lane of its own in every warp": (
        GOOD.replace("2:N, 2, 4, 2] register", "2:N, 4, 4, 2] register", 1).replace(
            REST,
            "| 2:b 4:w 2 s[{0},{1}+2,{2},{3}] = x[{2},{3}]\n"
            "| 2:b 4:w 2 y[{0}*8+{1}*4+{2},{3}+2] = s[{0},{1}+2,{2},{3}]\n",
        ),
        "the threads of a warp hold 's' by a fragment, but other threads would access its elements "
        "(s[{0},{1}+2,{2},{3}] is in lane {3}+{2}%2*2, not {2})",
    ),
    "in a warp": (
        HEADER + "1:g\n| 4:w 4:m(toy_mma) 2 2 y[{1}*4+{2},{3}] += x[{2},{4}] * z[{4},{3}]\n",
        "a warp computes scope {2} of extent 4:m(toy_mma), which cannot be inside scope {1} of extent 4:w",
    ),
    "outside of grids": (
        HEADER + "4 4:m(toy_mma) 2 2 y[{0}*4+{1},{2}] += x[{1},{3}] * z[{3},{2}]\n",
        "a warp computes scope {1} of extent 4:m(toy_mma), which must be inside a grid scope (:g)",
    ),
    "one cell for several warps": (
        HEADER + "1:g\n| 2:b 4:m(toy_mma) 2 2 y[{2},{3}] += x[{1}*4+{2},{4}] * z[{4},{3}]\n",
        "the warps of scope {1} of extent 2:b would accumulate into one cell; split_reduction gives each a partial",
    ),
    "no tile": (
        GOOD.replace("s f32 [2:N, 2, 4, 2]", "s f32 [2:N, 2, 8]")
        .replace("s[{0},{1},{3},{4}]", "s[{0},{1},{3}*2+{4}]")
        .replace("{2}*2+{3}//2,{3}%2] = 0", "({2}*2+{3}//2)*2+{3}%2] = 0")
        .replace("= s[{0},{1},{2}*2+{3}//2,{3}%2]", "= s[{0},{1},({2}*2+{3}//2)*2+{3}%2]"),
        "dimension 2 of 's', which the threads of a warp hold, must be indexed by exactly one scope of the "
        "instruction's tile",
    ),
    "two fragments": (
        GOOD.replace(
            STORE,
            STORE
            + INIT.replace("s[", "t[")
            + "| 2:b 4:m(toy_mma) 2 2 t[{0},{1},{2},{3}] += s[{0},{1},{2},{4}] * z[{4},{3}]\n",
        ),
        "'s' is in registers, but two threads access one of its cells",
    ),
    "changes with another loop": (
        GOOD.replace("z[{2}*2+{5},{4}]", "z[{2}*2+{5},{4}+{3}//2]"),
        "z[{2}*2+{5},{4}+{3}//2] changes with {3}, but operand 'b' does not",
    ),
    "one cell": (
        HEADER + "2:g\n| 4:m(toy_mma) 2 2 y[{0}*8+{1},{1}//4] += x[{1},{3}] * z[{3},{2}]\n",
        "elements of 'y' that the instruction writes would share a cell",
    ),
}
"""Programs that no instruction of a warp can be."""


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    text, expected = REFUSED[case]
    with pytest.raises(InvalidKernel) as caught:
        Game(parse_notation(text.replace("(x, z) -> (y)", "(x, z, y) -> (y)"))[0], machine("toy-gpu"))
    assert expected in str(caught.value)


def test_registers_are_counted() -> None:
    """Each of 32 threads has 4 of the 128 elements of a tile; blocks are as large as the warps make them."""
    text = """kernel k(x, z) -> (y)
x f32 [16, 8] heap
z f32 [8, 8] heap
y f32 [16, 8] heap
s f32 [128, 16, 8] register

1:g
| 128:u 2:u 32:w 2:u s[{1},{2}*8+{3}//4,{3}%4*2+{4}] = 0
| 128:u 16:m(mma_16x8x8_3xtf32) 8 8 s[{1},{2},{3}] fma= x[{2},{4}] * z[{4},{3}]
| 2:u 32:w 2:v y[{1}*8+{2}//4,{2}%4*2+{3}] = s[0,{1}*8+{2}//4,{2}%4*2+{3}]
"""
    problems = conditions_of(Program(parse_notation(text)[0], machine("nvidia-sm90"))).problems
    assert "register buffers would take 2048 bytes; nvidia-sm90 allows 1020" in problems
    many = """kernel k(x, z, y) -> (y)
x f32 [16, 8] heap
z f32 [8, 8] heap
y f32 [64, 16, 8] heap

1:g 64:b 16:m(mma_16x8x8_3xtf32) 8 8 y[{1},{2},{3}] fma= x[{2},{4}] * z[{4},{3}]
"""
    problems = conditions_of(Program(parse_notation(many)[0], machine("nvidia-sm90"))).problems
    assert "blocks would have 2048 threads; nvidia-sm90 allows 1024" in problems


MMA = """kernel k(x, z, y) -> (y)
x f32 [16, 8] heap
z f32 [8, 8] heap
y f32 [16, 8] heap
u f32 [64] heap

1:g
| 16:m(mma_16x8x8_3xtf32) 8 8 y[{1},{2}] fma= x[{1},{3}] * z[{3},{2}]
"""
UNSAID = {
    "its name": (MMA.replace("kernel k", "kernel mma_16x8x8_3xtf32"), "the name of an instruction that it uses"),
    "another nest": (MMA.replace("fma=", "+="), "is not what 'mma_16x8x8_3xtf32' computes"),
    "no grid": (MMA.replace("1:g", "1"), "a warp computes the scope '16:m' at depth 1 around the writes of y"),
    "unknown": (MMA.replace("m(mma_16x8x8_3xtf32)", "m(mma)"), "is mapped to 'm', which a graphics processor does not"),
}


@pytest.mark.parametrize("case", UNSAID)
def test_what_device_code_cannot_say(case: str) -> None:
    text, expected = UNSAID[case]
    with pytest.raises(LoweringError) as caught:
        device_text(*parse_notation(text), spelling=CudaSpelling(), machine=machine("nvidia-sm90"))
    assert expected in str(caught.value)


def test_code_needs_a_template() -> None:
    (kernel,) = parse_notation(GOOD)
    with pytest.raises(LoweringError, match="mapped to 'toy_mma', whose description has no template for cuda"):
        device_text(kernel, spelling=CudaSpelling(), machine=machine("toy-gpu"))

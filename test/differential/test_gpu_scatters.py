"""Device code that reads and writes at entries of arrays of indices, run by fibers, for equal and other indices."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import numpy as np
import pytest

from differential.compiled import Arrays, kernel
from differential.device_code import MACHINES, compile_kernels
from differential.library import close
from pdojo.backends.gpu.fibers import WAYS
from pdojo.backends.gpu.spelling import CudaSpelling
from pdojo.backends.gpu.targets import device_text
from pdojo.dialect.flow.program import Program
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation.printer import print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.rules.conditions import conditions_of
from pdojo.dialect.rules.validate import validate
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.sizes import probes
from pdojo.errors import IllegalMove, LoweringError
from pdojo.transforms.apply import apply
from pdojo.transforms.game import Game
from pdojo.transforms.move import Move
from property import test_index_arrays, test_scatters
from toolchain import require_fibers

SCATTERS = """\
kernel scatters(x, order, idx, n) -> (y, z, h, g)
numerics reassociate flush
size N in 4..40
x f32 [N, 16] heap
order i64 [N] heap in 0..N-1 wrap
idx i32 [N] heap in 2..9 clamp
n i16 [2] heap in 0..N
y f32 [N, 16] heap
z f32 [10, 16] heap
h i32 [10] heap
g i32 [12] heap
s i32 [10] shared

N:g 16:b y[{0},{1}] = x[order[{0}],{1}]
16:g
| 10 z[{1},{0}] = 1
| N z[idx[{1}],{0}] = x[{1},{0}] * 2
5:g 8:b where ({0}*8+{1} < N) 16 z[idx[{0}*8+{1}],{2}] += x[{0}*8+{1},{2}]
10 h[{0}] = 0
1:g
| 10:b s[{1}] = 0
| 40:b where ({1} < n[0]) s[idx[{1}]] += 1
| 10:b h[{1}] = s[{1}]
12:g g[{0}] = 0
4:g 2:b 10 where ({0}*10+{2} < n[1]) g[idx[{0}*10+{2}]+{1}] max= 3
"""
VECTORS = """\
kernel vectors(x, idx) -> (y, z)
x f32 [24, 16] heap align 16
idx i64 [24] heap in 0..23
y f32 [24, 16] heap align 16
z f32 [24, 4] heap align 16

24:g 4:b 4:v y[{0},{1}*4+{2}] = x[idx[{0}],{1}*4+{2}]
6:g
| 4:b 4:v z[{0}*4+{1},{2}] = 0
| 4:b 4:v z[{0}*4+{1},{2}] = x[idx[{0}*4+{1}],{2}+4] * index(idx[{0}*4+{2}])
"""
FEW = (WAYS[0], WAYS[3], WAYS[5])


def given_for(program: KernelOp, sizes: dict[str, int], turn: int) -> Arrays:
    return test_index_arrays.inputs_for(program, sizes, turn, np.random.default_rng(turn))


def with_strays(program: KernelOp, given: Arrays) -> Arrays:
    """The arrays with indices beyond the range of the one that clamps."""
    found = dict(given)
    if "idx" in found and program.sym_name.data == "scatters":
        found["idx"] = found["idx"] * 100 - 500
    return found


@pytest.mark.parametrize("warp", [32, 64])
@pytest.mark.parametrize("text", [SCATTERS, VECTORS], ids=["scatters", "vectors"])
def test_each_use_of_an_index(text: str, warp: int) -> None:
    require_fibers()
    program, described = kernel(text), machine(MACHINES[warp])
    state = Program(program, described)
    validate(state)
    assert conditions_of(state).problems == {}
    code = compile_kernels([program], described=described)
    for sizes in probes([*program.known_sizes().values()]):
        for turn in range(3):
            given = given_for(program, sizes, turn)
            for arrays in (given, with_strays(program, given)):
                wanted = interpret(program, arrays, sizes=sizes)
                for found in code.run(program, arrays, sizes=sizes, ways=FEW):
                    close(found, wanted, program)


def test_sums_of_threads_that_meet_are_atomic() -> None:
    text = device_text(kernel(SCATTERS), spelling=CudaSpelling(), machine=machine("nvidia-sm90")).text
    for update in ("pd_atomic_add(&z[", "pd_atomic_add(&s[", "pd_atomic_max(&g["):
        assert update in text
    assert "pd_atomic_add(&h[" not in text


MEETING = """\
kernel meeting(x, idx) -> (y)
numerics reassociate flush
x f32 [16] heap
idx i32 [16] heap in 0..7
y f32 [8] heap

8 y[{0}] = 0
1:g 16 y[%s] += x[{1}]
"""


@pytest.mark.parametrize(
    ("index", "is_atomic"),
    [("{1}//2", True), ("{1}%8", True), ("idx[{1}]", True), ("0", False), ("idx[0]", False), ("idx[3]+{1}//16", False)],
)
def test_threads_that_index_common_cells_need_atomic_operations(index: str, is_atomic: bool) -> None:
    text = (MEETING % index).replace("1:g 16 ", "1:g 16:b ")
    found = device_text(kernel(text), spelling=CudaSpelling(), machine=machine("nvidia-sm90")).text
    assert ("pd_atomic_add" in found) is is_atomic


@pytest.mark.parametrize(
    ("nest", "atomics", "barriers"),
    [
        ("16:b 4 where ({1}+{2} < 8) y[{1}+{2}] += x[{1}]", 1, 0),
        ("8:b 4 4:b y[({1}+{2})%8] += x[{3}]", 1, 2),
        ("8:b\n| | y[idx[{1}]] += x[{1}]\n| | 4 y[{1}] += 2", 2, 0),
        ("8:b y[idx[{1}]] += x[{1}]\n| 8:b y[{1}] += 2", 1, 1),
        ("8:b y[idx[{1}]] += x[{1}]\n| 8:b y[idx[{1}]] += 2", 2, 0),
        ("8:b y[{1}] += x[{1}]\n| 4:b 2 y[{1}*2+{2}] += 2", 0, 1),
        ("4 where ({1} < 4) 4:b y[{1}+{2}] += x[{1}]", 0, 1),
        ("8:b\n| | y[{1}] += x[{1}]\n| | 4 y[{1}] += 2", 0, 0),
        ("8:b\n| | y[{1}] += x[{1}]\n| | 1 where ({1} < 7) y[{1}+1] += 2", 2, 0),
        ("8:b\n| | y[{1}] += x[{1}]\n| | y[0] += 2", 2, 1),
        ("8:b\n| | y[0] += 2\n| | y[{1}] += x[{1}]", 2, 1),
        ("2:b 8:b where (({1}+{2})%2 < 1) y[{2}//2] += x[{2}]", 1, 1),
        ("8:b s[{1}] = 0\n| 8:b 4 s[{1}] += x[{2}]\n| 8:b y[{1}] += s[7-{1}]", 1, 1),
    ],
)
def test_threads_meet_in_other_iterations_and_statements(nest: str, atomics: int, barriers: int) -> None:
    """By atomic operations within threads; between them, barriers keep sums apart."""
    text = MEETING.replace("1:g 16 y[%s] += x[{1}]", f"{1 + ('s[' in nest)}:g\n| {nest}")
    program = kernel(text.replace("\n\n", "\ns f32 [8] shared\n\n") if "s[" in nest else text)
    text = device_text(program, spelling=CudaSpelling(), machine=machine("nvidia-sm90")).text
    assert (text.count("pd_atomic_add(&"), text.count("__syncthreads()")) == (atomics, barriers)
    require_fibers()
    code = compile_kernels([program], described=machine("nvidia-sm90"))
    given = given_for(program, {}, 0)
    for found in code.run(program, given, ways=FEW):
        close(found, interpret(program, given), program)


@pytest.mark.parametrize("index", ["{1}//2", "idx[{1}]"])
def test_products_of_threads_that_meet_are_refused(index: str) -> None:
    program = Program(kernel((MEETING % index).replace("+=", "*=")), machine("nvidia-sm90"))
    with pytest.raises(IllegalMove, match=r"race on 'y': nvidia-sm90 has no atomic operation mul\.f32"):
        apply(program, Move.parse("map_block@y#1:1"))
    mapped = (MEETING % index).replace("+=", "*=").replace("1:g 16 ", "1:g 16:b ")
    with pytest.raises(LoweringError, match=r"no atomic operation mul\.f32"):
        device_text(kernel(mapped), spelling=CudaSpelling(), machine=machine("nvidia-sm90"))


def test_writes_of_threads_that_may_meet_are_refused() -> None:
    program = Program(kernel((MEETING % "idx[{1}]").replace("+=", "=")), machine("nvidia-sm90"))
    for move in ("map_block@y#1:1", "map_warp@y#1:1"):
        with pytest.raises(IllegalMove, match="different iterations race on 'y'"):
            apply(program, Move.parse(move))


@pytest.mark.parametrize(
    "loop", ["4 where ({0} < n[])\n| 8:g y[{0},{1}] = x[{1}]", "4 where (n[]-{0} >= 1) 8:g y[{0},{1}] = x[{1}]"]
)
def test_loops_of_the_host_see_no_indices(loop: str) -> None:
    text = "kernel k(x, n) -> (y)\nx f32 [8] heap\nn i32 [] heap in 0..4\ny f32 [4, 8] heap\n\n4 8 y[{0},{1}] = 0\n"
    with pytest.raises(
        LoweringError, match="is a loop of the host, and the indices 'n' in its guard are on the device"
    ):
        device_text(kernel(f"{text}{loop}\n"), spelling=CudaSpelling(), machine=machine("nvidia-sm90"))


def test_bounds_of_the_host_need_no_indices() -> None:
    text = "kernel k(x, n) -> (y)\nx f32 [8] heap\nn i32 [] heap in 0..32\ny f32 [4, 8] heap\n\n4 8 y[{0},{1}] = 0\n"
    text += "4\n| 8:g where ({0}*8+{1} < n[]) y[{0},{1}] = x[{1}]\n"
    require_fibers()
    program = kernel(text)
    code = compile_kernels([program], described=machine("nvidia-sm90"))
    for length in (0, 9, 32):
        given: Arrays = {"x": np.arange(8, dtype=np.float32), "n": np.array(length, np.int32)}
        for found in code.run(program, given, ways=FEW):
            close(found, interpret(program, given), program)


def walked(text: str, seed: int) -> KernelOp:
    """A kernel after random moves, most of them mappings to a grid and to threads."""
    random, game = Random(seed), Game(kernel(text), machine("nvidia-sm90"))
    for family in random.choices(["map_grid", "map_block", "tile_scope", "swap_scopes", "split_scopes", "unroll"], k=9):
        moves = game.moves(family)
        if moves:
            game.apply(random.choice(moves))
    return game.program.kernel


def walks() -> Iterator[tuple[str, KernelOp]]:
    for name, text in {**test_scatters.KERNELS, **test_index_arrays.KERNELS}.items():
        allowed = text.replace("\n", "\nnumerics reassociate flush\n", 1)
        for seed in range(2):
            named = allowed.replace(f"kernel {name}(", f"kernel {name}_{seed}(")
            yield named, walked(named, seed)


def test_legal_moves_are_right_on_devices() -> None:
    """All programs in one text, because each text costs a run of a compiler."""
    require_fibers()
    programs = [*walks()]
    mapped = [print_notation(made) for _, made in programs]
    assert min(sum(mark in text for text in mapped) for mark in (":g", ":b")) > 8
    code = compile_kernels([made for _, made in programs], described=machine("nvidia-sm90"))
    for text, made in programs:
        before = kernel(text)
        for sizes in probes([*before.known_sizes().values()]):
            for turn in range(3):
                given = given_for(before, sizes, turn)
                wanted = interpret(before, given, sizes=sizes)
                for found in code.run(made, given, sizes=sizes, ways=FEW[:2]):
                    close(found, wanted, before)

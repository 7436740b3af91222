"""Random legal moves preserve meaning, come back and replay: a short run of what `make fuzz` does for minutes."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pdojo.dialect.attributes import Memory
from pdojo.dialect.flow.program import Program
from pdojo.dialect.machines.registry import machine, machines
from pdojo.dialect.notation import parse_notation, print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.rules.validate import validate
from pdojo.errors import IllegalMove
from pdojo.kernels import kernel_names, workload
from pdojo.transforms.game import Game
from pdojo.transforms.move import Move
from property.kernels import kernels
from property.walks import CPU, assert_walk, random_texts
from qa.fuzzing.jobs import code_against_interpreter
from qa.lowers import lowering_error
from qa.sizes import small_kernel, with_random_sizes
from qa.walks import Counts, FailedWalk, Referee, play, walk
from toolchain import fibers_fault, require_fibers

_WALKS = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@settings(_WALKS, max_examples=15)
@given(kernel=kernels(CPU), seed=st.integers(0, 1 << 20))
def test_walks_on_random_kernels(kernel: KernelOp, seed: int) -> None:
    assert_walk(kernel, "toy", seed, 8, Counts())


@pytest.mark.parametrize(("seeds", "length"), [((0,), 6), pytest.param((1, 2), 12, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", kernel_names(long=False))
def test_walks_on_library_kernels(name: str, seeds: tuple[int, ...], length: int) -> None:
    counts = Counts()
    for seed in seeds:
        assert_walk(small_kernel(name, Random(seed)), "toy", seed, length, counts)
    assert counts.moves > 0.6 * length * len(seeds)


@pytest.mark.parametrize("name", ["softmax", "gemv", "reducesum", "conv"])
def test_walks_for_snitch_cores(name: str) -> None:
    """Streams and hardware loops, too, become code in every legal state."""
    counts = Counts()
    assert_walk(small_kernel(name, Random(1)), "toy-snitch", 1, 8, counts, prefer=("stream", "frep"))
    assert counts.moves > 3


@pytest.mark.parametrize("start", ["copies", "softmax", "matmul"])
@pytest.mark.parametrize("name", ["nvidia-sm90", "toy-gpu"])
def test_walks_for_gpus(name: str, start: str) -> None:
    """Legal states have device code, and some are run by fibers, with copies that land late and early."""
    counts, on = Counts(), machine(name)
    first = parse_notation(COPIES)[0] if start == "copies" else small_kernel(start, Random(2))
    check = code_against_interpreter(4, counts, on) if fibers_fault() is None else None
    prefer = ("map_grid", "map_block", "map_warp", "stage_in", "set_location", "async_copy", "pipeline")
    assert_walk(first, name, 5, 8, counts, check=check, prefer=prefer)
    assert counts.moves > 3
    assert not counts.of("not lowered")
    assert counts["compiled", ""] or check is None


SIMPLE = """kernel k(x) -> (y)
x f32 [4, 8] heap
y f32 [4, 8] heap
t f32 [4, 8] heap

4 8 t[{0},{1}] = x[{0},{1}]
4 8 y[{0},{1}] = t[{0},{1}]
"""
MAPPINGS = ("unroll", "parallelize", "vectorize", "map_grid", "map_block", "map_warp", "stream", "frep")


@pytest.mark.parametrize("name", [name for name in machines() if name != "host"])
def test_typed_mappings_and_memories_have_code(name: str) -> None:
    """Moves that are not proposed are refused, or their states have code."""
    game = Game(parse_notation(SIMPLE)[0], machine(name))
    assert lowering_error(game.program) is None
    typed = [f"{move}@%{scope.id}" for move in MAPPINGS for scope in game.program.nest.scopes]
    typed += [f"set_location@t{{location={memory.value}}}" for memory in Memory]
    legal = 0
    for move in typed:
        fork = game.fork()
        try:
            fork.apply(move)
        except IllegalMove:
            continue
        legal += 1
        assert lowering_error(fork.program) is None, move
    assert legal > 3


def test_a_wrong_wait_breaks_a_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    require_fibers()
    counts, on = Counts(), machine("nvidia-sm90")
    game = Game(parse_notation(COPIES)[0], on)
    check = code_against_interpreter(1, counts, on)
    referee = Referee(game.program, 0, check=check, counts=counts)
    assert play(game, Move.parse("async_copy@t"), referee, 1) is None

    def never(*_: object) -> None:
        pass

    monkeypatch.setattr("pdojo.backends.gpu.barriers._Synchroniser._wait", never)
    assert (failure := check(game.program, 1)) is not None
    assert failure.promise == "device code"
    assert "asynchronous copies late" in failure.detail


COPIES = """kernel k(a, b) -> (c)
a f32 [2, 4] heap
b f32 [2, 4] heap
c f32 [2, 4] heap
s f32 [2, 4] shared
t f32 [2:N, 4] shared

1:g 2
| 4:b s[{1},{2}] = a[{1},{2}]
| 4:b t[{1},{2}] = b[{1},{2}]
| 4:b c[{1},{2}] = s[{1},3-{2}] * t[{1},3-{2}]
"""
"""Two copies to shared memory, which may become asynchronous, and a reader in other threads."""


def test_a_state_without_code_breaks_a_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = small_kernel("softmax", Random(0))
    start = Game(kernel, machine("toy")).program.text

    def only_at_the_start(program: Program) -> str | None:
        return None if program.text == start else "no code for it"

    def never(_: Program) -> str | None:
        return "no code from the beginning"

    monkeypatch.setattr("qa.walks.lowering_error", only_at_the_start)
    *_, last = walk(kernel, machine("toy"), 3, 12, Counts())
    assert isinstance(last, FailedWalk)
    assert (last.failure.promise, last.failure.detail) == ("code", "no code for it")
    monkeypatch.setattr("qa.walks.lowering_error", never)
    assert not any(isinstance(step, FailedWalk) for step in walk(kernel, machine("toy"), 3, 4, Counts()))


def test_random_kernels_are_the_same_for_the_same_number() -> None:
    assert random_texts(3) == random_texts(3) != random_texts(4)


def test_sizes_keep_what_belongs_together() -> None:
    kernel = workload("matmul").instantiate()
    drawn = {tuple(Game(small, machine("toy")).program.nest.arrays["t"].shape) for small in _resized(kernel)}
    assert len(drawn) > 5
    assert all(n <= 12 for shape in drawn for n in shape)


def _resized(kernel: KernelOp) -> list[KernelOp]:
    return [with_random_sizes(kernel, Random(seed)) for seed in range(20)]


REGRESSIONS = {
    "guards with variables in another order": (
        """kernel k(x) -> (y)
x f32 [8, 6] heap
y f32 [8, 6] heap

3 4 3 2 where ({1}*2+{3} < 7, {0}+{2}*3 < 8) y[{0}+{2}*3,({1}*2+{3})%6] = x[0,0]
8 6 y[{0},{1}] = x[{0},{1}]
""",
        ["swap_scopes@y#0:2"],
    ),
    "collapsing scopes of one iteration": (
        """kernel k(x) -> (y)
x f32 [2, 1, 5] heap
y f32 [2, 1, 5] heap

2 1 5 y[{0},{1},{2}] = x[{0},{1},{2}]
""",
        ["collapse_scopes@y:0", "collapse_scopes@y:0"],
    ),
    "a hint that no move sets": (
        """kernel k(x) -> (y)
x f32 [4] heap
y f32 [4] heap align 16

4:v y[{0}]!nontemporal = x[{0}]!prefetch(64)
""",
        ["unhint@y{kind=nontemporal}", "unhint@y{kind=prefetch access=1}"],
    ),
    "partial results of a sum with hints": (
        """kernel k(x) -> (y)
x f32 [4, 6] heap
y f32 [4] heap

4
| y[{0}] = 0
| 6 y[{0}]!prefetch(64) += x[{0},{1}]!prefetch(64)
""",
        ["split_reduction@y#1:1{size=2}"],
    ),
    "a register in a parallel scope of one iteration": (
        """kernel k(x) -> (y)
x f32 [1] heap
y f32 [1] heap
t f32 [] register

1:p
| t[] = x[0]
| y[0] = t[]
""",
        ["unmap@t:0"],
    ),
}


@pytest.mark.parametrize("name", REGRESSIONS)
def test_regressions(name: str) -> None:
    text, moves = REGRESSIONS[name]
    game = Game(parse_notation(text)[0], machine("toy"))
    before = print_notation(game.kernel)
    referee = Referee(game.program, 0)
    for number, move in enumerate(moves):
        assert play(game, Move.parse(move), referee, 4 * number) is None
    while game.trace.steps:
        game.undo()
    assert print_notation(game.kernel) == before


def test_a_register_stays_in_one_thread() -> None:
    text = """kernel k(x) -> (y)
x f32 [1] heap
y f32 [1] heap
t f32 [1] register

1:p
| t[0] = x[0]
| y[0] = t[0]
"""
    game = Game(parse_notation(text)[0], machine("toy"))
    with pytest.raises(IllegalMove, match="own copy of 't', used on both sides of the cut"):
        game.apply("split_scopes@t:0{after=1}")


def test_flows_from_domains_with_divisions_are_found() -> None:
    """A walk met this state; isl's dataflow analysis finds the initial values of the first row only."""
    text = """kernel k(x) -> (c)
x f32 [8, 3] heap
c f32 [8, 5] heap

64 where ({0}%8 <= 4) c[{0}//8,{0}%8] = 0
8 5 2 2 where ({2}+{3}*2 < 3) c[{0},{1}] += x[{0},{2}+{3}*2]
"""
    validate(Game(parse_notation(text)[0], machine("toy")).program)

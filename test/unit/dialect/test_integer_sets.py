"""The integer-set oracle accepts legal moves at any size, and rejects what breaks schedules or storage."""

from __future__ import annotations

from random import Random

import pytest

from pdojo.dialect.flow.program import Program
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.semantics.oracle import IntegerSetOracle, valid_by_sets
from pdojo.dialect.view.build import nest_of
from pdojo.kernels import workload
from pdojo.transforms.apply import apply
from pdojo.transforms.document import example_of
from pdojo.transforms.game import Game
from pdojo.transforms.move import Move
from pdojo.transforms.registry import TRANSFORMATION_NAMES, transformation
from property.walks import random_texts
from qa.walks import Counts, draw
from sample import sampled
from unit.dialect.test_planted import ILLEGAL, NESTED, RAGGED, forced, program_of, without_guards, without_remainder

OTHERS = {name for name, case in ILLEGAL.items() if not transformation(Move.parse(case.move).name).keeps_statements}
"""What changes statements or indices is seen by execution only."""

ALL = ("races", "storage", "instances", "flow")


@pytest.mark.parametrize("name", [name for name in ILLEGAL if name not in OTHERS])
def test_planted_illegal_rewrites_are_rejected(name: str) -> None:
    case = ILLEGAL[name]
    before = program_of(case.text)
    assert valid_by_sets(before.nest).fault is None
    assert IntegerSetOracle(before.nest).judge(forced(before, case.move).nest).fault is not None


@pytest.mark.parametrize("name", sorted(OTHERS))
def test_other_statements_are_not_compared(name: str) -> None:
    case = ILLEGAL[name]
    before = program_of(case.text)
    checked = IntegerSetOracle(before.nest).judge(forced(before, case.move).nest, compare=False).checked
    assert set(checked) <= {"races", "storage"}


def test_missing_and_new_instances(monkeypatch: pytest.MonkeyPatch) -> None:
    from pdojo.transforms.structure import tiling

    ragged, nested = program_of(RAGGED), program_of(NESTED)
    monkeypatch.setattr(tiling, "place_guards", without_guards(tiling.place_guards))
    found = IntegerSetOracle(ragged.nest).judge(forced(ragged, "tile_scope@y#1:0{size=4}").nest)
    assert found.fault is not None
    assert found.fault.startswith("instances: the statement that writes 'y' runs 7 times before the move, 8 times")
    monkeypatch.setattr(tiling, "digits_of", without_remainder(tiling.digits_of))
    found = IntegerSetOracle(nested.nest).judge(forced(nested, "collapse_scopes@y:0").nest)
    assert found.fault is not None
    assert found.fault.startswith("instances: missing after the move: the statement that writes 'y'")


def walk(game: Game, seed: int, length: int) -> set[tuple[str, ...]]:
    """What was checked on a walk of legal moves, none of which may be at fault."""
    random = Random(seed)
    checked: set[tuple[str, ...]] = set()
    for _ in range(length):
        before = game.program
        move = draw(before, random, Counts())
        if move is None:
            break
        game.apply(move)
        found = IntegerSetOracle(before.nest).judge(
            game.program.nest, compare=transformation(move.name).keeps_statements
        )
        assert found.fault is None, (str(move), found)
        checked.add(found.checked)
    return checked


def test_legal_moves_on_random_kernels_are_accepted() -> None:
    games = [Game(parse_notation(text)[0], machine("toy")) for text in random_texts(7)[:8]]
    assert ALL in set().union(*(walk(game, seed, 6) for seed, game in enumerate(games)))


LONG = ("batchnorm",)
"""Kernels of so many statements in four loops that isl may not use as many operations as their flow needs."""


@pytest.mark.parametrize("name", sampled())
def test_legal_moves_at_real_sizes_are_accepted(name: str) -> None:
    kernel = workload(name).instantiate()
    # Walks whose moves all change statements are not judged by all questions.
    walks = (walk(Game(kernel, machine("x86-64-avx512")), seed, 5) for seed in range(3, 9))
    wanted = ALL[:-1] if name in LONG else ALL
    assert any(wanted in checked for checked in walks)


FUSED = """kernel softmax(x) -> (y)
x f32 [24576, 512] heap
y f32 [24576, 512] heap
m f32 [24576:N] stack
e f32 [24576:N, 512] stack
s f32 [24576:N] stack

24576:p
| m[{0}] = -inf
| 512 m[{0}] max= x[{0},{1}]
| 512 e[{0},{1}] = x[{0},{1}] - m[{0}]
| s[{0}] = 0
| 512
| | e[{0},{1}] = exp(e[{0},{1}])
| | s[{0}] += e[{0},{1}]
| 32 16:v y[{0},{1}*16+{2}] = e[{0},{1}*16+{2}] / s[{0}]
"""


def test_a_fused_softmax_at_its_real_size() -> None:
    before = workload("softmax").instantiate()
    (after,) = parse_notation(FUSED)
    found = IntegerSetOracle(nest_of(before)).judge(nest_of(after))
    assert (found.fault, found.checked, found.open) == (None, ALL, ())
    (shared,) = parse_notation(FUSED.replace("e f32 [24576:N, 512]", "e f32 [24576:N, 512:N]"))
    found = IntegerSetOracle(nest_of(before)).judge(nest_of(shared))
    assert found.fault is not None
    assert found.fault.startswith("storage: a value is lost: write of e[{0},{1}] at iteration")
    (racy,) = parse_notation(FUSED.replace("m f32 [24576:N]", "m f32 [1]").replace("m[{0}]", "m[0]"))
    assert str(valid_by_sets(nest_of(racy)).fault).startswith("race: write of m[0]")


def test_accumulations_may_be_reordered() -> None:
    text = """kernel k(x) -> (y)
x f32 [300, 7] heap
y f32 [300] heap

300 y[{0}] = 1
300 7 y[{0}] += x[{0},{1}]
300 y[{0}] *= x[{0},0]
"""
    (before,) = parse_notation(text)
    (reversed_,) = parse_notation(text.replace("300 7 y[{0}] += x[{0},{1}]", "300 7 y[{0}] += x[{0},6-{1}]"))
    assert IntegerSetOracle(nest_of(before)).judge(nest_of(reversed_)).fault is None
    lines = text.splitlines()
    lines[-1], lines[-2] = lines[-2], lines[-1]
    (swapped,) = parse_notation("\n".join(lines))
    fault = IntegerSetOracle(nest_of(before)).judge(nest_of(swapped)).fault
    assert fault is not None
    assert fault.startswith("flow: only")


def test_threads_and_blocks_combine_what_they_accumulate() -> None:
    text = """kernel k(x) -> (y)
x f32 [8] heap
y f32 [] heap

y[] = 0
1:g 8:b y[] += x[{1}]
"""
    assert valid_by_sets(Program(parse_notation(text)[0], machine("toy-gpu")).nest).fault is None
    # Blocks add by atomic operations; what else they write races.
    grids = text.replace("1:g 8:b", "1:g 8:g")
    assert valid_by_sets(nest_of(parse_notation(grids)[0])).fault is None
    assert "race" in str(valid_by_sets(nest_of(parse_notation(grids.replace("y[] +=", "y[] ="))[0])).fault)


def test_streams_run_ahead_and_late() -> None:
    text = """kernel k(x) -> (y)
x f32 [8] heap
y f32 [8] heap
t f32 [8] heap

8:s
| t[{0}] = x[{0}]
| y[{0}] = t[{0}]
"""
    assert "race: in a stream, read of t[{0}]" in str(valid_by_sets(nest_of(parse_notation(text)[0])).fault)
    (kept,) = parse_notation(text.replace("t f32 [8] heap", "t f32 [8:N] register"))
    assert valid_by_sets(nest_of(kept)).fault is None
    twice = text.replace("y[{0}] = t[{0}]", "t[{0}] = x[{0}] + x[{0}]")
    assert "race: in a stream, write of t" in str(valid_by_sets(nest_of(parse_notation(twice)[0])).fault)


def test_loads_and_stores_in_a_stream_keep_their_order() -> None:
    text = """kernel k(x) -> (y)
machine toy-snitch
x f64 [8] heap
y f64 [8] heap

8 y[{0}] = 0
3:s 8 y[{1}]ORDINARY += x[{1}]
8:s
| y[{0}]ORDINARY = x[{0}]
| y[{0}]OTHER = x[{0}] + 1
"""
    both = text.replace("ORDINARY", "!ordinary").replace("OTHER", "!ordinary")
    assert valid_by_sets(nest_of(parse_notation(both)[0])).fault is None
    for other in (
        text.replace("ORDINARY", "").replace("OTHER", "!ordinary"),
        both.replace("!ordinary = x[{0}] +", " = x[{0}] +"),
    ):
        assert "race: in a stream" in str(valid_by_sets(nest_of(parse_notation(other)[0])).fault)


def test_work_is_limited_and_what_is_left_open_is_said() -> None:
    before = workload("softmax").instantiate()
    found = IntegerSetOracle(nest_of(before), operations=50).judge(nest_of(before))
    assert found.fault is None
    assert [note.partition(": ")[2] for note in found.open] == ["more than 50 isl operations"]


def test_work_that_ends_anywhere_leaves_something_open() -> None:
    """Also while isl reads a text: it calls that a mistake in the text then."""
    before = program_of(GUARDED)
    after = forced(before, "peel_scope@y#1:0{after=2}")
    limits = [*range(1_000, 80_000, 500)]
    found = [IntegerSetOracle(before.nest, limit).judge(after.nest) for limit in limits]
    assert not any(each.fault for each in found)
    assert {bool(each.open) for each in found} == {True, False}


GUARDED = """kernel k(x) -> (y)
x f32 [8, 9] heap
y f32 [8, 9] heap

8 9 y[{0},{1}] = 0
8 9 where ({0} - {1} >= 1) y[{0},{1}] = x[{0},{1}] + 1
"""


def test_statements_in_other_forms_are_no_other_instances() -> None:
    """A copy of a sum keeps its first value exposed, so that both programs have statements of all forms."""
    game = Game(parse_notation(PEELED)[0], machine("toy"))
    before = game.program
    game.apply(Move.parse("absorb_init@z#4"))
    found = IntegerSetOracle(before.nest).judge(
        game.program.nest, compare=transformation("absorb_init").keeps_statements
    )
    assert found.fault is None


@pytest.mark.parametrize("name", [name for name in TRANSFORMATION_NAMES if transformation(name).keeps_statements])
def test_moves_whose_instances_are_compared_make_no_other_statements(name: str) -> None:
    example = example_of(transformation(name))
    before = Program(example.kernel(), machine(example.machine))
    after = apply(before, example.move).program

    def forms(program: Program) -> set[tuple[object, ...]]:
        return {(each.output.array.name, each.function, each.accumulate) for each in program.nest.leaves}

    assert forms(before) == forms(after)


PEELED = """kernel mul(x, y) -> (z)
x f32 [4] heap
y f32 [4] heap
z f32 [4] heap

z[0] = x[0] * y[0]
2
| z[{0}+1] = x[{0}+1]
| z[{0}+1] *= y[{0}+1]
z[3] = x[3]
z[3] *= y[3]
"""

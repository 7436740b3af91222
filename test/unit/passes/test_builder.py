"""Passes made of moves by `PassBuilder`."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest

from pdojo import load
from pdojo.dialect.flow.program import Program
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation, print_notation
from pdojo.dialect.reason import Reason
from pdojo.dialect.rules.conditions import Conditions
from pdojo.dialect.semantics.oracle import equivalent
from pdojo.dialect.verification.verify import verify_kernel
from pdojo.dialect.view.nest import Scope
from pdojo.errors import IllegalMove, UsageError
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.passes import run_pass
from pdojo.transforms.game import Game
from pdojo.transforms.mapping.cpu import Parallelize, Vectorize
from pdojo.transforms.promises import Promises
from pdojo.transforms.structure.fusion import JoinScopes

TEXT = """
kernel k(x) -> (y)
x f32 [8, 12] heap
y f32 [8, 12] heap
t f32 [8, 12] heap

8 12 t[{0},{1}] = exp(x[{0},{1}])
8 12 y[{0},{1}] = t[{0},{1}] + x[{0},{1}]
"""


@pytest.fixture
def builder() -> PassBuilder:
    return PassBuilder(Game(parse_notation(TEXT)[0], machine("toy")))


def made(builder: PassBuilder) -> list[str]:
    return [str(step.move) for step in builder.game.trace.steps]


@pytest.mark.parametrize(("fact", "function"), [("approximate contract", "exp_approx"), ("contract", "exp")])
def test_the_heuristic_pass_takes_shorter_forms_where_the_kernel_permits_them(fact: str, function: str) -> None:
    text = TEXT.replace("(y)\n", f"(y)\nnumerics {fact}\n", 1)
    game = Game(parse_notation(text)[0], machine("x86-64-avx2"))
    run_pass("heuristic", game)
    assert f"= {function}(" in print_notation(game.program.kernel)


def test_exhaust_makes_moves_until_none_is_legal(builder: PassBuilder) -> None:
    assert builder.exhaust(builder.scopes, "join_scopes", "fused") == 2
    assert builder.exhaust(builder.dimensions, "reuse_dims") == 2
    assert made(builder) == ["join_scopes@t:0", "join_scopes@t:1", "reuse_dims@t:0", "reuse_dims@t:1"]
    assert [note.why for note in builder.notes] == ["fused", "fused", "", ""]
    assert equivalent(builder.game.programs[0].nest, builder.nest) is None


def test_exhaust_has_a_limit(builder: PassBuilder) -> None:
    with pytest.raises(UsageError, match="'swap_dims' was made 20 times and is still legal"):
        builder.exhaust(lambda: ["t:0"], "swap_dims", limit=20)
    assert len(made(builder)) == 20


def test_attempt_says_whether_the_move_was_legal(builder: PassBuilder) -> None:
    assert not builder.attempt("split_scopes", "t:0", after=1)
    assert not builder.attempt("join_scopes", "nothing:0")
    assert builder.attempt("tile_scope", builder.leaf("2").chain[0], "tiles", size=4)
    assert (made(builder), len(builder.notes)) == (["tile_scope@t:0{size=4}"], 1)


def test_transact_is_all_or_nothing(builder: PassBuilder) -> None:
    before = print_notation(builder.game.kernel)
    assert not builder.transact(lambda: builder.attempt("join_scopes", "t:0") and builder.attempt("reuse_dims", "t:1"))
    assert (made(builder), builder.notes, print_notation(builder.game.kernel)) == ([], [], before)
    assert builder.transact(lambda: builder.attempt("join_scopes", "t:0") and builder.attempt("reuse_dims", "t:0"))
    assert made(builder) == ["join_scopes@t:0", "reuse_dims@t:0"]


@pytest.mark.parametrize("kernel", ["softmax:64x1000", pytest.param("batchnorm:2x3x7x9", marks=pytest.mark.slow)])
def test_moves_in_place_lead_where_moves_on_copies_lead(kernel: str) -> None:
    in_place = Game(load(kernel), machine("x86-64-avx512"))
    run_pass("heuristic", in_place)
    on_copies = Game(load(kernel), machine("x86-64-avx512"))
    on_copies.apply_all(step.resolved for step in in_place.trace.steps)
    assert print_notation(on_copies.kernel) == print_notation(in_place.kernel)
    verify_kernel(in_place.kernel)
    assert print_notation(in_place.initial.kernel) == print_notation(on_copies.initial.kernel)
    assert [p.text for p in in_place.programs] == [p.text for p in on_copies.programs]


def test_a_plan_that_fails_changes_nothing_in_place(builder: PassBuilder) -> None:
    game, before = builder.game, builder.game.program
    text = before.text

    def inner() -> bool:
        assert builder.attempt("tile_scope", "y:1", size=4)
        return False

    def outer(is_kept: bool) -> bool:
        assert builder.attempt("join_scopes", "t:0")
        assert not builder.transact(inner)
        assert builder.attempt("join_scopes", "t:1")
        return is_kept

    with game.in_place() as is_sound:
        assert not builder.transact(lambda: outer(is_kept=False))
        assert game.program is before
        assert not builder.notes
        assert builder.transact(lambda: outer(is_kept=True))
        assert builder.attempt("reuse_dims", "t:0")
    assert is_sound()
    assert before.text == text, "programs that were seen before are not rewritten"
    assert made(builder) == ["join_scopes@t:0", "join_scopes@t:1", "reuse_dims@t:0"]
    assert equivalent(game.initial.nest, builder.nest) is None


def test_a_move_in_place_that_breaks_a_condition_is_taken_back(
    builder: PassBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    game = builder.game

    def broken(self: Conditions, after: Conditions, *, proved: bool = False) -> Reason:
        return Reason("a condition")

    with game.in_place():
        assert builder.attempt("join_scopes", "t:0")
        assert builder.attempt("join_scopes", "t:1")
        text = game.program.text
        with monkeypatch.context() as patched:
            patched.setattr(Conditions, "broken", broken)
            patched.setattr(Parallelize, "promises", replace(Parallelize.promises, conditions=False))
            assert not builder.attempt("parallelize", "t:0")
        assert game.program.text == text
        assert builder.attempt("parallelize", "t:0")
    assert made(builder) == ["join_scopes@t:0", "join_scopes@t:1", "parallelize@t:0"]
    assert equivalent(game.initial.nest, builder.nest) is None


def unchecked(self: Vectorize, program: Program, site: Scope) -> None:
    """No reason, though the machine has no vectors of twelve lanes."""


def test_a_plan_is_played_again_on_copies_if_a_check_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    game = Game(parse_notation(TEXT)[0], machine("toy"))
    monkeypatch.setattr(Vectorize, "check", unchecked)
    monkeypatch.setattr(Vectorize, "promises", replace(Vectorize.promises, conditions=True))

    def plan(builder: PassBuilder) -> None:
        builder.attempt("vectorize", "y:1")
        builder.attempt("join_scopes", "t:0")

    assert [str(note.move) for note in PassBuilder.play(game, plan).notes] == ["join_scopes@t:0"]
    verify_kernel(game.kernel)


def test_a_plan_that_trips_over_a_wrong_check_is_played_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A move may be blamed for what a move before it has broken: only playing one by one shows which check is wrong."""
    game = Game(parse_notation(TEXT)[0], machine("toy"))
    monkeypatch.setattr(Vectorize, "check", unchecked)
    monkeypatch.setattr(Vectorize, "promises", replace(Vectorize.promises, conditions=True))
    monkeypatch.setattr(JoinScopes, "promises", Promises())

    def plan() -> None:
        with suppress(IllegalMove):
            game.apply("vectorize@y:1")
        game.apply("join_scopes@t:0")

    game.at_once(plan)
    assert [str(move) for move in game.trace.moves] == ["join_scopes@t:0"]
    verify_kernel(game.kernel)


MAPPED = """
kernel mapped(x) -> (y)
x f32 [4, 4] heap
y f32 [4, 4] heap

4:g 4:b y[{0},{1}] = x[{0},{1}]
"""


def test_every_program_of_a_plan_is_well_formed() -> None:
    """Threads of a block are inside a grid, also if the next move unmaps them: undo leads to every program."""
    game = Game(parse_notation(MAPPED)[0], machine("toy-gpu"))
    moves = ["unmap@y:0", "unmap@y:1"]
    with pytest.raises(IllegalMove, match="must be inside a grid scope"):
        game.apply_all(moves)
    with pytest.raises(IllegalMove, match="must be inside a grid scope"):
        game.at_once(lambda: game.apply_all(moves))
    assert game.trace.moves == []

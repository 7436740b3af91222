"""The programs of a game: few are kept, and those that are asked for are what they were."""

from __future__ import annotations

from functools import cache

import pytest
from xdsl.dialects.builtin import IndexType, IntegerAttr

from pdojo.dialect.flow.program import Program
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.build import nest_of
from pdojo.dialect.view.nest import Scope
from pdojo.errors import IllegalMove
from pdojo.transforms.apply import legal
from pdojo.transforms.game import Game
from pdojo.transforms.history import STRIDE, Place, make
from pdojo.transforms.move import Move
from pdojo.transforms.registry import transformation
from pdojo.transforms.trace import Step

TOY = machine("toy")
KERNEL = """
kernel k(x) -> (y)
x f32 [64, 32] heap
y f32 [64, 32] heap
t f32 [64, 32] heap

64 32 t[{0},{1}] = x[{0},{1}] - 1
64 32 y[{0},{1}] = exp(t[{0},{1}])
"""
MOVES = (
    "join_scopes@t:0",
    "reuse_dims@t:0",
    "tile_dim@t:1{size=8}",
    "tile_scope@t:1{size=8}",
    "tile_scope@t:0{size=16}",
    "tile_scope@t:0{size=2}",
    "swap_scopes@t:0",
    "unroll@t:4",
    "parallelize@t:0",
    "tile_scope@t:2{size=4}",
    "set_location@t{location=stack}",
)


def parse() -> KernelOp:
    return parse_notation(KERNEL)[0]


def by_hand() -> Game:
    game = Game(parse(), TOY)
    game.apply_all(MOVES)
    return game


@cache
def steps_by_hand() -> tuple[Step, ...]:
    return tuple(by_hand().trace.steps)


@cache
def texts_by_hand() -> tuple[str, ...]:
    return tuple(texts(by_hand()))


def replayed() -> Game:
    game = Game(parse(), TOY)
    assert game.replay(steps_by_hand()) == []
    return game


def texts(game: Game) -> list[str]:
    return [program.text for program in game.programs]


def test_few_of_the_programs_are_kept() -> None:
    game = replayed()
    assert len(game.programs) == 1 + len(MOVES) > STRIDE + 2
    assert list(game.programs.kept()) == [game.initial, game.program]
    # The others are made again, with one in a few kept on the way.
    assert game.programs[len(MOVES) - 1].text == by_hand().programs[-2].text
    assert len(list(game.programs.kept())) == 3
    assert game.programs[STRIDE] is game.programs[STRIDE]


def test_programs_are_what_they_were() -> None:
    expected = list(texts_by_hand())
    assert len(set(expected)) == len(expected)
    game = replayed()
    assert texts(game) == expected
    assert len(set(game.programs.forms())) == len(expected)
    assert game.programs.forms() == by_hand().programs.forms()
    for order in (range(len(expected)), reversed(range(len(expected)))):
        game = replayed()
        assert {k: game.programs[k].text for k in order} == dict(enumerate(expected))
    for part in (slice(3, 7), slice(-4, None), slice(None, None, -3), slice(5, 5)):
        assert [program.text for program in replayed().programs[part]] == expected[part]
    with pytest.raises(IndexError):
        game.programs[len(expected)]


def test_programs_made_again_do_not_change_with_the_game() -> None:
    game = replayed()
    held = list(game.programs)
    before = [program.text for program in held]
    game.undo(2)
    game.apply("tile_scope@y:2{size=2}")
    assert [Program(program.kernel, TOY).text for program in held] == before


def test_places_do_not_need_the_programs() -> None:
    game, played = replayed(), by_hand()
    assert game.places == played.places
    assert game.places[0] == Place(64, "0", "3")
    assert game.places[2] == Place(32, "1")
    for before in reversed(texts(game)[:-1]):
        game.undo()
        assert game.program.text == before


def test_forks_go_their_own_ways() -> None:
    game = replayed()
    expected = texts(game)
    other = game.fork()
    other.undo(4)
    other.apply("tile_scope@y:0{size=2}")
    assert texts(game) == expected
    assert texts(other)[:5] == expected[:5]
    assert other.program.text not in expected


def test_an_edited_trace_is_what_was_made_at_once() -> None:
    """What follows an edit is played again from a program that is not kept."""
    game = replayed()
    moves = [step.resolved for step in game.trace.steps]
    for dropped in range(len(moves)):
        edited = game.fork()
        rest = [*moves[:dropped], *moves[dropped + 1 :]]
        skipped = [str(s) for s in edited.become(rest)]
        fresh = Game(parse(), TOY)
        assert skipped == [str(s) for s in fresh.become(rest)]
        assert texts(edited) == texts(fresh)


def test_a_replay_that_breaks_off_leaves_a_game(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = steps_by_hand()
    expected = list(texts_by_hand())
    game = Game(parse(), TOY)

    add = game._add  # pyright: ignore[reportPrivateUsage]

    def interrupted(step: Step, place: Place, program: Program, *, keeps: bool = True) -> None:
        # The kernel is changed already, and the move is not made.
        if len(game.trace.steps) == 5:
            raise KeyboardInterrupt
        add(step, place, program, keeps=keeps)

    monkeypatch.setattr(game, "_add", interrupted)
    with pytest.raises(KeyboardInterrupt):
        game.replay(steps)
    monkeypatch.undo()
    assert [step.resolved for step in game.trace.steps] == [step.resolved for step in steps[:5]]
    assert texts(game) == expected[:6]


def test_a_program_whose_kernel_was_changed_cannot_be_asked() -> None:
    program = Game(parse(), TOY).program.copy()
    assert program.text
    assert program.uses
    scope = program.nest.scopes[0]
    make(program, Move.parse("tile_scope@t:0{size=8}"))
    for ask in (lambda: program.text, lambda: program.uses, lambda: program.kernel, lambda: program.nest):
        with pytest.raises(RuntimeError, match="the kernel was rewritten in place"):
            ask()
    assert not scope.children


def test_a_refused_move_changes_nothing() -> None:
    program = Game(parse(), TOY).program.copy()
    before = program.text
    with pytest.raises(IllegalMove):
        legal(program, Move.parse("join_scopes@y:0"))
    assert Program(program.kernel, TOY).text == before


def test_copies_are_apart() -> None:
    """The operations of a copy are others, with the same attributes; the view is that of the copied kernel."""
    program = by_hand().program
    text, printed = program.text, str(program.kernel)
    copy = program.copy()
    assert str(copy.kernel) == printed
    copy.kernel.verify()
    ours, theirs = ({id(op) for op in kernel.walk()} for kernel in (program.kernel, copy.kernel))
    assert not ours & theirs
    fresh = nest_of(copy.kernel)
    for one, other in zip((*fresh.scopes, *fresh.leaves), (*copy.nest.scopes, *copy.nest.leaves), strict=True):
        assert one.op is other.op
        assert (one.id, one.position, [s.op for s in one.chain]) == (
            other.id,
            other.position,
            [s.op for s in other.chain],
        )
    for one, other in zip(fresh.arrays.values(), copy.nest.arrays.values(), strict=True):
        assert (one.name, one.value, one.buffer.op) == (other.name, other.value, other.buffer.op)
    after = make(copy, Move.parse("unroll@y:1"))
    assert after.text != text
    assert (Program(program.kernel, TOY).text, str(program.kernel)) == (text, printed)


@pytest.mark.parametrize("keeps", [True, False])
@pytest.mark.parametrize("at", [0, 1, 5, len(MOVES) - 1])
def test_a_mark_is_returned_to_whether_its_program_is_kept_or_not(keeps: bool, at: int) -> None:
    expected = list(texts_by_hand())
    game = Game(parse(), TOY)
    with game.in_place() as is_sound:
        game.apply_all(MOVES[:at])
        mark = game.mark(keeps=keeps)
        game.apply_all(MOVES[at:])
        # The plain program, which is the mark's if there are no moves yet, the mark's, and the present one.
        assert len(list(game.programs.kept())) == 2 + (keeps and at > 0)
        game.rewind(mark)
        assert game.program.text == expected[at]
        again = game.mark(keeps=keeps)
        game.apply(MOVES[at])
        game.rewind(again)
        assert game.program.text == expected[at]
        game.apply_all(MOVES[at:])
        assert is_sound()
    assert texts(game) == expected


def test_a_malformed_program_in_place_is_found_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def rewrite(_: object, __: Program, site: Scope, ___: object) -> None:
        site.op.properties["extent"] = IntegerAttr(0, IndexType())

    monkeypatch.setattr(transformation("unroll"), "rewrite", rewrite)
    game = Game(parse(), TOY)
    with game.in_place() as is_sound:
        game.apply("unroll@y:1")
        assert not is_sound()
    again = Game(parse(), TOY)
    with pytest.raises(IllegalMove, match="at least one iteration"):
        again.at_once(lambda: again.apply("unroll@y:1"))
    assert not again.trace.steps
    (skipped,) = again.replay(game.trace.steps)
    assert "at least one iteration" in skipped.why

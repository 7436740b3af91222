"""Questions that take too long: the move is refused, and nothing waits for it."""

from __future__ import annotations

from threading import Event, Thread

import islpy
import pytest

from pdojo.dialect.flow import integer_sets, storage_check
from pdojo.dialect.flow.integer_sets import Answers, bounded, context, sample
from pdojo.dialect.flow.program import Program
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.rules import validate
from pdojo.dialect.shortcuts import clobber, enumeration
from pdojo.errors import IllegalMove, InvalidKernel, Undecided
from pdojo.transforms.game import Game

# Whether rows of 't' may share one slot is a question of divisions: no digits settle it.
SHIFTED = """
kernel shifted(x) -> (y)
x f32 [64] heap
y f32 [64] heap
t f32 [16, 4] heap

15
| 4 t[({0}*4+{1}+4)//4,({0}*4+{1}+4)%4] = x[{0}*4+{1}+4]
| 4 y[{0}*4+{1}+4] = exp(t[({0}*4+3-{1}+4)//4,{1}])
4 t[0,{0}] = x[{0}]
4 y[{0}] = exp(t[0,{0}])
"""
MOVE = "reuse_dims@t:0"

# Whether every element that is read was written is such a question too.
BACKWARDS = """
kernel backwards(x) -> (y)
x f32 [64] heap
y f32 [64] heap
t f32 [16, 4] heap

6 t[{0}//4,{0}%4] = x[{0}]
14
| 4 t[({0}*4+{1}+6)//4,({0}*4+{1}+6)%4] = x[{0}*4+{1}+6]
2 t[15,{0}+2] = x[{0}+62]
14
| 4 y[{0}*4+{1}+6] = exp(t[({0}*4+9-{1})//4,({0}*4+9-{1})%4])
6 y[{0}] = exp(t[{0}//4,{0}%4])
2 y[{0}+62] = exp(t[15,{0}+2])
"""

# Whether columns of 'e' may share five slots takes integer sets more than all their operations.
FOLDED = """
kernel folded(x) -> (y)
x f32 [1024, 512] heap
y f32 [524288] heap
e f32 [33024, 16] heap

524288 e[({0}+{0}//512*4)//16,({0}+{0}//512*4)%16] = x[{0}//512,{0}%512]
1024
| 512 y[{0}*512+{1}] = exp(e[{0}*32+({0}*4+{1})//16,({0}*4+{1})%16])
"""

NAMES = ["i", "j"]
CONSTRAINTS = ["0 <= i < 100", "0 <= j < 100", "3i + 5j = 77", "i mod 7 = 3"]


def game() -> Game:
    return Game(parse_notation(SHIFTED)[0], machine("toy"))


def test_what_is_not_settled_is_refused_and_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enumeration, "MOST", 0)
    state = game()
    state.apply(MOVE)
    assert state.programs[0].storage.exact_queries == 1
    state = game()
    monkeypatch.setattr(integer_sets, "OPERATIONS", 500)
    for _ in range(2):
        with pytest.raises(IllegalMove, match=r"reuse_dims@t:0 is refused: integer sets do not settle it within 500"):
            state.apply(MOVE)
        asked = state.program.storage.exact_queries
        assert asked == 1
    # Of another program it is another question.
    state.apply("tile_scope@y#1:0{size=2}")
    monkeypatch.undo()
    state.apply(MOVE)


def test_single_reads_refute_what_integer_sets_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """They do not prove anything: a legal move stays undecided."""

    def unsettled(*_: object) -> None:
        raise Undecided("integer sets do not settle it")

    monkeypatch.setattr(enumeration, "MOST", 0)

    def nothing(*_: object) -> None:
        """The fast refutation finds nothing."""

    monkeypatch.setattr(clobber, "lost_value", nothing)
    monkeypatch.setattr(storage_check, "compare_flows", unsettled)
    with pytest.raises(IllegalMove, match=r"reuse_dims@t:0 is refused: integer sets do not settle it"):
        game().apply(MOVE)
    state = Game(parse_notation(BACKWARDS)[0], machine("toy"))
    with pytest.raises(IllegalMove, match=r"'t' would be overwritten before its last read\s*witness: value lost"):
        state.apply(MOVE)


def test_a_fold_that_single_reads_refute() -> None:
    state = Game(parse_notation(FOLDED)[0], machine("toy"))
    with pytest.raises(IllegalMove, match=r"'e' would be overwritten before its last read"):
        state.apply("fold_dim@e:1{slots=5}")


def test_kernels_that_cannot_be_checked_are_no_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = parse_notation(BACKWARDS)[0]
    Game(kernel, machine("toy"))
    monkeypatch.setattr(validate, "OPERATIONS", 500)
    with pytest.raises(InvalidKernel, match=r"kernel 'backwards' cannot be checked: integer sets do not settle it"):
        Game(kernel, machine("toy"))


def test_bounds_begin_with_each_question() -> None:
    alone = 0
    for alone in range(100, 100_000, 100):
        try:
            with bounded(alone):
                assert sample(NAMES, CONSTRAINTS) is not None
            break
        except Undecided:
            continue
    for _ in range(20):
        with bounded(alone):
            assert sample(NAMES, CONSTRAINTS) is not None
    # What is asked within a question is part of it.
    with pytest.raises(Undecided), bounded(alone):
        _sample_often(20)
    assert context().get_max_operations() == 0
    assert sample(NAMES, CONSTRAINTS) is not None


def test_threads_take_turns() -> None:
    begun, found = Event(), list[str]()

    def ask() -> None:
        begun.set()
        try:
            with bounded(1):
                sample(NAMES, CONSTRAINTS)
        except Undecided as undecided:
            found.append(str(undecided))

    other = Thread(target=ask)
    with bounded():
        other.start()
        assert begun.wait(10)
        other.join(0.2)
        assert other.is_alive()
        assert sample(NAMES, CONSTRAINTS) is not None
    other.join(10)
    assert found == ["integer sets do not settle it within 1 operations"]
    assert context().get_max_operations() == 0


def _sample_often(count: int) -> None:
    for _ in range(count):
        sample(NAMES, CONSTRAINTS)


def test_work_may_end_at_any_operation() -> None:
    """Also while the coordinates of a point are asked for, where isl gives nothing instead of an error."""
    ask = ["0<=i<9", "0<=j<9", "floor((i+j)/3) - i >= 1", "i-j>=-7"]
    answers = set[tuple[int, ...] | None]()
    undecided = 0
    for operations in range(1, 3000):
        try:
            with bounded(operations):
                answers.add(sample(("i", "j"), ask))
        except Undecided:
            undecided += 1
    assert undecided > 1000
    assert len(answers) == 1


def test_other_errors_are_errors() -> None:
    with pytest.raises(islpy.Error), bounded():
        islpy.Set.read_from_str(context(), "{ [i : }")
    assert context().get_max_operations() == 0


def test_what_was_raised_is_not_kept() -> None:
    answers = Answers[str, int]()

    def never() -> int:
        raise Undecided("too long")

    errors: list[Undecided] = []
    for _ in range(2):
        with pytest.raises(Undecided, match="too long") as caught:
            answers.of("q", never)
        errors.append(caught.value)
    assert errors[0] is not errors[1]
    assert answers.of("r", lambda: 1) == 1


def test_programs_forget_nothing_that_was_settled() -> None:
    program = Program(parse_notation(SHIFTED)[0], machine("toy"))
    violation = program.storage_violation("t", (1, 0))
    with bounded(1):
        assert program.storage_violation("t", (1, 0)) == violation

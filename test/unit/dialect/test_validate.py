"""Validation: what a kernel without meaning is told, and that moves never lead to one."""

from __future__ import annotations

import re

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.parser import Parser

from pdojo.dialect.canonical import canonicalize
from pdojo.dialect.flow.program import Program
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation, print_notation
from pdojo.dialect.ops import PDOJO, KernelOp
from pdojo.dialect.rules.validate import validate
from pdojo.errors import IllegalMove, InvalidKernel
from pdojo.transforms.apply import apply, legal_moves
from pdojo.transforms.game import Game
from pdojo.transforms.move import Move

T = "t f32 [8] heap"
REUSED = "t f32 [8:N] heap"


def program(body: str, declarations: str = "") -> Program:
    """A kernel from x to y, of 8 elements each."""
    text = f"kernel k(x) -> (y)\nx f32 [8] heap\ny f32 [8] heap\n{declarations}\n\n{body}"
    return Program(parse_notation(text)[0], machine("toy"))


def lanes(*statements: str) -> Program:
    """Statements over the lanes %i of 4, in MLIR that is not verified: no statement depends on itself in what is."""
    body = "\n".join(f"pdojo.scope %i = 4 : v {{ pdojo.op {s} }}" for s in statements)
    text = (
        "pdojo.kernel @k(in x %x : memref<8xf32>, out y %y : memref<8xf32>) {\n"
        f"pdojo.scope %j = 8 {{ pdojo.op %y[%j] = %x[%j] }}\n{body}\n}}"
    )
    context = Context()
    context.load_dialect(Builtin)
    context.load_dialect(PDOJO)
    kernel = Parser(context, text).parse_module().body.block.first_op
    assert isinstance(kernel, KernelOp)
    return Program(kernel, machine("toy"))


def assert_invalid(wrong: Program, message: str) -> None:
    with pytest.raises(InvalidKernel, match=re.escape(message)):
        validate(wrong)
    with pytest.raises(InvalidKernel, match=re.escape(message)):
        Game(wrong.kernel, wrong.machine)


WRITTEN = {
    "all": "8 y[{0}] = x[{0}]",
    "in parts": "4 y[{0}] = x[{0}]\n4 y[{0}+4] = x[{0}]",
    "interleaved": "4 y[{0}*2] = x[{0}]\n4 y[{0}*2+1] = x[{0}]",
    "guarded tiles": "3 3 where ({0}*3+{1} < 8) y[{0}*3+{1}] = x[{0}]",
    "backwards": "8 y[7-{0}] = x[{0}]",
    "divided": "16 y[{0}//2] = x[{0}//2]",
    "border and interior": "2 y[{0}*7] = 0\n8 where ({0} >= 1, {0} < 7) y[{0}] = x[{0}]",
}


@pytest.mark.parametrize("name", WRITTEN)
def test_outputs_that_are_written(name: str) -> None:
    validate(program(WRITTEN[name]))


@pytest.mark.parametrize(
    ("body", "index"),
    [
        ("7 y[{0}] = x[{0}]", 7),
        ("4 y[{0}*2] = x[{0}]", 1),
        ("7 y[{0}+1] = x[{0}]", 0),
        ("2 4 where ({0}*4+{1} < 7) y[{0}*4+{1}] = x[{0}]", 7),
        ("3 3 where ({0}*3+{1} < 8, {1} > 0) y[{0}*3+{1}] = x[{0}]\ny[0] = 0\ny[3] = 0", 6),
        ("8 where ({0} < 0) y[{0}] = x[{0}]\n7 y[{0}] = 0", 7),
        ("8 t[{0}] = x[{0}]\ny[0] = t[0]\n6 y[{0}+2] = t[{0}]", 1),
    ],
)
def test_outputs_that_are_not(body: str, index: int) -> None:
    assert_invalid(program(body, T), f"output 'y' is never written at [{index}]")


INITIALISED = {
    "before": "8 t[{0}] = x[{0}]\n8 y[{0}] = t[{0}]",
    "same iteration": "8\n| t[{0}] = x[{0}]\n| y[{0}] = t[{0}]",
    "same guard": "8 y[{0}] = 0\n8 where ({0} < 5)\n| t[{0}] = x[{0}]\n| y[{0}] = t[{0}]",
    "wider guard first": "8 y[{0}] = 0\n8 where ({0} < 6) t[{0}] = x[{0}]\n8 where ({0} < 5) y[{0}] = t[{0}]",
    "tiles of other sizes": (
        "3 3 where ({0}*3+{1} < 8) t[{0}*3+{1}] = x[{0}]\n2 5 where ({0}*5+{1} < 8) y[{0}*5+{1}] = t[{0}*5+{1}]"
    ),
    "earlier iteration": "t[0] = x[0]\n8 y[{0}] = 0\n7\n| t[{0}+1] = x[{0}]\n| y[{0}] = t[{0}]",
    "in two halves": "4 t[{0}*2] = 1\n4 t[{0}*2+1] = 2\n8 y[{0}] = t[{0}]",
    "accumulated after": "8 y[{0}] = 0\n8 y[{0}] += x[{0}]",
}


@pytest.mark.parametrize("name", INITIALISED)
def test_reads_of_written_elements(name: str) -> None:
    validate(program(INITIALISED[name], T))


@pytest.mark.parametrize(
    ("body", "read"),
    [
        ("8 y[{0}] = t[{0}]", "t[{0}] at iteration (0) gets an element of 't'"),
        ("7 t[{0}] = x[{0}]\n8 y[{0}] = t[{0}]", "t[{0}] at iteration (7) gets an element of 't'"),
        ("8 y[{0}] = t[{0}]\n8 t[{0}] = x[{0}]", "t[{0}] at iteration (0) gets an element of 't'"),
        ("8\n| y[{0}] = t[{0}]\n| t[{0}] = x[{0}]", "t[{0}] at iteration (0) gets an element of 't'"),
        ("8 where ({0} >= 1) t[{0}] = x[{0}]" + "\n8 y[{0}] = t[{0}]", "iteration (0) gets"),
        ("8\n| t[{0}] = x[{0}]\n| y[{0}] = t[7-{0}]", "t[-{0}+7] at iteration (0) gets an element of 't'"),
        (
            "8 y[{0}] = 0\n2 4 where ({0}*4+{1} < 7) t[{0}*4+{1}] = x[{0}]\n2 4 y[{0}*4+{1}] = t[{0}*4+{1}]",
            "t[{0}*4+{1}] at iteration (1, 3) gets an element of 't'",
        ),
        (
            "8 y[{0}] += x[{0}]",
            "y[{0}] at iteration (0) gets an element of 'y' that nothing has written; initialise it",
        ),
        ("7 y[{0}] = 0\n8 y[{0}] max= x[{0}]", "y[{0}] at iteration (7) gets an element of 'y'"),
        ("8 y[{0}] = x[{0}]\nt[0] += y[0]", "t[0] at iteration () gets an element of 't' that nothing has written"),
    ],
)
def test_reads_of_unwritten_elements(body: str, read: str) -> None:
    assert_invalid(program(body, T), read)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "8 y[{0}] = 0\n8:p y[0] = x[{0}]",
            "scope {0} of extent 8:p race: write of y[0] at iteration (0) and write of y[0] at iteration (1)",
        ),
        ("8 y[{0}] = 0\n8:p y[0] += x[{0}]", "scope {0} of extent 8:p race: write of y[0]"),
        ("8 y[{0}] = 0\n8:p y[{0}//2] = x[{0}]", "write of y[{0}//2] at iteration (0) and write of y[{0}//2]"),
        ("8:p\n| t[0] = x[{0}]\n| y[{0}] = t[0]", "write of t[0] at iteration (0) and write of t[0] at iteration (1)"),
        (
            "8 t[{0}] = 0\n8:p\n| t[{0}] = x[{0}]\n| y[{0}] = t[({0}+1)%8]",
            "write of t[{0}] at iteration (0) and read of t[({0}+1)%8] at iteration (7)",
        ),
        ("8 y[{0}] = 0\n2 8:p\n| 4 where ({1} >= 6) y[{2}] = x[{2}]", "scope {1} of extent 8:p race: write of y[{2}]"),
    ],
)
def test_races_of_threads(body: str, message: str) -> None:
    assert_invalid(program(body, T), message)


@pytest.mark.parametrize(
    "body",
    [
        "8:p y[{0}] = x[{0}]",
        "8 t[{0}] = 0\n8:p y[{0}] = t[({0}+1)%8] + t[0]",
        "8 y[{0}] = 0\n2 8:p y[{1}] += x[{1}]",
        "8 y[{0}] = 0\n8:p where ({0} < 1) y[0] = x[{0}]",
        "4:p 2 y[{0}*2+{1}] = x[{0}]",
    ],
)
def test_threads_that_do_not_race(body: str) -> None:
    validate(program(body, T))


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("%y[0] = %x[%i]", "scope {0} of extent 4:v race: write of y[0] at iteration (0) and write of y[0]"),
        ("%y[%i floordiv 2] = %x[%i]", "write of y[{0}//2] at iteration (0) and write of y[{0}//2] at iteration (1)"),
        ("%y[%i + 1] = %y[%i]", "write of y[{0}+1] at iteration (0) and read of y[{0}] at iteration (1)"),
        ("%y[%i] += %y[0]", "write of y[{0}] at iteration (0) and read of y[0] at iteration (1)"),
    ],
)
def test_conflicts_of_lanes(statement: str, message: str) -> None:
    assert_invalid(lanes(statement), message)


@pytest.mark.parametrize("statement", ["%y[%i] = %y[%i + 1]", "%y[%i] = %y[%i]", "%y[%i * 2] = %y[%i * 2 + 1]"])
def test_lanes_read_before_they_write(statement: str) -> None:
    validate(lanes(statement))


def test_lanes_may_accumulate_into_one_element() -> None:
    validate(program("8 y[{0}] = 0\n4:v y[0] += x[{0}]"))


SHARED = "b f32 [8] heap -> t, u"


@pytest.mark.parametrize(
    ("body", "declarations", "message"),
    [
        (
            "8 t[{0}] = x[{0}]\n8 y[{0}] = t[{0}]",
            REUSED,
            "'t' would be overwritten before its last read (t[{0}] at iteration (0) needs a value that t[{0}]",
        ),
        ("8\n| t[{0}] = x[{0}]\n8 y[{0}] = t[7-{0}]", REUSED, "'t' would be overwritten before its last read"),
        ("t[0] = x[0]\nt[1] = x[1]\n8 y[{0}] = t[0]", REUSED, "'t' would be overwritten before its last read"),
        (
            "8\n| 4 t[{0},{1}] = x[{0}]\n| 4 y[{0}] = t[{0},{1}]",
            "t f32 [8:N, 4:N] heap",
            "'t' would be overwritten before its last read",
        ),
        ("8:p\n| t[{0}] = x[{0}]\n| t[0] = 1\n| y[{0}] = t[{0}]", REUSED, "'t' would be overwritten"),
        (
            "8\n| t[{0}] = x[{0}]\n| u[{0}] = t[{0}] * 2\n| y[{0}] = t[{0}] + u[{0}]",
            SHARED,
            "'t' would be overwritten before its last read",
        ),
        (
            "8 t[{0}] = x[{0}]\n8 u[{0}] = t[7-{0}]\n8 y[{0}] = u[{0}]",
            SHARED,
            "'t' would be overwritten before its last",
        ),
    ],
)
def test_storage_that_loses_values(body: str, declarations: str, message: str) -> None:
    assert_invalid(program(body, declarations), f"kernel 'k': {message}")


@pytest.mark.parametrize(
    ("body", "declarations"),
    [
        ("8\n| t[{0}] = x[{0}]\n| y[{0}] = t[{0}]", REUSED),
        ("8:p\n| t[{0}] = x[{0}]\n| y[{0}] = t[{0}]", REUSED),
        ("2 8:p\n| t[{1}] = x[{1}]\n| y[{1}] = t[{1}]", REUSED),
        ("8:p\n| 4 t[{0},{1}] = x[{0}]\n| 4 y[{0}] = t[{0},{1}]", "t f32 [8:N, 4] heap"),
        ("2 4\n| t[{0}*4+{1}] = x[{0}*4+{1}]\n| y[{0}*4+{1}] = t[{0}*4+{1}]", REUSED),
        ("2\n| 4:v t[{0}*4+{1}] = x[{0}*4+{1}]\n| 4:v y[{0}*4+{1}] = t[{0}*4+{1}]", REUSED),
        ("8\n| t[{0}] = x[{0}]\n| u[{0}] = t[{0}] * 2\n| y[{0}] = u[{0}]", SHARED),
        ("8 t[{0}] = x[{0}]\n8 u[{0}] = t[{0}]\n8 y[{0}] = u[{0}]", SHARED),
    ],
)
def test_storage_that_keeps_values(body: str, declarations: str) -> None:
    validate(program(body, declarations))


PRIVATE = "8:p\n| t[{0}] = x[{0}]\n| y[{0}] = t[{0}]"
OUTSIDE = {
    "read behind": "8:p t[{0}] = x[{0}]\n8 y[{0}] = t[{0}]",
    "read by other threads": "8:p t[{0}] = x[{0}]\n8:p y[{0}] = t[{0}]",
    "written before": f"t[0] = x[0]\n{PRIVATE}",
    "two nests of threads": f"{PRIVATE}\n{PRIVATE}",
    "a sequential nest before": f"{PRIVATE.replace(':p', '')}\n{PRIVATE}",
    "a sequential nest behind": f"{PRIVATE}\n{PRIVATE.replace(':p', '')}",
    "owners at two depths": f"{PRIVATE}\n2\n| 8:p\n| | t[{{1}}] = x[{{1}}]\n| | y[{{1}}] = t[{{1}}]",
    "beside the owner in a common scope": "2\n| t[0] = x[0]\n| 8:p\n| | t[{1}] = x[{1}]\n| | y[{1}] = t[{1}]",
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_private_copies_used_outside(name: str) -> None:
    message = "kernel 'k': 't' would be private to each iteration of a concurrent scope, but is used outside it"
    assert_invalid(program(OUTSIDE[name], REUSED), message)


def test_the_owner_and_the_access_outside_are_named() -> None:
    wrong = program("t[0] = x[0]\n2\n| 8:p\n| | t[{1}] = x[{1}]\n| | y[{1}] = t[{1}]", REUSED)
    owner = "(threaded scope {1} of extent 8 owns the copies, t[0] in the op that writes t[0] is outside it)"
    assert_invalid(wrong, owner)


TWO_NESTS = "8\n| t[{0}] = x[{0}]\n| y[{0}] = t[{0}]\n8\n| t[{0}] = x[{0}] * 2\n| y[{0}] += t[{0}]"


@pytest.mark.parametrize(
    ("body", "declarations", "move"),
    [
        (TWO_NESTS, REUSED, "parallelize@t#0:0"),
        (TWO_NESTS, REUSED, "parallelize@t#1:0"),
        (TWO_NESTS.replace("8\n", "8:p\n"), T, "reuse_dims@t:0"),
        (TWO_NESTS.replace("8\n", "8:p\n", 1), T, "reuse_dims@t:0"),
        (PRIVATE, REUSED, "split_scopes@t:0{after=1}"),
    ],
)
def test_moves_that_would_leave_a_copy_behind_are_refused(body: str, declarations: str, move: str) -> None:
    state = program(body, declarations)
    canonicalize(state.kernel)
    validate(state)
    with pytest.raises(IllegalMove, match=r"its own copy of 't'|private to each iteration"):
        apply(state, Move.parse(move))


def test_joining_nests_makes_one_owner() -> None:
    game = Game(program(TWO_NESTS.replace("8\n", "8:p\n"), T).kernel, machine("toy"))
    game.apply_all(["join_scopes@t#0:0", "reuse_dims@t:0"])
    validate(game.program)
    assert all(not str(move).startswith("split_scopes@t:0{after=2") for move in game.moves())


FAMILIES = ("join_scopes", "split_scopes", "swap_", "parallelize", "unmap", "reuse_dims", "materialize_dims")


@pytest.mark.parametrize(
    ("body", "declarations"),
    [
        (TWO_NESTS, T),
        ("2 8 t[{0},{1}] = x[{1}]\n8 y[{0}] = 0\n8 2 y[{0}] += t[{1},{0}]", "t f32 [2, 8] heap"),
        ("8 t[{0}] = x[{0}]\n8 u[{0}] = t[{0}]\n8 y[{0}] = u[{0}]", SHARED),
    ],
)
def test_every_state_within_three_moves_is_valid(body: str, declarations: str) -> None:
    first = program(body, declarations)
    canonicalize(first.kernel)
    validate(first)
    seen = {print_notation(first.kernel)}
    states = [first]
    for _ in range(3):
        following: list[Program] = []
        for state in states:
            for move in legal_moves(state):
                if move.name.startswith(FAMILIES):
                    reached = apply(state, move).program
                    text = print_notation(reached.kernel)
                    if text not in seen:
                        seen.add(text)
                        validate(reached)
                        following.append(reached)
        states = following
    assert len(seen) > 15


@pytest.mark.parametrize(
    ("body", "declarations", "message"),
    [
        (
            "8:u t[{0}]!nontemporal = x[{0}]\n8:u y[{0}] = t[{0}]",
            "t f32 [8] register",
            "t[{0}] has hints, which registers",
        ),
        ("8:u t[{0}] = x[{0}]\n8:u y[{0}] = t[{0}]!prefetch(64)", "t f32 [8] register", "t[{0}] has hints, which"),
        ("2 4:v y[{0}*4+{1}]!nontemporal = x[{0}*4+{1}]", "", "vectors of 16 bytes of y[{0}*4+{1}] are only known"),
        ("2 4:v t[{0}+{1}*2]!nontemporal = 0\n8 y[{0}] = t[{0}]", T, "the lanes of t[{0}+{1}*2] are not contiguous"),
        ("2 4:v where ({0}*4+{1} < 7) t[{0}*4+{1}]!nontemporal = 0\n8 y[{0}] = x[{0}]", T, "a guard masks lanes of"),
    ],
)
def test_hints_that_no_machine_can_use(body: str, declarations: str, message: str) -> None:
    assert_invalid(program(body, declarations), message)


def test_hints_that_some_machine_can_use() -> None:
    validate(program("2 4:v t[{0}*4+{1}]!nontemporal = x[{0}*4+{1}]!prefetch(64)\n8 y[{0}]!nontemporal = t[{0}]", T))

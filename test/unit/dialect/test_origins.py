"""Where values come from, as far as the order of writes decides it, and arrays that follow each other in memory."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pdojo.dialect.affine import Expr
from pdojo.dialect.flow import origins
from pdojo.dialect.flow.flows import last_writes
from pdojo.dialect.flow.origins import element_uses
from pdojo.dialect.flow.program import Program
from pdojo.dialect.flow.uses import Use
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.shortcuts.values import feeds, latest_write
from pdojo.transforms.game import Game


def program(body: str, signature: str = "(x) -> (y)") -> Program:
    return Program(parse_notation(f"kernel k{signature}\n{body}\n")[0], machine("toy"))


HEAD = "x f32 [8] heap\ny f32 [8] heap\nt f32 [8] heap\n\n"

LATEST = {
    "8 t[{0}] = x[{0}]\n8 y[{0}] = t[{0}]": 0,
    "8 t[{0}] = 0\n8 t[{0}] = x[{0}]\n8 y[{0}] = t[{0}]": 1,
    "8 t[{0}] = 0\n8 t[{0}] += x[{0}]\n8 y[{0}] = t[{0}]": 1,
    "8\n| t[{0}] = x[{0}]\n| y[{0}] = t[{0}]": 0,
    # Only some elements are written once more.
    "8 t[{0}] = 0\n4 t[{0}] = x[{0}]\n8 y[{0}] = t[{0}]": None,
    "8 t[{0}] = 0\n8 where ({0} < 4) t[{0}] = x[{0}]\n8 y[{0}] = t[{0}]": None,
    # Each iteration writes once more, behind the other write: or some later iteration of the other one does.
    "8\n| t[{0}] = 0\n| t[{0}] = x[{0}]\n8 y[{0}] = t[{0}]": 1,
    "8\n| t[7-{0}] = 0\n| t[{0}] = x[{0}]\n8 y[{0}] = t[{0}]": None,
    # The part that reads also writes, behind the read: an iteration later, or not at all.
    "8 t[{0}] = x[{0}]\n8\n| y[{0}] = t[{0}]\n| t[7-{0}] = 0": None,
    "8 t[{0}] = x[{0}]\n8 4 t[{0}] = t[{0}] + 1\n8 y[{0}] = 0": None,
    "8\n| t[{0}] = x[{0}]\n| t[{0}] = t[{0}] + 1\n8 y[{0}] = 0": 0,
}


@pytest.mark.parametrize("body", LATEST)
def test_the_latest_write_of_what_is_read(body: str) -> None:
    state = program(HEAD + body)
    uses = element_uses(state.nest, state.nest.arrays["t"])
    (*_, read) = (k for k, u in enumerate(uses) if u.reads and not u.writes)
    found = latest_write(uses, read)
    order = LATEST[body]
    assert (None if found is None else uses[found].leaf.order) == order
    if order is not None:
        assert state.origins.writers(uses, read) == ((found,), True)


FED = {
    "8 t[{0}] = x[{0}]\n8 y[{0}] = t[{0}]": True,
    "8 t[{0}] = x[{0}]\n8 t[{0}] = 0\n8 y[{0}] = t[{0}]": False,
    "8 t[{0}] = x[{0}]\n8\n| y[{0}] = t[{0}]\n| t[{0}] = 0": True,
    "8 t[{0}] = x[{0}]\n8\n| t[{0}] = 0\n| y[{0}] = t[{0}]": False,
    "8\n| t[{0}] = x[{0}]\n| t[7-{0}] = 0\n8 y[{0}] = t[{0}]": False,
    "8 t[{0}] = x[{0}]\n8 where ({0} >= 1) y[{0}] = t[{0}]": False,
    "4 t[{0}] = x[{0}]\n8 y[{0}] = t[{0}]": False,
}


@pytest.mark.parametrize("body", FED)
def test_writes_that_surely_feed_a_read(body: str) -> None:
    state = program(HEAD + body)
    uses = element_uses(state.nest, state.nest.arrays["t"])
    (read,) = (k for k, u in enumerate(uses) if u.reads)
    assert feeds(uses, 0, read) is FED[body]


SHARED = "x f32 [8] heap\ny f32 [8] heap\nz f32 [8] heap\np f32 [8] heap\nt f32 [8] heap\n\n"

TOGETHER = {
    "8 p[{0}] = x[{0}]\n8 y[{0}] = p[{0}]\n8 t[{0}] = x[{0}]\n8 z[{0}] = t[{0}]": True,
    "8\n| p[{0}] = x[{0}]\n| y[{0}] = p[{0}]\n| t[{0}] = 1\n| z[{0}] = t[{0}]": True,
    "8\n| p[{0}] = x[{0}]\n| t[{0}] = p[{0}] + 1\n| y[{0}] = t[{0}]\n| z[{0}] = 0": True,
    # The other order of statements, or of iterations.
    "8 p[{0}] = x[{0}]\n8 t[{0}] = x[{0}]\n8 y[{0}] = p[{0}]\n8 z[{0}] = t[{0}]": False,
    "p[0] = x[0]\n8\n| y[{0}] = p[0]\n| t[0] = x[{0}]\n| z[{0}] = t[0]": False,
    "8\n| p[{0}] = x[{0}]\n| t[7-{0}] = x[{0}]\n8\n| y[{0}] = p[{0}]\n| z[{0}] = t[{0}]": False,
}


@pytest.mark.parametrize("body", TOGETHER)
def test_arrays_in_one_memory(body: str) -> None:
    state = program(SHARED + body, "(x) -> (y, z)")
    guest, host = (state.nest.arrays[name].buffer for name in "tp")
    assert (state.sharing_violation(guest, host) is None) is TOGETHER[body]


def test_what_the_caller_gets_is_not_overwritten() -> None:
    body = "8 y[{0}] = x[{0}]\n8 t[{0}] = x[{0}]\n8 z[{0}] = t[{0}]"
    state = program(SHARED + body, "(x) -> (y, z)")
    guest, host = (state.nest.arrays[name].buffer for name in "ty")
    assert state.sharing_violation(guest, host) is not None


def test_what_the_caller_gives_is_not_overwritten() -> None:
    body = "x f32 [8] heap\nz f32 [8] heap\nt f32 [8] heap\n\n8 t[{0}] = z[{0}]\n8 x[{0}] = t[{0}] + x[{0}]"
    state = program(body, "(x, z) -> (x)")
    guest, host = (state.nest.arrays[name].buffer for name in "tx")
    assert state.sharing_violation(guest, host) is not None


def test_dead_stores_are_told_from_one_relation(monkeypatch: pytest.MonkeyPatch) -> None:
    """What stays at the end is found once for all writes; once for each took minutes with some hundred."""
    asked: list[int] = []

    def counted(uses: Sequence[Use], places: Sequence[tuple[int | Expr, ...]]) -> object:
        asked.append(len(uses))
        return last_writes(uses, places)

    monkeypatch.setattr(origins, "last_writes", counted)
    dead = "".join(f"8 y[{{0}}] = {k}\n" for k in range(50))
    state = program(f"x f32 [8] heap\ny f32 [8] heap\n\n{dead}")
    moves = [str(move) for move in Game(state.kernel, state.machine).moves()]
    assert [m for m in moves if m.startswith("delete_op")] == [f"delete_op@y#{k}" for k in range(49)]
    assert asked == [50]

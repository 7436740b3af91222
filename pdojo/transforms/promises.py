"""Promises: facts about a move that make it cheaper."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pdojo.dialect.flow.program import Program
from pdojo.dialect.rules.capacity import UNKNOWN


@dataclass(frozen=True, slots=True)
class Promises:
    """The facts that a move promises; by default none, and everything is asked.

    A function of the move, the program and the site gives a promise that does not hold everywhere. `check` has accepted
    the move by then.
    """

    conditions: bool | Callable[[Any, Program, Any], bool] = False
    """Whether the check proves that the program after the move keeps the `conditions` of every state.

    Then they are checked only when the move is made, not for each candidate. Special mappings, and memory capacity, are
    beyond such proofs, and so are moves on nests and arrays of the binding part.
    """
    grows: bool | Callable[[Any, Program, Any], bool] = True
    """Whether the move may need more bytes of stack or registers at once, and `check` does not test capacity."""
    adds: int | Callable[[Any, Program, Any], int] = UNKNOWN
    """The most bytes that the move adds to all buffers on the stack and in registers together."""
    is_local: bool = False
    """Whether the check examines only the nest around the site, or only the buffer, and the move rewrites only that.

    True is unsound for other moves: programs that differ elsewhere share the answers (`shortcuts.excerpts`).
    """
    takes_next: bool | Callable[[Any, Program, Any], bool] = False
    """Whether a local check of a scope also examines the nest of the next node."""

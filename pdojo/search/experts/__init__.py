"""Expert passes: whole traces from general rules, per kind of machine (paper sections 4.1 and 4.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from pdojo.errors import UsageError
from pdojo.search.experts.player import Note
from pdojo.transforms.game import Game

ExpertPass: TypeAlias = Callable[[Game], list[Note]]
"""Makes moves on a game; returns why, one note a move."""

EXPERT_PASSES = ("naive", "greedy", "heuristic")
"""Names of the expert passes, weakest first."""


def expert_pass(name: str) -> ExpertPass:
    """The expert pass of that name. Raises UsageError where there is none."""
    match name:
        case "naive":
            from pdojo.search.experts.naive import naive

            return naive
        case "greedy":
            from pdojo.search.experts.greedy import greedy

            return greedy
        case "heuristic":
            from pdojo.search.experts.heuristic import heuristic

            return heuristic
        case _:
            raise UsageError(f"unknown pass '{name}'; known are {', '.join(EXPERT_PASSES)}")

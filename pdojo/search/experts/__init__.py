"""Expert passes: whole traces from general rules, per kind of machine (paper sections 4.1 and 4.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from pdojo.dialect.machine import Machine
from pdojo.errors import UsageError
from pdojo.search.experts.player import Note
from pdojo.transforms.game import Game

ExpertPass: TypeAlias = Callable[[Game], list[Note]]
"""Makes moves on a game; returns why, one note a move."""

EXPERT_PASSES = ("naive", "greedy", "heuristic")
"""Names of the expert passes, weakest first."""


def expert_pass(name: str, machine: Machine) -> ExpertPass:
    """The expert pass of that name for a kind of machine. Raises UsageError where there is none."""
    if name not in EXPERT_PASSES:
        raise UsageError(f"unknown pass '{name}'; known are {', '.join(EXPERT_PASSES)}")
    if name == "naive":
        from pdojo.search.experts.naive import naive

        return naive
    if machine.snitch.stream_registers:
        from pdojo.search.experts import snitch

        return snitch.greedy if name == "greedy" else snitch.heuristic
    if name == "greedy":
        from pdojo.search.experts.greedy import greedy

        return greedy
    from pdojo.search.experts.heuristic import heuristic

    return heuristic

"""Expert passes: whole traces from general rules, per kind of machine (paper sections 4.1 and 4.2)."""

from __future__ import annotations

from pdojo.dialect.machines.machine import Machine
from pdojo.errors import UsageError
from pdojo.search.targets.target import ExpertPass, target_of

EXPERT_PASSES = ("naive", "greedy", "heuristic")
"""Names of the expert passes that every kind of machine has, weakest first."""


def expert_pass(name: str, machine: Machine) -> ExpertPass:
    """The expert pass of that name for a kind of machine. Raises UsageError if there is none."""
    passes = target_of(machine).passes
    if name not in passes:
        raise UsageError(f"unknown pass '{name}'; known are {', '.join(passes)}")
    return passes[name]()

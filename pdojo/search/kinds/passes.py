"""Expert passes: whole traces from general rules, for each kind of machine (paper sections 4.1 and 4.2)."""

from __future__ import annotations

from pdojo.dialect.machines.machine import Machine
from pdojo.errors import UsageError
from pdojo.search.kinds.common.parameters import ParameterValues, PassResult
from pdojo.search.kinds.kind import ExpertPass, target_of
from pdojo.transforms.game import Game


def expert_pass(name: str, machine: Machine) -> ExpertPass:
    """The expert pass of this name for a kind of machine. Raises UsageError if there is none."""
    passes = target_of(machine).passes
    if name not in passes:
        raise UsageError(f"unknown pass '{name}'; known are {', '.join(passes)}")
    return passes[name]()


def play_pass(name: str, game: Game, decisions: ParameterValues | None = None) -> PassResult:
    """Run a pass on a game, with the decisions as answers to its questions. Raises UsageError if there is none."""
    target = target_of(game.machine)
    if name in target.open_passes:
        return target.open_passes[name]()(game, decisions)
    return PassResult(expert_pass(name, game.machine)(game))

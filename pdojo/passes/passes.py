"""Expert passes: whole traces from general rules, for each kind of machine (paper sections 4.1 and 4.2)."""

from __future__ import annotations

from pdojo.errors import UsageError
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.common.parameters import ParameterValues, PassResult
from pdojo.passes.registry import kind_of_machine
from pdojo.transforms.game import Game


def run_pass(name: str, game: Game, decisions: ParameterValues | None = None) -> PassResult:
    """Run a pass on a game, with the decisions as answers to its questions. Raises UsageError if there is none."""
    passes = kind_of_machine(game.machine).passes
    if name not in passes:
        raise UsageError(f"unknown pass '{name}'; known are {', '.join(passes)}")
    return PassBuilder.play(game, passes[name](), decisions)

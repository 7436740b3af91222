"""Names for command lines, which list them before they load the code behind them."""

from __future__ import annotations

from pdojo.dialect.plugins import STRATEGIES as STRATEGY_GROUP
from pdojo.dialect.plugins import plugins

EXPERT_PASSES = ("naive", "greedy", "heuristic")
"""Names of the expert passes that every kind of machine has, weakest first."""
STRATEGIES = ("sample", "anneal", "evolve", "elites", "model")
"""Names of the strategies of `pdojo.search.strategies`; entry points add others."""
NEIGHBOURHOODS = ("edges", "mutate", "heuristic")
"""Names of the neighbourhoods."""
UNIFORM = "uniform"
"""The word for proposals without a model."""
LEARNED = "learned:"
"""The prefix of a file with a proposal model."""
EVALUATORS = ("runtime", "analytical", "cycles")
"""Names of the evaluators of all targets."""


def strategy_names() -> tuple[str, ...]:
    """The names of all strategies, pdojo's own first. Raises PluginError if two have one name."""
    return (*STRATEGIES, *plugins(STRATEGY_GROUP, STRATEGIES))

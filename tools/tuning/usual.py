"""The search of `pdojo-tune` if the command line names none."""

from __future__ import annotations

import argparse

from pdojo_tools.tuning.arguments import NONE

from pdojo.backends.registry import backend_of
from pdojo.budget import Budget
from pdojo.dialect.machines.machine import Machine

USUAL = "evolve"
"""The strategy on a simulated core if `--search` names none."""
USUAL_BUDGET = Budget(300)
"""The budget of that search."""


def strategy_of(given: argparse.Namespace, described: Machine) -> str | None:
    """The strategy: the named one, or the usual one if programs are simulated; None for no search."""
    if given.search is not None:
        return None if given.search == [NONE] else given.search[0]
    return USUAL if backend_of(described).is_simulated and not given.no_measure else None

"""Searches that a benchmark makes: the best that one finds within so many evaluations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from pdojo_tools.tuning.limits import cost_text

from pdojo.errors import MeasurementError
from pdojo.kernels import Workload
from pdojo.search.database import Database
from pdojo.search.dojo import Dojo
from pdojo.search.driver import search
from pdojo.search.evaluation import Evaluator
from pdojo.search.evaluators.runtime import Runtime
from pdojo.search.neighbourhoods import neighbourhood
from pdojo.search.progress import Budget, Ending
from pdojo.search.strategies import strategy
from pdojo.search.tuning import Tuning

JSON: TypeAlias = dict[str, Any]
Listener: TypeAlias = Callable[[str], None]
"""Told what is done now."""

EVALUATIONS = 1000
"""Of a search, unless another number is asked for."""


class Plan(NamedTuple):
    """How to search."""

    strategy: str
    neighbourhood: str
    evaluations: int
    """New programs beside the one that the search starts from."""
    seed: int

    @property
    def title(self) -> str:
        """How tables call what it finds."""
        return f"{self.strategy}, {self.evaluations} evaluations"


class Found(NamedTuple):
    """The best of a search, and how long it took, pauses left out."""

    best: Tuning
    seconds: float


def searched(
    plan: Plan,
    root: Dojo,
    evaluator: Evaluator,
    tell: Listener,
    *,
    database: Database | None = None,
    workload: Workload | None = None,
) -> Found:
    """What a search finds from a state on.

    Raises KeyboardInterrupt where it is cut short, and MeasurementError where no program of it could be run.
    """
    limit = plan.evaluations
    found = search(
        root,
        evaluator,
        strategy(plan.strategy, limit),
        neighbourhood(plan.neighbourhood),
        Budget(limit),
        plan.seed,
        database=database,
        workload=workload,
        listener=lambda now: tell(
            f"search: {now.evaluations} of {limit}, best {cost_text(now.best, evaluator.unit)}",
        ),
    )
    if found.ending is Ending.INTERRUPTED:
        raise KeyboardInterrupt
    if found.best is None:
        raise MeasurementError("no program of the search could be run")
    return Found(Tuning(found.best.dojo.game), found.progress.seconds)


def searched_here(plan: Plan, workload: Workload, passed: Tuning, path: str | None, tell: Listener) -> Found:
    """What a search finds from the pass's program on, by times on this machine; raises as `searched` does.

    Measurements are kept in the database of that path, by default that of `pdojo-tune`, and taken from there.
    """
    with Database(path) as database:
        evaluator = Runtime(passed.game.machine, passed.before, seed=plan.seed)
        try:
            return searched(plan, Dojo.of(passed.game), evaluator, tell, database=database, workload=workload)
        finally:
            evaluator.close()

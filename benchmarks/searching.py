"""Searches of a benchmark: the best program within a number of evaluations."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import NamedTuple

from pdojo_tools.tuning.limits import cost_text

from benchmarks.runs import Listener
from pdojo.budget import Budget
from pdojo.errors import MeasurementError
from pdojo.kernels import Workload
from pdojo.passes.scheduled_kernel import ScheduledKernel
from pdojo.passes.task import TuningTask
from pdojo.search.contract.evaluation import Evaluator
from pdojo.search.database import Database
from pdojo.search.evaluators.runtime import RuntimeEvaluator
from pdojo.search.tuning.run import Baselines, SearchConfig, SearchRun
from pdojo.search.tuning.variants import Raced, Remake, VariantRace

EVALUATIONS = 1000
"""Default number of evaluations of a search."""


def plan_of(strategy: str, neighbourhood: str, evaluations: int, evaluator: str, seed: int) -> SearchConfig:
    """A search that starts from the pass's program."""
    return SearchConfig(strategy, neighbourhood, Budget(evaluations), evaluator, "pass", seed)


def title_of(plan: SearchConfig) -> str:
    """The name of a search's result in tables."""
    return f"{plan.strategy}, {plan.steps} evaluations"


class Found(NamedTuple):
    """The best of a search, and its seconds without pauses."""

    best: ScheduledKernel
    seconds: float


def searched(
    plan: SearchConfig,
    passed: ScheduledKernel,
    evaluator: Evaluator,
    tell: Listener,
    *,
    database: Database | None = None,
    workload: Workload | None = None,
) -> Found:
    """The best program of a search that starts from the pass's program.

    Raises KeyboardInterrupt if it is interrupted, and MeasurementError if no program could run.
    """
    task = TuningTask("", workload, passed, None, "", raced=passed)
    with nullcontext(database) if database is not None else Database.in_memory() as known:
        found = SearchRun.of(task, plan, known, evaluator).run(
            Baselines(),
            lambda now: tell(f"search: {now.evaluations} of {plan.steps}, best {cost_text(now.best, evaluator.unit)}"),
        )
    if found.is_interrupted:
        raise KeyboardInterrupt
    if found.result.best is None:
        raise MeasurementError("no program of the search could be run")
    return Found(ScheduledKernel(found.result.best.game), found.result.progress.seconds)


def searched_here(
    plan: SearchConfig, workload: Workload, passed: ScheduledKernel, path: str | None, tell: Listener
) -> Found:
    """The best program of a search by times on this machine; raises the errors of `searched`.

    Measurements are shared through the database `path`; None is the database of `pdojo-tune`.
    """
    with Database(path) as database:
        evaluator = RuntimeEvaluator(passed.game.machine, passed.before, seed=plan.seed or 0)
        try:
            return searched(plan, passed, evaluator, tell, database=database, workload=workload)
        finally:
            evaluator.close()


def race_variants(
    passed: ScheduledKernel, remake: Remake, tell: Listener, processors: Sequence[int] | None = None
) -> Raced:
    """Race the variants of a pass on some processors (None: all); nothing is stored."""
    evaluator = RuntimeEvaluator(passed.game.machine, passed.before, processors=processors)
    try:
        return VariantRace(lambda answers: remake(answers) if answers else passed, evaluator, None, tell).run()
    finally:
        evaluator.close()

"""Tuning of a kernel with races, a search, and measurements."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from contextlib import nullcontext

from pdojo_tools.tuning.choices import plan_of
from pdojo_tools.tuning.console_reporter import ConsoleReporter
from pdojo_tools.tuning.limits import cost_text
from rich.console import Console

from pdojo.backends.registry import backend_of
from pdojo.passes.task import TuningTask
from pdojo.search.database import Database
from pdojo.search.evaluators.named import why_not_timed
from pdojo.search.tuning.result import TuneResult
from pdojo.search.tuning.workflow import tune_task
from pdojo.transforms.game import Game


def tune_by_measuring(
    console: Console,
    given: argparse.Namespace,
    task: TuningTask,
    rivals: Callable[[], Sequence[Game]],
    interrupted: Callable[[], None],
) -> tuple[TuneResult, bool]:
    """A kernel tuned by races, measurements and searches, and whether it was measured.

    `rivals` makes the programs from elsewhere; `interrupted` is called if Ctrl-C ends the work after the search.
    Raises PdojoError, KeyboardInterrupt.
    """
    plan = plan_of(given, task.machine)
    narrator = ConsoleReporter(console, task)
    missing = None if plan is None or given.no_measure else why_not_timed(plan.evaluator, task.machine)
    is_measured = not given.no_measure and missing is None
    remembers = plan is not None or (is_measured and not backend_of(task.machine).is_simulated)
    try:
        with Database(given.database) if remembers else nullcontext() as database:
            result = tune_task(
                task,
                plan,
                narrator,
                database=database,
                seed=given.seed or 0,
                is_measured=is_measured,
                rivals=() if plan is None else rivals(),
                is_fresh=given.fresh,
                with_plain=not given.no_plain,
            )
    except KeyboardInterrupt:
        if narrator.has_found:
            interrupted()
        raise
    if missing is not None and result.found is not None and not result.is_interrupted:
        estimate = cost_text(result.found.result.progress.best, result.found.unit)
        narrator.say(f"nothing was timed, the model says {estimate}: {missing}")
    return result, is_measured

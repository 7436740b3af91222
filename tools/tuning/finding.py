"""One search of one kernel: what it starts from, where it goes on, and what it found."""

from __future__ import annotations

from dataclasses import dataclass

from pdojo_tools.tuning.evaluators import make_evaluator
from pdojo_tools.tuning.live import Baselines, Display
from pdojo_tools.tuning.subject import Subject
from rich.console import Console

from pdojo.backends.measure.outcome import outcome_from_json
from pdojo.errors import MeasurementError
from pdojo.search.costs import Costs
from pdojo.search.database import Database, Memory, Problem
from pdojo.search.database.earlier import earlier_runs, example_of_failure
from pdojo.search.dojo import Dojo
from pdojo.search.driver import run_settings, search
from pdojo.search.evaluation import Candidate, Evaluation, Evaluator
from pdojo.search.neighbourhoods import neighbourhood
from pdojo.search.progress import Budget, Ending, Result, Times
from pdojo.search.strategies import strategy
from pdojo.search.tuning import Tuning

STEPS = 1000
"""Evaluations that strategies plan for where the budget is a time."""


@dataclass(frozen=True)
class Plan:
    """How to search."""

    strategy: str
    neighbourhood: str
    budget: Budget
    evaluator: str
    start: str
    seed: int | None = None
    """None is that of the last such run, or 0."""
    is_fresh: bool = False
    """Whether to take a seed that no such run has had."""

    @property
    def steps(self) -> int:
        """Evaluations that the strategy plans for."""
        return self.budget.evaluations or STEPS


@dataclass(frozen=True)
class Found:
    """What a search found, and what it was compared with."""

    plan: Plan
    seed: int
    unit: str
    baselines: Baselines
    result: Result
    examples: dict[str, str]
    """For each kind of failure what one of the programs failed of."""
    database: str

    @property
    def best(self) -> Tuning:
        """The best program. Raises MeasurementError where no program could be run."""
        if self.result.best is None:
            failed = self.result.root.evaluation
            raise MeasurementError(
                f"none of {len(self.result.history)} programs could be run; the one that the search starts from: "
                f"{reason(failed)}"
            )
        return Tuning(self.result.best.dojo.game)

    @property
    def is_interrupted(self) -> bool:
        """Whether Ctrl-C ended it."""
        return self.result.ending is Ending.INTERRUPTED


def find(console: Console, subject: Subject, plan: Plan, database: Database) -> Found:
    """Search, and show how it stands. Ctrl-C ends it with the best so far."""
    dojo = subject.start(plan.start)
    evaluator = make_evaluator(plan.evaluator, subject.machine, subject.plain, plan.seed or 0)
    try:
        memory = database.memory(Problem.of(dojo, subject.workload), evaluator)
        seed = _seed(console, plan, dojo, database, memory)
        with console.status("the plain program and the pass's", refresh_per_second=1):
            baselines = baselines_of(subject, evaluator, memory, duel=True)
        title = f"{subject.title}: {plan.strategy}, {plan.neighbourhood}, seed {seed}"
        with Display(console, title, plan.budget, evaluator.unit, baselines) as display:
            result = search(
                dojo,
                evaluator,
                strategy(plan.strategy, plan.steps),
                neighbourhood(plan.neighbourhood),
                plan.budget,
                seed,
                database=database,
                listener=display,
                workload=subject.workload,
            )
        known = {kind: example_of_failure(database, memory, kind) for kind in result.progress.failures}
        examples = {kind: reason(evaluation) for kind, evaluation in known.items() if evaluation is not None}
        return Found(plan, seed, evaluator.unit, baselines, result, examples, str(database.connection.path))
    finally:
        evaluator.close()


def baselines_of(subject: Subject, evaluator: Evaluator, memory: Memory, *, duel: bool) -> Baselines:
    """What the plain program and the pass's cost, remembered like all others.

    With `duel` the pass's stands one by itself, as a search's first program does, so that it compares with what won
    duels. The plain one may be so slow that only screening, which is cut short, is bearable.
    """
    costs = Costs(evaluator, memory, Times(), _ignore)
    plain, passed = subject.start("plain"), subject.start("pass")
    # Where the pass made nothing of it there is one program.
    distinct = {dojo.fingerprint: (Candidate.of(dojo), dojo.trace) for dojo in (plain, passed)}
    found = dict(zip(distinct, costs.evaluate(list(distinct.values())), strict=True))
    if duel and found[passed.fingerprint].is_ok:
        found[passed.fingerprint] = costs.duel(Candidate.of(passed), None).evaluation
    return Baselines(found[plain.fingerprint].cost, found[passed.fingerprint].cost)


def reason(evaluation: Evaluation) -> str:
    """Why a program failed, on one line."""
    try:
        text = outcome_from_json(evaluation.detail).summary
    except ValueError:
        text = str(evaluation.detail.get("message", evaluation.failure))
    return text.splitlines()[0] if text else evaluation.failure


def _seed(console: Console, plan: Plan, dojo: Dojo, database: Database, memory: Memory) -> int:
    """The seed of this run; says so where one goes on."""
    settings = run_settings(strategy(plan.strategy, plan.steps), neighbourhood(plan.neighbourhood))
    runs = earlier_runs(database, memory, dojo.trace, plan.strategy, plan.neighbourhood, settings)
    if plan.is_fresh:
        return max((run.seed for run in runs), default=-1) + 1
    wanted = plan.seed if plan.seed is not None else runs[-1].seed if runs else 0
    known = next((run for run in runs if run.seed == wanted), None)
    if known is not None and known.evaluations:
        console.print(
            f"going on with the run of seed {wanted}, of which {known.evaluations} evaluations are known; "
            "--fresh would begin a new one",
            highlight=False,
            soft_wrap=True,
        )
    return wanted


def _ignore(_: str) -> None:
    """Nobody listens."""

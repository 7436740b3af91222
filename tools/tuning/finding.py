"""One search of one kernel: what it starts from, where it goes on, and what it found."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from pdojo_tools.tuning.arguments import neighbourhoods_for
from pdojo_tools.tuning.evaluators import evaluator_for, make_evaluator
from pdojo_tools.tuning.live import Baselines, Display
from pdojo_tools.tuning.subject import Subject
from rich.console import Console

from pdojo.backends.measure import Ok
from pdojo.backends.measure.outcome import outcome_from_json
from pdojo.dialect.machine import Machine
from pdojo.dialect.notation import print_notation
from pdojo.errors import MeasurementError
from pdojo.search.costs import Costs
from pdojo.search.database import Database, Memory, Problem
from pdojo.search.database.earlier import earlier_runs
from pdojo.search.database.rows import Key
from pdojo.search.dojo import Dojo, fingerprint_of
from pdojo.search.driver import run_settings, search
from pdojo.search.evaluation import Candidate, Evaluation, Evaluator
from pdojo.search.neighbourhoods import neighbourhood
from pdojo.search.progress import Budget, Ending, Listener, Result, Times
from pdojo.search.racing import Race
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


def plan_of(given: argparse.Namespace, machine: Machine) -> Plan:
    """The plan of a command line. Raises UsageError where the evaluator does not fit the machine."""
    return Plan(
        given.search[0],
        neighbourhoods_for(given, machine)[0],
        given.budget,
        evaluator_for(machine, given.evaluator),
        given.start,
        given.seed,
        given.fresh,
    )


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
    keys: tuple[Key, Key]
    """Of the problem and the settings of the evaluator, in the database."""

    def store_last(self, best: Tuning, passed: Dojo, outcomes: tuple[Ok, Ok]) -> None:
        """The pass's program is the incumbent: the best was not faster in the last measurement, by medians."""
        one, other = (
            Evaluation(each.median, detail={**each.to_json(), "samples": [each.median], "all_samples": each.samples})
            for each in outcomes
        )
        with Database(self.database) as database:
            memory = Memory(database.connection, *self.keys)
            text = print_notation(best.after)
            memory.keep_incumbent(passed.trace, passed.text, other.cost, timed=True, over=fingerprint_of(text))
            memory.keep_race(text, passed.text, "last", Race(one, other))

    @property
    def best(self) -> Tuning:
        """The best program that is known. Raises MeasurementError where no program could be run."""
        if self.result.known is None:
            failed = self.result.root.evaluation
            raise MeasurementError(
                f"none of {len(self.result.history)} programs could be run; the one that the search starts from: "
                f"{reason(failed)}"
            )
        return Tuning(self.result.known.dojo.game)

    @property
    def is_interrupted(self) -> bool:
        """Whether Ctrl-C ended it."""
        return self.result.ending is Ending.INTERRUPTED


@dataclass(frozen=True)
class Hunt:
    """A search that is about to begin, or to go on."""

    subject: Subject
    plan: Plan
    database: Database
    evaluator: Evaluator
    memory: Memory
    seed: int
    known: int
    """Evaluations of it that are in the database."""

    @staticmethod
    def of(subject: Subject, plan: Plan, database: Database, evaluator: Evaluator) -> Hunt:
        """The search that a plan asks for: the last such one, where there was one and the plan does not say which."""
        dojo = subject.start(plan.start)
        memory = database.memory(Problem.of(dojo, subject.workload), evaluator)
        settings = run_settings(strategy(plan.strategy, plan.steps), neighbourhood(plan.neighbourhood))
        runs = earlier_runs(database, memory, dojo.trace, plan.strategy, plan.neighbourhood, settings)
        if plan.is_fresh:
            return Hunt(subject, plan, database, evaluator, memory, max((run.seed for run in runs), default=-1) + 1, 0)
        wanted = plan.seed if plan.seed is not None else runs[-1].seed if runs else 0
        known = next((run.evaluations for run in runs if run.seed == wanted), 0)
        return Hunt(subject, plan, database, evaluator, memory, wanted, known)

    def baselines(self) -> Baselines:
        """What the search's result is compared with."""
        return baselines_of(self.subject, self.plan.start, self.evaluator, self.memory)

    def run(self, baselines: Baselines, listener: Listener, rivals: Sequence[Dojo] = ()) -> Found:
        """Search. What interrupts it ends it with the best so far. `rivals` are programs known from elsewhere."""
        plan = self.plan
        result = search(
            self.subject.start(plan.start),
            self.evaluator,
            strategy(plan.strategy, plan.steps),
            neighbourhood(plan.neighbourhood),
            plan.budget,
            self.seed,
            database=self.database,
            listener=listener,
            workload=self.subject.workload,
            rivals=rivals,
        )
        examples = {kind: reason(evaluation) for kind, evaluation in result.examples.items()}
        path = str(self.database.connection.path)
        keys = self.memory.problem, self.memory.settings
        return Found(plan, self.seed, self.evaluator.unit, baselines, result, examples, path, keys)


def find(console: Console, subject: Subject, plan: Plan, database: Database, rivals: Sequence[Dojo] = ()) -> Found:
    """Search, and show how it stands. Ctrl-C ends it with the best so far. `rivals` are known from elsewhere."""
    evaluator = make_evaluator(plan.evaluator, subject.machine, subject.plain, plan.seed or 0)
    try:
        hunt = Hunt.of(subject, plan, database, evaluator)
        if hunt.known:
            console.print(goes_on(hunt), highlight=False, soft_wrap=True)
        with console.status("the plain program and the pass's", refresh_per_second=1):
            baselines = hunt.baselines()
        title = f"{subject.title}: {plan.strategy}, {plan.neighbourhood}, seed {hunt.seed}"
        with Display(console, title, plan.budget, evaluator.unit, baselines) as display:
            return hunt.run(baselines, display, rivals)
    finally:
        evaluator.close()


def goes_on(hunt: Hunt) -> str:
    """That a run goes on, in words."""
    return (
        f"going on with the run of seed {hunt.seed}, of which {hunt.known} evaluations are known; "
        "--fresh would begin a new one"
    )


def baselines_of(
    subject: Subject, start: str, evaluator: Evaluator, memory: Memory, *, in_turns: bool = False
) -> Baselines:
    """What the plain program and the pass's cost, remembered like all others.

    Where they are timed, and `in_turns`, the one that is not the start costs as many times as much as that one as in a
    match of the two; infinite where the processors were busy.
    """
    costs = Costs(evaluator, memory, Times(), _ignore)
    plain, passed = subject.start("plain"), subject.start("pass")
    # Where the pass made nothing of it there is one program.
    distinct = {dojo.fingerprint: (Candidate.of(dojo), dojo.trace) for dojo in (plain, passed)}
    evaluations = costs.evaluate(list(distinct.values()), None)
    found = {each: evaluation.cost for each, evaluation in zip(distinct, evaluations, strict=True)}
    if not costs.is_timed:
        return Baselines(found[plain.fingerprint], found[passed.fingerprint])
    root, other = (plain, passed) if start == "plain" else (passed, plain)
    if in_turns and inf not in found.values() and len(found) > 1:
        race = costs.match(Candidate.of(other), Candidate.of(root))
        is_told = race.ratio is not None and not race.is_undecided
        found[other.fingerprint] = race.ratio * found[root.fingerprint] if race.ratio is not None and is_told else inf
    return Baselines(found[plain.fingerprint], found[passed.fingerprint], start)


def reason(evaluation: Evaluation) -> str:
    """Why a program failed, on one line."""
    try:
        text = outcome_from_json(evaluation.detail).summary
    except ValueError:
        text = str(evaluation.detail.get("message", evaluation.failure))
    return text.splitlines()[0] if text else evaluation.failure


def _ignore(_: str) -> None:
    """Nobody listens."""

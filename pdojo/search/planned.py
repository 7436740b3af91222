"""One search of one kernel: what it starts from, where it goes on, and what it found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

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
from pdojo.search.neighbourhoods.proposals import has_proposals
from pdojo.search.progress import Budget, Ending, Listener, Result, Times
from pdojo.search.racing import Race
from pdojo.search.strategies import strategy
from pdojo.search.subject import Subject
from pdojo.search.tuning import Tuning

EVALUATIONS = 1000
"""Of a search if no budget is given; what strategies plan for if the budget is a time."""


def usual_neighbourhood(machine: Machine) -> str:
    """The neighbourhood that searches for a machine take by themselves."""
    return "heuristic" if has_proposals(machine) else "mutate"


@dataclass(frozen=True)
class Baselines:
    """Costs of the plain kernel and of what the pass made of it; infinite where one could not be run."""

    plain: float = inf
    passed: float = inf
    start: str = ""
    """Which of them the search starts from (`plain`, `pass`) where programs are timed: the best is timed beside that
    one only. '' if all costs compare with one another."""


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
        return self.budget.evaluations or EVALUATIONS


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
    database: str | None
    """Its file; None for one in memory."""
    keys: tuple[Key, Key]
    """Of the problem and the settings of the evaluator, in the database."""

    def store_last(self, best: Tuning, passed: Dojo, outcomes: tuple[Ok, Ok]) -> None:
        """The pass's program is the incumbent: the best was not faster in the last measurement, by medians."""
        one, other = (
            Evaluation(each.median, detail={**each.to_json(), "samples": [each.median], "all_samples": each.samples})
            for each in outcomes
        )
        if self.database is None:
            return
        with Database(self.database) as database:
            memory = Memory(database.connection, *self.keys)
            text = print_notation(best.after)
            memory.keep_incumbent(passed.trace, passed.text, other.cost, timed=True, over=fingerprint_of(text))
            memory.keep_race(text, passed.text, "last", Race(one, other))

    @property
    def best(self) -> Tuning:
        """The best program that is known. Raises MeasurementError if no program could be run."""
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
class PlannedSearch:
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
    def of(subject: Subject, plan: Plan, database: Database, evaluator: Evaluator) -> PlannedSearch:
        """The search that a plan asks for: the last such one, where there was one and the plan does not say which."""
        dojo = subject.start(plan.start)
        memory = database.memory(Problem.of(dojo, subject.workload), evaluator)
        settings = run_settings(strategy(plan.strategy, plan.steps), neighbourhood(plan.neighbourhood))
        runs = earlier_runs(database, memory, dojo.trace, plan.strategy, plan.neighbourhood, settings)
        if plan.is_fresh:
            unused = max((run.seed for run in runs), default=-1) + 1
            return PlannedSearch(subject, plan, database, evaluator, memory, unused, 0)
        wanted = plan.seed if plan.seed is not None else runs[-1].seed if runs else 0
        known = next((run.evaluations for run in runs if run.seed == wanted), 0)
        return PlannedSearch(subject, plan, database, evaluator, memory, wanted, known)

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
        path = self.database.connection.path
        keys = self.memory.problem, self.memory.settings
        where = None if path is None else str(path)
        return Found(plan, self.seed, self.evaluator.unit, baselines, result, examples, where, keys)


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

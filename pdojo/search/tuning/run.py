"""One search of one kernel: its plan, its state in the database, and its result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from pdojo.budget import EVALUATIONS, Budget
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.notation import print_notation
from pdojo.errors import MeasurementError
from pdojo.names import UNIFORM
from pdojo.passes.scheduled_kernel import ScheduledKernel
from pdojo.passes.task import TuningTask
from pdojo.search.contract.evaluation import Candidate, Evaluator, reason
from pdojo.search.contract.neighbourhood import Neighbourhood
from pdojo.search.contract.progress import Ending, Listener, SearchResult, Times
from pdojo.search.contract.racing import Race
from pdojo.search.contract.strategy import Strategy, StrategyOptions
from pdojo.search.database import Database, Problem, SearchMemory
from pdojo.search.database.other_seeds import earlier_runs
from pdojo.search.database.rows import Key
from pdojo.search.engine.costs import LAST, Costs
from pdojo.search.engine.search import run_settings, search
from pdojo.search.neighbourhoods import neighbourhood
from pdojo.search.neighbourhoods.registry import has_proposals
from pdojo.search.strategies import strategy
from pdojo.transforms.game import Game, fingerprint_of


def usual_neighbourhood(machine: Machine, proposals: str = UNIFORM) -> str:
    """The default neighbourhood of a machine; learned proposals are for `mutate`."""
    if proposals != UNIFORM:
        return "mutate"
    return "heuristic" if has_proposals(machine) else "mutate"


@dataclass(frozen=True)
class Baselines:
    """Costs of the plain kernel and of the pass's program; infinite if one could not run."""

    plain: float = inf
    passed: float = inf
    start: str = ""
    """The start of the search (`plain`, `pass`) if programs are timed, as only it races with the best; '' if all costs
    are comparable.
    """


@dataclass(frozen=True)
class SearchConfig:
    """The settings of a search."""

    strategy: str
    neighbourhood: str
    budget: Budget
    evaluator: str
    start: str
    seed: int | None = None
    """The seed; None: the most recent matching run's, else 0."""
    is_fresh: bool = False
    """True to use a seed that no matching run has had."""
    options: StrategyOptions | None = None
    """Options of the strategy, such as hyper-parameters of an agent; None for its defaults."""
    proposers: int = 1
    """Number of processes that make the proposals of a batch; the result does not depend on it."""
    proposals: str = UNIFORM
    """`uniform`, or `learned:FILE`: the model that edits are drawn from."""

    @property
    def steps(self) -> int:
        """Number of evaluations for which the strategy plans."""
        return self.budget.evaluations or EVALUATIONS

    def made(self) -> Strategy:
        """A new strategy."""
        return strategy(self.strategy, self.steps, self.options)

    def near(self) -> Neighbourhood:
        """The neighbourhood."""
        return neighbourhood(self.neighbourhood, self.proposals, self.steps)


@dataclass(frozen=True)
class SearchOutcome:
    """The result of a search, with its baselines."""

    plan: SearchConfig
    seed: int
    unit: str
    baselines: Baselines
    result: SearchResult
    examples: dict[str, str]
    """The first message of each kind of failure."""
    database: str | None
    """The database's file; None for one in memory."""
    keys: tuple[Key, Key]
    """Keys of the problem and of the evaluator's settings in the database."""

    def store_last(self, best: ScheduledKernel, passed: Game, race: Race) -> None:
        """Make the pass's program the incumbent, after it beat the best in the last measurement."""
        if self.database is None or race.other is None:
            return
        with Database(self.database) as database:
            memory = SearchMemory(database.connection, *self.keys)
            text = print_notation(best.after)
            memory.keep_incumbent(passed.trace, passed.text, race.other.cost, timed=True, over=fingerprint_of(text))
            memory.keep_race(text, passed.text, LAST, race, again=True)

    @property
    def best(self) -> ScheduledKernel:
        """The best known program. Raises MeasurementError if no program could run."""
        if self.result.known is None:
            failed = self.result.root.evaluation
            raise MeasurementError(
                f"none of {len(self.result.history)} programs could be run; the one that the search starts from: "
                f"{reason(failed)}"
            )
        return ScheduledKernel(self.result.known.game)

    @property
    def is_interrupted(self) -> bool:
        """True if Ctrl-C ended the search."""
        return self.result.ending is Ending.INTERRUPTED


@dataclass(frozen=True)
class SearchRun:
    """A search that is ready to begin or to resume."""

    task: TuningTask
    plan: SearchConfig
    database: Database
    evaluator: Evaluator
    memory: SearchMemory
    seed: int
    known: int
    """Number of the run's evaluations in the database."""

    @staticmethod
    def of(task: TuningTask, plan: SearchConfig, database: Database, evaluator: Evaluator) -> SearchRun:
        """The search of a plan; it resumes the most recent matching run unless the plan gives a seed."""
        game = task.start(plan.start)
        memory = database.memory(Problem.of(game, task.workload), evaluator)
        settings = run_settings(plan.made(), plan.near())
        runs = earlier_runs(database, memory, game.trace, plan.strategy, plan.neighbourhood, settings)
        if plan.is_fresh:
            unused = max((run.seed for run in runs), default=-1) + 1
            return SearchRun(task, plan, database, evaluator, memory, unused, 0)
        wanted = plan.seed if plan.seed is not None else runs[-1].seed if runs else 0
        known = next((run.evaluations for run in runs if run.seed == wanted), 0)
        return SearchRun(task, plan, database, evaluator, memory, wanted, known)

    def baselines(self) -> Baselines:
        """The reference costs for the result."""
        return baselines_of(self.task, self.plan.start, self.evaluator, self.memory)

    def run(self, baselines: Baselines, listener: Listener, rivals: Sequence[Game] = ()) -> SearchOutcome:
        """Search. Ctrl-C ends the search with the best so far. `rivals` are programs from elsewhere."""
        plan = self.plan
        result = search(
            self.task.start(plan.start),
            self.evaluator,
            plan.made(),
            plan.near(),
            plan.budget,
            self.seed,
            database=self.database,
            listener=listener,
            workload=self.task.workload,
            rivals=rivals,
            proposers=plan.proposers,
        )
        examples = {kind: reason(evaluation) for kind, evaluation in result.examples.items()}
        path = self.database.connection.path
        keys = self.memory.problem, self.memory.settings
        where = None if path is None else str(path)
        return SearchOutcome(plan, self.seed, self.evaluator.unit, baselines, result, examples, where, keys)


def baselines_of(
    task: TuningTask, start: str, evaluator: Evaluator, memory: SearchMemory, *, in_turns: bool = False
) -> Baselines:
    """The costs of the plain program and of the pass's, stored or newly evaluated.

    With `in_turns`, a timed program other than the start costs the start's cost times the ratio in their match.
    """
    costs = Costs(evaluator, memory, Times(), _ignore)
    plain, passed = task.start("plain"), task.start("pass")
    # The pass may have changed nothing.
    distinct = {game.fingerprint: (Candidate.of(game), game.trace) for game in (plain, passed)}
    evaluations = costs.evaluate(list(distinct.values()), None)
    found = {each: evaluation.cost for each, evaluation in zip(distinct, evaluations, strict=True)}
    if not costs.is_timed:
        return Baselines(found[plain.fingerprint], found[passed.fingerprint])
    root, other = (plain, passed) if start == "plain" else (passed, plain)
    if in_turns and inf not in found.values() and len(found) > 1:
        race = costs.match(Candidate.of(other), Candidate.of(root))
        found[other.fingerprint] = inf if race.ratio is None else race.ratio * found[root.fingerprint]
    return Baselines(found[plain.fingerprint], found[passed.fingerprint], start)


def _ignore(_: str) -> None:
    """Ignore progress."""

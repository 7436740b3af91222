"""The driver: asks a strategy, evaluates new programs, stores them, updates the incumbent, and tells the strategy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import islice
from math import inf
from random import Random
from time import perf_counter

from pdojo.backends.common.source_digest import whole_digest
from pdojo.backends.measure import MeasuredProgram
from pdojo.errors import NotationError, UsageError
from pdojo.kernels import Workload
from pdojo.search.contract.dojo import Dojo
from pdojo.search.contract.evaluation import JSON, Candidate, Evaluation, Evaluator
from pdojo.search.contract.node import LoggedProposal, Node, Proposal, States, Verdict
from pdojo.search.contract.progress import Budget, Ending, Listener, Progress, Result, Row, Times
from pdojo.search.database import Database, Entry, Problem, SearchMemory, StoredRun
from pdojo.search.database.checkpoints import Checkpoint
from pdojo.search.engine.costs import Costs, IncumbentFailed, RaceEntry
from pdojo.search.engine.executor import ProposalExecutor, proposal_executor
from pdojo.search.engine.incumbents import IncumbentCandidate, Incumbents
from pdojo.search.engine.racing import Race
from pdojo.search.neighbourhoods import Neighbourhood
from pdojo.search.strategies import Breeder, Saved, Strategy, check_proposers
from pdojo.search.strategies.states import OutdatedState
from pdojo.transforms.trace import Trace

STALE = 1000
"""A search ends after this many proposals in a row without a new program."""
SAVE_EVERY = 1.0
"""Seconds between two checkpoints of a strategy that has them; more if a checkpoint takes long."""
SAVE_SHARE = 0.02
"""Greatest fraction of the time spent on checkpoints."""
MOVES = ("dialect/**/*.py", "transforms/**/*.py")
"""Files that decide the effect of moves."""
AGAIN = 8
"""Greatest number of programs that race again after the incumbent failed."""


def search(
    dojo: Dojo,
    evaluator: Evaluator,
    strategy: Strategy,
    neighbourhood: Neighbourhood,
    budget: Budget,
    seed: int,
    *,
    database: Database | None = None,
    listener: Listener | None = None,
    workload: Workload | None = None,
    rivals: Sequence[Dojo] = (),
    proposers: int = 1,
) -> Result:
    """Search for better programs from a state until the budget is used up. See docs/search.md.

    Programs in the database are not evaluated again, and an interrupted search resumes; without a database nothing
    outlives the call. Ctrl-C ends the search with the best so far. `workload` names the kernel in the database.
    `rivals` are programs from elsewhere: the result is the best of all known programs. `proposers` is the number of
    processes that make the proposals of a batch; the result does not depend on it. The evaluator stays open. Raises
    UsageError for a seed of more than 64 bits, and for several proposers if the strategy is no `Breeder`.
    """
    if not -(2**63) <= seed < 2**63:
        raise UsageError(f"a seed has at most 64 bits, not {seed}")
    check_proposers(strategy, proposers)
    with (
        nullcontext(database) if database is not None else Database.in_memory() as known,
        proposal_executor(neighbourhood, dojo, proposers) as makers,
    ):
        memory = known.memory(Problem.of(dojo, workload), evaluator)
        settings = run_settings(strategy, neighbourhood)
        while True:
            log = memory.run((dojo.text, dojo.trace), strategy.name, neighbourhood.name, seed, settings)
            searching = _Search(dojo, evaluator, strategy, budget, memory, log)
            searching.listener = listener
            try:
                return searching.run(neighbourhood, makers, Random(seed), rivals)
            except _OldCheckpoint:
                # pdojo has changed since: everything is proposed again.
                log.drop_checkpoint()


def run_settings(strategy: Strategy, neighbourhood: Neighbourhood) -> JSON:
    """The settings that identify a run, besides names, problem and seed."""
    return {"strategy": strategy.settings, "neighbourhood": neighbourhood.settings, "batch": strategy.batch}


@dataclass(frozen=True)
class _Best:
    """The incumbent of the search."""

    node: Node
    cost: float
    """The cost relative to the root's; `node.cost` is the cost that the strategy received."""
    took: float
    """The program's own measured time; equal to `cost` if costs are computed."""
    is_measured: bool = True
    """True if `cost` was computed, or measured in turns with the root."""
    match: Race | None = None
    """The match with the root; None for computed costs, and for the root."""


class _OldCheckpoint(Exception):  # noqa: N818  # an event
    """Raised if a checkpoint of an older pdojo does not fit: traces of the log, or states of the strategy."""


class _Search:
    """The state of one call of `search`."""

    def __init__(
        self, dojo: Dojo, evaluator: Evaluator, strategy: Strategy, budget: Budget, memory: SearchMemory, log: StoredRun
    ) -> None:
        self.start = dojo.fork()
        self.states = States(dojo)
        self.strategy, self.budget, self.log = strategy, budget, log
        self.times = Times()
        self.costs = Costs(evaluator, memory, self.times, self._doing, log)
        self.incumbents = Incumbents(self.start, self.costs, memory)
        self.listener: Listener | None = None
        self.known: dict[str, Node] = {}
        """The first node of each program."""
        self.best: _Best | None = None
        self.beaten: list[_Best] = []
        """Earlier incumbents, the latest last."""
        self.waiting: list[Node] = []
        """Nodes that race again in the next race."""
        self.batches: list[int] = []
        """Number of new programs of each batch so far, without the root."""
        self.amended: set[int] = set()
        """Numbers of rows of the history that differ from the log."""
        self.history: list[Row] = []
        self.failures: Counter[str] = Counter()
        self.examples: dict[str, Evaluation] = {}
        self.repeated = self.stale = 0
        self.evaluated = 0
        """Number of finished evaluations; nodes are made when their batch is complete."""
        self.last = inf
        self.began = self.since = perf_counter()
        self.before = 0.0
        """The run's clock, in seconds, at this process's time `since`."""
        self.can_save = isinstance(strategy, Saved) and log.keeps_checkpoints
        """True if the strategy has checkpoints, and the database outlives the process."""
        self.save_at = perf_counter() + SAVE_EVERY
        """Time at which the next checkpoint is due."""
        self.is_whole = False
        """True if the budget did not cut short the last batch told, so that a longer run has the same batch."""

    def run(
        self, neighbourhood: Neighbourhood, makers: ProposalExecutor, random: Random, rivals: Sequence[Dojo]
    ) -> Result:
        """Search. Raises KeyboardInterrupt if the root and the rivals were not evaluated."""
        state = "failed"
        try:
            asked = [Proposal(self.start, None)]
            self._tell(asked, self._evaluate(asked))
            others = self.incumbents.rated(rivals)
            try:
                self.strategy.start(self.root, neighbourhood, random)
                if isinstance(self.strategy, Breeder):
                    self.strategy.breed(makers)
                self._restore()
                ending = self._rounds(makers)
                self._save()
                self._finish()
                known = self.incumbents.best(others, self._own(), play=True)
                state = "finished"
            except KeyboardInterrupt:
                ending, state = Ending.INTERRUPTED, "interrupted"
                known = self.incumbents.best(others, self._own(), play=False)
        except KeyboardInterrupt:
            state = "interrupted"
            raise
        finally:
            self.log.mark(state)
        best = None if self.best is None else self.best.node
        return Result(best, self.root, known, tuple(self.history), self.examples, ending, self._progress())

    @property
    def root(self) -> Node:
        """The first node."""
        return next(iter(self.known.values()))

    def _rounds(self, makers: ProposalExecutor) -> Ending:
        while True:
            ending = self._over()
            if ending is not None:
                return ending
            asked = self._ask(makers)
            if not asked:
                return Ending.EXHAUSTED
            self._tell_batch(asked)
            self.is_whole &= all(one.candidate.fingerprint in self.known for one in asked)
            if perf_counter() >= self.save_at:
                self._save()

    # Checkpoints

    def _save(self) -> None:
        if not (self.can_save and self.is_whole):
            return
        assert isinstance(self.strategy, Saved)
        began = perf_counter()
        with self.times.of("store"):
            state = self.strategy.save()
            told = len(self.known)
            checkpoint = Checkpoint(whole_digest(*MOVES), told, tuple(self.batches), self.repeated, self.stale, state)
            self.log.keep_checkpoint(checkpoint)
        now = perf_counter()
        self.save_at = now + max(SAVE_EVERY, (now - began) / SAVE_SHARE)

    def _restore(self) -> None:
        """Resume from the checkpoint: replay the log to everything but the strategy.

        Moves of the log are replayed only if pdojo has changed since. Raises _OldCheckpoint if they lead elsewhere.
        """
        saved = self.log.checkpoint() if isinstance(self.strategy, Saved) else None
        if saved is None:
            return
        assert isinstance(self.strategy, Saved)
        by_fingerprint = {self.root.fingerprint: self.root}
        is_known = saved.code == whole_digest(*MOVES)
        logged = iter(self.log.proposals(saved.told)[1:])
        for size in saved.batches:
            asked: list[Proposal | LoggedProposal] = []
            for fingerprint, text, trace, parent in islice(logged, size):
                near = by_fingerprint.get(parent or "", self.root)
                if is_known:
                    program = MeasuredProgram(text, self.start.machine)
                    asked.append(LoggedProposal(Candidate(program, fingerprint), trace, near))
                else:
                    asked.append(Proposal(_made_again(near, trace, fingerprint), near))
            self._tell_batch(asked, aloud=False)
            for one in asked:
                if one.candidate.fingerprint not in self.known:
                    # The time is up; the checkpoint is for a longer run.
                    self.can_save = False
                    return
                by_fingerprint[one.candidate.fingerprint] = self.known[one.candidate.fingerprint]
            self._doing("resuming")
        self.repeated, self.stale = saved.repeated, saved.stale
        try:
            self.strategy.restore(saved.data, {node.number: node for node in self.known.values()})
        except (OutdatedState, UsageError, NotationError):
            # The file is intact (`database.checkpoints`), so another version of pdojo saved it.
            raise _OldCheckpoint from None

    # The budget

    def _over(self) -> Ending | None:
        if self.budget.evaluations is not None and self.evaluated > self.budget.evaluations:
            return Ending.EVALUATIONS
        if self._is_late():
            return Ending.SECONDS
        return Ending.EXHAUSTED if self.stale >= STALE else None

    # A round

    def _ask(self, makers: ProposalExecutor) -> list[Proposal]:
        """A batch of proposals, cut short when its new programs use up the budget."""
        room = inf if self.budget.evaluations is None else self.budget.evaluations + 1 - self.evaluated
        asked: list[Proposal] = []
        new: set[str] = set()
        self.is_whole = False
        with self.times.of("propose"):
            while len(asked) < self.strategy.batch and len(new) < room:
                proposal = self.strategy.ask()
                if proposal is None:
                    self.is_whole = True
                    break
                asked.append(proposal)
                fingerprint = asked[-1].candidate.fingerprint
                is_new = fingerprint not in self.known and fingerprint not in new
                self.stale = 0 if is_new else self.stale + 1
                self.repeated += not is_new
                if is_new:
                    new.add(fingerprint)
                    self.costs.expect(asked[-1].candidate)
            self.is_whole |= len(asked) == self.strategy.batch
            # Timed programs need all processors.
            makers.rest()
        return asked

    def _evaluate(self, asked: Sequence[Proposal | LoggedProposal]) -> dict[str, tuple[Evaluation, float]]:
        """Evaluations of the new programs and their times, as far as the budget's seconds allow."""
        new = {one.candidate.fingerprint: one for one in reversed(asked) if one.candidate.fingerprint not in self.known}
        ordered = [new[key] for key in dict.fromkeys(one.candidate.fingerprint for one in asked) if key in new]
        found: dict[str, tuple[Evaluation, float]] = {}
        programs = [(one.candidate, one.trace) for one in ordered]
        while True:
            try:
                again = [Candidate.of(node.dojo) for node in self.waiting]
                evaluations = self.costs.evaluate(programs, self._incumbent(), again)
                for one, evaluation in zip(ordered, evaluations, strict=True):
                    seconds = self._time_of(self.evaluated, one.candidate.fingerprint)
                    found[one.candidate.fingerprint] = evaluation, seconds
                    self.evaluated += 1
                    self.last = evaluation.cost
                    self._doing("")
                    if self._is_late():
                        break
            except IncumbentFailed as event:
                self._overturn(event.failure)
            else:
                return found

    def _tell_batch(self, asked: Sequence[Proposal | LoggedProposal], *, aloud: bool = True) -> None:
        before = len(self.known)
        self._tell(asked, self._evaluate(asked), aloud=aloud)
        self.batches.append(len(self.known) - before)

    def _tell(
        self,
        asked: Sequence[Proposal | LoggedProposal],
        found: dict[str, tuple[Evaluation, float]],
        *,
        aloud: bool = True,
    ) -> None:
        """Update the incumbent, log the batch and tell the strategy, in that order.

        With `aloud` False, the batch comes from the log, and the strategy already knows it.
        """
        told: list[Node] = []
        new: list[tuple[Node, Proposal | LoggedProposal]] = []
        others: list[tuple[str, Trace]] = []
        for one in asked:
            known = self.known.get(one.candidate.fingerprint)
            if known is not None:
                others.append((one.candidate.program.text, one.trace))
                told.append(self._node(known.number, one, known.verdict))
            elif one.candidate.fingerprint in found:
                evaluation, seconds = found[one.candidate.fingerprint]
                node = self._node(len(self.known), one, Verdict(evaluation))
                self.known[one.candidate.fingerprint] = node
                self._count(evaluation)
                self.history.append(
                    Row(node.number, seconds, node.cost, evaluation.failure, self._best_cost(), is_best=False)
                )
                told.append(node)
                new.append((node, one))
            else:
                break
        try:
            rivals = [(node, one.candidate) for node, one in new]
            rivals += [(node, Candidate.of(node.dojo)) for node in self.waiting]
            self.waiting = []
            self._contest(rivals)
        finally:
            entries = [self._entry(node, one) for node, one in new] if aloud else []
            if aloud or self.amended:
                self._store(entries, others)
        with self.times.of("propose"):
            for node in told if aloud else ():
                if node.parent is not None:
                    self.strategy.tell(node)

    def _contest(self, nodes: Sequence[tuple[Node, Candidate]]) -> None:
        """Make a program the incumbent: the first that beats the incumbent and is correct on fresh inputs.

        A program that loses to the root won its races by luck.
        """
        by_fingerprint = {node.fingerprint: (node, candidate) for node, candidate in nodes if node.evaluation.is_ok}
        rivals = [RaceEntry(candidate, node.cost) for node, candidate in by_fingerprint.values()]
        for fingerprint in self.costs.better(rivals, self._incumbent()):
            node, candidate = by_fingerprint[fingerprint]
            found = self.costs.match(candidate, Candidate.of(self.start))
            if not found.evaluation.is_ok:
                self._fail(node, found.evaluation)
            elif not found.lost:
                self._crown(self._matched(node, found))
                return

    def _matched(self, node: Node, found: Race) -> _Best:
        """An incumbent with the cost of its match with the root, or with its earlier cost if the root failed."""
        took = found.evaluation.cost if self.costs.is_timed else node.cost
        if not self.costs.is_timed or node is self.root:
            return _Best(node, node.cost, took)
        if found.ratio is None or not self.root.evaluation.is_ok:
            return _Best(node, node.cost, took, is_measured=False)
        return _Best(node, found.ratio * self.root.cost, took, match=found)

    def _crown(self, best: _Best) -> None:
        before = self._own()
        self.beaten += [] if self.best is None else [self.best]
        self.best = best
        self.incumbents.replace(self._own(), before)
        self._redraw(best.node.number)
        self._amend(best.node, best.node.evaluation, is_best=True)

    def _redraw(self, number: int) -> None:
        """Set the best cost of the history from row `number` on."""
        cost = self._best_cost()
        self.history[number:] = [replace(row, best=cost) for row in self.history[number:]]

    def _overturn(self, failure: Evaluation) -> None:
        """Replace a failed incumbent by the one before it, and let programs of lower cost race again."""
        assert self.best is not None
        number = self.best.node.number
        self._fail(self.best.node, failure)
        self.best = self.beaten.pop() if self.beaten else None
        self._redraw(number)
        told = inf if self.best is None else self.best.node.cost
        self._wait([*self.waiting, *(node for node in self.known.values() if node.cost < told)])

    def _wait(self, nodes: Iterable[Node]) -> None:
        """Queue programs to race again: the fastest, at most `AGAIN`."""
        found = {node.number: node for node in nodes if node.evaluation.is_ok}
        self.waiting = sorted(found.values(), key=lambda node: (node.cost, node.number))[:AGAIN]

    def _fail(self, node: Node, failure: Evaluation) -> None:
        self._count(failure)
        self._amend(node, failure, is_best=False)

    def _count(self, evaluation: Evaluation) -> None:
        if not evaluation.is_ok:
            self.failures[evaluation.failure] += 1
            self.examples.setdefault(evaluation.failure, evaluation)

    def _amend(self, node: Node, evaluation: Evaluation, *, is_best: bool) -> None:
        """Correct the evaluation of a node."""
        node.verdict.evaluation = evaluation
        row = self.history[node.number]
        self.history[node.number] = replace(row, cost=node.cost, failure=evaluation.failure, is_best=is_best)
        self.amended.add(node.number)

    # The end

    def _finish(self) -> None:
        """Play the last match of the incumbent. If another search has found the incumbent to fail, it is replaced
        first.
        """
        while True:
            self._tell([], self._evaluate([]))
            if self.best is None:
                return
            candidate = _rival(self.best.node).candidate
            failure = self.costs.failure(candidate)
            if failure is None:
                found = self.costs.match(candidate, Candidate.of(self.start), "final")
                if found.evaluation.is_ok:
                    self._settle(found)
                    return
                failure = found.evaluation
            self._overturn(failure)

    def _settle(self, found: Race) -> None:
        """Apply the last match of the incumbent: the root is the result unless it is slower by the median ratio."""
        assert self.best is not None
        if found.ratio is None or self.best.node is self.root:
            return
        self.best = self._matched(self.best.node, found)
        self._redraw(self.best.node.number)
        first = self.beaten[0] if self.beaten else None
        if first is not None and first.node is self.root and found.ratio >= 1:
            for each in (*self.beaten[1:], self.best):
                self._amend(each.node, each.node.evaluation, is_best=False)
            self.best, self.beaten = first, []
            self._redraw(0)
        self._store([], [])

    def _own(self) -> IncumbentCandidate | None:
        if self.best is None:
            return None
        beside = (self.start.text, self.root.cost / self.best.cost) if self.best.is_measured else None
        return IncumbentCandidate(self.best.node.dojo, self.best.took, beside)

    # Storage

    def _incumbent(self) -> RaceEntry | None:
        return None if self.best is None else _rival(self.best.node)

    def _best_cost(self) -> float:
        return inf if self.best is None else self.best.cost

    def _node(self, number: int, one: Proposal | LoggedProposal, verdict: Verdict) -> Node:
        moves = tuple(step.resolved for step in one.trace.steps)
        node = Node(number, moves, one.candidate.fingerprint, one.parent, verdict, self.states)
        if isinstance(one, Proposal):
            self.states.put(node, one.dojo)
        return node

    def _entry(self, node: Node, one: Proposal | LoggedProposal) -> Entry:
        parent = None if node.parent is None else node.parent.fingerprint
        return Entry(self.history[node.number], one.candidate.program.text, one.trace, parent)

    def _store(self, entries: Sequence[Entry], others: Sequence[tuple[str, Trace]]) -> None:
        with self.times.of("store"):
            self.log.log(entries, others, [self.history[number] for number in sorted(self.amended)])
        self.amended.clear()

    # The clock, and progress reports

    def _time(self) -> float:
        """Seconds since the start of the run, without pauses; replayed evaluations count with their logged times."""
        return self.before + perf_counter() - self.since

    def _is_late(self) -> bool:
        return self.budget.seconds is not None and self._time() >= self.budget.seconds

    def _time_of(self, number: int, fingerprint: str) -> float:
        """The run's time; a logged evaluation sets the clock to its logged time."""
        logged = self.log.time_of(number, fingerprint)
        if logged is not None:
            self.before, self.since = logged, perf_counter()
        return self._time()

    def _doing(self, what: str) -> None:
        if self.listener is not None:
            self.listener(self._progress(what))

    def _progress(self, doing: str = "") -> Progress:
        return Progress(
            max(0, self.evaluated - 1),
            self.costs.remembered,
            self.repeated,
            self._time(),
            self.costs.made / max(perf_counter() - self.began, 1e-9),
            self.last,
            self.root.cost if self.known else self.last,
            self._best_cost(),
            self.best is None or self.best.is_measured,
            None if self.best is None else self.best.match,
            dict(self.failures),
            {phase: max(0.0, seconds) for phase, seconds in self.times.spent.items()},
            doing,
        )


def _made_again(near: Node, trace: Trace, fingerprint: str) -> Dojo:
    """The state of a trace, made from a nearby state. Raises _OldCheckpoint if it has another fingerprint."""
    dojo = near.dojo.fork()
    if dojo.become([step.resolved for step in trace.steps]) or dojo.fingerprint != fingerprint:
        raise _OldCheckpoint
    return dojo


def _rival(node: Node, dojo: Dojo | None = None) -> RaceEntry:
    return RaceEntry(Candidate.of(dojo or node.dojo), node.cost)

"""The driver: asks a strategy, evaluates what is new, remembers it, lets the best stand duels, and tells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from math import inf
from random import Random
from time import perf_counter

from pdojo.errors import UsageError
from pdojo.kernels import Workload
from pdojo.search.costs import Costs
from pdojo.search.database import Amended, Database, Entry, Memory, Problem, Run
from pdojo.search.dojo import Dojo
from pdojo.search.evaluation import JSON, Candidate, Evaluation, Evaluator
from pdojo.search.neighbourhoods import Neighbourhood
from pdojo.search.node import Node, Proposal, States, Verdict
from pdojo.search.progress import Budget, Ending, Listener, Progress, Result, Row, Times
from pdojo.search.strategies import Strategy
from pdojo.transforms.trace import Trace

STALE = 1000
"""Proposals in a row that lead to nothing new, after which a search ends."""
LOST, SPARED = 0.97, 0.97 ** (-1 / 24)
"""What a duel that was lost, and a program that stood none, do to the part of the best cost that a challenger may cost:
where one program in 25 loses a duel, it stays as it is."""
SECOND_CHANCES = 5
"""Duels, at most, of programs that a wrong best kept from theirs."""


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
) -> Result:
    """Look for better programs from a state on, until the budget is used up. See docs/search.md.

    What is in the database is not evaluated again, and a search that was interrupted there goes on; without a database
    nothing outlives the call. Ctrl-C ends the search with the best so far. The workload says what the database calls
    the kernel. The evaluator stays open.
    """
    if not -(2**63) <= seed < 2**63:
        raise UsageError(f"a seed has at most 64 bits, not {seed}")
    with nullcontext(database) if database is not None else Database.in_memory() as known:
        memory = known.memory(Problem.of(dojo, workload), evaluator)
        settings = run_settings(strategy, neighbourhood)
        log = memory.run((dojo.text, dojo.trace), strategy.name, neighbourhood.name, seed, settings)
        searching = _Search(dojo, evaluator, strategy, budget, memory, log)
        searching.listener = listener
        return searching.run(neighbourhood, Random(seed))


def run_settings(strategy: Strategy, neighbourhood: Neighbourhood) -> JSON:
    """What a run is known by, beside names, problem and seed."""
    return {"strategy": strategy.settings, "neighbourhood": neighbourhood.settings, "batch": strategy.batch}


@dataclass(frozen=True)
class _Asked:
    """A proposal and its program."""

    proposal: Proposal
    candidate: Candidate

    @staticmethod
    def of(proposal: Proposal) -> _Asked:
        return _Asked(proposal, Candidate.of(proposal.dojo))

    @property
    def fingerprint(self) -> str:
        return self.candidate.fingerprint


@dataclass(frozen=True)
class _Best:
    """The best program so far."""

    node: Node
    candidate: Candidate
    cost: float
    """In the duel that it won, or by the measure of the first best; `node.cost` is what it was told."""


class _Search:
    """One call of `search`."""

    def __init__(
        self, dojo: Dojo, evaluator: Evaluator, strategy: Strategy, budget: Budget, memory: Memory, log: Run
    ) -> None:
        self.start = dojo.fork()
        self.states = States(dojo)
        self.strategy, self.budget, self.log = strategy, budget, log
        self.deterministic = evaluator.deterministic
        self.times = Times()
        self.costs = Costs(evaluator, memory, self.times, self._doing, log=log)
        self.listener: Listener | None = None
        self.known: dict[str, Node] = {}
        """The first node of each program."""
        self.best: _Best | None = None
        self.margin = 1.0
        """The part of the best cost that a program has to cost at most, alone, to stand a duel."""
        self.beaten: list[_Best] = []
        """The bests before, the latest last."""
        self.is_overturned = False
        """Whether a best turned out to be wrong, and those that it kept from their duels have not stood them yet."""
        self.amended: dict[int, Amended] = {}
        """What the log does not say yet of nodes that it has, by number: who was the best in truth."""
        self.history: list[Row] = []
        self.failures: Counter[str] = Counter()
        self.repeated = self.stale = 0
        self.evaluated = 0
        """Programs whose evaluation is known; those of a batch are nodes only when the batch is complete."""
        self.last = self.root_cost = inf
        self.began = self.since = perf_counter()
        self.before = 0.0
        """What the clock of the run stood at when this process's clock stood at `since`."""

    def run(self, neighbourhood: Neighbourhood, random: Random) -> Result:
        """Search. Raises KeyboardInterrupt only where not even the root is evaluated."""
        state = "failed"
        try:
            root = self._root()
            try:
                self.strategy.start(root, neighbourhood, random)
                ending = self._rounds()
                self._defend()
                state = "finished"
            except KeyboardInterrupt:
                ending, state = Ending.INTERRUPTED, "interrupted"
        except KeyboardInterrupt:
            state = "interrupted"
            raise
        finally:
            self.log.mark(state)
        best = None if self.best is None else self.best.node
        return Result(best, root, tuple(self.history), ending, self._progress())

    def _root(self) -> Node:
        candidate = Candidate.of(self.start)
        (evaluation,) = self.costs.evaluate([(candidate, self.start.trace)])
        seconds = self._time_of(0, candidate.fingerprint)
        self._note(evaluation)
        self.root_cost = evaluation.cost
        node = self._settle(candidate, self.start, None, evaluation, seconds)
        self._store([self._entry(node, candidate, self.start)], [])
        return node

    def _rounds(self) -> Ending:
        while True:
            ending = self._over()
            if ending is not None:
                return ending
            asked = self._ask()
            if not asked:
                return Ending.EXHAUSTED
            self._tell(asked, self._evaluate(asked))

    def _over(self) -> Ending | None:
        if self.budget.evaluations is not None and self.evaluated > self.budget.evaluations:
            return Ending.EVALUATIONS
        if self._is_late():
            return Ending.SECONDS
        return Ending.EXHAUSTED if self.stale >= STALE else None

    # A round

    def _ask(self) -> list[_Asked]:
        """A batch of proposals; a part of one where that is as many new programs as the budget allows."""
        room = inf if self.budget.evaluations is None else self.budget.evaluations + 1 - self.evaluated
        asked: list[_Asked] = []
        new: set[str] = set()
        with self.times.of("propose"):
            while len(asked) < self.strategy.batch and len(new) < room:
                proposal = self.strategy.ask()
                if proposal is None:
                    break
                asked.append(_Asked.of(proposal))
                fingerprint = asked[-1].fingerprint
                is_new = fingerprint not in self.known and fingerprint not in new
                self.stale = 0 if is_new else self.stale + 1
                self.repeated += not is_new
                if is_new:
                    new.add(fingerprint)
                    self.costs.expect(asked[-1].candidate)
        return asked

    def _evaluate(self, asked: Sequence[_Asked]) -> dict[str, tuple[Evaluation, float]]:
        """Evaluations of the new programs and when they were known, as far as the time suffices."""
        new = {one.fingerprint: one for one in reversed(asked) if one.fingerprint not in self.known}
        ordered = [new[key] for key in dict.fromkeys(one.fingerprint for one in asked) if key in new]
        found: dict[str, tuple[Evaluation, float]] = {}
        evaluations = self.costs.evaluate([(one.candidate, one.proposal.dojo.trace) for one in ordered])
        for one, evaluation in zip(ordered, evaluations, strict=True):
            found[one.fingerprint] = evaluation, self._time_of(self.evaluated, one.fingerprint)
            self._note(evaluation)
            if self._is_late():
                return found
        best = inf if self.best is None else self.best.node.cost
        for fingerprint, evaluation in self.costs.refine(best).items():
            found[fingerprint] = evaluation, found[fingerprint][1]
        return found

    def _tell(self, asked: Sequence[_Asked], found: dict[str, tuple[Evaluation, float]]) -> None:
        """Let what seems to be the best stand its duel, log the batch, and tell the strategy, all in order."""
        nodes: list[Node] = []
        entries: list[Entry] = []
        others: list[tuple[str, Trace]] = []
        try:
            for one in asked:
                dojo, parent = one.proposal.dojo, one.proposal.parent
                known = self.known.get(one.fingerprint)
                if known is not None:
                    others.append((one.candidate.program.text, dojo.trace))
                    nodes.append(self._node(known.number, one.fingerprint, dojo, parent, known.verdict))
                elif one.fingerprint in found:
                    nodes.append(self._settle(one.candidate, dojo, parent, *found[one.fingerprint]))
                    entries.append(self._entry(nodes[-1], one.candidate, dojo))
                else:
                    break
            self._reconsider()
        finally:
            self._store(entries, others)
        with self.times.of("propose"):
            for node in nodes:
                self.strategy.tell(node)

    def _settle(
        self, candidate: Candidate, dojo: Dojo, parent: Node | None, evaluation: Evaluation, seconds: float
    ) -> Node:
        """The node of a new program, after its duel where it seems to be the best."""
        won = None
        if self._seems_best(evaluation):
            evaluation, won = self._challenge(candidate, evaluation)
        elif evaluation.is_ok:
            self.margin = min(1.0, self.margin * SPARED)
        if not evaluation.is_ok:
            self.failures[evaluation.failure] += 1
        node = self._node(len(self.known), candidate.fingerprint, dojo, parent, Verdict(evaluation))
        self.known[candidate.fingerprint] = node
        if won is not None:
            self._crown(_Best(node, candidate, won))
        is_best = won is not None
        self.history.append(Row(node.number, seconds, node.cost, evaluation.failure, self._best_cost(), is_best))
        return node

    def _challenge(self, candidate: Candidate, evaluation: Evaluation) -> tuple[Evaluation, float | None]:
        """What a program that seems to be the best costs, or how it fails; and what it costs as the best, if it is.

        Where costs are told by the measure of the best, the duel says best what they are.
        """
        while self._seems_best(evaluation):
            best = self.best
            duel = self.costs.duel(candidate, None if best is None else best.candidate)
            if duel.evaluation.failed_itself:
                evaluation = duel.evaluation
            as_best = duel.evaluation.cost
            if best is not None and duel.ratio is not None and self.costs.is_anchored:
                evaluation = replace(evaluation, cost=best.node.cost * duel.ratio)
                as_best = best.cost * duel.ratio
            if duel.overturned is not None:
                self._overturn(duel.overturned)
            elif duel.won:
                return evaluation, as_best
            else:
                # What seems to be as much faster is not likely to be better than the best.
                self.margin *= 1.0 if self.deterministic else LOST
                break
        return evaluation, None

    def _reconsider(self) -> None:
        """Where a best was wrong: those that cost less than the one before it stand the duels that it kept them from.

        The fastest first, until one wins or some have lost.
        """
        while self.is_overturned:
            self.is_overturned = False
            since = -1 if self.best is None else self.best.node.number
            later = (node for node in self.known.values() if node.number > since)
            waiting = sorted((node.cost, node.number, node) for node in later if self._seems_best(node.evaluation))
            for _, _, node in waiting[:SECOND_CHANCES]:
                candidate = Candidate.of(node.dojo)
                evaluation, won = self._challenge(candidate, node.evaluation)
                if not evaluation.is_ok:
                    self.failures[evaluation.failure] += 1
                self._amend(node, evaluation, is_best=won is not None)
                if won is not None:
                    self._crown(_Best(node, candidate, won))
                    break

    def _overturn(self, failure: Evaluation) -> None:
        """The best so far failed on inputs that it had not met: the one before it is the best, and it has failed."""
        assert self.best is not None
        self._fail(self.best.node, failure)
        self._enthrone(self.beaten.pop() if self.beaten else None)
        self.is_overturned = True

    def _fail(self, node: Node, failure: Evaluation) -> None:
        self.failures[failure.failure] += 1
        self._amend(node, failure, is_best=False)

    def _amend(self, node: Node, evaluation: Evaluation, *, is_best: bool) -> None:
        """More is known of a node than when it was evaluated."""
        node.verdict.evaluation = evaluation
        row = self.history[node.number]
        self.history[node.number] = replace(row, cost=node.cost, failure=evaluation.failure, is_best=is_best)
        self.amended[node.number] = Amended(evaluation, is_best)

    def _defend(self) -> None:
        """Let the best stand a return match, at another time, with each of those that were the best before it.

        What won because of how the machine was just then loses its place again. Where others have found out in the
        meantime that the best is wrong, it is the best no longer.
        """
        try:
            while self.best is not None and (failure := self.costs.failure(self.best.candidate)) is not None:
                self._overturn(failure)
                self._reconsider()
            number = 0 if self.deterministic else len(self.beaten)
            while self.best is not None and number > 0:
                number -= 1
                former = self.beaten[number]
                duel = self.costs.duel(former.candidate, self.best.candidate, again=True)
                if duel.evaluation.failed_itself:
                    self._fail(former.node, duel.evaluation)
                    del self.beaten[number]
                if duel.overturned is not None:
                    self._overturn(duel.overturned)
                    self._reconsider()
                    number = len(self.beaten)
                elif duel.won:
                    for late in (*self.beaten[number + 1 :], self.best):
                        self._amend(late.node, late.node.evaluation, is_best=False)
                    del self.beaten[number:]
                    self._enthrone(former if self.costs.is_anchored else replace(former, cost=duel.evaluation.cost))
        finally:
            self._store([], [])

    def _crown(self, best: _Best) -> None:
        self.beaten += [] if self.best is None else [self.best]
        self._enthrone(best)

    def _enthrone(self, best: _Best | None) -> None:
        self.best = best
        self.costs.anchor(None if best is None else best.candidate, inf if best is None else best.node.cost)

    def _best_cost(self) -> float:
        return inf if self.best is None else self.best.cost

    def _seems_best(self, evaluation: Evaluation) -> bool:
        if not evaluation.is_ok or self.best is None:
            return evaluation.is_ok
        bar = self.best.node.cost * self.margin
        return evaluation.cost < bar or (evaluation.cost == bar and not self.deterministic)

    def _node(self, number: int, fingerprint: str, dojo: Dojo, parent: Node | None, verdict: Verdict) -> Node:
        moves = tuple(step.resolved for step in dojo.trace.steps)
        node = Node(number, moves, fingerprint, parent, verdict, self.states)
        self.states.put(node, dojo)
        return node

    def _entry(self, node: Node, candidate: Candidate, dojo: Dojo) -> Entry:
        row = self.history[-1]
        parent = None if node.parent is None else node.parent.fingerprint
        text = candidate.program.text
        return Entry(node.number, text, dojo.trace, parent, node.evaluation, row.is_best, row.seconds)

    def _store(self, entries: Sequence[Entry], others: Sequence[tuple[str, Trace]]) -> None:
        with self.times.of("store"):
            self.log.log(entries, others, self.amended)
        self.amended.clear()

    # The clock, and what is told

    def _time(self) -> float:
        """Seconds since the start of the run, without pauses, and without repeating what was known."""
        return self.before + perf_counter() - self.since

    def _is_late(self) -> bool:
        return self.budget.seconds is not None and self._time() >= self.budget.seconds

    def _time_of(self, number: int, fingerprint: str) -> float:
        """The time now, or that of the same evaluation when it was made: the clock stands there then."""
        logged = self.log.time_of(number, fingerprint)
        if logged is not None:
            self.before, self.since = logged, perf_counter()
        return self._time()

    def _note(self, evaluation: Evaluation) -> None:
        self.evaluated += 1
        self.last = evaluation.cost
        self._doing("")

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
            self.root_cost,
            self._best_cost(),
            dict(self.failures),
            dict(self.times.spent),
            doing,
        )

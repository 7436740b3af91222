"""The record of one search: its nodes, the rows of its history, its failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from math import inf
from typing import TypeAlias

from pdojo.search.contract.evaluation import Evaluation
from pdojo.search.contract.node import LoggedProposal, Node, Proposal, SharedEvaluation, States
from pdojo.search.contract.progress import HistoryRow, Times
from pdojo.search.database import LogEntry, StoredRun
from pdojo.transforms.game import Game
from pdojo.transforms.trace import Trace

Asked: TypeAlias = Proposal | LoggedProposal
"""A proposal of this process, or of one before it."""


class SearchRecord:
    """Programs that one search evaluated; the log in the database follows it."""

    def __init__(self, root: Game, log: StoredRun, times: Times) -> None:
        self.log, self.times = log, times
        self.states = States(root)
        self.known: dict[str, Node] = {}
        """The first node of each program, keyed by fingerprint."""
        self.bests: dict[int, float] = {}
        """Cost of each incumbent that neither failed nor lost its last match, keyed by number."""
        self._seconds: list[float] = []
        """The run's time after each evaluation, indexed by number."""
        self.failures: Counter[str] = Counter()
        self.examples: dict[str, Evaluation] = {}
        """The first failure of each kind."""
        self.repeated = 0
        """Number of proposals that repeated a program."""

    @property
    def root(self) -> Node:
        """The first node."""
        return next(iter(self.known.values()))

    @property
    def history(self) -> tuple[HistoryRow, ...]:
        """A row for each program, in order."""
        rows, best = list[HistoryRow](), inf
        for node in self.known.values():
            best = self.bests.get(node.number, best)
            rows.append(self._row(node, best))
        return tuple(rows)

    def _row(self, node: Node, best: float) -> HistoryRow:
        is_best = node.number in self.bests
        return HistoryRow(node.number, self._seconds[node.number], node.cost, node.evaluation.failure, best, is_best)

    def add(self, one: Asked, evaluation: Evaluation, seconds: float) -> Node:
        """The node of a new program."""
        node = self._node(len(self.known), one, SharedEvaluation(evaluation))
        self.known[one.candidate.fingerprint] = node
        self._count(evaluation)
        self._seconds.append(seconds)
        return node

    def again(self, one: Asked) -> Node | None:
        """Another node of a known program; None if the program is new."""
        known = self.known.get(one.candidate.fingerprint)
        return None if known is None else self._node(known.number, one, known.verdict)

    def _node(self, number: int, one: Asked, verdict: SharedEvaluation) -> Node:
        moves = tuple(step.resolved for step in one.trace.steps)
        node = Node(number, moves, one.candidate.fingerprint, one.parent, verdict, self.states)
        if isinstance(one, Proposal):
            self.states.put(node, one.game)
        return node

    def fail(self, node: Node, failure: Evaluation) -> None:
        """Let a program fail that had a cost."""
        self._count(failure)
        node.verdict.evaluation = failure
        self.bests.pop(node.number, None)

    def _count(self, evaluation: Evaluation) -> None:
        if not evaluation.is_ok:
            self.failures[evaluation.failure] += 1
            self.examples.setdefault(evaluation.failure, evaluation)

    def amend(self, nodes: Iterable[Node]) -> None:
        """Correct the log of programs that failed or lost after they were logged."""
        with self.times.of("store"):
            self.log.amend([self._row(node, inf) for node in nodes])

    def store(self, new: Sequence[tuple[Node, Asked]], others: Sequence[tuple[str, Trace]]) -> None:
        """Log new programs, and other traces of known ones."""
        entries = [self._entry(node, one) for node, one in new]
        with self.times.of("store"):
            self.log.log(entries, others)

    def _entry(self, node: Node, one: Asked) -> LogEntry:
        parent = None if node.parent is None else node.parent.fingerprint
        return LogEntry(self._row(node, inf), one.candidate.program.text, one.trace, parent)

"""The record of one search: its nodes, the rows of its history, its failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from pdojo.search.contract.evaluation import Evaluation
from pdojo.search.contract.node import LoggedProposal, Node, Proposal, States, Verdict
from pdojo.search.contract.progress import Row, Times
from pdojo.search.database import Entry, StoredRun
from pdojo.transforms.game import Game
from pdojo.transforms.trace import Trace

Asked: TypeAlias = Proposal | LoggedProposal
"""A proposal of this process, or of one before it."""


class Record:
    """Programs that one search evaluated; the log in the database follows it."""

    def __init__(self, root: Game, log: StoredRun, times: Times) -> None:
        self.log, self.times = log, times
        self.states = States(root)
        self.known: dict[str, Node] = {}
        """The first node of each program, by fingerprint."""
        self.history: list[Row] = []
        self.failures: Counter[str] = Counter()
        self.examples: dict[str, Evaluation] = {}
        """The first failure of each kind."""
        self.repeated = 0
        """Number of proposals that repeated a program."""
        self.amended: set[int] = set()
        """Numbers of rows of the history that differ from the log."""

    @property
    def root(self) -> Node:
        """The first node."""
        return next(iter(self.known.values()))

    def add(self, one: Asked, evaluation: Evaluation, seconds: float, best: float) -> Node:
        """The node of a new program."""
        node = self._node(len(self.known), one, Verdict(evaluation))
        self.known[one.candidate.fingerprint] = node
        self._count(evaluation)
        self.history.append(Row(node.number, seconds, node.cost, evaluation.failure, best, is_best=False))
        return node

    def again(self, one: Asked) -> Node | None:
        """Another node of a known program; None if the program is new."""
        known = self.known.get(one.candidate.fingerprint)
        return None if known is None else self._node(known.number, one, known.verdict)

    def _node(self, number: int, one: Asked, verdict: Verdict) -> Node:
        moves = tuple(step.resolved for step in one.trace.steps)
        node = Node(number, moves, one.candidate.fingerprint, one.parent, verdict, self.states)
        if isinstance(one, Proposal):
            self.states.put(node, one.game)
        return node

    def fail(self, node: Node, failure: Evaluation) -> None:
        """Let a program fail that had a cost."""
        self._count(failure)
        self.amend(node, failure, is_best=False)

    def _count(self, evaluation: Evaluation) -> None:
        if not evaluation.is_ok:
            self.failures[evaluation.failure] += 1
            self.examples.setdefault(evaluation.failure, evaluation)

    def amend(self, node: Node, evaluation: Evaluation, *, is_best: bool) -> None:
        """Correct the evaluation of a node."""
        node.verdict.evaluation = evaluation
        row = self.history[node.number]
        self.history[node.number] = replace(row, cost=node.cost, failure=evaluation.failure, is_best=is_best)
        self.amended.add(node.number)

    def redraw(self, number: int, best: float) -> None:
        """Set the best cost of the history from row `number` on."""
        self.history[number:] = [replace(row, best=best) for row in self.history[number:]]

    def store(self, new: Sequence[tuple[Node, Asked]] = (), others: Sequence[tuple[str, Trace]] = ()) -> None:
        """Log new programs, other traces of known ones, and what was amended."""
        entries = [self._entry(node, one) for node, one in new]
        with self.times.of("store"):
            self.log.log(entries, others, [self.history[number] for number in sorted(self.amended)])
        self.amended.clear()

    def _entry(self, node: Node, one: Asked) -> Entry:
        parent = None if node.parent is None else node.parent.fingerprint
        return Entry(self.history[node.number], one.candidate.program.text, one.trace, parent)

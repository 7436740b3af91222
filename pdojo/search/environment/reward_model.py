"""Prices of programs in episodes: the evaluator's cost, computed once per program, and the reward c/T."""

from __future__ import annotations

import copy
import fcntl
import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from math import isfinite
from pathlib import Path
from weakref import WeakSet

from pdojo.errors import MeasurementError, UsageError
from pdojo.kernels import Workload
from pdojo.search.contract.evaluation import Candidate, Evaluation, Evaluator, reason
from pdojo.search.contract.progress import Times
from pdojo.search.database import Database, Problem
from pdojo.search.engine.costs import Costs
from pdojo.transforms.game import Game

OK = "Ok"
"""Status of a program with a cost."""
HARMLESS = ("Timeout", "OutOfMemory", "NoModel")
"""Failures that do not end an episode: the program may be right, and moves may make it better."""


class RewardModel:
    """Costs of the programs of one kernel, each evaluated once.

    Computed costs (`analytical`, `cycles`) are the evaluator's. Timed programs run in turns with the start, on inputs
    that also check their results: the cost is the start's time times the median ratio, which cancels drift of the
    machine's speed. Of all processes of a user, one times a program at a time.

    `start` is the reference state of costs. `database`, an open one or a file, keeps costs beyond the process; None is
    one in memory. Not safe for concurrent use from several threads.
    """

    def __init__(
        self,
        start: Game,
        evaluator: Evaluator,
        *,
        database: str | Path | Database | None = None,
        workload: Workload | None = None,
    ) -> None:
        self._start = start.fork()
        self._evaluator = evaluator
        self._own: Database | None = None
        if isinstance(database, Database):
            opened = database
        else:
            opened = self._own = Database.in_memory() if database is None else Database(database)
        try:
            self._memory = opened.memory(Problem.of(start, workload), evaluator)
        except BaseException:
            if self._own is not None:
                self._own.close()
            raise
        self._costs = Costs(evaluator, self._memory, Times(), lambda _: None)
        self._known: dict[str, Evaluation] = {}
        self._is_closed = False
        self._open = WeakSet([self])
        """The open copies, which share evaluator and database."""

    def copy(self) -> RewardModel:
        """Independent prices with the same known costs. Evaluator and database end with the last copy."""
        other = copy.copy(self)
        other._costs = Costs(self._evaluator, self._memory, Times(), lambda _: None)
        other._known = dict(self._known)
        if not self._is_closed:
            self._open.add(other)
        return other

    @property
    def unit(self) -> str:
        """The unit of costs: `s`, `cycles`, or '' for a number."""
        return self._evaluator.unit

    @property
    def evaluator(self) -> str:
        """The name of the evaluator."""
        return self._evaluator.name

    @property
    def asked(self) -> int:
        """Number of programs whose cost was requested."""
        return len(self._known)

    def cost(self, game: Game) -> Evaluation:
        """The cost of a state's program, or its failure."""
        if self._is_closed:
            raise UsageError("the environment was closed: make another one")
        fingerprint = game.fingerprint
        if fingerprint not in self._known:
            self._known[fingerprint] = self._timed(game) if self._costs.is_timed else self._computed(game)
        return self._known[fingerprint]

    def reward(self, evaluation: Evaluation, scale: float | None = None) -> float:
        """c/T with the constant c = `scale`, None for the cost of the start; 0 for a failure.

        Raises MeasurementError if c is the cost of the start and the start failed, or if T is no positive number.
        """
        if scale is None:
            start = self.cost(self._start)
            if not start.is_ok:
                raise MeasurementError(
                    f"'{self.evaluator}' gives the first program no cost ({reason(start)}); pass scale="
                )
            scale = start.cost
        if not evaluation.is_ok:
            return 0.0
        if evaluation.cost <= 0:
            raise MeasurementError(f"rewards c/T need positive costs; '{self.evaluator}' gave {evaluation.cost:g}")
        return scale / evaluation.cost

    def close(self) -> None:
        """End the evaluator's processes and the private database, unless a copy is open; closing twice is fine."""
        if self._is_closed:
            return
        self._is_closed = True
        self._open.discard(self)
        if not self._open:
            self._evaluator.close()
            if self._own is not None:
                self._own.close()

    def _computed(self, game: Game) -> Evaluation:
        (found,) = self._costs.evaluate([(Candidate.of(game), game.trace)], None)
        return found

    def _timed(self, game: Game) -> Evaluation:
        """The time of a program, in a race with the start; timed alone if the start fails or is this program."""
        is_start = game.fingerprint == self._start.fingerprint
        start = None if is_start else self.cost(self._start)
        beside = None if start is None or not start.is_ok else Candidate.of(self._start)
        with _alone():
            race = self._costs.match(Candidate.of(game), beside)
        if start is None or race.ratio is None or not isfinite(race.ratio):
            return race.evaluation
        return replace(race.evaluation, cost=race.ratio * start.cost)


@contextmanager
def _alone() -> Generator[None, None, None]:
    """A context for one process of this user at a time, as programs timed at once disturb each other."""
    path = Path(tempfile.gettempdir()) / f"pdojo-timing-{os.getuid()}.lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)

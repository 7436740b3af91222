"""The clock of a search, which goes on where an earlier process stopped."""

from __future__ import annotations

from time import perf_counter

from pdojo.budget import Budget
from pdojo.search.database import StoredRun


class Clock:
    """Seconds of a search, without pauses; replayed evaluations count with their logged times."""

    def __init__(self, budget: Budget, log: StoredRun) -> None:
        self._budget, self._log = budget, log
        self.began = self._since = perf_counter()
        self._before = 0.0
        """The run's clock when this process's clock was at `_since`."""

    def time(self) -> float:
        """Seconds since the start of the run."""
        return self._before + perf_counter() - self._since

    def is_late(self) -> bool:
        """Whether the budget's seconds are used up."""
        return self._budget.seconds is not None and self.time() >= self._budget.seconds

    def time_of(self, number: int, fingerprint: str) -> float:
        """The run's time after an evaluation; a logged evaluation sets the clock to its logged time."""
        logged = self._log.time_of(number, fingerprint)
        if logged is not None:
            self._before, self._since = logged, perf_counter()
        return self.time()

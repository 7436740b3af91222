"""Budgets of searches."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pdojo.errors import UsageError

EVALUATIONS = 1000
"""Default budget of a search in evaluations; strategies plan for it if the budget is a time."""
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_FORM = "write evaluations (1000), a time (90s, 15m, 2h), or both (1000,15m)"
MOST = 10**15
"""Greatest number of evaluations or seconds of a budget."""


@dataclass(frozen=True)
class Budget:
    """Limits of a search; it ends at the first limit reached. Raises UsageError if there is none."""

    evaluations: int | None = None
    """Number of new programs, without the root."""
    seconds: float | None = None
    """Seconds without pauses; earlier processes of a resumed run count."""

    def __post_init__(self) -> None:
        if self.evaluations is None and self.seconds is None:
            raise UsageError("a search needs a budget: a number of evaluations, or a time")
        for name, given in (("evaluations", self.evaluations), ("seconds", self.seconds)):
            if given is not None and not given >= 0:
                raise UsageError(f"a budget of {name} must be at least 0, not {given!s:.40}")
            if given is not None and given > MOST:
                raise UsageError(f"a budget of {name} is at most {MOST:.0e}, not {given!s:.40}")

    @staticmethod
    def parse(text: str) -> Budget:
        """The budget of `1000`, `15m` or `1000,15m`. Raises UsageError for anything else."""
        evaluations: int | None = None
        seconds: float | None = None
        for part in text.split(","):
            word = part.strip()
            time = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)([smh])", word)
            if time is not None and seconds is None:
                seconds = float(time[1]) * _SECONDS[time[2]]
            elif re.fullmatch(r"[0-9]{1,15}", word) and evaluations is None:
                evaluations = int(word)
            else:
                raise UsageError(f"'{text}' is no budget: {_FORM}")
        if evaluations == 0 or seconds == 0:
            raise UsageError(f"'{text}' leaves nothing to do: {_FORM}")
        return Budget(evaluations, seconds)

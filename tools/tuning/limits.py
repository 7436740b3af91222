"""Budgets of command lines, and durations and costs in words."""

from __future__ import annotations

import re

from pdojo.errors import UsageError
from pdojo.search.contract.progress import Budget

_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_FORM = "write evaluations (1000), a time (90s, 15m, 2h), or both (1000,15m)"


def parse_budget(text: str) -> Budget:
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


def many(count: int, what: str) -> str:
    """`1 move`, `2 moves`."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def budget_text(budget: Budget) -> str:
    """A budget in words."""
    parts: list[str] = []
    if budget.evaluations is not None:
        parts.append(many(budget.evaluations, "evaluation"))
    if budget.seconds is not None:
        parts.append(duration(budget.seconds))
    return " or ".join(parts)


def duration(seconds: float) -> str:
    """Seconds in words: `7 s`, `12:05 min`, `2:30 h`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02} min"
    return f"{whole // 3600}:{whole % 3600 // 60:02} h"


def cost_text(cost: float, unit: str) -> str:
    """A cost for people; `-` for infinity."""
    if cost == float("inf"):
        return "-"
    if unit == "s":
        return f"{cost * 1e3:.4g} ms"
    number = f"{cost:,.0f}" if cost >= 1000 else f"{cost:.4g}"
    return f"{number} {unit}".rstrip()


def times_text(slow: float, fast: float) -> str:
    """The ratio of two costs; `-` if one is missing."""
    if slow == float("inf") or fast in (0.0, float("inf")):
        return "-"
    return f"{slow / fast:.2f}"

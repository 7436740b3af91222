"""Budgets of command lines, and durations and costs in words."""

from __future__ import annotations

from pdojo.budget import Budget


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

"""Charts of a report: the convergence of a search, and the cost after each move."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite
from typing import TYPE_CHECKING

from pdojo_tools.tuning.prefixes import Prefix
from pdojo_tools.tuning.report.elements import Html
from pdojo_tools.tuning.report.plot import FIRST, SECOND, Pane, count_axis, figure, value_axis

if TYPE_CHECKING:
    from pdojo.search.contract.progress import HistoryRow

WIDTH, HEIGHT = 900.0, 330.0
"""Size of a figure in drawing units: pixels on a wide page."""
_TOP, _BOTTOM, _LEFT = 12.0, 285.0, 70.0


def convergence(
    history: Sequence[HistoryRow], unit: str, lines: Sequence[tuple[str, float]], *, relative: bool = False
) -> Html:
    """The cost of every program as dots and of the incumbent as a line, over evaluations and over time.

    `lines` are titles and costs to compare with. If `relative`, costs are multiples of the first program's.
    """
    factor = 1 / history[0].cost if relative else _factor(unit)
    levels = [(title, cost * factor) for title, cost in lines if isfinite(cost)]
    costs = [row.cost * factor for row in history if isfinite(row.cost)]
    up = value_axis([*costs, *(cost for _, cost in levels)], _BOTTOM, _TOP)
    label_up = "times what the start takes" if relative else _label(unit)
    panes: list[Pane] = []
    for label, places, left in (
        ("evaluations", [float(row.number) for row in history], _LEFT),
        ("seconds", [row.seconds for row in history], WIDTH / 2 + _LEFT),
    ):
        pane = Pane(count_axis(places, left, left + WIDTH / 2 - _LEFT - 15), up, label)
        pane.dots([(x, row.cost * factor) for x, row in zip(places, history, strict=True)], FIRST, opacity=0.45)
        pane.steps([(x, row.best * factor) for x, row in zip(places, history, strict=True)], SECOND, 1.8)
        for title, cost in levels:
            pane.level(cost, title)
        panes.append(pane)
    return figure(panes, "Costs of all programs, and of the best so far", label_up, WIDTH, HEIGHT)


def steps(prefixes: Sequence[Prefix], unit: str) -> Html:
    """The cost after each move."""
    factor = _factor(unit)
    known = [(float(p.moves), p.cost * factor) for p in prefixes if isfinite(p.cost)]
    costs = [cost for _, cost in known]
    across = count_axis([float(p.moves) for p in prefixes], _LEFT, WIDTH - 15)
    pane = Pane(across, value_axis(costs, _BOTTOM, _TOP), "moves made")
    pane.steps(known, FIRST, 1.5)
    pane.dots(known, FIRST, 2.2)
    missing = [float(p.moves) for p in prefixes if p.cost == inf]
    if missing and costs:
        pane.crosses(missing, max(costs), SECOND)
    return figure([pane], "Cost after each move", _label(unit), WIDTH, HEIGHT)


def _factor(unit: str) -> float:
    return 1e3 if unit == "s" else 1.0


def _label(unit: str) -> str:
    return "milliseconds" if unit == "s" else unit or "cost"

"""The report of a training as one page: learning curves and results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any

from pdojo_tools.tuning.limits import cost_text, duration
from pdojo_tools.tuning.report.document import document
from pdojo_tools.tuning.report.elements import Html, folded, listing, note, section, table
from pdojo_tools.tuning.report.plot import FIRST, SECOND, Pane, count_axis, figure, value_axis

from pdojo.perfllm.training.trainer import EpisodeRow

WINDOW = 25
"""Number of episodes of a moving mean."""
_WIDTH, _HEIGHT = 560.0, 240.0


def page(
    rows: Sequence[EpisodeRow],
    kernels: Sequence[str],
    best: Sequence[Sequence[str]],
    unit: str,
    settings: Mapping[str, Any],
) -> str:
    """The whole page; `best` are the moves to the best program of each kernel."""
    title = f"pdojo-train: {', '.join(kernels)}"
    return document(
        title,
        section("Kernels", "kernels", _reached(rows, kernels, unit)),
        section("Learning", "learning", *_learning(rows)),
        *(
            _kernel(name, [row for row in rows if row.kernel == name], found)
            for name, found in zip(kernels, best, strict=True)
        ),
        section("Time", "time", _time(rows)),
        section("Settings", "settings", table(("name", "value"), list(settings.items()), left=(0, 1))),
    )


def _reached(rows: Sequence[EpisodeRow], kernels: Sequence[str], unit: str) -> Html:
    lines: list[tuple[object, ...]] = []
    for name in kernels:
        own = [row for row in rows if row.kernel == name]
        if own:
            first = next(row.episode for row in own if row.best >= 0.95 * own[-1].best)
            lines.append(
                (name, len(own), own[-1].programs, cost_text(own[-1].cost, unit), f"{own[-1].best:.2f}", first)
            )
    return table(("kernel", "episodes", "programs", "best", "times plain", "95 % of that in episode"), lines)


def _learning(rows: Sequence[EpisodeRow]) -> list[Html]:
    return [
        note("Values are what the agent saw in its actions; what came is the reward that they led to, by the target."),
        _curves(rows, {"values": lambda row: row.predicted, "came": lambda row: row.came}, "value"),
        _curves(rows, {"loss": lambda row: row.loss}, "loss"),
        _curves(rows, {"epsilon": lambda row: row.epsilon}, "epsilon"),
    ]


def _kernel(name: str, rows: Sequence[EpisodeRow], moves: Sequence[str]) -> Html:
    text = "\n".join(moves) or "none is faster than the plain kernel"
    curves = _curves(rows, {"best": lambda row: row.best, "episode": lambda row: row.speedup}, "times plain")
    return section(name, f"k-{name}", curves, folded("moves of the best, by identifier", listing(text)))


def _curves(rows: Sequence[EpisodeRow], lines: Mapping[str, Callable[[EpisodeRow], float]], label: str) -> Html:
    """Moving means over episodes; the first line is drawn in the first colour."""
    points = {name: _smooth([(float(row.episode), value(row)) for row in rows]) for name, value in lines.items()}
    values = [y for each in points.values() for _, y in each if abs(y) < inf]
    across = count_axis([x for each in points.values() for x, _ in each], 60, _WIDTH - 10)
    pane = Pane(across, value_axis([max(0.0, y) for y in values], _HEIGHT - 40, 10), "episode")
    for colour, each in zip((FIRST, SECOND), points.values(), strict=False):
        pane.steps([(x, max(0.0, y)) for x, y in each], colour, 1.4)
    return figure([pane], f"{' and '.join(lines)} over episodes", f"{label}: {', '.join(lines)}", _WIDTH, _HEIGHT)


def _smooth(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    found: list[tuple[float, float]] = []
    for k, (x, _) in enumerate(points):
        window = [y for _, y in points[max(0, k - WINDOW + 1) : k + 1]]
        found.append((x, sum(window) / len(window)))
    return found


def _time(rows: Sequence[EpisodeRow]) -> Html:
    names = {"drawing": "offers: moves, programs, vectors", "evaluating": "costs", "learning": "networks"}
    spent = {title: sum(getattr(row, name) for row in rows) for name, title in names.items()}
    whole = sum(spent.values()) or 1.0
    return table(("what", "time", "share"), [(name, duration(s), f"{s / whole:.0%}") for name, s in spent.items()])

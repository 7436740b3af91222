"""The page of an experiment: all tables, and the curves of each task as SVG. It loads nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pdojo_tools.tuning.report.document import document
from pdojo_tools.tuning.report.elements import Html, html, joined, note, section, table, tag
from pdojo_tools.tuning.report.plot import Pane, PlotAxis, Point, count_axis, figure

from benchmarks.perfllm.results import Done
from benchmarks.perfllm.statistics import NEAR, Findings, Range
from benchmarks.perfllm.tables import Sheet, conditions

WIDTH, HEIGHT = 1000.0, 360.0
"""Size of a figure in drawing units: pixels on a wide page."""
_TOP, _BOTTOM, _LEFT = 12.0, 315.0, 60.0
_COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#e377c2", "#7f7f7f")
_DASHES = ("", "6 3", "2 2")


def page(found: Findings, sheets: Sequence[Sheet]) -> str:
    """The whole page."""
    title = "PerfLLM and the other searches"
    links = tag("nav", *(joined([tag("a", sheet.title, href=f"#t{k}"), " "]) for k, sheet in enumerate(sheets)))
    sections = [_section(found, sheet, f"t{number}") for number, sheet in enumerate(sheets)]
    return document(title, *map(note, conditions(found)), links, *sections)


def _section(found: Findings, sheet: Sheet, anchor: str) -> Html:
    content = [table(sheet.headings, sheet.rows, left=sheet.words), *map(note, sheet.notes)]
    if sheet.task is not None:
        content = [curves(found, sheet.task), _legend(found, sheet.task), *content]
    return section(sheet.title, anchor, *content)


def curves(found: Findings, task: str) -> Html:
    """The median fraction of the heuristic's speed over evaluations and over seconds, with the range over seeds."""
    cells = found.cells(task)
    highest = max(1.0, *(found.final(done) for done in cells))
    up = PlotAxis(0.0, highest * 1.05, _BOTTOM, _TOP)
    panes: list[Pane] = []
    for label, last, places, best, left in (
        ("evaluations", float(max(done.budget for done in cells)), _numbers, Done.after, _LEFT),
        ("seconds", max(done.seconds for done in cells), _seconds, Done.at, WIDTH / 2 + _LEFT),
    ):
        pane = Pane(count_axis([last], left, left + WIDTH / 2 - _LEFT - 15), up, label)
        for method in found.methods:
            if own := found.cells(task, method):
                _draw(pane, found, method, own, [*places(own), last], best)
        pane.level(1.0, "heuristic")
        pane.level(NEAR, f"{NEAR:.0%}")
        panes.append(pane)
    return figure(panes, f"Convergence of all methods, {task}", "share of the heuristic's speed", WIDTH, HEIGHT)


def _draw(
    pane: Pane,
    found: Findings,
    method: str,
    cells: Sequence[Done],
    places: Sequence[float],
    best: Callable[[Done, float], float],
) -> None:
    """Draw the median as a line, and the range over seeds as a band."""
    colour, dash = _look(found, method)
    ranges = [Range.of(found.share(done.task, best(done, place)) for done in cells) for place in places]
    if len(cells) > 1:
        low = _path(pane, [(x, r.low) for x, r in zip(places, ranges, strict=True)])
        high = _path(pane, [(x, r.high) for x, r in zip(places, ranges, strict=True)])
        outline = [*low, *reversed(high)]
        band = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in outline) + "Z"
        pane.drawn.append(tag("path", d=band, fill=colour, opacity="0.1"))
    middle = _path(pane, [(x, r.middle) for x, r in zip(places, ranges, strict=True)])
    line = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in middle)
    style = {"stroke": colour, "fill": "none", "stroke-width": "1.5", "stroke-dasharray": dash}
    pane.drawn.append(tag("path", tag("title", method), d=line, **style))


def _path(pane: Pane, points: Sequence[Point]) -> list[Point]:
    """The coordinates of a line that keeps each value until the next point."""
    found: list[Point] = []
    for x, y in points:
        place = pane.across.at(x), pane.up.at(y)
        if found:
            found.append((place[0], found[-1][1]))
        found.append(place)
    return found


def _numbers(cells: Sequence[Done]) -> list[float]:
    """The evaluations at which a best program changes."""
    return sorted({0.0, *(float(p.evaluations) for done in cells for p in done.points)})


def _seconds(cells: Sequence[Done]) -> list[float]:
    """The seconds at which a best program changes."""
    return sorted({0.0, *(p.seconds for done in cells for p in done.points)})


def _look(found: Findings, method: str) -> tuple[str, str]:
    """The colour and the dashes of a method."""
    number = found.methods.index(method)
    return _COLOURS[number % len(_COLOURS)], _DASHES[number // len(_COLOURS) % len(_DASHES)]


def _legend(found: Findings, task: str) -> Html:
    names: list[object] = []
    for method in found.methods:
        if found.cells(task, method):
            colour, dash = _look(found, method)
            style = {"stroke": colour, "stroke-width": "2", "stroke-dasharray": dash}
            line = tag("path", d="M0 6H28", **style)
            names += [tag("svg", line, width="30", height="12", viewBox="0 0 30 12"), html(f" {method}  ")]
    return tag("p", *names)

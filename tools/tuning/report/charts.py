"""Charts of a report, as SVG that is part of the page and follows its colours. They need matplotlib."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from io import StringIO
from math import inf, isfinite
from typing import Any

from pdojo_tools.tuning.prefixes import Prefix
from pdojo_tools.tuning.report.elements import Html, note, tag

from pdojo.search.progress import Row

MISSING = "Charts are left out: they need matplotlib (pip install 'pdojo[bench]')."
_COLOURS = {"#010203": "currentColor", "#010204": "var(--line)", "#010205": "var(--accent)", "#010206": "var(--second)"}
"""What matplotlib draws in, and what it is in the page."""
TEXT, LINE, FIRST, SECOND = _COLOURS
_STYLE = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.edgecolor": LINE,
    "axes.labelcolor": TEXT,
    "text.color": TEXT,
    "xtick.color": TEXT,
    "ytick.color": TEXT,
    "grid.color": LINE,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def has_charts() -> bool:
    """Whether matplotlib is there."""
    return find_spec("matplotlib") is not None


def convergence(history: Sequence[Row], unit: str, lines: Sequence[tuple[str, float]], name: str) -> Html:
    """The cost of every program as dots and of the best as a line, over evaluations and over time.

    `lines` are costs to compare with, and what they are of.
    """
    if not has_charts():
        return note(MISSING)
    factor = _factor(unit)
    with _styled(name):
        figure, panes = _pyplot().subplots(1, 2, figsize=(9.5, 3.6), sharey=True)
        for axes, label, places in (
            (panes[0], "evaluations", [float(row.number) for row in history]),
            (panes[1], "seconds", [row.seconds for row in history]),
        ):
            shown = [(x, row.cost * factor) for x, row in zip(places, history, strict=True) if isfinite(row.cost)]
            axes.plot(*_columns(shown), ".", color=FIRST, alpha=0.45, markersize=4)
            best = [(x, row.best * factor) for x, row in zip(places, history, strict=True) if isfinite(row.best)]
            axes.step(*_columns(best), where="post", color=SECOND, linewidth=1.8)
            for title, cost in lines:
                if isfinite(cost):
                    axes.axhline(cost * factor, color=TEXT, linewidth=0.8, linestyle=":")
                    axes.annotate(
                        title, (1, cost * factor), xycoords=("axes fraction", "data"), ha="right", va="bottom"
                    )
            _scale(axes, [y for _, y in shown] + [cost * factor for _, cost in lines if isfinite(cost)])
            axes.set_xlabel(label)
        panes[0].set_ylabel(_label(unit))
        return _svg(figure, "Costs of all programs, and of the best so far")


def steps(prefixes: Sequence[Prefix], unit: str, name: str) -> Html:
    """The cost after each move."""
    if not has_charts():
        return note(MISSING)
    factor = _factor(unit)
    with _styled(name):
        figure, axes = _pyplot().subplots(figsize=(9.5, 3.4))
        known = [(p.moves, p.cost * factor) for p in prefixes if isfinite(p.cost)]
        axes.step(*_columns(known), where="post", color=FIRST, linewidth=1.5)
        axes.plot(*_columns(known), "o", color=FIRST, markersize=3.5)
        missing = [p.moves for p in prefixes if p.cost == inf]
        if missing and known:
            highest = max(cost for _, cost in known)
            axes.plot(missing, [highest] * len(missing), "x", color=SECOND, markersize=5)
        _scale(axes, [cost for _, cost in known])
        axes.set_xlabel("moves made")
        axes.set_ylabel(_label(unit))
        return _svg(figure, "Cost after each move")


def _pyplot() -> Any:
    import_module("matplotlib").use("Agg")
    return import_module("matplotlib.pyplot")


def _styled(name: str) -> Any:
    """Settings of a chart. Names in a page must differ: they are derived from the chart's."""
    return import_module("matplotlib").rc_context({**_STYLE, "svg.hashsalt": name})


def _columns(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]


def _factor(unit: str) -> float:
    return 1e3 if unit == "s" else 1.0


def _label(unit: str) -> str:
    return "milliseconds" if unit == "s" else unit or "cost"


def _scale(axes: Any, values: Sequence[float]) -> None:
    """Logarithmic where values differ much."""
    if values and min(values) > 0 and max(values) > 3 * min(values):
        axes.set_yscale("log")
        ticker = import_module("matplotlib.ticker")
        axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(ticker.StrMethodFormatter("{x:g}"))
        axes.yaxis.set_minor_formatter(ticker.NullFormatter())
    else:
        axes.set_ylim(bottom=0)


def _svg(figure: Any, title: str) -> Html:
    """The figure as an element of a page."""
    buffer = StringIO()
    figure.savefig(buffer, format="svg", bbox_inches="tight", transparent=True, metadata={"Date": None})
    _pyplot().close(figure)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    # Metadata name schemas by their address; nothing loads those, but a report has no addresses at all.
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(
        r'<svg [^>]*?viewBox="([^"]*)"[^>]*>', rf'<svg role="img" aria-label="{title}" viewBox="\1">', text, count=1
    )
    text = text.replace("xlink:href", "href")
    # Names that nothing refers to would be there once for each chart.
    used = set(re.findall(r"#([\w-]+)", text))
    text = re.sub(r' id="([^"]*)"', lambda found: found[0] if found[1] in used else "", text)
    for drawn, wanted in _COLOURS.items():
        text = text.replace(drawn, wanted)
    return tag("figure", Html(text.strip()))

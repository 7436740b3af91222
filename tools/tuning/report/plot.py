"""Plots as inline SVG, with the page's text and colours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil, floor, isfinite, log10

from pdojo_tools.tuning.report.elements import Html, joined, tag

TEXT, LINE, FIRST, SECOND = "currentColor", "var(--line)", "var(--accent)", "var(--second)"
SPREAD = 3.0
"""Ratio of the largest to the least value above which an axis is logarithmic."""
_LABEL = 12
"""Height of text in drawing units."""

Point = tuple[float, float]


@dataclass(frozen=True)
class PlotAxis:
    """Values from `low` to `high`, at coordinates from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float
    is_logarithmic: bool = False

    def at(self, value: float) -> float:
        """The coordinate of a value."""
        low, high, value = (log10(v) if self.is_logarithmic else v for v in (self.low, self.high, value))
        return self.start + (self.end - self.start) * (value - low) / (high - low)

    def ticks(self) -> list[float]:
        """About five round values."""
        if self.is_logarithmic:
            decades = range(floor(log10(self.low)), ceil(log10(self.high)) + 1)
            found = [digit * 10.0**decade for decade in decades for digit in ((1, 2, 5) if len(decades) < 5 else (1,))]
            return [value for value in found if self.low * 0.999 <= value <= self.high * 1.001]
        step = _round_up((self.high - self.low) / 6)
        return [k * step for k in range(ceil(self.low / step - 1e-9), floor(self.high / step + 1e-9) + 1)]


def value_axis(values: Sequence[float], start: float, end: float) -> PlotAxis:
    """An axis of nonnegative values: logarithmic if they differ much, else from 0."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    if low > 0 and high > SPREAD * low:
        return PlotAxis(low / 1.1, high * 1.1, start, end, is_logarithmic=True)
    return PlotAxis(0.0, (high or 1.0) * 1.05, start, end)


def count_axis(values: Sequence[float], start: float, end: float) -> PlotAxis:
    """An axis of counts or of time, from 0."""
    return PlotAxis(0.0, max(values, default=0.0) or 1.0, start, end)


@dataclass
class Pane:
    """A rectangle with two axes and drawings."""

    across: PlotAxis
    up: PlotAxis
    label: str
    """Label of the horizontal axis."""
    drawn: list[Html] = field(default_factory=list[Html])

    def dots(self, points: Sequence[Point], colour: str, size: float = 1.8, opacity: float = 1.0) -> None:
        """Draw a dot at each point."""
        circles = [
            tag("circle", cx=_text(self.across.at(x)), cy=_text(self.up.at(y)), r=_text(size))
            for x, y in _finite(points)
        ]
        self.drawn.append(tag("g", *circles, fill=colour, opacity=_text(opacity)))

    def crosses(self, places: Sequence[float], value: float, colour: str) -> None:
        """Draw a cross at each place, all at one height."""
        y = self.up.at(value)
        strokes = [f"M{_text(x - 3)} {_text(y - 3)}l6 6m0 -6l-6 6" for x in map(self.across.at, places)]
        self.drawn.append(tag("path", d="".join(strokes), stroke=colour, fill="none"))

    def steps(self, points: Sequence[Point], colour: str, width: float) -> None:
        """Draw a line that keeps each value until the next point."""
        pieces: list[str] = []
        for x, y in _finite(points):
            place, height = _text(self.across.at(x)), _text(self.up.at(y))
            pieces.append(f"H{place}V{height}" if pieces else f"M{place} {height}")
        style = {"stroke": colour, "fill": "none", "stroke-width": _text(width)}
        self.drawn.append(tag("path", d="".join(pieces), **style))

    def level(self, value: float, title: str) -> None:
        """Draw a dotted line across, with its name at the right end."""
        y = self.up.at(value)
        style = {"stroke": TEXT, "stroke-width": "0.8", "stroke-dasharray": "1 3", "fill": "none"}
        self.drawn.append(tag("path", d=f"M{_text(self.across.start)} {_text(y)}H{_text(self.across.end)}", **style))
        self.drawn.append(_words(title, self.across.end, y - 3, "end"))

    def svg(self, spell: Callable[[float], str]) -> Html:
        """The SVG of the pane: a grid with numbers, and the drawings above it."""
        bottom, top = self.up.start, self.up.end
        left, right = self.across.start, self.across.end
        grid = [f"M{_text(x)} {_text(bottom)}V{_text(top)}" for x in map(self.across.at, self.across.ticks())]
        grid += [f"M{_text(left)} {_text(y)}H{_text(right)}" for y in map(self.up.at, self.up.ticks())]
        numbers = [_words(f"{v:g}", self.across.at(v), bottom + _LABEL + 4, "middle") for v in self.across.ticks()]
        numbers += [_words(spell(v), left - 5, self.up.at(v) + 4, "end") for v in self.up.ticks()]
        name = _words(self.label, (left + right) / 2, bottom + 2 * _LABEL + 10, "middle")
        lines = tag("path", d="".join(grid), stroke=LINE, fill="none")
        frame = tag("path", d=f"M{_text(left)} {_text(top)}V{_text(bottom)}H{_text(right)}", stroke=LINE, fill="none")
        return tag("g", lines, frame, *numbers, name, *self.drawn)


def figure(panes: Sequence[Pane], title: str, label: str, width: float, height: float) -> Html:
    """Panes side by side; `title` is for screen readers, `label` names the vertical axes."""
    name = tag(
        "g", _words(label, 0, 0, "middle"), transform=f"translate({_LABEL} {_text(height / 2 - 15)}) rotate(-90)"
    )
    content = joined([name, *(pane.svg(lambda value: f"{value:g}") for pane in panes)])
    box = {"role": "img", "aria-label": title, "viewBox": f"0 0 {_text(width)} {_text(height)}"}
    return tag("figure", tag("svg", content, **box))


def _finite(points: Sequence[Point]) -> list[Point]:
    return [(x, y) for x, y in points if isfinite(x) and isfinite(y)]


def _words(text: str, x: float, y: float, anchor: str) -> Html:
    style = {"text-anchor": anchor, "font-size": str(_LABEL), "fill": TEXT}
    return tag("text", text, x=_text(x), y=_text(y), **style)


def _text(number: float) -> str:
    return f"{number:.2f}".rstrip("0").rstrip(".")


def _round_up(value: float) -> float:
    """The value rounded up to 1, 2, 5, 10, 20 ..."""
    power = 10.0 ** floor(log10(value))
    return next(digit * power for digit in (1, 2, 5, 10) if digit * power >= value * 0.999)

"""The pane of the trace, the pane of times, and the status line."""

from __future__ import annotations

from dataclasses import dataclass

from pdojo_tools.playing.listing import LineView
from pdojo_tools.playing.session import GameView, spell_count
from pdojo_tools.playing.stopwatch import PlayTiming, PlayTimings, spell_seconds, spell_time
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import OptionList, Sparkline

from pdojo.backends.measure import Ok, Success


class TracePane(OptionList):
    """The trace: a row for the program before the first move, and one for each move."""

    BINDINGS = [Binding("d", "delete", "delete")]  # noqa: RUF012  # as the library declares it

    @dataclass
    class Delete(Message):
        """Message: take back the move with this number, from 0."""

        index: int

    def __init__(self) -> None:
        super().__init__(id="trace", compact=True, markup=False)

    def show(self, view: GameView, times: PlayTimings) -> None:
        """Show a state; the cursor stays where it is, or goes to the last move."""
        at_end = self.highlighted is None or self.highlighted >= self.option_count - 1
        before = self.highlighted
        names = ["(plain program)", *(str(step.move) for step in view.steps)]
        rows: list[Text] = []
        for number, (state, name) in enumerate(zip(view.states, names, strict=True)):
            index = "" if number == 0 else str(number - 1)
            rows.append(Text(f"{index:>3} {spell_time(times.latest(state)):>9} {name}", no_wrap=True))
        self.clear_options()
        self.add_options(rows)
        self.highlighted = len(rows) - 1 if at_end or before is None else min(before, len(rows) - 1)

    def action_delete(self) -> None:
        """Request to take back the highlighted move."""
        if self.highlighted:
            self.post_message(self.Delete(self.highlighted - 1))


class TimesPane(Vertical):
    """All measurements, in order: gains over the plain program as bars, and a table."""

    def compose(self) -> ComposeResult:
        """Textual's hook: the widgets."""
        yield Sparkline([], id="speeds")
        yield LineView(id="times")

    def show(self, view: GameView, times: PlayTimings) -> None:
        """Show measurements."""
        plain = view.states[0]
        gains = [times.gain(cost, plain) for cost in times.costs]
        self.query_one(Sparkline).data = [gain for gain in gains if gain is not None]
        rows = ["t times the program now"] if not times.timings else [_heading(times)]
        for timing in times.timings:
            rows += _row(timing, times, view)
        listing = self.query_one(LineView)
        listing.show(rows)
        listing.scroll_end(animate=False)


_HEADINGS = {"s": "moves    median       min  gain", "cycles": "moves    cycles  FPU busy  gain"}
"""Headings, keyed by the unit of costs."""


def _heading(times: PlayTimings) -> str:
    units = (t.outcome.unit for t in times.timings if isinstance(t.outcome, Success))
    return _HEADINGS[next(units, "s")]


def _row(timing: PlayTiming, times: PlayTimings, view: GameView) -> list[str]:
    outcome = timing.outcome
    if not isinstance(outcome, Success):
        return [f"{timing.moves:5} {outcome.summary}"]
    gain = times.gain(outcome.cost, view.states[0])
    spelled = "" if gain is None else f"{gain:.2f}x" if gain < 100 else f"{gain:.0f}x"
    second = spell_seconds(outcome.minimum) if isinstance(outcome, Ok) else outcome.figures["FPU busy"]
    row = f"{timing.moves:5} {spell_time(outcome):>9} {second:>9} {spelled:>5}"
    load = outcome.foreign_load if isinstance(outcome, Ok) else None
    return [row] if load is None or load < 0.1 else [row, f"      ({load:.1f} cores busy otherwise)"]


def summary(view: GameView, times: PlayTimings, doing: str) -> str:
    """One line about a state and the current activity."""
    nest, machine = view.now.program.nest, view.now.program.machine
    threads = "1 thread" if machine.threads == 1 else f"{machine.threads} threads"
    parts = [f"{nest.name} on {machine.name}, {threads}", spell_count(len(view.steps))]
    outcome = times.latest(view.now)
    if isinstance(outcome, Success):
        gain = times.gain(outcome.cost, view.states[0])
        parts.append(spell_time(outcome) + ("" if gain is None else f" ({gain:.3g}x)"))
    parts += [doing] * bool(doing) + ["not saved"] * view.unsaved
    return " | ".join(parts)

"""The part of a report about one kernel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any

from pdojo_tools.tables import busy_note, timing_notes
from pdojo_tools.tuning.limits import budget_text, cost_text, duration, times_text
from pdojo_tools.tuning.prefixes import Prefix, PrefixGroup, grouped
from pdojo_tools.tuning.report.charts import convergence, steps
from pdojo_tools.tuning.report.elements import Html, folded, html, joined, listing, note, section, table, tag
from pdojo_tools.tuning.report.sides import sides

from pdojo.backends.measure import Success
from pdojo.backends.registry import backend_of
from pdojo.dialect.notation import print_notation
from pdojo.errors import LoweringError
from pdojo.passes.scheduled_kernel import ScheduledKernel
from pdojo.passes.tuned import PassedKernel

if TYPE_CHECKING:
    from pdojo.search.tuning.result import TuneResult
    from pdojo.search.tuning.run import SearchOutcome
    from pdojo.search.tuning.timing import Timed

MOST_LINES = 4000
"""Greatest number of shown lines of generated code."""
_KINDS = {
    "CompileError": "does not compile",
    "Timeout": "took too long",
    "Crash": "ended its process",
    "WrongResult": "computed something else",
    "Deadlock": "waits for ever on the simulated core",
    "Trap": "does what the simulated core cannot do",
    "OutOfMemory": "needs too much memory",
    "NoModel": "the model knows nothing about it",
}


@dataclass(frozen=True)
class Chapter:
    """The report on a tuned kernel."""

    result: TuneResult | PassedKernel
    prefixes: Sequence[Prefix] = ()
    unit: str = "s"
    """Unit of the prefixes' costs."""
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Provenance: the command, machine, tool chain."""

    def html(self, number: int) -> Html:
        """The HTML of the chapter. Its anchors begin with `kN-`."""
        return tag("article", tag("h2", self.result.task.title), *self._sections(f"k{number}-"), id=f"k{number}")

    def _sections(self, prefix: str) -> Iterator[Html]:
        yield section("Summary", f"{prefix}summary", self._summary())
        if self.result.found is not None:
            yield section("Convergence", f"{prefix}convergence", *self._convergence(self.result.found))
        texts = (print_notation(self.result.task.plain), print_notation(self.result.tuning.after))
        yield section("Program", f"{prefix}program", sides(*texts))
        yield section("Trace", f"{prefix}trace", *self._trace())
        yield section("Generated code", f"{prefix}code", *_code(self.result.tuning))
        if self.result.found is not None:
            yield section("Failures", f"{prefix}failures", _failures(self.result.found))
            yield section("Where the time went", f"{prefix}time", _spent(self.result.found))
        yield section("Provenance", f"{prefix}provenance", _provenance(self.facts))

    def _summary(self) -> Html:
        measured = measured_table(self.result.timed) if self.result.timed else note("Nothing was measured in the end.")
        return joined([measured, note(self.result.decision.said)])

    def _convergence(self, found: SearchOutcome) -> Iterator[Html]:
        result, plan = found.result, found.plan
        yield note(
            f"{plan.strategy}, {plan.neighbourhood}, from {plan.start}, seed {found.seed}, budget "
            f"{budget_text(plan.budget)}: {result.progress.evaluations} evaluations in "
            f"{duration(result.progress.seconds)}; {result.ending.value}."
        )
        start = found.baselines.start if result.root.cost < inf else ""
        if start:
            yield note(
                "Line: the best so far, as measured in turns with the program that the search started from. "
                "Dots: all programs, each at the cost from a race with the then best one (a product of ratios)."
            )
            yield convergence(result.history, found.unit, [(start, result.root.cost)], relative=True)
        else:
            lines = [("plain", found.baselines.plain), ("pass", found.baselines.passed)]
            yield convergence(result.history, found.unit, lines)
        better = [row for row in result.history if row.is_best]
        rows: list[tuple[object, ...]] = []
        for row in better:
            shown = times_text(result.root.cost, row.best) if start else cost_text(row.best, found.unit)
            rows.append((row.number, duration(row.seconds), shown))
        heading = "times as fast as the start" if start else "cost"
        yield folded(f"Every new best: {len(better)}", table(("evaluation", "after", heading), rows, left=()))

    def _trace(self) -> Iterator[Html]:
        moves = self.result.tuning.game.trace.moves
        if not self.prefixes:
            yield table(
                ("", "move"), [(k + 1, tag("span", move, kind="move")) for k, move in enumerate(moves)], left=(1,)
            )
            return
        how = "The median time of a call" if self.unit == "s" else f"The estimate in {self.unit}"
        if backend_of(self.result.task.machine).is_simulated:
            how = "The simulated cycles of a call"
        yield note(f"{how} after each move. Moves after which it stays the same within 3 % share a row.")
        yield steps(self.prefixes, self.unit)
        yield _warning(busy_note(prefix.foreign_load for prefix in self.prefixes))
        plain = self.prefixes[0].cost
        before = inf
        rows: list[tuple[object, ...]] = []
        for group in grouped(self.prefixes):
            rows.append(_group_row(group, plain, before, self.unit))
            before = group.cost
        yield table(("after move", "", "cost", "times plain", "times the row above"), rows, left=(1,))


_FASTER = "the tuned program is so many times as fast"


def measured_table(timed: Sequence[Timed]) -> Html:
    """The last measurement, with a warning under foreign load."""
    found = next((each.outcome for each in timed if isinstance(each.outcome, Success)), None)
    headings = list(found.figures) if found is not None else ["cost"]
    rows: list[tuple[object, ...]] = []
    for each in timed:
        outcome = each.outcome
        good = isinstance(outcome, Success)
        figures = list(outcome.figures.values()) if good else ["-"] * len(headings)
        result = outcome.rightness if good else outcome.summary
        rows.append((each.title, each.moves, *figures, times_text(each.cost, timed[-1].cost), result))
    shown = table(("", "moves", *headings, _FASTER, "result"), rows, left=(0, len(headings) + 3))
    said = [note(_HOW[found.unit])] if found is not None else []
    return joined([shown, *said, *map(_warning, timing_notes([(t.title, t.outcome) for t in timed]))])


_HOW = {
    "s": "All in turns on the same, fresh inputs.",
    "cycles": "Simulated on the same, fresh inputs. Exact: the interpreter gives that program the same bits.",
}


def _warning(text: str | None) -> Html:
    return Html("") if text is None else tag("p", f"Warning: {text}.", kind="warning")


def _group_row(group: PrefixGroup, plain: float, before: float, unit: str) -> tuple[object, ...]:
    first, last = group.prefixes[0].moves, group.prefixes[-1].moves
    names = [tag("div", p.move or "the plain program", kind="move") for p in group.prefixes]
    if group.prefixes[-1].note:
        names.append(tag("div", group.prefixes[-1].note, kind="note"))
    number = str(first) if first == last else f"{first} to {last}"
    return (
        number,
        joined(names),
        cost_text(group.cost, unit),
        times_text(plain, group.cost),
        times_text(before, group.cost),
    )


def _code(tuning: ScheduledKernel) -> Iterator[Html]:
    machine = tuning.game.machine
    listings = backend_of(machine).listings
    if not listings:
        yield note(f"None: no backend generates code for {machine.name}.")
    for form, emit in listings.items():
        title = _TITLES.get(form, form)
        try:
            text = emit(tuning.after, machine)
        except LoweringError as error:
            yield note(f"{title}: there is none for {machine.name}: {error}")
            continue
        lines = text.splitlines()
        cut = f"{len(lines) - MOST_LINES} lines more: pdojo-opt -t {form}" if len(lines) > MOST_LINES else ""
        yield folded(
            f"{title}: {len(lines)} lines", listing("\n".join(lines[:MOST_LINES])), note(cut) if cut else Html("")
        )


_TITLES = {"asm": "Assembly", "snitch-asm": "Assembly", "llvm": "LLVM IR", "c": "C"}
"""Headings of forms of code; other forms have their name as heading."""


def _failures(found: SearchOutcome) -> Html:
    failures = found.result.progress.failures
    if not failures:
        return note("None.")
    total = len(found.result.history)
    rows = [
        (kind, count, f"{count / total:.1%}", _KINDS.get(kind, ""), found.examples.get(kind, ""))
        for kind, count in sorted(failures.items(), key=lambda item: -item[1])
    ]
    return table(("kind", "programs", "of all", "meaning", "for example"), rows, left=(0, 3, 4))


def _spent(found: SearchOutcome) -> Html:
    progress = found.result.progress
    total = sum(progress.spent.values()) or 1.0
    rows = [
        (phase, f"{seconds:.1f}", f"{seconds / total:.0%}")
        for phase, seconds in sorted(progress.spent.items(), key=lambda item: -item[1])
    ]
    return joined(
        [
            table(("", "seconds", "of all"), rows),
            note(
                f"{progress.evaluations} evaluations, {progress.known} of them known from earlier runs; "
                f"{progress.repeated} proposals led to a program of this search. Work of several processors adds up."
            ),
        ]
    )


def _provenance(facts: Mapping[str, Any]) -> Html:
    return table(("", ""), [(name, html(value)) for name, value in facts.items()], left=(0, 1))

"""Kernels one after the other: the pass, the search, verification, measurement, results."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

from pdojo_tools.outputs import write_output
from pdojo_tools.tables import print_program, print_trace
from pdojo_tools.tuning.checking import FRESH, Timed, measure, print_times, verify
from pdojo_tools.tuning.finding import Found, Plan, find
from pdojo_tools.tuning.limits import cost_text, duration, times_text
from pdojo_tools.tuning.prefixes import estimate_prefixes, time_prefixes
from pdojo_tools.tuning.provenance import provenance
from pdojo_tools.tuning.report.chapter import Chapter
from pdojo_tools.tuning.subject import Subject
from pdojo_tools.tuning.targets import Targets
from rich.console import Console
from rich.markup import escape
from rich.rule import Rule
from rich.table import Table

from pdojo.dialect.notation import print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.errors import MeasurementError, PdojoError
from pdojo.search.database import Database
from pdojo.search.progress import Progress
from pdojo.search.tuning import Tuning


@dataclass
class Session:
    """One call of the tool."""

    console: Console
    given: argparse.Namespace
    command: Sequence[str]
    """The arguments, to be given again."""
    targets: Targets
    chapters: list[Chapter] = field(default_factory=list[Chapter])

    def run(self, subjects: Sequence[Subject]) -> None:
        """Tune all. A kernel that fails does not keep the others from being tuned."""
        failed: list[str] = []
        try:
            for number, subject in enumerate(subjects):
                try:
                    self._tune(number, subject)
                except PdojoError as error:
                    if len(subjects) == 1:
                        raise
                    self.console.print(f"{subject.title}: {error}", style="red", markup=False, soft_wrap=True)
                    failed.append(subject.title)
        finally:
            self._report()
        if len(subjects) > 1:
            self._overview()
        if failed:
            raise MeasurementError(f"{len(failed)} of {len(subjects)} kernels have no result: {', '.join(failed)}")

    def _tune(self, number: int, subject: Subject) -> None:
        if len(self.targets.names) > 1:
            self.console.print(Rule(escape(subject.title), characters="=", align="left"))
        found = self._search(subject)
        tuning = subject.passed if found is None else found.best
        if found is not None and print_notation(tuning.after) == print_notation(subject.passed.after):
            self._say("the search found nothing better than what the pass makes")
            # It knows why it made its moves.
            tuning = subject.passed
        self._show(tuning)
        verdict = verify(self.console, tuning)
        if found is not None and found.is_interrupted:
            # Whoever pressed Ctrl-C does not wait for measurements; the best was checked when it was found.
            self._finish(
                number, Chapter(subject, tuning, verdict, found=found, facts=self._facts(subject, tuning, found))
            )
            self._say_how_to_go_on()
            raise KeyboardInterrupt
        try:
            chapter = self._measured(subject, tuning, found, verdict)
        except KeyboardInterrupt:
            if found is not None:
                self._say_how_to_go_on()
            raise
        self._finish(number, chapter)

    def _search(self, subject: Subject) -> Found | None:
        given = self.given
        if given.search is None:
            return None
        plan = Plan(
            given.search[0],
            given.neighbourhood[0],
            given.budget,
            given.evaluator,
            given.start,
            given.seed,
            given.fresh,
        )
        with Database(given.database) as database:
            found = find(self.console, subject, plan, database)
        self._print_search(found)
        return found

    def _print_search(self, found: Found) -> None:
        result = found.result
        best = result.cost
        gains = [
            f"{times_text(cost, best)} times as fast as {name}"
            for name, cost in (("plain", found.baselines.plain), ("the pass", found.baselines.passed))
            if inf not in (cost, best)
        ]
        self._say(
            f"search: {result.progress.evaluations} evaluations in {duration(result.progress.seconds)}, "
            f"{result.ending.value}; {', '.join([f'best {cost_text(best, found.unit)}', *gains])}"
        )
        self._say(where_the_time_went(result.progress))
        if result.progress.failures:
            kinds = ", ".join(
                f"{n} {kind} ({found.examples.get(kind, '')})" for kind, n in result.progress.failures.items()
            )
            self._say(f"failed: {kinds}")

    def _show(self, tuning: Tuning) -> None:
        print_program(self.console, "before", tuning.before)
        print_program(self.console, "after", tuning.after)
        print_trace(self.console, "trace", tuning)

    def _measured(self, subject: Subject, tuning: Tuning, found: Found | None, verdict: str) -> Chapter:
        """The last measurement and, for a report, the time after each move."""
        given = self.given
        seed = given.seed or 0
        timed: list[Timed] = []
        if not given.no_measure:
            seed = seed if found is None else FRESH + found.seed
            timed = measure(self.console, self._rows(subject, tuning, found), subject.machine, seed)
            print_times(self.console, timed, subject.plain)
        chapter = Chapter(subject, tuning, verdict, timed, found, facts=self._facts(subject, tuning, found))
        if given.report is None:
            return chapter
        with self.console.status("the time after each move", refresh_per_second=1) as status:
            prefixes = (
                estimate_prefixes(tuning.game) if given.no_measure else time_prefixes(tuning.game, seed, status.update)
            )
        unit = "cycles" if given.no_measure else "s"
        return Chapter(subject, tuning, verdict, timed, found, prefixes, unit, chapter.facts)

    def _rows(self, subject: Subject, tuning: Tuning, found: Found | None) -> list[tuple[str, KernelOp, int]]:
        if found is None:
            return [("before", tuning.before, 0), ("after", tuning.after, len(tuning.game.trace.steps))]
        return [
            ("plain", subject.plain, 0),
            ("pass", subject.passed.after, len(subject.passed.game.trace.steps)),
            ("best", tuning.after, len(tuning.game.trace.steps)),
        ]

    def _facts(self, subject: Subject, tuning: Tuning, found: Found | None) -> dict[str, object]:
        facts = provenance(self.given, subject, tuning, found)
        return {**facts, "command": shlex.join(["pdojo-tune", *self.command])}

    def _finish(self, number: int, chapter: Chapter) -> None:
        """Store what was verified; nothing else ever is."""
        self.chapters.append(chapter)
        self.targets.write_trace(number, chapter.tuning.game.trace.dump())
        self.targets.write_program(number, print_notation(chapter.tuning.after))

    def _report(self) -> None:
        if self.targets.report is None or not self.chapters:
            return
        from pdojo_tools.tuning.report.page import page

        facts = self.chapters[0].facts
        made = f"{facts['made']}, pdojo {facts['pdojo']}, on {facts['processor']}"
        write_output(page(self.chapters, made), self.targets.report)
        self._say(f"report in {self.targets.report}")

    def _overview(self) -> None:
        """A line for each kernel."""
        table = Table()
        table.add_column("")
        for heading in ("plain", "pass", "tuned", "times plain", "times pass"):
            table.add_column(heading, justify="right")
        for chapter in self.chapters:
            if not chapter.timed:
                continue
            times = [each.median for each in chapter.timed]
            plain, passed, last = times[0], times[1], times[-1]
            cells = [*(cost_text(cost, "s") for cost in (plain, passed, last)), times_text(plain, last)]
            table.add_row(escape(chapter.subject.title), *cells, times_text(passed, last))
        if table.row_count:
            self.console.print(table)

    def _say_how_to_go_on(self) -> None:
        again = [word for word in self.command if word != "--fresh"]
        self._say(f"the best so far is kept; go on with: {shlex.join(['pdojo-tune', *again])}")

    def _say(self, text: str) -> None:
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)


def where_the_time_went(progress: Progress) -> str:
    """Phases by time, on one line."""
    spent = sorted(progress.spent.items(), key=lambda item: -item[1])
    return "time: " + ", ".join(f"{phase} {seconds:.1f} s" for phase, seconds in spent if seconds >= 0.05)

"""Kernels one after the other: the pass, the search, verification, measurement, results."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from pdojo_tools.outputs import write_output
from pdojo_tools.tables import many, print_program, print_trace
from pdojo_tools.tuning.checking import FRESH, Timed, measure, print_times, unit_of, verify
from pdojo_tools.tuning.finding import Found, find, plan_of
from pdojo_tools.tuning.limits import cost_text, duration, times_text
from pdojo_tools.tuning.prefixes import prefixes_of
from pdojo_tools.tuning.provenance import provenance
from pdojo_tools.tuning.report.chapter import Chapter
from pdojo_tools.tuning.subject import Subject
from pdojo_tools.tuning.targets import Targets
from rich.console import Console
from rich.markup import escape
from rich.rule import Rule
from rich.table import Table

from pdojo.backends.measure import Ok
from pdojo.backends.measure.environment import environment
from pdojo.dialect.notation import print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.errors import MeasurementError, PdojoError
from pdojo.search.database import Database
from pdojo.search.deciding import Decision
from pdojo.search.dojo import Dojo
from pdojo.search.progress import Progress
from pdojo.search.racing import LOAD
from pdojo.search.tuning import Tuning


@dataclass
class Session:
    """One call of the tool."""

    console: Console
    given: argparse.Namespace
    command: Sequence[str]
    """The arguments, to be given again."""
    targets: Targets
    environment: Mapping[str, Any] | None = None
    """Where programs are timed; None for this machine."""
    chapters: list[Chapter] = field(default_factory=list[Chapter])

    def run(self, subjects: Sequence[Subject]) -> None:
        """Tune all on this machine."""
        self.each(subjects, self._tune)

    def each(self, subjects: Sequence[Subject], work: Callable[[int, Subject], None]) -> None:
        """Do something for all, then report. A kernel that fails does not keep the others from being tuned."""
        failed: list[str] = []
        try:
            for number, subject in enumerate(subjects):
                if len(self.targets.names) > 1:
                    self.console.print(Rule(escape(subject.title), characters="=", align="left"))
                try:
                    work(number, subject)
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
        found = self._search(number, subject)
        try:
            tuning, verdict = self.verified(subject, found)
        except KeyboardInterrupt:
            if found is not None:
                self.say_how_to_go_on()
            raise
        if found is not None and found.is_interrupted:
            # Whoever pressed Ctrl-C does not wait for measurements; the best was checked when it was found.
            self.finish(number, self.chapter(subject, tuning, verdict, found))
            self.say_how_to_go_on()
            raise KeyboardInterrupt
        timed: list[Timed] = []
        try:
            if not self.given.no_measure:
                timed += self._measured(subject, tuning, found)
                if found is not None:
                    tuning, verdict = self.decided(subject, tuning, verdict, found, timed)
            chapter = self._with_prefixes(self.chapter(subject, tuning, verdict, found, timed), found)
        except KeyboardInterrupt:
            # What was found is worth more than the time after each move.
            self.finish(number, self.chapter(subject, tuning, verdict, found, timed))
            if found is not None:
                self.say_how_to_go_on()
            raise
        self.finish(number, chapter)

    def verified(self, subject: Subject, found: Found | None) -> tuple[Tuning, Decision]:
        """The best program, shown, and what shows that it is right. Raises InvalidKernel where it is wrong."""
        tuning = subject.passed if found is None else found.best
        if found is not None and print_notation(tuning.after) == print_notation(subject.passed.after):
            self._say("the search found nothing better than what the pass makes")
            # It knows why it made its moves.
            tuning = subject.passed
        self._show(tuning)
        return tuning, verify(self.console, tuning, subject.source)

    def _search(self, number: int, subject: Subject) -> Found | None:
        given = self.given
        if given.search is None:
            return None
        with Database(given.database) as database:
            plan = plan_of(given, subject.machine)
            found = find(self.console, subject, plan, database, self.rivals(number, subject))
        self.print_search(found)
        return found

    def rivals(self, number: int, subject: Subject) -> list[Dojo]:
        """What the trace file that is there leads to, if it is one for this kernel: nothing better is replaced."""
        known = self.targets.read_trace(number)
        dojo = subject.start("plain")
        if known is None or dojo.become(step.resolved for step in known.steps):
            return []
        return [dojo]

    def print_search(self, found: Found) -> None:
        """How a search went, on some lines."""
        result = found.result
        self._say(
            f"search: {many(result.progress.evaluations, 'evaluation')} in {duration(result.progress.seconds)}, "
            f"{result.ending.value}; {found.baselines.said(result.progress, found.unit)}"
        )
        if result.known is not None and not result.known.is_own:
            where = "from another search or the file that is there"
            if found.baselines.start:
                self._say(f"what is known {where} stays: the best of this search was not shown to be faster in turns")
            else:
                self._say(f"a better program is known, {where}: {cost_text(result.known.cost, found.unit)}")
        if result.progress.undecided:
            self._say(
                f"{result.progress.undecided} programs may be better: other programs kept the processors busy while"
                " they raced; the same command races them again"
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

    def _measured(self, subject: Subject, tuning: Tuning, found: Found | None) -> list[Timed]:
        """The last measurement, which is shown."""
        timed = measure(self.console, self._rows(subject, tuning, found), subject.machine, self._seed(found))
        print_times(self.console, timed, subject.plain)
        return timed

    def _with_prefixes(self, chapter: Chapter, found: Found | None) -> Chapter:
        """For a report, with the time after each move."""
        if self.given.report is None:
            return chapter
        measured = not self.given.no_measure
        seed = self._seed(found if measured else None)
        with self.console.status("the time after each move", refresh_per_second=1) as status:
            prefixes, unit = prefixes_of(chapter.tuning.game, seed, status.update, measure=measured)
        return replace(chapter, prefixes=prefixes, unit=unit)

    def _seed(self, found: Found | None) -> int:
        """Of the inputs: other ones than the search had."""
        return self.given.seed or 0 if found is None else FRESH + found.seed

    def decided(
        self, subject: Subject, tuning: Tuning, verdict: Decision, found: Found, timed: list[Timed]
    ) -> tuple[Tuning, Decision]:
        """What is reported and stored: the pass's program where the best is not faster in turns.

        Where others kept the processors busy nothing follows from it, and the last match of the search stands.
        """
        *_, passed, best = timed
        if tuning is subject.passed or best.cost < passed.cost or passed.cost == inf:
            return tuning, verdict
        outcomes = best.outcome, passed.outcome
        if isinstance(outcomes[0], Ok) and isinstance(outcomes[1], Ok):
            if max(each.foreign_load or 0.0 for each in (outcomes[0], outcomes[1])) > LOAD:
                self._say("others kept the processors busy during this measurement: it does not decide what is stored")
                return tuning, verdict
            if found.baselines.start:
                found.store_last(tuning, subject.start("pass"), (outcomes[0], outcomes[1]))
        self._say("the best of the search is not faster than what the pass makes: that is reported and stored")
        timed[-1] = replace(passed, title=best.title)
        return subject.passed, verify(self.console, subject.passed, subject.source)

    def _rows(self, subject: Subject, tuning: Tuning, found: Found | None) -> list[tuple[str, KernelOp, int]]:
        if found is None:
            return [("before", tuning.before, 0), ("after", tuning.after, len(tuning.game.trace.steps))]
        return [
            ("plain", subject.plain, 0),
            ("pass", subject.passed.after, len(subject.passed.game.trace.steps)),
            ("best", tuning.after, len(tuning.game.trace.steps)),
        ]

    def chapter(
        self, subject: Subject, tuning: Tuning, verdict: Decision, found: Found | None, timed: Sequence[Timed] = ()
    ) -> Chapter:
        """What is known of a kernel, with its provenance."""
        facts = provenance(self.given, subject, tuning, found, self.environment or environment())
        command = shlex.join(["pdojo-tune", *self.command])
        return Chapter(subject, tuning, verdict, timed, found, facts={**facts, "command": command})

    def finish(self, number: int, chapter: Chapter) -> None:
        """Store what was verified; nothing else ever is. Raises MeasurementError where something stays unstored."""
        self.chapters.append(chapter)
        if not chapter.is_verified:
            self._say("nothing has shown that the program keeps its meaning, so it is not stored")
            if self.targets.trace is not None or self.targets.program is not None:
                raise MeasurementError("not stored: the program was not verified; without --no-measure it is run")
            return
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
        measured = [chapter for chapter in self.chapters if chapter.timed]
        titles = list(dict.fromkeys(each.title for chapter in measured for each in chapter.timed))
        if not titles:
            return
        others = titles[:-1]
        table = Table("")
        for heading in (*titles, *(f"times {title}" for title in others)):
            table.add_column(heading, justify="right")
        for chapter in measured:
            times = {each.title: each.cost for each in chapter.timed}
            costs = [cost_text(times[title], unit_of(chapter.subject.machine)) for title in titles]
            gains = [times_text(times[title], times[titles[-1]]) for title in others]
            table.add_row(escape(chapter.subject.title), *costs, *gains)
        self.console.print(table)

    def say_how_to_go_on(self) -> None:
        """After Ctrl-C."""
        again = [word for word in self.command if word != "--fresh"]
        self._say(f"the best so far is kept; go on with: {shlex.join(['pdojo-tune', *again])}")

    def _say(self, text: str) -> None:
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)


def where_the_time_went(progress: Progress) -> str:
    """Phases by time, on one line."""
    spent = sorted(progress.spent.items(), key=lambda item: -item[1])
    return "time: " + ", ".join(f"{phase} {seconds:.1f} s" for phase, seconds in spent if seconds >= 0.05)

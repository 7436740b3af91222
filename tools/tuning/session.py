"""A session of `pdojo-tune`: kernels one after the other, from the pass to the results."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pdojo_tools.outputs import write_json, write_output
from pdojo_tools.phases import phase
from pdojo_tools.tuning.limits import cost_text, times_text
from pdojo_tools.tuning.pass_reporter import PassReporter
from pdojo_tools.tuning.prefixes import LEFT_OUT, prefixes_of
from pdojo_tools.tuning.provenance import provenance
from pdojo_tools.tuning.report.chapter import Chapter
from pdojo_tools.tuning.report.elements import Html
from pdojo_tools.tuning.result_files import Targets
from pdojo_tools.tuning.result_json import result_json
from pdojo_tools.tuning.usual import strategy_of
from rich.console import Console
from rich.markup import escape
from rich.rule import Rule
from rich.table import Table

from pdojo.backends.measure.environment import environment
from pdojo.errors import MeasurementError, PdojoError
from pdojo.passes.task import TuningTask
from pdojo.passes.tuned import PassedKernel, tune_by_pass
from pdojo.transforms.game import Game

if TYPE_CHECKING:
    from pdojo.search.tuning.result import TuneResult


@dataclass
class TuneSession:
    """One call of the tool."""

    console: Console
    given: argparse.Namespace
    command: Sequence[str]
    """The arguments, shown for a repetition."""
    targets: Targets
    environment: Mapping[str, Any] | None = None
    """The workers' environment; None for this machine."""
    models: Callable[[], Html] = Html
    """The part of a report about whole models, in front of the kernels."""
    chapters: list[Chapter] = field(default_factory=list[Chapter])

    def run(self, tasks: Sequence[TuningTask]) -> None:
        """Tune all kernels on this machine."""
        self.each(tasks, self._tune)

    def each(self, tasks: Sequence[TuningTask], work: Callable[[int, TuningTask], None]) -> None:
        """Call `work` for every kernel, then report. A failed kernel does not stop the others."""
        failed: list[str] = []
        try:
            for number, task in enumerate(tasks):
                if len(self.targets.names) > 1:
                    self.console.print(Rule(escape(task.title), characters="=", align="left"))
                try:
                    work(number, task)
                except PdojoError as error:
                    if len(tasks) == 1:
                        raise
                    self.console.print(f"{task.title}: {error}", style="red", markup=False, soft_wrap=True)
                    failed.append(task.title)
        finally:
            self._report()
            if self.given.json:
                write_json([result_json(chapter) for chapter in self.chapters])
        if len(tasks) > 1:
            self._overview()
        if failed:
            raise MeasurementError(f"{len(failed)} of {len(tasks)} kernels have no result: {', '.join(failed)}")

    def _tune(self, number: int, task: TuningTask) -> None:
        if self.given.no_measure and strategy_of(self.given, task.machine) is None:
            result = tune_by_pass(task, PassReporter(self.console, task))
            self.conclude(number, result, with_prefixes=True, is_measured=False)
            return
        from pdojo_tools.tuning.searching import tune_by_measuring

        found, is_measured = tune_by_measuring(
            self.console, self.given, task, lambda: self.rivals(number, task), self.say_how_to_go_on
        )
        self.conclude(number, found, with_prefixes=True, is_measured=is_measured)

    def conclude(
        self, number: int, result: TuneResult | PassedKernel, *, with_prefixes: bool = False, is_measured: bool = True
    ) -> None:
        """Store a result and add it to the report. Raises KeyboardInterrupt if it was interrupted.

        `with_prefixes` adds the costs after each move: measured, or estimated if not `is_measured`.
        """
        chapter = self._chapter(result)
        is_interrupted = result.is_interrupted
        if with_prefixes and not is_interrupted:
            try:
                chapter = self._with_prefixes(chapter, measured=is_measured)
            except KeyboardInterrupt:
                # The result matters more than the costs after each move.
                is_interrupted = True
        self._finish(number, chapter)
        if is_interrupted:
            if result.found is not None:
                self.say_how_to_go_on()
            raise KeyboardInterrupt

    def rivals(self, number: int, task: TuningTask) -> list[Game]:
        """The program of an existing trace file, if it belongs to this kernel: only a better one replaces it."""
        known = self.targets.read_trace(number)
        game = task.start("plain")
        if known is None or game.become(step.resolved for step in known.steps):
            return []
        return [game]

    def _with_prefixes(self, chapter: Chapter, *, measured: bool) -> Chapter:
        """The chapter with the costs after each move, if there is a report."""
        if self.given.report is None:
            return chapter
        from pdojo.search.tuning.timing import FRESH

        found = chapter.result.found
        seed = FRESH + found.seed if measured and found is not None else self.given.seed or 0
        with phase(self.console, "the time after each move") as tell:
            prefixes, unit = prefixes_of(chapter.result.tuning.game, seed, tell, measure=measured)
        left_out = [prefix.moves for prefix in prefixes if prefix.note == LEFT_OUT]
        if left_out:
            self._say(f"the times after {len(left_out)} of {len(prefixes) - 1} moves are {LEFT_OUT}")
        return replace(chapter, prefixes=prefixes, unit=unit)

    def _chapter(self, result: TuneResult | PassedKernel) -> Chapter:
        """The chapter of a result, with its provenance."""
        facts = provenance(result, self.environment or environment())
        return Chapter(result, facts={**facts, "command": shlex.join(["pdojo-tune", *self.command])})

    def _finish(self, number: int, chapter: Chapter) -> None:
        """Store a verified program. Raises MeasurementError for an unverified one that should be stored."""
        self.chapters.append(chapter)
        if not chapter.result.is_verified:
            self._say("nothing has shown that the program keeps its meaning, so it is not stored")
            if self.targets.trace is not None or self.targets.program is not None:
                raise MeasurementError("not stored: the program was not verified; without --no-measure it is run")
            return
        self.targets.write_trace(number, chapter.result.trace.dump())
        self.targets.write_program(number, chapter.result.kernel)

    def _report(self) -> None:
        if self.targets.report is None or not self.chapters:
            return
        from pdojo_tools.tuning.report.page import page

        facts = self.chapters[0].facts
        made = f"{facts['made']}, pdojo {facts['pdojo']}, on {facts['processor']}"
        write_output(page(self.chapters, made, self.models()), self.targets.report)
        self._say(f"report in {self.targets.report}")

    def _overview(self) -> None:
        """Print a table with a row for each kernel."""
        measured = [chapter.result for chapter in self.chapters if chapter.result.timed]
        titles = list(dict.fromkeys(each.title for result in measured for each in result.timed))
        if not titles:
            return
        others = titles[:-1]
        table = Table("")
        for heading in (*titles, *(f"times {title}" for title in others)):
            table.add_column(heading, justify="right")
        for result in measured:
            times = {each.title: each.cost for each in result.timed}
            costs = [cost_text(times[title], result.unit) for title in titles]
            gains = [times_text(times[title], times[titles[-1]]) for title in others]
            table.add_row(escape(result.task.title), *costs, *gains)
        self.console.print(table)

    def say_how_to_go_on(self) -> None:
        """Print the command that resumes after Ctrl-C."""
        again = [word for word in self.command if word != "--fresh"]
        self._say(f"the best so far is kept; go on with: {shlex.join(['pdojo-tune', *again])}")

    def _say(self, text: str) -> None:
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)

"""The output while a kernel is tuned."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from math import inf

from pdojo_tools.tables import Row, many, measurements, print_program, print_trace, timing_notes
from pdojo_tools.tuning.limits import cost_text, duration
from pdojo_tools.tuning.live import Display, best_text
from rich.console import Console

from pdojo.backends.arrays import parameters_of
from pdojo.backends.measure.arrays import data_bytes
from pdojo.dialect.view.build import nest_of
from pdojo.search.deciding import Decision
from pdojo.search.flow import TuneListener
from pdojo.search.planned import Baselines, Found, PlannedSearch
from pdojo.search.progress import Progress
from pdojo.search.subject import Subject
from pdojo.search.timing import Timed
from pdojo.search.tuning import Tuning
from pdojo.search.variants import Raced


class Narrator(TuneListener):
    """Prints the progress of tuning a kernel."""

    def __init__(self, console: Console, subject: Subject) -> None:
        self._console = console
        self._subject = subject
        self.has_found = False
        """True after the search has ended."""

    def say(self, text: str) -> None:
        """Print a line."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    @contextmanager
    def doing(self, what: str) -> Generator[Callable[[str], None]]:
        """Show the current step."""
        with self._console.status(what, refresh_per_second=1) as status:
            yield status.update

    def searching(self, search: PlannedSearch, baselines: Baselines) -> AbstractContextManager[Display]:
        """Show the progress of the search."""
        plan = search.plan
        title = f"{self._subject.title}: {plan.strategy}, {plan.neighbourhood}, seed {search.seed}"
        return Display(self._console, title, plan.budget, search.evaluator.unit, baselines)

    def raced(self, raced: Raced) -> None:
        """Print which variant of the pass won."""
        self.say(raced_text(raced))

    def goes_on(self, search: PlannedSearch) -> None:
        """Print that a run is resumed."""
        self.say(goes_on_text(search))

    def found(self, found: Found) -> None:
        """Print the result of a search."""
        self.has_found = True
        result = found.result
        self.say(
            f"search: {many(result.progress.evaluations, 'evaluation')} in {duration(result.progress.seconds)}, "
            f"{result.ending.value}; {best_text(found.baselines, result.progress, found.unit)}"
        )
        if result.known is not None and not result.known.is_own:
            where = "from another search or the file that is there"
            if found.baselines.start:
                self.say(f"what is known {where} stays: the best of this search was not shown to be faster in turns")
            else:
                self.say(f"a better program is known, {where}: {cost_text(result.known.cost, found.unit)}")
        if result.progress.undecided:
            self.say(
                f"{result.progress.undecided} programs may be better: other programs kept the processors busy while"
                " they raced; the same command races them again"
            )
        self.say(where_the_time_went(result.progress))
        if result.progress.failures:
            kinds = ", ".join(
                f"{n} {kind} ({found.examples.get(kind, '')})" for kind, n in result.progress.failures.items()
            )
            self.say(f"failed: {kinds}")

    def chosen(self, tuning: Tuning, note: str) -> None:
        """Print the programs before and after, and the trace."""
        if note:
            self.say(note)
        print_program(self._console, "before", tuning.before)
        print_program(self._console, "after", tuning.after)
        print_trace(self._console, "trace", tuning)

    def verified(self, decision: Decision) -> None:
        """Print the decision."""
        self._console.print(decision.said, highlight=False, markup=False, soft_wrap=True)

    def measured(self, timed: Sequence[Timed]) -> None:
        """Print the table, and the factors by which the last program is faster."""
        rows = [Row(each.title, each.outcome, each.moves) for each in timed]
        self._console.print(measurements(rows, data_bytes(parameters_of(nest_of(self._subject.plain)))))
        for note in timing_notes([(each.title, each.outcome) for each in timed]):
            self._console.print(note, style="yellow", soft_wrap=True)
        *others, last = timed
        for other in others:
            if max(last.cost, other.cost) < inf:
                said = f"{other.cost / last.cost:.2f} times as fast as {other.title}"
                self._console.print(said, highlight=False, markup=False)

    def decided(self, note: str) -> None:
        """Print what the last measurement decided."""
        self.say(note)


def raced_text(raced: Raced) -> str:
    """A sentence about the variants of a pass."""
    if not raced.others:
        return f"an earlier race decided: {raced.best.title}; --fresh would race again"
    count, time = many(len(raced.others) + 1, "variant"), duration(raced.seconds)
    if raced.is_undecided:
        return f"{count} of the pass raced in {time}: other programs kept the processors busy, so nothing was decided"
    if raced.best is raced.start:
        return f"{count} of the pass raced in {time}: none is faster than the first ({raced.start.title})"
    return f"{count} of the pass raced in {time}: {raced.best.title} is {raced.gain:.2f} times as fast as the first"


def goes_on_text(search: PlannedSearch) -> str:
    """A sentence about a resumed run."""
    return (
        f"going on with the run of seed {search.seed}, of which {search.known} evaluations are known; "
        "--fresh would begin a new one"
    )


def where_the_time_went(progress: Progress) -> str:
    """The phases by time, on one line."""
    spent = sorted(progress.spent.items(), key=lambda item: -item[1])
    return "time: " + ", ".join(f"{phase} {seconds:.1f} s" for phase, seconds in spent if seconds >= 0.05)

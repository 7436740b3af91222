"""Output during the tuning of a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from math import inf

from pdojo_tools.tables import TableRow, measurements, timing_notes
from pdojo_tools.tuning.limits import cost_text, duration, many
from pdojo_tools.tuning.live import Display, best_text
from pdojo_tools.tuning.pass_reporter import PassReporter
from rich.console import Console

from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.measure import Ok
from pdojo.backends.measure.arrays import data_bytes
from pdojo.dialect.view.build import nest_of
from pdojo.passes.task import TuningTask
from pdojo.search.contract.progress import Progress
from pdojo.search.tuning.run import Baselines, SearchOutcome, SearchRun
from pdojo.search.tuning.timing import Timed
from pdojo.search.tuning.variants import Raced
from pdojo.search.tuning.workflow import TuneListener


class ConsoleReporter(PassReporter, TuneListener):
    """Prints the progress of tuning a kernel."""

    def __init__(self, console: Console, task: TuningTask) -> None:
        super().__init__(console, task)
        self.has_found = False
        """True after the search has ended."""

    def searching(self, search: SearchRun, baselines: Baselines) -> AbstractContextManager[Display]:
        """Show the progress of the search."""
        plan = search.plan
        title = f"{self._task.title}: {plan.strategy}, {plan.neighbourhood}, seed {search.seed}"
        return Display(self._console, title, plan.budget, search.evaluator.unit, baselines)

    def raced(self, raced: Raced) -> None:
        """Print the winning variant of the pass."""
        self.say(raced_text(raced))

    def goes_on(self, search: SearchRun) -> None:
        """Print that a run is resumed."""
        self.say(goes_on_text(search))

    def found(self, found: SearchOutcome) -> None:
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
                self.say(f"the program known {where} stays: no race has shown the best of this search to be faster")
            else:
                self.say(f"a better program is known, {where}: {cost_text(result.known.cost, found.unit)}")
        self.say(where_the_time_went(result.progress))
        if result.progress.failures:
            kinds = ", ".join(
                f"{n} {kind} ({found.examples.get(kind, '')})" for kind, n in result.progress.failures.items()
            )
            self.say(f"failed: {kinds}")

    def recalled(self, moment: str) -> None:
        """Print that the measurement is an earlier one."""
        self.say(f"measured at {moment}; --fresh would measure again")

    def measured(self, timed: Sequence[Timed]) -> None:
        """Print the table, and the speed-ups of the last program."""
        rows = [TableRow(each.title, each.outcome, each.moves) for each in timed]
        self._console.print(measurements(rows, data_bytes(parameters_of(nest_of(self._task.plain)))))
        for note in timing_notes([(each.title, each.outcome) for each in timed]):
            self._console.print(note, style="yellow", soft_wrap=True)
        *others, last = timed
        for other in others:
            if max(last.cost, other.cost) < inf:
                self.say(gain_text(last, other))

    def decided(self, note: str) -> None:
        """Print the decision by the last measurement."""
        self.say(note)


def gain_text(tuned: Timed, other: Timed) -> str:
    """The speed-up of a program over another one, and its origin, in words."""
    race = tuned.beside(other)
    if race is not None and race.ratio is not None:
        return f"{1 / race.ratio:.2f} times as fast as {other.title}, by the median of the pairs ({race.verdict})"
    how = ", which was timed once and not in turns" if isinstance(other.outcome, Ok) else ""
    return f"{other.cost / tuned.cost:.2f} times as fast as {other.title}{how}"


def raced_text(raced: Raced) -> str:
    """A sentence about the variants of a pass."""
    if not raced.others:
        return f"after an earlier race: {raced.best.title}; --fresh would race again"
    failed = sum(not race.ratios for _, race in raced.others)
    rest = f" ({failed} failed or had no turn in time)" if failed else ""
    begins = f"{many(len(raced.others) + 1, 'variant')} of the pass raced in {duration(raced.seconds)}{rest}: "
    if raced.race is not None:
        won = f"{raced.best.title} is {raced.gain:.2f} times as fast as the first, by the median of the pairs"
        return f"{begins}{won} ({raced.race.verdict})"
    if not raced.undecided:
        return f"{begins}none is faster than the first ({raced.start.title})"
    variant, race = min(raced.undecided, key=lambda each: each[1].ratio or inf)
    count = len(raced.undecided)
    what = "nothing was decided" if count == len(raced.others) else f"{many(count, 'race')} decided nothing"
    near = (
        f"{variant.title} is {1 / (race.ratio or inf):.2f} times as fast, by the median of the pairs ({race.verdict})"
    )
    return f"{begins}{what}, so the first stays ({raced.start.title}); {near}"


def goes_on_text(search: SearchRun) -> str:
    """A sentence about a resumed run."""
    return (
        f"going on with the run of seed {search.seed}, of which {search.known} evaluations are known; "
        "--fresh would begin a new one"
    )


def where_the_time_went(progress: Progress) -> str:
    """The phases by time, on one line."""
    spent = sorted(progress.spent.items(), key=lambda item: -item[1])
    return "time: " + ", ".join(f"{phase} {seconds:.1f} s" for phase, seconds in spent if seconds >= 0.05)

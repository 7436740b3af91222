"""The steps of tuning after the expert pass: search, verification, last measurement, and the choice of the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from math import inf
from pathlib import Path

from pdojo.backends.registry import backend_of
from pdojo.dialect.notation import print_notation
from pdojo.errors import MeasurementError
from pdojo.passes.scheduled_kernel import ScheduledKernel
from pdojo.passes.task import TuningTask
from pdojo.passes.tuned import PassListener, passed_tuning, verified
from pdojo.passes.verification.verify import Verification
from pdojo.search.contract.progress import Progress
from pdojo.search.contract.racing import Timing
from pdojo.search.database import Database, Problem
from pdojo.search.database.decisions import DecisionMemory
from pdojo.search.evaluators.named import evaluator_for, make_evaluator
from pdojo.search.tuning.result import TuneResult
from pdojo.search.tuning.run import Baselines, SearchConfig, SearchOutcome, SearchRun
from pdojo.search.tuning.stored_measurement import StoredMeasurements
from pdojo.search.tuning.timing import FRESH, MeasuredRow, Timed, measure
from pdojo.search.tuning.variants import Raced, VariantRace
from pdojo.transforms.game import Game


class TuneListener(PassListener):
    """Receives the progress of tuning. The methods do nothing by default; override those of interest.

    >>> import pdojo
    >>> class Printer(pdojo.TuneListener):
    ...     def verified(self, decision):
    ...         print(decision.said)
    >>> tuned = pdojo.tune("softmax:4x8", expert="naive", measure=False, listener=Printer())
    exact oracle: the same meaning; its code gives the right results
    """

    def progress(self, progress: Progress) -> None:
        """Called after every evaluation of the search."""

    def searching(self, search: SearchRun, baselines: Baselines) -> AbstractContextManager[Callable[[Progress], None]]:
        """A context for a search; its function receives the progress."""
        return nullcontext(self.progress)

    def raced(self, raced: Raced) -> None:
        """Called when a race, or an earlier one, has decided the best variant of the pass, which is tuned further."""

    def goes_on(self, search: SearchRun) -> None:
        """Called if the search resumes an earlier one, which was interrupted or had a smaller budget."""

    def found(self, found: SearchOutcome) -> None:
        """Called when the search has ended."""

    def recalled(self, moment: str) -> None:
        """Called before `measured` if the last measurement is an earlier one, of the same programs at time `moment`."""

    def measured(self, timed: Sequence[Timed]) -> None:
        """Called with the last measurement: the plain program first if it was timed, the tuned one last."""

    def decided(self, note: str) -> None:
        """Called if the last measurement changed the result, or could not decide."""


def tune_task(
    task: TuningTask,
    plan: SearchConfig | None,
    listener: TuneListener,
    *,
    database: str | Path | Database | None = None,
    seed: int = 0,
    is_measured: bool = True,
    rivals: Sequence[Game] = (),
    is_fresh: bool = False,
    with_plain: bool = True,
) -> TuneResult:
    """Search as planned, verify the best program, and measure it against the plain program and the pass's.

    Without a search, the pass's variants race first, unless nothing is measured. Races and measurements of earlier
    calls come from the database, unless `is_fresh`. The plain program is not timed if `with_plain` is false.

    A `plan` of None does not search. `database` is a file or an open database; None is one in memory. `seed` is
    the seed of the measured inputs without a search. `rivals` are programs from elsewhere. Ctrl-C ends the search; its
    best so far is verified but not measured. Ctrl-C in the last measurement skips the measurement. Raises
    InvalidKernel for a program of another meaning, MeasurementError if it cannot run, KeyboardInterrupt before a
    program is verified.
    """
    if plan is None and is_measured:
        with _opened(database) as opened:
            return _passed(task, opened, listener, seed, is_fresh=is_fresh, with_plain=with_plain)
    found = None if plan is None else _searched(task, plan, database, listener, rivals)
    if found is not None:
        listener.found(found)
    is_interrupted = found is not None and found.is_interrupted
    tuning, decision = verify_found(task, found, listener, is_run=not (is_measured or is_interrupted))
    if is_interrupted:
        # After Ctrl-C nobody waits for measurements; the best was checked when it became the incumbent.
        return TuneResult(task, tuning, decision, (), found, is_interrupted=True)
    timed: list[Timed] = []
    try:
        if is_measured:
            rows = _rows(task, tuning, found, with_plain=with_plain)
            timed += _measured(rows, task, seed if found is None else FRESH + found.seed, listener)
            require_timed(timed, listener)
            tuning, decision = settle(task, tuning, decision, found, timed, listener)
    except KeyboardInterrupt:
        is_interrupted = True
    return TuneResult(task, tuning, decision, timed, found, is_interrupted)


def _passed(
    task: TuningTask, database: Database, listener: TuneListener, seed: int, *, is_fresh: bool, with_plain: bool
) -> TuneResult:
    """A kernel tuned without a search: the fastest variant of the pass, verified and measured, or from the database."""
    evaluator = make_evaluator(evaluator_for(task.machine, None), task.machine, task.plain, 0)
    try:
        start = task.start("plain")
        memory = database.memory(Problem.of(start, task.workload), evaluator) if isinstance(evaluator, Timing) else None
        if isinstance(evaluator, Timing) and memory is not None:
            decisions = DecisionMemory(memory, start.program.nest)
            with listener.doing("expert pass and its variants") as tell:
                raced = VariantRace(task.remade, evaluator, decisions, tell).run(again=is_fresh)
            if raced.start.tuning.choices:
                listener.raced(raced)
            task = replace(task, raced=raced.best.tuning)
    finally:
        evaluator.close()
    tuning = passed_tuning(task, listener)
    rows = _rows(task, tuning, None, with_plain=with_plain)
    stored = None if memory is None else StoredMeasurements(memory)
    known = None if stored is None or is_fresh else stored.find(rows)
    listener.chosen(tuning, "")
    decision = verified(tuning, task, listener, None if known is None else known.decision)
    try:
        if known is not None:
            listener.recalled(known.moment)
            timed = known.timed
        else:
            timed = _measured(rows, task, seed, listener)
        require_timed(timed, listener)
    except KeyboardInterrupt:
        return TuneResult(task, tuning, decision, [], is_interrupted=True)
    if stored is not None and (known is None or known.decision is None):
        stored.keep(rows, timed, decision, None if known is None else known.moment)
    return TuneResult(task, tuning, decision, timed)


def _measured(rows: Sequence[MeasuredRow], task: TuningTask, seed: int, listener: TuneListener) -> list[Timed]:
    doing = "simulating" if backend_of(task.machine).is_simulated else "measuring"
    with listener.doing(doing) as tell:
        return measure(rows, task.plain, task.machine, seed, tell)


def _searched(
    task: TuningTask,
    plan: SearchConfig,
    database: str | Path | Database | None,
    listener: TuneListener,
    rivals: Sequence[Game],
) -> SearchOutcome:
    with _opened(database) as opened:
        return find(task, plan, opened, listener, rivals)


def _opened(database: str | Path | Database | None) -> AbstractContextManager[Database]:
    """A context with an open database, which closes it only if it was not open before; None is one in memory."""
    if isinstance(database, Database):
        return nullcontext(database)
    return Database.in_memory() if database is None else Database(database)


def find(
    task: TuningTask, plan: SearchConfig, database: Database, listener: TuneListener, rivals: Sequence[Game] = ()
) -> SearchOutcome:
    """Search, or resume a search. Ctrl-C ends it with the best so far. `rivals` are programs from elsewhere."""
    evaluator = make_evaluator(plan.evaluator, task.machine, task.plain, plan.seed or 0)
    try:
        planned = SearchRun.of(task, plan, database, evaluator)
        if planned.known:
            listener.goes_on(planned)
        with listener.doing("the plain program and the pass's"):
            baselines = planned.baselines()
        with listener.searching(planned, baselines) as tell:
            return planned.run(baselines, tell, rivals)
    finally:
        evaluator.close()


def verify_found(
    task: TuningTask, found: SearchOutcome | None, listener: TuneListener, *, is_run: bool = False
) -> tuple[ScheduledKernel, Verification]:
    """The best program and its verification; with `is_run`, its code is run, too.

    Raises InvalidKernel if the program is wrong, MeasurementError if its code is wrong.
    """
    passed = passed_tuning(task, listener)
    tuning, note = passed if found is None else found.best, ""
    if found is not None and print_notation(tuning.after) == print_notation(passed.after):
        note = "the search found nothing better than what the pass makes"
        # The pass's tuning has the reasons for its moves.
        tuning = passed
    listener.chosen(tuning, note)
    return tuning, verified(tuning, task, listener, is_run=is_run)


def _rows(
    task: TuningTask, tuning: ScheduledKernel, found: SearchOutcome | None, *, with_plain: bool
) -> list[MeasuredRow]:
    moves = len(tuning.game.trace.steps)
    if found is None:
        rows = [("before", tuning.before, 0), ("after", tuning.after, moves)]
    else:
        passed = task.passed
        rows = [
            ("plain", task.plain, 0),
            ("pass", passed.after, len(passed.game.trace.steps)),
            ("best", tuning.after, moves),
        ]
    return rows if with_plain else rows[1:]


def require_timed(timed: Sequence[Timed], listener: TuneListener) -> None:
    """Report the last measurement to the listener. Raises MeasurementError if the tuned program failed in it."""
    listener.measured(timed)
    if timed[-1].cost == inf:
        raise MeasurementError(f"the tuned program: {timed[-1].outcome.summary}")


def settle(
    task: TuningTask,
    tuning: ScheduledKernel,
    decision: Verification,
    found: SearchOutcome | None,
    timed: list[Timed],
    listener: TuneListener,
) -> tuple[ScheduledKernel, Verification]:
    """The result: the pass's program if it is faster than the search's best in the last measurement.

    Timed programs compare by pairs of samples: if these decide nothing, the last match of the search stands.
    """
    if found is None or tuning is task.passed:
        return tuning, decision
    *_, passed, best = timed
    race = best.beside(passed)
    if race is not None and race.is_undecided:
        listener.decided(
            "the last measurement does not decide whether the best of the search is faster than what the pass makes:"
            " what its races decided is stored"
        )
    if passed.cost == inf or not (best.cost >= passed.cost if race is None else race.lost):
        return tuning, decision
    if race is not None and found.baselines.start:
        found.store_last(tuning, task.start("pass"), race)
    listener.decided("the best of the search is not faster than what the pass makes: that is reported and stored")
    timed[-1] = Timed(best.title, passed.outcome, passed.moves)
    return task.passed, verified(task.passed, task, listener)

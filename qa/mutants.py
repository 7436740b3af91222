"""Planted defects: checks that the test suite notices each of them (`python -m qa.mutants`).

Each defect of the catalogue is planted in a private copy of the project, and the suite runs there, beginning with the
tests most likely to notice it. Results are stored: an interrupted run resumes, unless sources or tests have changed.
Exit code 0: the suite notices all defects; 1: it misses some.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path

from pdojo_tools.command import Arguments, positive, run_tool
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from pdojo.errors import PdojoError, UsageError
from qa.mutation.catalogue import MUTANTS, stale
from qa.mutation.copies import checkout, digest, private_copy
from qa.mutation.drawn import draw
from qa.mutation.killers import FIRST, MOVES, Runner, asked_before, lit, pytest, stages, walks
from qa.mutation.mutant import Mutant
from qa.mutation.results import Outcome, Result, Results


class BlindSuiteError(PdojoError):
    """Raised if the suite misses some defects."""


def main(args: Sequence[str] | None = None) -> int:
    """Run the tool; returns the exit code: 1 if a defect is not noticed, 2 for a wrong command line."""
    return run_tool(_run, args)


def _arguments() -> Arguments:
    parser = Arguments(prog="python -m qa.mutants", description=__doc__)
    add = parser.add_argument
    add("--only", action="append", default=[], metavar="TEXT", help="only mutants with TEXT in name, file or moves")
    add("--drawn", type=positive, default=0, metavar="N", help="N random changes of the code instead of the catalogue")
    add("--within", default="dialect/rules", metavar="PATH", help="where in pdojo they are drawn (dialect/rules)")
    add("--seed", type=int, default=0, help="of what is drawn (default 0)")
    add(
        "--quick",
        action="store_true",
        help="ask only the tests that take seconds: rules, lit of moves, planted defects",
    )
    add("--list", action="store_true", help="print the mutants, run nothing")
    add("--json", action="store_true", help="print the results as JSON")
    add("--jobs", type=positive, default=2, metavar="N", help="copies at a time (default 2)")
    add("--results", default="build/mutants.json", metavar="FILE", help="where results are kept (build/mutants.json)")
    add("--again", action="store_true", help="find results again that are known")
    add("--walk-minutes", type=float, default=0.5, metavar="M", help="walks where the suite is blind (default 0.5)")
    return parser


def _run(args: Sequence[str] | None) -> None:
    given = _arguments().parse_args(args)
    root = checkout()
    known = draw(root, given.within, given.drawn, given.seed) if given.drawn else MUTANTS
    chosen = [m for m in known if all(_matches(m, text) for text in given.only)]
    if not chosen:
        raise UsageError(f"no mutant has {' and '.join(map(repr, given.only))} in its name, file or moves; see --list")
    if given.list:
        _list(root, chosen, as_json=given.json)
        return
    problems = stale(root)
    if problems:
        raise UsageError("the catalogue does not fit the source:\n" + "\n".join(problems))
    results = Results(root / given.results, digest(root))
    run = MutantRun(root, results, given.jobs, given.walk_minutes, Console(stderr=True), quick=given.quick)
    # SIGTERM also ends the tests that this process runs.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        found = run.all(chosen, again=given.again)
    finally:
        signal.signal(signal.SIGTERM, before)
    if given.json:
        print(json.dumps([asdict(result) for result in found], indent=1))
    else:
        _report(chosen, found)
    blind = [result.name for result in found if result.outcome != "suite"]
    if blind:
        raise BlindSuiteError(f"the suite is blind to {len(blind)} of {len(found)} defects: {'; '.join(blind)}")


def _matches(mutant: Mutant, text: str) -> bool:
    return any(text in part for part in (mutant.name, mutant.file, *mutant.moves))


def _list(root: Path, mutants: Sequence[Mutant], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps([asdict(mutant) | asdict(mutant.edit(root)) for mutant in mutants], indent=1))
        return
    table = Table(title=f"{len(mutants)} planted defects")
    for heading in ("mutant", "what it breaks", "where"):
        table.add_column(heading)
    for m in mutants:
        table.add_row(escape(m.name), escape(m.breaks), escape(f"{m.file} {m.symbol}"))
    Console().print(table)


@dataclass
class MutantRun:
    """A run over mutants."""

    root: Path
    results: Results
    jobs: int
    walk_minutes: float
    console: Console
    quick: bool = False

    def all(self, mutants: Sequence[Mutant], *, again: bool) -> list[Result]:
        """The results, in the order of the mutants. Raises UsageError if tests fail without a defect."""
        known = {m.name: found for m in mutants if not again and (found := self.results.of(m)) is not None}
        pending = [m for m in mutants if m.name not in known]
        if pending:
            # Later edits of the working tree have no effect.
            with private_copy(self.root, None) as snapshot:
                self._healthy(snapshot, pending)
                found = self._parallel(snapshot, pending, len(mutants))
            known |= {result.name: result for result in found}
        return [known[m.name] for m in mutants]

    def _healthy(self, copy: Path, mutants: Sequence[Mutant]) -> None:
        """Raise UsageError if a test fails without a defect, as its failure would mean nothing."""
        known = sorted({stage.only for m in mutants for stage in asked_before(copy, self.results.earlier(m))})
        tests = [pytest("as before", some) for some in (tuple(t for t in known if "::" in t),) if some]
        moves = sorted({f"{MOVES}/{move}" for m in mutants for move in m.moves if (copy / MOVES / move).is_dir()})
        with self.console.status("the tests without any defect"):
            failed = Runner().first_failure(
                copy, [*([lit("lit of the moves", moves)] if moves else []), pytest("first tests", FIRST), *tests]
            )
        if failed is not None:
            raise UsageError(f"without any defect {failed[1]} fails already; repair it first")

    def _parallel(self, snapshot: Path, mutants: Sequence[Mutant], total: int) -> list[Result]:
        runner = Runner()
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=self.console, transient=True) as progress:
            task = progress.add_task("mutants", total=total, completed=total - len(mutants))
            survivors = 0
            with ThreadPoolExecutor(self.jobs) as pool:
                futures = [pool.submit(self._one, snapshot, runner, mutant) for mutant in mutants]
                try:
                    found: list[Result] = []
                    for future in as_completed(futures):
                        found.append(future.result())
                        survivors += found[-1].outcome != "suite"
                        text = f"mutants, {survivors} not noticed" if survivors else "mutants"
                        progress.update(task, advance=1, description=text)
                except BaseException:
                    runner.stop()
                    pool.shutdown(cancel_futures=True)
                    raise
        return found

    def _one(self, snapshot: Path, runner: Runner, mutant: Mutant) -> Result:
        killer = self.results.earlier(mutant)
        result = judge(snapshot, runner, mutant, self.walk_minutes, killer=killer, linked=True, quick=self.quick)
        if result.outcome != "survived" or not self.quick:
            self.results.add(mutant, result)  # the whole suite may still notice it
        return result


def judge(
    root: Path,
    runner: Runner,
    mutant: Mutant,
    walk_minutes: float = 0.5,
    *,
    killer: str = "",
    linked: bool = False,
    quick: bool = False,
) -> Result:
    """Plant one defect and find a test that notices it; `killer` is the test that noticed it before, and runs first.

    The copy may be hard links to `root` if `root` is itself a private copy. `quick` skips tests that take minutes.
    Raises UsageError if the noticing test also fails without the defect.
    """
    began = time.monotonic()
    with private_copy(root, mutant, linked=linked) as copy:
        outcome: Outcome = "suite"
        noticed = runner.first_failure(copy, [*asked_before(copy, killer), *stages(copy, mutant, quick=quick)])
        if noticed is None and not quick:
            outcome = "walks"
            noticed = runner.first_failure(copy, walks(mutant, walk_minutes))
    if noticed is not None:
        with private_copy(root, None, linked=linked) as healthy:
            if not runner.passes(healthy, noticed[1]):
                raise UsageError(f"without any defect {noticed[1]} fails already; repair it first")
    seconds = round(time.monotonic() - began, 1)
    if noticed is None:
        return Result(mutant.name, "survived", "", "", seconds)
    return Result(mutant.name, outcome, noticed[0].name, noticed[1], seconds)


def _report(mutants: Sequence[Mutant], results: Sequence[Result]) -> None:
    killed = sum(r.outcome == "suite" for r in results)
    seconds = sum(r.seconds for r in results)
    table = Table(title=f"{killed} of {len(results)} planted defects noticed by the suite ({seconds:.0f} s of tests)")
    table.add_column("mutant")
    table.add_column("noticed by")
    table.add_column("s", justify="right")
    for result in results:
        by = {"suite": escape(result.killer), "walks": f"[red]only {escape(result.stage)}[/red]"}
        table.add_row(escape(result.name), by.get(result.outcome, "[red]nothing[/red]"), f"{result.seconds:.1f}")
    table.add_section()
    for file in sorted({m.file for m in mutants}):
        names = {m.name for m in mutants if m.file == file}
        mine = [r for r in results if r.name in names]
        table.add_row(f"[bold]{file}[/bold]", f"{sum(r.outcome == 'suite' for r in mine)} of {len(mine)}", "")
    Console().print(table)


if __name__ == "__main__":
    sys.exit(main())

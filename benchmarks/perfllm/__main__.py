"""The agent of PerfLLM against annealing, evolution, elites, a cost model and sampling, all from plain programs.

Each cell of a grid is one search: a kernel, a method, a seed. Finished cells are appended to a file; the same command
resumes after an interruption or a kill. --show prints the tables of a file and writes a page with curves.
docs/perfllm.md describes the comparison.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from time import monotonic

from pdojo_tools.command import Arguments, positive, random_seed, run_tool
from pdojo_tools.outputs import write_output
from pdojo_tools.tuning.limits import duration, many
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from benchmarks.perfllm.grid import GRIDS, QUICK, QUICK_EVALUATIONS, Grid, with_encoders, with_policy
from benchmarks.perfllm.page import page
from benchmarks.perfllm.results import Ledger, Results
from benchmarks.perfllm.running import Failure, Job, Runner, Watcher
from benchmarks.perfllm.statistics import Findings
from benchmarks.perfllm.tables import conditions, print_sheets, sheets
from benchmarks.tables import console_for
from pdojo.backends.registry import backend_of
from pdojo.dialect.machines.registry import host, known_machine
from pdojo.errors import LoweringError, MeasurementError, UsageError, did_you_mean
from pdojo.perfllm.encoders import encoder
from pdojo.search.strategies import strategy

FOLDER = Path("benchmarks/results/perfllm")
WIDTH = 200
"""Width of files with tables."""
AGAINST = "perfllm-max-single"
"""The paper's agent, with which the others are compared."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns the exit code, 1 if a cell failed."""
    return run_tool(_main, arguments)


def _parser() -> Arguments:
    parser = Arguments(
        prog="python -m benchmarks.perfllm", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--grid", choices=tuple(GRIDS), default="snitch", help="simulated Snitch cores, or this CPU (default snitch)")
    add("--kernels", type=_words, default=[], metavar="A,B", help="of the grid, with sizes or without")
    add("--evaluators", type=_words, default=[], metavar="A,B", help="of the grid: cycles; analytical, runtime")
    add("--methods", type=_words, default=[], metavar="A,B", help="of the grid, or their first words: perfllm,anneal")
    add("--encoders", type=_words, default=[], metavar="A,B", help="also agents with these: hf:FOLDER")
    add("--policy", metavar="FILE", help="also agents that begin with this one's networks (pdojo-train agent)")
    add("--seeds", type=_seeds, metavar="N,..", help="seeds (default 0 to 4; on CPUs 0 to 2)")
    add("--evaluations", type=positive, metavar="N", help="of each search (default 2000; on CPUs 300, timed 150)")
    add("--jobs", type=positive, default=2, metavar="N", help="searches at once (default 2); timed ones run alone")
    add("--minutes", type=positive, metavar="M", help="start no search that would probably end later")
    quick = f"some kernels, seed 0 and {QUICK_EVALUATIONS} evaluations, unless others are given"
    add("--quick", action="store_true", help=quick)
    add("-o", "--output", type=Path, metavar="FILE.jsonl", help=f"results; by default in {FOLDER}")
    add("--show", type=Path, metavar="FILE.jsonl", help="print the tables of a file, and write FILE.html")
    add("--against", metavar="METHOD", help=f"with --show: what methods are compared with (default {AGAINST})")
    return parser


def _words(text: str) -> list[str]:
    return list(dict.fromkeys(text.split(",")))


def _seeds(text: str) -> list[int]:
    return [random_seed(part) for part in text.split(",")]


def _main(arguments: Sequence[str] | None) -> None:
    parser = _parser()
    given = parser.parse_args(arguments)
    console = console_for(WIDTH)
    if given.show is not None:
        _refuse_others(parser, given)
        show(console, given.show, given.against)
        return
    if given.against is not None:
        raise UsageError("--against is for tables: add --show FILE.jsonl")
    grid = _grid(given)
    path: Path = given.output or FOLDER / f"{'quick-' if given.quick else ''}{given.grid}.jsonl"
    if path.suffix != ".jsonl":
        raise UsageError(f"results are JSON lines; name the file '{path.with_suffix('.jsonl')}', not '{path}'")
    _check(grid, given.jobs)
    run(console, grid, path, given.jobs, given.minutes)


def _refuse_others(parser: Arguments, given: argparse.Namespace) -> None:
    """Raise UsageError for options in addition to `--show`, which takes everything from its file."""
    for name, value in vars(given).items():
        if name not in ("show", "against") and value != parser.get_default(name):
            raise UsageError(f"--show takes everything from its file; leave out --{name}")


def _grid(given: argparse.Namespace) -> Grid:
    grid = with_encoders(GRIDS[given.grid], given.encoders)
    if given.policy is not None:
        grid = with_policy(grid, given.policy)
    kernels, seeds, evaluations = given.kernels, given.seeds, given.evaluations
    if given.quick:
        kernels, seeds = kernels or list(QUICK[given.grid]), seeds or [0]
        evaluations = evaluations or QUICK_EVALUATIONS
    return grid.with_only(kernels, given.methods, seeds, evaluations, given.evaluators)


def _check(grid: Grid, jobs: int) -> None:
    """Raise UsageError for faults that would fail every cell: processors, packages, encoders, the machine."""
    processors = len(os.sched_getaffinity(0))
    if jobs > processors:
        raise UsageError(f"--jobs {jobs}: there {'is' if processors == 1 else 'are'} {many(processors, 'processor')}")
    for method in grid.methods:
        strategy(method.strategy, 1, method.options)
        if method.settings is not None:
            encoder(method.settings.encoder, host())
    for task in grid.tasks:
        if task.is_timed:
            machine = known_machine(task.machine)
            try:
                backend_of(machine).check_runs_here(machine)
            except LoweringError as error:
                raise UsageError(str(error)) from None


def run(console: Console, grid: Grid, path: Path, jobs: int, minutes: int | None) -> None:
    """Run the jobs missing in the file. Raises MeasurementError if a cell failed."""
    deadline = None if minutes is None else monotonic() + 60 * minutes
    with Ledger(path, grid) as ledger:
        missing = [Job(task) for task in grid.tasks if task.label not in ledger.results.references]
        missing += [Job(cell.task, cell) for cell in grid.cells() if cell.key not in ledger.results.cells]
        known = len(grid.cells()) - sum(job.cell is not None for job in missing)
        if known:
            console.print(f"{known} of {len(grid.cells())} searches are in {path}", highlight=False, soft_wrap=True)
        try:
            runner = _run(console, ledger, missing, jobs, deadline)
        except KeyboardInterrupt:
            console.print(f"what is finished is in {path}; the same command goes on", soft_wrap=True)
            raise
    if runner.is_cut:
        text = f"the time is up; what is finished is in {path}, and the same command goes on"
        console.print(text, highlight=False, soft_wrap=True)
    console.print(f"tables: --show {path}", highlight=False, soft_wrap=True)
    if runner.failures:
        raise MeasurementError(f"{len(runner.failures)} of {many(len(missing), 'job')} failed")


def _run(console: Console, ledger: Ledger, missing: Sequence[Job], jobs: int, deadline: float | None) -> Runner:
    """Run jobs under a display: one bar for all, and one for each running job."""
    columns = TextColumn("{task.description}"), BarColumn(bar_width=24), TextColumn("{task.fields[state]}")
    lines: dict[Job, TaskID] = {}
    waiting = list(missing)
    with Progress(*columns, TimeElapsedColumn(), console=console, refresh_per_second=1, transient=True) as display:
        overall = display.add_task("all", total=len(missing), state="")

        def refresh() -> None:
            left = runner.left(waiting)
            state = f"{display.tasks[0].completed:.0f} of {len(missing)}"
            display.update(overall, state=f"{state}, about {duration(left)} left" if left else state)

        def began(job: Job) -> None:
            if job in waiting:
                waiting.remove(job)
            total = None if job.cell is None else job.task.evaluations
            if job not in lines:
                lines[job] = display.add_task(job.title, total=total, state="")
            refresh()

        def progress(job: Job, evaluations: int, factor: float) -> None:
            state = f"{evaluations}, {factor:.2f} times as fast as the plain program"
            display.update(lines[job], completed=evaluations, state=state)

        def ended(job: Job, failure: Failure | None) -> None:
            display.remove_task(lines.pop(job))
            display.advance(overall)
            refresh()
            if failure is not None:
                text = f"{job.title}: {failure.reason}"
                console.print(text, style="red", markup=False, highlight=False, soft_wrap=True)
            elif job.cell is not None and not console.is_terminal:
                console.print(_finished(ledger.results, job), markup=False, highlight=False, soft_wrap=True)

        runner = Runner(ledger, jobs, Watcher(began, progress, ended), deadline)
        runner.run(missing)
    return runner


def _finished(results: Results, job: Job) -> str:
    """A finished cell on a line, for logs."""
    assert job.cell is not None
    done, findings = results.cells[job.cell.key], Findings(results)
    share = f", {findings.final(done):.2f} of the heuristic" if findings.has_reference(done.task) else ""
    return f"{job.title}: {done.made} evaluations in {duration(done.seconds)}{share}"


def show(console: Console, path: Path, against: str | None) -> None:
    """Print the tables of a file, and write its page next to it. Raises UsageError if the file has no results."""
    findings = Findings(Results.read(path))
    if not any(findings.has_reference(task) for task in findings.tasks):
        raise UsageError(f"'{path}' has no finished searches")
    if against is not None and against not in findings.methods:
        raise UsageError(f"'{path}' has no method '{against}'; {did_you_mean(against, findings.methods)}")
    base = against or (AGAINST if AGAINST in findings.methods else findings.methods[0])
    found = sheets(findings, base)
    for line in conditions(findings):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    print_sheets(console, found)
    output = path.with_suffix(".html")
    write_output(page(findings, found), str(output))
    console.print(f"page with curves: {output}", highlight=False, soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main())

"""The run of a benchmark: jobs in turn, each record on disk before the next job begins; resumption, tables and files.

A benchmark is a declaration (`Benchmark`) in a module of `MODULES`. Every file of results names its benchmark in the
settings, so that `--resume` and `--show` of any of them take all files.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import NamedTuple, TypeAlias, cast

from pdojo_tools.command import Arguments, positive, random_seed
from pdojo_tools.outputs import write_output
from rich.console import Console

from benchmarks.origin import JSON, commit, origin, processor_of
from benchmarks.peers import LIBRARIES
from benchmarks.plots import draw, print_drawn
from benchmarks.processes import Processes, Task
from benchmarks.records import Partial, Record, read_results
from benchmarks.tables import progress_bar, run_jobs
from pdojo.backends.measure.environment import environment
from pdojo.errors import MeasurementError, UsageError, did_you_mean

Listener: TypeAlias = Callable[[str], None]
"""Receives the current activity."""
FOLDER = Path("benchmarks/results")
MODULES = {
    "kernels": "benchmarks.kernels",
    "snitch": "benchmarks.snitch.run",
    "library": "benchmarks.library",
    "programs": "benchmarks.programs",
    "perfllm": "benchmarks.perfllm.experiment",
}
"""Modules with a `BENCHMARK`, by name."""
_FREE = ("resume", "show", "plots", "assembly", "minutes", "against")
"""Arguments that go with a file of results."""


class Job(NamedTuple):
    """A record to measure."""

    label: str
    threads: int
    measure: Callable[[Listener], JSON]
    """The record as plain data, failures included."""
    kind: tuple[str, str] = ("", "")
    """As of `processes.Task`."""
    is_timed: bool = True
    """False if it may run beside others."""


def _no_facts(_: JSON) -> JSON:
    return {}


@dataclass(frozen=True)
class Benchmark:
    """The declaration of a benchmark."""

    jobs: Callable[[JSON, ExitStack], Sequence[Job]]
    """The jobs of settings; the stack closes what they share."""
    print_summary: Callable[[Console, JSON, Sequence[Record]], None]
    means: Callable[[Sequence[Record]], JSON]
    """The summary in the file of results."""
    print_record: Callable[[Console, Record], None] | None = None
    """Prints the rows of a record as soon as it is measured."""
    figures: Callable[[Sequence[Record]], dict[str, Callable[[], object]]] | None = None
    """Plots by name, for matplotlib."""
    chart: Callable[[Sequence[Record], JSON], str | None] | None = None
    """A chart as SVG, which is stored beside the results; None if there is nothing to draw."""
    page: Callable[[Sequence[Record], JSON], str] | None = None
    """A page as HTML, which is stored beside the results and printed results."""
    facts: Callable[[JSON], JSON] = _no_facts
    """The settings that must be the same when a run resumes."""


def benchmark_of(settings: JSON) -> Benchmark:
    """The benchmark of a file. Earlier files of simulated cores and of kernels do not name it."""
    name = settings.get("benchmark", "snitch" if "simulated" in settings else "kernels")
    found: Benchmark = import_module(MODULES[name]).BENCHMARK
    return found


# Arguments


def add_measuring(parser: Arguments, peers: str) -> None:
    """Add the options of measurements; `peers` names the default of `--peers`."""
    add = parser.add_argument
    add(
        "--threads", type=_counts, metavar="N,...", help="threads, for everyone, one run each; by default the machine's"
    )
    add("--peers", type=_libraries, metavar="A,B", help=f"{peers}, `none`, or of {', '.join(LIBRARIES)}")
    add("--cold", action="store_true", help="with arrays that are in no cache")
    add("--samples", type=positive, default=7, metavar="N", help="samples of each implementation, if time allows")
    add("--budget", type=_seconds, default=0.3, metavar="S", help="seconds for the samples of an implementation")
    add("--seed", type=random_seed, default=0, metavar="N", help="seed of the random inputs")


def add_files(parser: Arguments) -> None:
    """Add the options for files of results."""
    add = parser.add_argument
    add("-o", "--output", metavar="FILE.json", help=f"results; by default a new file in {FOLDER}")
    add("--plots", action=argparse.BooleanOptionalAction, default=True, help="draw plots, where matplotlib is there")
    add("--resume", metavar="FILE", help="go on with an interrupted run (NAME.partial.jsonl), with its settings")
    add("--show", metavar="FILE.json", help="print the tables of a run; also of an interrupted one")


def _counts(text: str) -> list[int]:
    return list(dict.fromkeys(positive(part) for part in text.split(",")))


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise ValueError
    return value


def _libraries(text: str) -> list[str]:
    names = [] if text == "none" else text.split(",")
    for name in names:
        if name not in LIBRARIES:
            raise argparse.ArgumentTypeError(f"unknown library '{name}'; {did_you_mean(name, LIBRARIES)}")
    return list(dict.fromkeys(names))


def usable(console: Console, wanted: Sequence[str] | None, usual: Collection[str] = LIBRARIES) -> list[str]:
    """The libraries to compare with; prints why one is missing. Raises UsageError if it was asked for."""
    found: list[str] = []
    for name, library in LIBRARIES.items():
        if name not in (usual if wanted is None else wanted):
            continue
        if library.missing is None:
            found.append(name)
        elif wanted is not None:
            raise UsageError(f"{library.title} cannot be compared with: {library.missing}")
        else:
            console.print(f"{library.title} is left out: {library.missing}", highlight=False, soft_wrap=True)
    return found


def output_file(given: str | None, name: str) -> Path:
    """The file of results: the given one, or a new one for the benchmark `name`. Raises UsageError if it is no JSON."""
    if given is not None:
        path = Path(given)
        if path.suffix != ".json":
            raise UsageError(f"results are JSON; name the file '{path.with_suffix('.json')}', not '{path}'")
        return path
    folder = Path()
    if FOLDER.parent.is_dir():
        family = FOLDER / name.partition("-")[0]
        folder = family if family.is_dir() else FOLDER
        folder.mkdir(exist_ok=True)
    return folder / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}.json"


def usual_settings() -> JSON:
    """The settings of every run: its start, the commit, and the environment."""
    return {"started": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "commit": commit(), "environment": environment()}


# Runs


def run(
    console: Console,
    parser: Arguments,
    given: argparse.Namespace,
    begin: Callable[[], tuple[Path, JSON]],
    check: Callable[[JSON], None] = lambda _: None,
) -> tuple[JSON, list[Record]]:
    """Begin a run, resume one or show one; returns its settings and its records.

    `begin` makes the output file and the settings of a new run, `check` receives the settings of an existing file,
    and raises UsageError if the command does not go with them. Raises UsageError.
    """
    if given.show is not None:
        _refuse_others(parser, given, "show")
        path = Path(given.show)
        settings, records = _read(path)
        check(settings)
        _print(console, settings, records)
        _write_page(console, settings, records, path)
        return settings, records
    if given.resume is not None:
        _refuse_others(parser, given, "resume")
        partial, output = Partial.resume(Path(given.resume))
        check(partial.settings)
        _require_same(partial.settings, benchmark_of(partial.settings).facts(partial.settings))
    else:
        output, settings = begin()
        partial = Partial.create(output, settings)
    minutes: int | None = getattr(given, "minutes", None)
    return partial.settings, _complete(console, partial, output, minutes, plots=given.plots)


def _read(path: Path) -> tuple[JSON, list[Record]]:
    """The settings and the records of a finished run, or of one under way. Raises UsageError for any other file."""
    if not path.name.endswith(".partial.jsonl"):
        return read_results(path)
    partial, _ = Partial.resume(path)
    return partial.settings, partial.records


def require_results(records: Sequence[Record]) -> None:
    """Raise MeasurementError if one of our programs has no result."""
    failed = [
        f"{record.label} on {record.threads} threads: {failure}" for record in records for failure in record.failures
    ]
    if failed:
        raise MeasurementError(f"our program has no result: {'; '.join(failed)}")


def _complete(console: Console, partial: Partial, output: Path, minutes: int | None, *, plots: bool) -> list[Record]:
    """Run the jobs without a record, print the tables, and write the files.

    Raises MeasurementError if a job failed or the time was up.
    """
    benchmark = benchmark_of(partial.settings)

    def keep(data: JSON) -> None:
        record = partial.add(data)
        if benchmark.print_record is not None:
            benchmark.print_record(console, record)

    hint = f"what is finished is kept; go on with --resume {partial.path}"
    try:
        with ExitStack() as stack:
            jobs = benchmark.jobs(partial.settings, stack)
            missing = [job for job in jobs if not partial.has(job.label, job.threads)]
            if len(missing) < len(jobs):
                known = len(jobs) - len(missing)
                console.print(f"{known} of {len(jobs)} records are in {partial.path}", soft_wrap=True)
            if "jobs" in partial.settings:
                _run_in_processes(console, partial, missing, keep, minutes)
            else:
                run_jobs(console, missing, lambda job: job.label, lambda job, tell: keep(job.measure(tell)))
    except (KeyboardInterrupt, MeasurementError):
        console.print(hint, highlight=False, soft_wrap=True)
        raise
    records = sorted(partial.records, key=lambda record: record.threads)
    _print_summary(console, partial.settings, records)
    partial.finish(output, benchmark.means(records))
    console.print(f"results in {output}", highlight=False, soft_wrap=True)
    if plots and benchmark.figures is not None:
        print_drawn(console, draw(benchmark.figures(records), output))
    _write_page(console, partial.settings, records, output)
    chart = None if benchmark.chart is None else benchmark.chart(records, partial.settings)
    if plots and chart is not None:
        write_output(chart, str(output.with_suffix(".svg")))
    return records


def _run_in_processes(
    console: Console, partial: Partial, jobs: Sequence[Job], keep: Callable[[JSON], None], minutes: int | None
) -> None:
    """Run jobs in processes. Raises MeasurementError if one failed, or if the minutes did not suffice for all."""
    deadline = None if minutes is None else time.monotonic() + 60 * minutes
    runner = Processes(partial.settings["jobs"], deadline)
    runner.seconds += [(tuple(r.data["kind_of_job"]), r.data["wall"]) for r in partial.records]
    failed: list[str] = []

    with progress_bar(console, len(jobs)) as (tell, advance):

        def ended(task: Task, found: JSON, seconds: float) -> None:
            advance()
            if "error" in found:
                failed.append(task.title)
                text = f"{task.title}: {found['error']}"
                console.print(text, style="red", markup=False, highlight=False, soft_wrap=True)
            else:
                keep({**found, "kind_of_job": task.kind, "wall": round(seconds, 3)})

        tasks = [Task(job.label, job.measure, job.kind, job.is_timed) for job in jobs]
        runner.run(tasks, ended, tell)
    if failed:
        raise MeasurementError(f"{len(failed)} of {len(jobs)} jobs failed")
    if runner.is_cut:
        raise MeasurementError("the time is up")


def _refuse_others(parser: Arguments, given: argparse.Namespace, option: str) -> None:
    """Raise UsageError for options in addition to `--resume` or `--show`, which take everything from their file."""
    for name, value in vars(given).items():
        if name not in _FREE and value not in (parser.get_default(name), []):
            raise UsageError(f"--{option} takes everything from its file; leave out {name}")
    if given.resume is not None and given.show is not None:
        raise UsageError("give --resume or --show, not both")


def _require_same(settings: JSON, now: JSON) -> None:
    """Raise UsageError if a run began with other facts: a table holds figures of one machine only."""
    for name, value in now.items():
        is_dictionary = isinstance(value, dict)
        before: JSON = settings[name] if is_dictionary else {name: settings[name]}
        found: JSON = cast(JSON, value) if is_dictionary else {name: value}
        changed = next((key for key in before if found.get(key) != before[key]), None)
        if changed is not None:
            was, is_now = before[changed], found.get(changed)
            raise UsageError(f"cannot resume: {changed} was {was} and is {is_now}; begin a new run")


def _print(console: Console, settings: JSON, records: Sequence[Record]) -> None:
    benchmark = benchmark_of(settings)
    if benchmark.print_record is not None:
        for record in records:
            benchmark.print_record(console, record)
    _print_summary(console, settings, records)


def _write_page(console: Console, settings: JSON, records: Sequence[Record], path: Path) -> None:
    made = benchmark_of(settings).page
    if made is not None:
        write_output(made(records, settings), str(path.with_suffix(".html")))
        console.print(f"page: {path.with_suffix('.html')}", highlight=False, soft_wrap=True)


def _print_summary(console: Console, settings: JSON, records: Sequence[Record]) -> None:
    benchmark_of(settings).print_summary(console, settings, records)
    text = f"{processor_of(settings) or 'processor unknown'}, {origin(settings)}"
    console.print(text, highlight=False, soft_wrap=True)

"""`make bench`: kernels, tuned by an expert pass, against other libraries and the limits of the machine.

Workloads are kernels at sizes: `softmax`, `softmax:24576x512`, `conv:8x10x3x512x512x5,P=2`, `batchnorm_1`; the default
is the rows of the paper's Table 3; with --held it is sixty randomly drawn shapes. With --unseen, workloads are kernels
that are in no library, by name. docs/benchmarks.md describes the measurement. With --machine snitch, micro-kernels run
on the simulator: the paper's Figures 8 and 9 (docs/snitch-bench.md).
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pdojo_tools.calibrating import calibrate_once
from pdojo_tools.command import Arguments, positive, random_seed, run_tool
from rich.console import Console

from benchmarks.held import held_out
from benchmarks.origin import JSON, commit, installed, origin, processor_of
from benchmarks.peers import LIBRARIES, TVM_TRIALS
from benchmarks.records import Partial, Record, read_results
from benchmarks.searching import EVALUATIONS, Listener, plan_of
from benchmarks.snitch import run as snitch
from benchmarks.snitch.job import STRATEGIES
from benchmarks.snitch.report import print_figures
from benchmarks.tables import console_for, run_jobs
from benchmarks.unseen import unseen, unseen_names, workload_from
from pdojo.backends.registry import backend_of
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.registry import host, known_machine
from pdojo.errors import LoweringError, MeasurementError, NotationError, UsageError
from pdojo.kernels import TABLE_3, Workload, workload
from pdojo.names import EXPERT_PASSES
from pdojo.names import STRATEGIES as SEARCHES
from pdojo.search.database import Database
from pdojo.search.strategies import strategy

FOLDER = Path("benchmarks")
DISTRIBUTIONS = {"tvm": "apache-tvm", "xgboost": "xgboost-cpu"}
"""Names in the index of packages whose modules have another one."""
_FIXED = (
    *(
        "workloads",
        "held",
        "unseen",
        "dtype",
        "expert",
        "threads",
        "peers",
        "cold",
        "autotune",
        "tvm_trials",
        "samples",
        "budget",
        "seed",
        "machine",
        "strategies",
        "search",
        "race",
        "evaluations",
        "database",
    ),
    "output",
)
"""Arguments that a resumed run takes from its file."""


def main(args: Sequence[str] | None = None) -> int:
    """Run the tool; returns the exit code."""
    return run_tool(_run, args)


def _arguments() -> Arguments:
    parser = Arguments(prog="python -m benchmarks.bench", description=__doc__)
    add = parser.add_argument
    add("workloads", nargs="*", metavar="WORKLOAD", help="kernels, with sizes or without; the paper's Table 3 if none")
    add("--held", action="store_true", help="the sixty shapes of benchmarks/held.txt instead")
    add("--unseen", action="store_true", help="the kernels of benchmarks/unseen instead: the named ones, or all twenty")
    add("--dtype", metavar="TYPE", help="element type, where not the kernel's own (f32, f64)")
    add("--pass", dest="expert", choices=(*EXPERT_PASSES, "none"), default="heuristic", help="the expert pass")
    add(
        "--threads", type=_counts, metavar="N,...", help="threads, for everyone, one run each; by default the machine's"
    )
    add("--peers", type=_libraries, metavar="A,B", help=f"all that are installed, `none`, or of {', '.join(LIBRARIES)}")
    add("--cold", action="store_true", help="with arrays that are in no cache")
    add("--autotune", action="store_true", help="also torch.compile in mode max-autotune, which takes long")
    add("--tvm-trials", type=positive, default=TVM_TRIALS, metavar="N", help="trials of TVM's MetaSchedule; kept")
    add("--samples", type=positive, default=25, metavar="N", help="samples of each implementation, if time allows")
    add("--budget", type=_seconds, default=2.0, metavar="S", help="seconds for the samples of an implementation")
    add("--seed", type=random_seed, default=0, metavar="N", help="seed of the random inputs")
    add(
        "--machine",
        metavar="MACHINE",
        default="host",
        help="host; another CPU that the pass takes for this one (x86-64-zen4); or a Snitch core, simulated",
    )
    add(
        "--strategies",
        type=_strategies,
        metavar="A,B",
        help=f"for Snitch cores: {', '.join(STRATEGIES)}; all but the last by default",
    )
    add(
        "--search",
        choices=SEARCHES,
        metavar="STRATEGY",
        help=f"also the best that a search finds from the pass's program on: {', '.join(SEARCHES)}",
    )
    add("--race", action=argparse.BooleanOptionalAction, default=True, help="also the fastest variant of the pass")
    add("--evaluations", type=positive, default=EVALUATIONS, metavar="N", help="of each search (default %(default)s)")
    add("--database", metavar="FILE", help="where searches keep what they measure; see docs/database.md")
    add("--assembly", metavar="DIR", help="for Snitch cores: write the best programs and their cycles there")
    add("-o", "--output", metavar="FILE.json", help="results; by default a new file in benchmarks/results")
    add("--plots", action=argparse.BooleanOptionalAction, default=True, help="draw plots, where matplotlib is there")
    add("--resume", metavar="FILE", help="go on with an interrupted run (NAME.partial.jsonl), with its settings")
    add("--show", metavar="FILE.json", help="print the tables of a finished run again")
    return parser


def _counts(text: str) -> list[int]:
    counts = [positive(part) for part in text.split(",")]
    return list(dict.fromkeys(counts))


def _libraries(text: str) -> list[str]:
    if text == "none":
        return []
    names = text.split(",")
    for name in names:
        if name not in LIBRARIES:
            raise argparse.ArgumentTypeError(f"unknown library '{name}'; known: {', '.join(LIBRARIES)}")
    return list(dict.fromkeys(names))


def _strategies(text: str) -> list[str]:
    names = text.split(",")
    for name in names:
        if name not in STRATEGIES:
            raise argparse.ArgumentTypeError(f"unknown strategy '{name}'; known: {', '.join(STRATEGIES)}")
    return [name for name in STRATEGIES if name in names]


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise ValueError
    return value


def _run(args: Sequence[str] | None) -> None:
    parser = _arguments()
    given = parser.parse_args(args)
    console = console_for()
    if given.show is not None:
        _refuse_others(parser, given, "show")
        _show(console, Path(given.show), given.assembly)
        return
    if given.resume is not None:
        _refuse_others(parser, given, "resume")
        partial, output = Partial.resume(Path(given.resume))
        if "simulated" not in partial.settings:
            _check_machine(partial)
            if given.assembly is not None:
                raise UsageError("--assembly is for Snitch cores, and this run is of another processor")
    else:
        output, settings = _begin(console, parser, given)
        partial = Partial.create(output, settings)
    is_simulated = "simulated" in partial.settings
    try:
        if is_simulated:
            snitch.measure_all(console, partial)
        else:
            _measure_all(console, partial)
    except KeyboardInterrupt:
        console.print(f"what is finished is kept; go on with --resume {partial.path}", soft_wrap=True)
        raise
    if is_simulated:
        snitch.finish(console, partial, output, given.assembly, plots=given.plots)
    else:
        _finish(console, partial, output, plots=given.plots)


def _begin(console: Console, parser: Arguments, given: argparse.Namespace) -> tuple[Path, JSON]:
    """The output file and the settings of a new run."""
    if known_machine(given.machine).backend == "snitch":
        output = _output(given.output, given.machine)
        return output, snitch.settings_of(console, given, parser.parse_args([]))
    for name in ("strategies", "assembly"):
        if getattr(given, name) != parser.get_default(name):
            raise UsageError(f"--{name} is for Snitch cores: add --machine snitch")
    for name in ("evaluations", "database"):
        if given.search is None and getattr(given, name) != parser.get_default(name):
            raise UsageError(f"--{name} is for searches: add --search")
    return _output(given.output), _settings(console, given)


def _refuse_others(parser: Arguments, given: argparse.Namespace, option: str) -> None:
    """Raise UsageError for options in addition to `--resume` or `--show`, which take everything from their file."""
    for name in _FIXED:
        if getattr(given, name) != parser.get_default(name) and getattr(given, name) != []:
            raise UsageError(f"--{option} takes everything from its file; leave out {name}")
    if given.resume is not None and given.show is not None:
        raise UsageError("give --resume or --show, not both")


def _settings(console: Console, given: argparse.Namespace) -> JSON:
    """All settings of a run. Raises UsageError if they contradict each other."""
    chosen = _chosen(given)
    labels = [w.label for w in chosen]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise UsageError(f"workload '{twice}' is given twice")
    if given.machine == "host":
        calibrate_once(console)
    else:
        _check_runs_here(known_machine(given.machine))
    threads = given.threads or [host().threads]
    if max(threads) > len(os.sched_getaffinity(0)):
        raise UsageError(f"{max(threads)} threads do not fit {len(os.sched_getaffinity(0))} processors")
    libraries = _usable(console, given.peers)
    if given.search is not None:
        # The strategy's packages and the database must be there.
        strategy(given.search, given.evaluations)
        Database(given.database).close()
    return {
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "commit": commit(),
        "workloads": [each.to_json() for each in chosen],
        "expert": given.expert,
        "machine": given.machine,
        "threads": threads,
        "libraries": libraries,
        "cold": given.cold,
        "autotune": given.autotune,
        "tvm_trials": given.tvm_trials,
        "search": given.search,
        "evaluations": given.evaluations,
        "race": given.race,
        "database": None if given.database is None else str(Path(given.database).absolute()),
        "samples": given.samples,
        "budget": given.budget,
        "seed": given.seed,
        **_machine(libraries),
    }


def _chosen(given: argparse.Namespace) -> list[Workload]:
    """The workloads of a run. Raises UsageError if options contradict each other."""
    if given.held and (given.workloads or given.unseen):
        raise UsageError("--held has workloads of its own; give either")
    if not given.unseen:
        return [_workload(text, given.dtype) for text in given.workloads or (held_out() if given.held else TABLE_3)]
    if given.dtype is not None:
        raise UsageError("--unseen has sizes and a type of its own; leave out --dtype")
    return [unseen(name) for name in given.workloads or unseen_names()]


def _check_runs_here(machine: Machine) -> None:
    """Raise UsageError if this processor cannot run programs for a machine."""
    if machine.backend != "llvm":
        raise UsageError(f"'{machine.name}' is no CPU: give host, another CPU, or a Snitch core")
    try:
        backend_of(machine).check_runs_here(machine)
    except LoweringError as error:
        raise UsageError(str(error)) from None


def _workload(text: str, dtype: str | None) -> Workload:
    """A workload with a program. Raises UsageError if there is none."""
    try:
        found = workload(text, dtype)
        found.instantiate()
    except NotationError as error:
        # The position in the file helps less than the given sizes.
        reason = str(error).splitlines()[0].partition("error: ")[2]
        raise UsageError(f"workload '{text}': {reason}") from None
    return found


def _machine(libraries: Sequence[str]) -> JSON:
    """Facts about the machine that must not change before a run resumes."""
    from pdojo.backends.measure.environment import environment

    packages = sorted({package for library in libraries for package in LIBRARIES[library].packages} | {"numpy"})
    return {
        "environment": environment(),
        "versions": {package: installed(DISTRIBUTIONS.get(package, package)) for package in packages},
    }


def _usable(console: Console, wanted: Sequence[str] | None) -> list[str]:
    """The libraries to compare with; prints the reason for each missing one."""
    usable: list[str] = []
    for name, library in LIBRARIES.items():
        if wanted is not None and name not in wanted:
            continue
        if library.missing is None:
            usable.append(name)
            continue
        if wanted is not None:
            raise UsageError(f"{library.title} cannot be compared with: {library.missing}")
        console.print(f"{library.title} is left out: {library.missing}", highlight=False, soft_wrap=True)
    return usable


def _check_machine(partial: Partial) -> None:
    """Raise UsageError if a run began on another machine: a table holds figures of one machine only."""
    now = _machine(partial.settings["libraries"])
    for name, value in now.items():
        before = partial.settings[name]
        changed = [key for key in before if value.get(key) != before[key]]
        if changed:
            key = changed[0]
            raise UsageError(f"cannot resume: {key} was {before[key]} and is {value.get(key)}; begin a new run")


def _output(given: str | None, simulated: str = "") -> Path:
    if given is not None:
        path = Path(given)
        if path.suffix != ".json":
            raise UsageError(f"results are JSON; name the file '{path.with_suffix('.json')}', not '{path}'")
        return path
    folder = FOLDER / "results" if FOLDER.is_dir() else Path()
    if simulated and folder != Path():
        folder /= "snitch"
    folder.mkdir(exist_ok=True, parents=True)
    return folder / f"{Path(simulated).stem or 'bench'}-{time.strftime('%Y%m%d-%H%M%S')}.json"


def _measure_all(console: Console, partial: Partial) -> None:
    """Measure everything missing in the partial file."""
    settings = partial.settings
    jobs = [(workload_from(data), n) for data in settings["workloads"] for n in settings["threads"]]

    def measured(job: tuple[Workload, int], tell: Listener) -> None:
        if not partial.has(job[0].label, job[1]):
            _measure(console, partial, *job, tell)

    run_jobs(console, jobs, lambda job: job[0].label, measured)


def _measure(console: Console, partial: Partial, job: Workload, threads: int, tell: Listener) -> None:
    from benchmarks.job import measure, options_for
    from benchmarks.report import print_record

    settings = partial.settings
    chosen = settings.get("search")
    plan = None
    if chosen is not None:
        plan = plan_of(chosen, "heuristic", settings["evaluations"], "runtime", settings["seed"])
    options = options_for(
        job,
        threads,
        samples=settings["samples"],
        budget=settings["budget"],
        cold=settings["cold"],
        seed=settings["seed"],
    )
    data = measure(
        job,
        replace(known_machine(settings.get("machine", "host")), threads=threads),
        settings["expert"],
        settings["libraries"],
        options,
        processors(threads),
        tell,
        autotune=settings["autotune"],
        tvm_trials=settings.get("tvm_trials", TVM_TRIALS),
        plan=plan,
        database=settings.get("database"),
        is_raced=settings.get("race", True),
    )
    print_record(console, partial.add(data))


def processors(threads: int) -> list[int]:
    """As many processors as threads, on different cores if possible."""
    by_core: dict[object, list[int]] = {}
    for number in sorted(os.sched_getaffinity(0)):
        by_core.setdefault(_core(number), []).append(number)
    ranked = sorted((place, number) for core in by_core.values() for place, number in enumerate(core))
    return sorted(number for _, number in ranked[:threads])


def _core(processor: int) -> object:
    """The processors of a processor's core, as the system names them; the processor alone if the system names none."""
    path = Path(f"/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list")
    try:
        return path.read_text()
    except OSError:
        return processor


def _show(console: Console, path: Path, assembly: str | None) -> None:
    from benchmarks.report import print_record, print_summary

    settings, records = read_results(path)
    if "simulated" in settings:
        print_figures(console, records)
        if assembly is not None:
            snitch.store_assembly(console, records, settings, assembly)
        return
    if assembly is not None:
        raise UsageError(f"'{path}' has no programs for Snitch cores; leave out --assembly")
    for record in records:
        print_record(console, record)
    print_summary(console, records)
    _print_origin(console, settings)


def _finish(console: Console, partial: Partial, output: Path, *, plots: bool) -> None:
    from benchmarks.plots import print_drawn, write_plots
    from benchmarks.report import print_summary

    records = sorted(partial.records, key=lambda record: record.threads)
    print_summary(console, records)
    _print_origin(console, partial.settings)
    partial.finish(output)
    console.print(f"results in {output}", highlight=False, soft_wrap=True)
    if plots:
        print_drawn(console, write_plots(records, output))
    failed = [_failure(record) for record in records if record.median is None]
    if failed:
        raise MeasurementError(f"our program has no result: {'; '.join(failed)}")


def _print_origin(console: Console, settings: JSON) -> None:
    text = f"{processor_of(settings) or 'processor unknown'}, {origin(settings)}"
    console.print(text, highlight=False, soft_wrap=True)


def _failure(record: Record) -> str:
    reason = "not measured" if record.ours is None else record.ours.outcome.summary.splitlines()[0]
    return f"{record.label} on {record.threads} threads: {reason}"


if __name__ == "__main__":
    sys.exit(main())

"""`make bench`: kernels, tuned by an expert pass, against other libraries and the limits of the machine.

Workloads are kernels at sizes: `softmax`, `softmax:24576x512`, `conv:8x10x3x512x512x5,P=2`, `batchnorm_1`; the default
is the rows of the paper's Table 3; with --held it is sixty randomly drawn shapes. With --unseen, workloads are kernels
that are in no library, by name. docs/benchmarks.md describes the measurement. With --machine snitch, micro-kernels run
on the simulator: the paper's Figures 8 and 9, or with --drawn kernels drawn by a fixed seed (docs/snitch-bench.md).
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from pdojo_tools.calibrating import calibrate_once
from pdojo_tools.command import Arguments, positive, tool
from rich.console import Console

from benchmarks import runs
from benchmarks.held import held_out
from benchmarks.kernels import machine_facts
from benchmarks.origin import JSON
from benchmarks.peers import TVM_TRIALS
from benchmarks.searching import EVALUATIONS
from benchmarks.snitch import run as snitch
from benchmarks.snitch.job import STRATEGIES
from benchmarks.tables import console_for
from benchmarks.unseen import unseen, unseen_names
from pdojo.backends.registry import backend_of
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.registry import host, known_machine
from pdojo.errors import LoweringError, NotationError, UsageError
from pdojo.kernels import TABLE_3, Workload, workload
from pdojo.names import EXPERT_PASSES
from pdojo.names import STRATEGIES as SEARCHES
from pdojo.search.database import Database
from pdojo.search.strategies import strategy

_STORED = (
    *("expert", "machine", "cold", "autotune", "tvm_trials", "search", "evaluations", "race"),
    *("samples", "budget", "seed"),
)
"""Arguments that are stored as they are."""


def _arguments() -> Arguments:
    parser = Arguments(prog="python -m benchmarks.bench", description=__doc__)
    add = parser.add_argument
    add("workloads", nargs="*", metavar="WORKLOAD", help="kernels, with sizes or without; the paper's Table 3 if none")
    add("--held", action="store_true", help="the sixty shapes of benchmarks/held.txt instead")
    add("--unseen", action="store_true", help="the kernels of benchmarks/unseen instead: the named ones, or all twenty")
    add("--drawn", action="store_true", help="for Snitch cores: the kernels drawn by a fixed seed instead")
    add("--dtype", metavar="TYPE", help="element type, where not the kernel's own (f32, f64)")
    add("--pass", dest="expert", choices=(*EXPERT_PASSES, "none"), default="heuristic", help="the expert pass")
    runs.add_measuring(parser, "all that are installed")
    add("--autotune", action="store_true", help="also torch.compile in mode max-autotune, which takes long")
    add("--tvm-trials", type=positive, default=TVM_TRIALS, metavar="N", help="trials of TVM's MetaSchedule; kept")
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
    runs.add_files(parser)
    return parser


def _strategies(text: str) -> list[str]:
    names = text.split(",")
    for name in names:
        if name not in STRATEGIES:
            raise argparse.ArgumentTypeError(f"unknown strategy '{name}'; known: {', '.join(STRATEGIES)}")
    return [name for name in STRATEGIES if name in names]


@tool
def main(args: Sequence[str] | None) -> None:
    """Run the tool."""
    parser = _arguments()
    given = parser.parse_args(args)
    console = console_for()

    def check(settings: JSON) -> None:
        if given.assembly is not None and "simulated" not in settings:
            raise UsageError("--assembly is for Snitch cores, and this run is of another processor")

    settings, records = runs.run(console, parser, given, lambda: _begin(console, parser, given), check)
    if given.assembly is not None:
        snitch.store_assembly(console, records, settings, given.assembly)
    if given.show is None:
        runs.require_results(records)


def _begin(console: Console, parser: Arguments, given: argparse.Namespace) -> tuple[Path, JSON]:
    """The output file and the settings of a new run. Raises UsageError if they contradict each other."""
    if known_machine(given.machine).backend == "snitch":
        output = runs.output_file(given.output, Path(given.machine).stem)
        return output, snitch.settings_of(console, given, parser.parse_args([]))
    for name in ("strategies", "assembly", "drawn"):
        if getattr(given, name) != parser.get_default(name):
            raise UsageError(f"--{name} is for Snitch cores: add --machine snitch")
    for name in ("evaluations", "database"):
        if given.search is None and getattr(given, name) != parser.get_default(name):
            raise UsageError(f"--{name} is for searches: add --search")
    return runs.output_file(given.output, "bench"), _settings(console, given)


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
    libraries = runs.usable(console, given.peers)
    if given.search is not None:
        # The strategy's packages and the database must be there.
        strategy(given.search, given.evaluations)
        Database(given.database).close()
    settings = {
        **runs.usual_settings(),
        **{name: getattr(given, name) for name in _STORED},
        "workloads": [each.to_json() for each in chosen],
        "threads": threads,
        "libraries": libraries,
        "database": None if given.database is None else str(Path(given.database).absolute()),
    }
    return {**settings, **machine_facts(settings)}


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


if __name__ == "__main__":
    sys.exit(main())

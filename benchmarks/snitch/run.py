"""`python -m benchmarks.bench --machine snitch`: settings, measurements and results."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.origin import JSON
from benchmarks.plots import print_drawn
from benchmarks.records import OURS, Partial, Record
from benchmarks.searching import Listener
from benchmarks.snitch.assembly import write_assembly
from benchmarks.snitch.compiler import MISSING, find_compiler
from benchmarks.snitch.figures import summary
from benchmarks.snitch.job import USUAL, label_of, measure
from benchmarks.snitch.kernels import DTYPES, MicroKernel, chosen
from benchmarks.snitch.report import print_figures, write_plots
from benchmarks.tables import run_jobs
from pdojo.backends.measure import SimulatedOnSnitch
from pdojo.backends.measure.pool import Workers
from pdojo.backends.snitch.backend import SNITCH as BACKEND
from pdojo.backends.snitch.backend import SnitchWorker
from pdojo.dialect.machines.machine_file import machine_to_json
from pdojo.dialect.machines.registry import known_machine
from pdojo.errors import MeasurementError, UsageError

_OF_CPUS = ("expert", "threads", "peers", "cold", "autotune", "tvm_trials", "samples", "budget", "search", "database")
"""Arguments that do not apply to a simulated core."""


def settings_of(console: Console, given: argparse.Namespace, defaults: argparse.Namespace) -> JSON:
    """All settings of a run. Raises UsageError if they contradict each other."""
    for name in _OF_CPUS:
        if getattr(given, name) != getattr(defaults, name):
            option = "pass" if name == "expert" else name.replace("_", "-")
            raise UsageError(f"--{option} is for processors that are measured; {given.machine} is simulated")
    if given.evaluations != defaults.evaluations and "search" not in (given.strategies or USUAL):
        raise UsageError("--evaluations is for searches: name `search` among the --strategies")
    if given.dtype not in (None, *DTYPES):
        raise UsageError(f"micro-kernels have the types {' and '.join(DTYPES)}, not '{given.dtype}'")
    kernels = chosen(given.workloads)
    compiler = find_compiler()
    if compiler is None:
        console.print(f"plain C is left out: {MISSING}", highlight=False, soft_wrap=True)
    return {
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "simulated": given.machine,
        "machine": machine_to_json(known_machine(given.machine)),
        "kernels": [kernel.text for kernel in kernels],
        "dtypes": list(DTYPES) if given.dtype is None else [given.dtype],
        "strategies": list(given.strategies or USUAL),
        "evaluations": given.evaluations,
        "compiler": None if compiler is None else compiler.title,
        "seed": given.seed,
        "version": BACKEND.version(),
    }


def measure_all(console: Console, partial: Partial) -> None:
    """Measure everything missing in the partial file. Raises UsageError if another simulator began it."""
    settings = partial.settings
    compiler = find_compiler()
    now = {"version": BACKEND.version(), "compiler": None if compiler is None else compiler.title}
    for name, value in now.items():
        if settings[name] != value:
            raise UsageError(f"cannot resume: {name} was {settings[name]} and is {value}; begin a new run")
    described = known_machine(settings["simulated"])
    jobs: list[tuple[MicroKernel, str]] = [(k, t) for k in chosen(settings["kernels"]) for t in settings["dtypes"]]
    wanted = settings["strategies"], settings["evaluations"], compiler, settings["seed"]
    simulators = Workers(None, SnitchWorker)

    def measured(job: tuple[MicroKernel, str], tell: Listener) -> None:
        if not partial.has(label_of(*job), 1):
            partial.add(measure(*job, described, *wanted, simulators, tell))

    try:
        run_jobs(console, jobs, lambda job: label_of(*job), measured)
    finally:
        simulators.close()


def finish(console: Console, partial: Partial, output: Path, assembly: str | None, *, plots: bool) -> None:
    """Print tables, write files and plots. Raises MeasurementError if one of our programs has no result."""
    records = partial.records
    print_figures(console, records)
    partial.finish(output, summary(records))
    console.print(f"results in {output}", highlight=False, soft_wrap=True)
    if plots:
        print_drawn(console, write_plots(records, output))
    if assembly is not None:
        store_assembly(console, records, partial.settings, assembly)
    failed = _failed(records)
    if failed:
        raise MeasurementError(f"{len(failed)} of our programs have no result: {'; '.join(failed)}")


def store_assembly(console: Console, records: Sequence[Record], settings: JSON, folder: str) -> None:
    """Write the best programs. Raises UsageError if the simulator or the lowering has changed since the run."""
    if settings["version"] != BACKEND.version():
        raise UsageError(
            "lowering or simulator are not those of the run: their assembly has other cycles; run it again"
        )
    written = write_assembly(records, known_machine(settings["simulated"]), Path(folder))
    console.print(f"assembly of {len(written)} programs in {folder}", highlight=False, soft_wrap=True)


def _failed(records: Sequence[Record]) -> list[str]:
    return [
        f"{record.label}, {row.variant}"
        for record in records
        for row in record.rows
        if row.library == OURS and not isinstance(row.outcome, SimulatedOnSnitch)
    ]

"""`python -m benchmarks.bench --machine snitch`: settings, measurements and results."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from rich.console import Console

from benchmarks.origin import JSON
from benchmarks.records import Record
from benchmarks.runs import Benchmark, Job, usual_settings
from benchmarks.snitch.assembly import write_assembly
from benchmarks.snitch.compiler import MISSING, find_compiler
from benchmarks.snitch.drawn.draw import drawn_kernels
from benchmarks.snitch.drawn.report import DRAWN, means_of, print_drawn
from benchmarks.snitch.figures import summary
from benchmarks.snitch.job import USUAL, label_of, measure
from benchmarks.snitch.kernels import DTYPES, MICRO_KERNELS, MicroKernel, chosen
from benchmarks.snitch.report import figures_of, print_figures
from pdojo.backends.snitch.backend import SNITCH as BACKEND
from pdojo.dialect.machines.machine_file import machine_to_json
from pdojo.dialect.machines.registry import known_machine
from pdojo.errors import UsageError

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
    kernels = chosen(given.workloads, _known(is_drawn=given.drawn))
    if find_compiler() is None:
        console.print(f"plain C is left out: {MISSING}", highlight=False, soft_wrap=True)
    return {
        **usual_settings(),
        "simulated": given.machine,
        "machine": machine_to_json(known_machine(given.machine)),
        "kernels": [kernel.text for kernel in kernels],
        "dtypes": list(DTYPES) if given.dtype is None else [given.dtype],
        "drawn": given.drawn,
        "strategies": list(given.strategies or (DRAWN if given.drawn else USUAL)),
        "evaluations": given.evaluations,
        "seed": given.seed,
        **_facts({}),
    }


def _known(*, is_drawn: bool) -> tuple[MicroKernel, ...]:
    return drawn_kernels() if is_drawn else MICRO_KERNELS


def _facts(_: JSON) -> JSON:
    compiler = find_compiler()
    return {"version": BACKEND.version(), "compiler": None if compiler is None else compiler.title}


def _jobs(settings: JSON, stack: ExitStack) -> list[Job]:
    simulators = BACKEND.simulators()
    stack.callback(simulators.close)
    shared = (
        known_machine(settings["simulated"]),
        settings["strategies"],
        settings["evaluations"],
        find_compiler(),
        settings["seed"],
        simulators,
    )
    return [
        Job(label_of(kernel, dtype), 1, partial(measure, kernel, dtype, *shared))
        for kernel in chosen(settings["kernels"], _known(is_drawn=settings.get("drawn", False)))
        for dtype in settings["dtypes"]
    ]


def _print_summary(console: Console, settings: JSON, records: Sequence[Record]) -> None:
    if settings.get("drawn", False):
        print_drawn(console, records)
    else:
        print_figures(console, records)


def _means(records: Sequence[Record]) -> JSON:
    return {**summary(records), "beside_plain_c": means_of(records)}


BENCHMARK = Benchmark(_jobs, _print_summary, _means, figures=figures_of, facts=_facts)


def store_assembly(console: Console, records: Sequence[Record], settings: JSON, folder: str) -> None:
    """Write the best programs. Raises UsageError if the simulator or the lowering has changed since the run."""
    if settings["version"] != BACKEND.version():
        raise UsageError(
            "lowering or simulator are not those of the run: their assembly has other cycles; run it again"
        )
    written = write_assembly(records, known_machine(settings["simulated"]), Path(folder))
    console.print(f"assembly of {len(written)} programs in {folder}", highlight=False, soft_wrap=True)

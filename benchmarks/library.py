"""`python -m benchmarks.library DIST` (`pdojo-lib bench`): entries of a generated library beside other libraries.

Each entry takes turns with PyTorch and ONNX Runtime on the same arrays, and with its own program as code of this
process. Pairs of samples of one turn decide which one is faster. PyTorch computes products and convolutions with oneDNN
where its build has it. The results are tables, a JSON file and a chart of the ratios.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from pdojo_tools.command import Arguments, positive, random_seed, run_tool
from pdojo_tools.outputs import check_writable, write_output
from rich.console import Console

from benchmarks.bench import processors
from benchmarks.job import LARGEST_ERROR, LIMITS
from benchmarks.library_contests import PROCESS, chart_of, print_contests, ratios_of
from benchmarks.library_peer import entry_peer
from benchmarks.origin import JSON, commit, origin, processor_of
from benchmarks.peers import LIBRARIES, peers_of, ranges_of, reference_of
from benchmarks.records import OURS, Record, geometric_mean, results_of
from benchmarks.report import print_record
from benchmarks.tables import console_for, run_jobs
from pdojo.backends.llvm.worker import CpuWorker
from pdojo.backends.measure import KernelReference, MeasuredProgram, Options, Peer
from pdojo.backends.measure.environment import environment
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.registry import host
from pdojo.dialect.notation import print_notation
from pdojo.dialect.semantics.oracle.instances import count_instances
from pdojo.dialect.view.build import nest_of
from pdojo.errors import MeasurementError, UsageError, did_you_mean
from pdojo.library.expected import INTERPRETED
from pdojo.library.levels import read_level, runs_here
from pdojo.library.manifest import Entry, Manifest, triple_of
from pdojo.library.paths import inside
from pdojo.library.plain import plain_kernel
from pdojo.library.replaying import replayed, workload_of
from pdojo.library.schema import read_manifest

PEERS = ("torch", "onnxruntime")
"""Libraries to compare with by default."""
Tell: TypeAlias = Callable[[str], None]


@dataclass(frozen=True)
class Run:
    """The measurement of a library's entries."""

    folder: Path
    manifest: Manifest
    machine: Machine
    """The level that a handle chooses on this computer."""
    libraries: Sequence[str]
    options: Options

    def measure(self, entry: Entry, tell: Tell) -> Record:
        """Time an entry and the others in turns."""
        plain = plain_kernel(self.folder, entry)
        workload = workload_of(entry, plain)
        variant = max((v for v in entry.variants if v.level == self.machine.name), key=lambda v: v.align)
        program = replayed(self.folder, variant, plain, self.machine).after
        library = inside(self.folder, self.manifest.library(triple_of(self.machine.architecture)))
        subjects: list[tuple[MeasuredProgram | Peer, JSON]] = [
            (MeasuredProgram.of(program, self.machine), {"library": PROCESS, "variant": self.machine.name}),
            (entry_peer(library, self.manifest.prefix, entry), {"library": OURS, "variant": library.name}),
        ]
        options = self.options
        if workload is None:
            large = count_instances(nest_of(plain)) > INTERPRETED
            reference = KernelReference(print_notation(plain), compiled=large)
        else:
            reference = reference_of(workload)
            found = [peer for name in self.libraries for peer in peers_of(name, workload)]
            subjects += [(p, {"library": p.library, "variant": p.variant}) for p in found if p.variant != "autotune"]
            error = LARGEST_ERROR.get(workload.element_type or "", LARGEST_ERROR["f32"])
            options = replace(options, ranges=ranges_of(workload), largest_error=error)
        rows = [row for _, row in subjects]
        with CpuWorker(
            limits=LIMITS,
            processors=processors(options.threads),
            peers="benchmarks.library_peer:build",
            references="benchmarks.peers:reference",
        ) as worker:
            outcomes = worker.compare(
                [subject for subject, _ in subjects],
                options,
                reference,
                lambda event: tell(f"{event.phase}: {rows[event.index]['library']}"),
            )
        measured = [{**row, "outcome": outcome.to_json()} for row, outcome in zip(rows, outcomes, strict=True)]
        facts = {"label": entry.name, "sizes": dict(entry.sizes), "threads": options.threads, "cold": options.cold}
        return Record.from_json({**facts, "rows": measured})


def level_here(folder: Path, manifest: Manifest) -> Machine:
    """The level that a handle chooses on this computer. Raises UsageError if there is none."""
    found = next((m for name in manifest.levels if runs_here(m := read_level(folder, name))), None)
    if found is None:
        raise UsageError(f"this computer runs no level of the library: {', '.join(manifest.levels)}")
    return found


def _arguments() -> Arguments:
    parser = Arguments(prog="python -m benchmarks.library", description=__doc__)
    add = parser.add_argument
    add("library", type=Path, metavar="DIST", help="the folder of a generated library")
    add("entries", nargs="*", default=[], metavar="ENTRY", help="entries to measure; all by default")
    add("--threads", type=positive, metavar="N", help="threads, for everyone; by default the machine's")
    add("--peers", metavar="A,B", help=f"libraries to compare with, or none: {', '.join(LIBRARIES)}")
    add("--samples", type=positive, default=25, metavar="N", help="samples of each implementation, if time allows")
    add("--budget", type=positive, default=2, metavar="S", help="seconds for the samples of an implementation")
    add("--cold", action="store_true", help="with arrays that are in no cache")
    add("--seed", type=random_seed, default=0, metavar="N", help="seed of the random inputs")
    add("-o", "--output", metavar="FILE.json", help="store results, and beside them a chart, FILE.svg")
    return parser


def main(args: Sequence[str] | None = None) -> int:
    """Run the tool; returns the exit code."""
    return run_tool(run, args)


def run(args: Sequence[str] | None) -> None:
    """Run the command line. Raises PdojoError."""
    given = _arguments().parse_args(args)
    console = console_for()
    if given.output is not None:
        check_writable(given.output)
    manifest = read_manifest(given.library)
    threads = given.threads or host().threads
    chosen = list(_chosen(manifest, given.entries))
    libraries = list(_usable(console, given.peers))
    options = Options(
        threads, samples=given.samples, budget=given.budget, cold=given.cold, seed=given.seed, steady=True
    )
    measurement = Run(given.library, manifest, level_here(given.library, manifest), libraries, options)
    settings: JSON = {
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "commit": commit(),
        "library": manifest.name,
        "level": measurement.machine.name,
        "threads": threads,
        "libraries": libraries,
        "environment": environment(),
    }
    records: list[Record] = []

    def measured(entry: Entry, tell: Tell) -> None:
        records.append(measurement.measure(entry, tell))
        print_record(console, records[-1])

    run_jobs(console, chosen, lambda entry: entry.name, measured)
    print_contests(console, records)
    console.print(f"{processor_of(settings)}, {origin(settings)}", highlight=False, soft_wrap=True)
    if given.output is not None:
        means = {name: geometric_mean(ratios) for name, ratios in ratios_of(records).items()}
        write_output(json.dumps(results_of(settings, records, means), indent=1) + "\n", given.output)
        chart = chart_of(records, settings)
        if chart is not None:
            write_output(chart, str(Path(given.output).with_suffix(".svg")))
    failed = [record.label for record in records if record.median is None]
    if failed:
        raise MeasurementError(f"the library has no result for {', '.join(failed)}")


def _chosen(manifest: Manifest, names: Sequence[str]) -> Iterator[Entry]:
    """The entries to measure. Raises UsageError for an unknown one."""
    known = {entry.name: entry for entry in manifest.entries}
    for name in names or known:
        if name not in known:
            raise UsageError(f"the library has no entry '{name}'; {did_you_mean(name, known)}")
        yield known[name]


def _usable(console: Console, wanted: str | None) -> Iterator[str]:
    """The libraries to compare with. Raises UsageError for one that is named and missing."""
    for name in PEERS if wanted is None else () if wanted == "none" else wanted.split(","):
        if name not in LIBRARIES:
            raise UsageError(f"unknown library '{name}'; {did_you_mean(name, LIBRARIES)}")
        missing = LIBRARIES[name].missing
        if missing is None:
            yield name
        elif wanted is not None:
            raise UsageError(f"{LIBRARIES[name].title} cannot be compared with: {missing}")
        else:
            console.print(f"{LIBRARIES[name].title} is left out: {missing}", highlight=False, soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main())

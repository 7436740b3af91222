"""`python -m benchmarks.library DIST` (`pdojo-lib bench`): entries of a generated library beside other libraries.

Each entry takes turns with PyTorch and ONNX Runtime on the same arrays, and with its own program as code of this
process. Pairs of samples of one turn decide which one is faster. PyTorch computes products and convolutions with oneDNN
where its build has it. The results are tables, a JSON file and a chart of the ratios.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from pdojo_tools.command import Arguments, tool
from rich.console import Console

from benchmarks import runs
from benchmarks.contests import PROCESS, chart_of, means_of, print_contests
from benchmarks.job import Entrant, compared, options_for
from benchmarks.library_peer import entry_peer
from benchmarks.origin import JSON
from benchmarks.peers import peers_of, reference_of
from benchmarks.records import OURS
from benchmarks.report import print_record
from benchmarks.tables import console_for
from pdojo.backends.measure import KernelReference, MeasuredProgram, Options
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.registry import host
from pdojo.dialect.notation import print_notation
from pdojo.dialect.semantics.oracle.instances import count_instances
from pdojo.dialect.view.build import nest_of
from pdojo.errors import UsageError, did_you_mean
from pdojo.kernels.workload import size_text
from pdojo.library.entries import MEASURED, whole_bytes
from pdojo.library.expected import INTERPRETED
from pdojo.library.levels import read_level, runs_here
from pdojo.library.manifest import Manifest, is_open, triple_of
from pdojo.library.paths import inside
from pdojo.library.plain import plain_kernel
from pdojo.library.records import Entry
from pdojo.library.replaying import replayed, workload_of
from pdojo.library.schema import read_manifest

PEERS = ("torch", "onnxruntime")
"""Libraries to compare with by default."""


def _measure(
    folder: Path, manifest: Manifest, machine: Machine, settings: JSON, entry: Entry, threads: int, tell: runs.Listener
) -> JSON:
    """The record of an entry and the others, timed in turns."""
    plain = plain_kernel(folder, entry)
    workload = workload_of(entry, plain)
    variant = max((v for v in entry.variants if v.level == machine.name), key=lambda v: v.align)
    program = replayed(folder, variant, plain, machine).after
    library = inside(folder, manifest.library(triple_of(machine.architecture)))
    entrants = [
        Entrant(MeasuredProgram.of(program, machine), {"library": PROCESS, "variant": machine.name}),
        Entrant(entry_peer(library, manifest.prefix, entry), {"library": OURS, "variant": library.name}),
    ]
    measuring = {name: settings[name] for name in ("samples", "budget", "cold", "seed")}
    if workload is None:
        large = count_instances(nest_of(plain)) > INTERPRETED
        reference = KernelReference(print_notation(plain), compiled=large)
        options = Options(threads, steady=True, **measuring)
    else:
        reference, options = reference_of(workload), options_for(workload, threads, **measuring)
        found = [peer for name in settings["libraries"] for peer in peers_of(name, workload)]
        entrants += [Entrant(p, {"library": p.library, "variant": p.variant}) for p in found if p.variant != "autotune"]
    rows = compared(entrants, options, reference, tell, peers="benchmarks.library_peer:build")
    sizes = {name: size if isinstance(size, int) else size_text(size) for name, size in entry.sizes.items()}
    return {"label": entry.name, "sizes": sizes, "threads": threads, "cold": options.cold, **rows}


def _jobs(settings: JSON, _: ExitStack) -> list[runs.Job]:
    folder = Path(settings["folder"])
    manifest = read_manifest(folder)
    machine = level_here(folder, manifest)
    # Entries with ranges are timed at their greatest sizes, unless these are too large.
    chosen = _chosen(manifest, settings["entries"])
    entries = [e for e in chosen if not is_open(e.sizes) or whole_bytes(plain_kernel(folder, e)) <= MEASURED]
    made = partial(_measure, folder, manifest, machine, settings)
    return [runs.Job(entry.name, n, partial(made, entry, n)) for entry in entries for n in settings["threads"]]


BENCHMARK = runs.Benchmark(_jobs, print_contests, means_of, print_record, chart=chart_of)


def level_here(folder: Path, manifest: Manifest) -> Machine:
    """The level that a handle chooses on this computer. Raises UsageError if there is none."""
    found = next((m for name in manifest.levels if runs_here(m := read_level(folder, name))), None)
    if found is None:
        raise UsageError(f"this computer runs no level of the library: {', '.join(manifest.levels)}")
    return found


def _arguments() -> Arguments:
    parser = Arguments(prog="python -m benchmarks.library", description=__doc__)
    add = parser.add_argument
    add("library", type=Path, nargs="?", metavar="DIST", help="the folder of a generated library")
    add("entries", nargs="*", default=[], metavar="ENTRY", help="entries to measure; all by default")
    runs.add_measuring(parser, "by default PyTorch and ONNX Runtime")
    runs.add_files(parser)
    return parser


@tool
def main(args: Sequence[str] | None) -> None:
    """Run the command line. Raises PdojoError."""
    parser = _arguments()
    given = parser.parse_args(args)
    console = console_for()
    _, records = runs.run(console, parser, given, lambda: _begin(console, given))
    if given.show is None:
        runs.require_results(records)


def _begin(console: Console, given: argparse.Namespace) -> tuple[Path, JSON]:
    if given.library is None:
        raise UsageError("name the folder of a generated library")
    manifest = read_manifest(given.library)
    output = runs.output_file(given.output, "library")
    settings: JSON = {
        "benchmark": "library",
        **runs.usual_settings(),
        "folder": str(given.library.resolve()),
        "library": manifest.name,
        "level": level_here(given.library, manifest).name,
        "entries": [entry.name for entry in _chosen(manifest, given.entries)],
        "threads": given.threads or [host().threads],
        "libraries": runs.usable(console, given.peers, PEERS),
    }
    return output, settings | {name: getattr(given, name) for name in ("samples", "budget", "cold", "seed")}


def _chosen(manifest: Manifest, names: Sequence[str]) -> Iterator[Entry]:
    """The entries to measure. Raises UsageError for an unknown one."""
    known = {entry.name: entry for entry in manifest.entries}
    for name in names or known:
        if name not in known:
            raise UsageError(f"the library has no entry '{name}'; {did_you_mean(name, known)}")
        yield known[name]


if __name__ == "__main__":
    sys.exit(main())

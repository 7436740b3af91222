"""The library kernels, tuned by an expert pass, beside PyTorch and ONNX Runtime: `make bench`.

Every kernel is a run of its own: all implementations in turns, in one process, on the same arrays, with the same number
of threads, results compared with float64 NumPy. PyTorch writes into a preallocated output where the operator takes one
(layernorm and rmsnorm return fresh memory, which the allocator keeps between calls).
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pdojo_tools.command import Arguments, positive, run_tool
from pdojo_tools.outputs import write_output
from pdojo_tools.peers import LIBRARIES, TITLES, missing_packages
from pdojo_tools.programs import load_kernel, machine_for
from pdojo_tools.tables import Row, load_note, measurements
from rich.console import Console
from rich.rule import Rule

from pdojo.backends.arrays import parameters_of
from pdojo.backends.bandwidth import copy_bandwidth
from pdojo.backends.measure import NamedReference, Ok, Options, Outcome, Peer, Program, Worker
from pdojo.backends.measure.arrays import data_bytes
from pdojo.dialect.machine import Machine
from pdojo.dialect.nest import nest_of
from pdojo.errors import UsageError
from pdojo.kernels import kernel_names
from pdojo.search.experts import EXPERT_PASSES
from pdojo.search.tuning import Tuning, tune, with_alignment

RESULTS = Path(__file__).parent / "results"
ALIGNMENT = 64


def main(args: Sequence[str] | None = None) -> int:
    """Run the benchmark; returns the exit code."""
    return run_tool(_run, args)


def _arguments() -> Arguments:
    parser = Arguments(prog="benchmarks/peers.py", description=__doc__)
    add = parser.add_argument
    add("kernels", nargs="*", metavar="KERNEL", help="library kernels; all where none is named")
    add("--pass", dest="expert", choices=EXPERT_PASSES, default="heuristic", help="the expert pass")
    add("--threads", type=positive, metavar="N", help="threads, for everyone; by default the machine's")
    add("--samples", type=positive, default=25, metavar="N", help="samples of each implementation")
    add("--cold", action="store_true", help="with arrays that are in no cache")
    add("-o", "--output", metavar="FILE.json", help="where the results go; by default a new file in benchmarks/results")
    return parser


def _run(args: Sequence[str] | None) -> None:
    given = _arguments().parse_args(args)
    unknown = [name for name in given.kernels if name not in kernel_names()]
    if unknown:
        raise UsageError(f"unknown kernel '{unknown[0]}'; known: {', '.join(kernel_names())}")
    console = Console()
    libraries = [library for library in LIBRARIES if not missing_packages(library)]
    for library in LIBRARIES.keys() - set(libraries):
        packages = " ".join(missing_packages(library))
        console.print(f"{TITLES[library]} is left out: pip install {packages}", highlight=False)
    machine = machine_for(load_kernel(kernel_names()[0]), "host", given.threads)
    options = Options(threads=machine.threads, samples=given.samples, budget=2.0, cold=given.cold)
    results = {
        name: _benchmark(console, name, given.expert, machine, libraries, options)
        for name in given.kernels or kernel_names()
    }
    _summarise(console, results)
    started = time.strftime("%Y%m%d-%H%M%S")
    RESULTS.mkdir(exist_ok=True)
    path = given.output or str(RESULTS / f"peers-{started}.json")
    write_output(json.dumps({"started": started, "pass": given.expert, "kernels": results}, indent=1) + "\n", path)
    console.print(f"results in {path}", highlight=False, soft_wrap=True)


def _benchmark(
    console: Console, name: str, expert: str, machine: Machine, libraries: Sequence[str], options: Options
) -> dict[str, Any]:
    """One kernel: the table, and a JSON object."""
    tuning = tune(with_alignment(load_kernel(name), ALIGNMENT), machine, expert)
    traffic = data_bytes(parameters_of(nest_of(tuning.before)))
    with (
        Worker(peers="pdojo_tools.peers:build", references="pdojo.kernels.meaning:meaning") as worker,
        console.status(name, refresh_per_second=1),
    ):
        copy = copy_bandwidth(traffic, machine.threads, worker, machine)
        subjects = [Program.of(tuning.after, machine), *(Peer(library, name) for library in libraries)]
        outcomes = dict(
            zip(("pdojo", *libraries), worker.compare(subjects, options, NamedReference(name)), strict=True)
        )
    console.print(Rule(name, align="left"))
    console.print(measurements(_rows(outcomes, tuning), traffic, copy))
    note = load_note(list(outcomes.values()))
    if note is not None:
        console.print(note, style="yellow", soft_wrap=True)
    return {
        "ratio": _ratio(outcomes),
        "traffic_bytes": traffic,
        "copy_bytes_per_second": copy.bytes_per_second,
        "trace": tuning.game.trace.dump(),
        "outcomes": {title: outcome.to_json() for title, outcome in outcomes.items()},
    }


def _rows(outcomes: dict[str, Outcome], tuning: Tuning) -> list[Row]:
    moves = len(tuning.game.trace.steps)
    return [Row(TITLES.get(t, t), outcome, moves if t == "pdojo" else None) for t, outcome in outcomes.items()]


def _ratio(outcomes: dict[str, Outcome]) -> float | None:
    """Median of the fastest peer over ours; None where either is missing."""
    peers = [o.median for title, o in outcomes.items() if title != "pdojo" and isinstance(o, Ok)]
    ours = outcomes["pdojo"]
    return min(peers) / ours.median if peers and isinstance(ours, Ok) else None


def _summarise(console: Console, results: dict[str, dict[str, Any]]) -> None:
    console.print(Rule("times as fast as the fastest peer, by medians", align="left"))
    for name, result in results.items():
        ratio = result["ratio"]
        console.print(f"{name:12} {'-' if ratio is None else f'{ratio:.2f}'}", highlight=False)


if __name__ == "__main__":
    sys.exit(main())

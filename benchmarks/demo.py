"""`make demo`: legal moves turn a plain softmax into a fast one, checked and timed against other libraries."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from pdojo_tools.calibrating import calibrate_once
from pdojo_tools.command import Arguments, positive, random_seed, tool
from pdojo_tools.programs import load_kernel, machine_for
from pdojo_tools.tables import TableRow, measurements, print_program, print_trace, timing_notes
from pdojo_tools.tuning.console_reporter import raced_text
from rich.console import Console

from benchmarks.peers import LIBRARIES, as_text, reference_of
from benchmarks.searching import race_variants
from pdojo.backends.calibration.bandwidth import Bandwidth, copy_bandwidth
from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.llvm.worker import CpuWorker
from pdojo.backends.measure import MeasuredProgram, Ok, Options, Outcome, Peer
from pdojo.backends.measure.arrays import data_bytes
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.build import nest_of
from pdojo.errors import IllegalMove, LocationError, MeasurementError
from pdojo.kernels import kernel_path, workload
from pdojo.names import EXPERT_PASSES
from pdojo.passes.scheduled_kernel import ScheduledKernel, assume_alignment, make_moves
from pdojo.transforms.trace import Trace

KERNEL = "softmax"
PEERS = {"torch": "eager, out", "onnxruntime": "bound"}
"""Libraries to compare with, and their variants that write into our memory."""
SHOWN = "heuristic"
"""The pass whose program and trace are printed."""


def _arguments() -> Arguments:
    parser = Arguments(prog="python -m benchmarks.demo", description=__doc__)
    add = parser.add_argument
    add("--threads", type=positive, metavar="N", help="threads, for everyone; by default the machine's")
    add("--seed", type=random_seed, default=0, metavar="N", help="seed of the random inputs")
    add("--no-calibrate", action="store_true", help="do not measure this processor if nobody has yet")
    add("--peers", action=argparse.BooleanOptionalAction, default=True, help="compare with libraries where installed")
    return parser


@tool
def main(args: Sequence[str] | None) -> None:
    """Run the demo."""
    given = _arguments().parse_args(args)
    began = time.perf_counter()
    console = Console()
    calibrate_once(console, wanted=not given.no_calibrate)
    kernel = assume_alignment(load_kernel(KERNEL), None)
    machine = machine_for(kernel, "host", given.threads)
    tunings = dict(_tunings(console, kernel, machine))
    _show(console, tunings)
    peers = [library for library in PEERS if _is_usable(console, library)] if given.peers else []
    copy, rows = _measure(console, tunings, peers, machine, given.seed)
    traffic = data_bytes(parameters_of(nest_of(kernel)))
    console.print(measurements(rows, traffic, copy))
    _conclude(console, rows, time.perf_counter() - began)


def _tunings(console: Console, kernel: KernelOp, machine: Machine) -> Iterator[tuple[str, ScheduledKernel]]:
    """The plain program, each expert pass's program, and the program of the handmade trace."""
    yield "plain", make_moves(kernel, machine, None)
    for name in EXPERT_PASSES:
        with console.status(f"{name} pass"):
            start = time.perf_counter()
            tuning = make_moves(kernel, machine, name)
        seconds = time.perf_counter() - start
        console.print(f"{name} pass: {len(tuning.game.trace.steps)} moves in {seconds:.1f} s", highlight=False)
        if name == SHOWN and tuning.choices:
            with console.status("racing variants", refresh_per_second=1) as status:
                raced = race_variants(tuning, lambda d: make_moves(kernel, machine, SHOWN, None, d), status.update)
            console.print(raced_text(raced), highlight=False)
            tuning = raced.best.tuning
        yield name, tuning
    path = manual_trace(machine)
    if path is None:
        console.print("manual trace: there is none for this machine")
        return
    with console.status("manual trace"):
        try:
            tuning = make_moves(kernel, machine, None, Trace.load(path))
        except (IllegalMove, LocationError) as error:
            console.print(f"manual trace: it does not fit this machine: {error}", markup=False)
            return
    console.print(f"manual trace: {len(tuning.game.trace.steps)} moves, from {path.name}", highlight=False)
    yield "manual trace", tuning


def manual_trace(machine: Machine) -> Path | None:
    """The handmade trace for a machine's vectors; None if there is none."""
    level = {64: "avx512", 32: "avx2"}.get(max(machine.vector_bytes, default=0))
    path = kernel_path(KERNEL).parent / "traces" / f"{KERNEL}-x86-64-{level}.trace"
    return path if path.exists() else None


def _show(console: Console, tunings: dict[str, ScheduledKernel]) -> None:
    console.print()
    tuning = tunings[SHOWN]
    print_program(console, f"{KERNEL}, plain", tuning.before)
    print_program(console, f"{KERNEL}, after the {SHOWN} pass", tuning.after)
    print_trace(console, f"trace of the {SHOWN} pass", tuning)


def _is_usable(console: Console, library: str) -> bool:
    known = LIBRARIES[library]
    if known.missing is not None:
        console.print(f"{known.title} is left out: it is not installed (make peers)", highlight=False)
    return known.missing is None


def _measure(
    console: Console, tunings: dict[str, ScheduledKernel], peers: Sequence[str], machine: Machine, seed: int
) -> tuple[Bandwidth, list[TableRow]]:
    """Time all programs in turns, in one process, on the same arrays, with the same number of threads."""
    programs = [MeasuredProgram.of(tuning.after, machine) for tuning in tunings.values()]
    wanted = workload(KERNEL)
    contenders = [*programs, *(Peer(library, as_text(wanted), PEERS[library]) for library in peers)]
    titles = [*tunings, *(LIBRARIES[library].title for library in peers)]
    lengths = [*(len(tuning.game.trace.steps) for tuning in tunings.values()), *([None] * len(peers))]
    footprint = data_bytes(parameters_of(nest_of(tunings["plain"].before)))
    with (
        CpuWorker(peers="benchmarks.peers:build", references="benchmarks.peers:reference") as worker,
        # A frequently redrawn display would be foreign load.
        console.status("", refresh_per_second=1) as status,
    ):
        outcomes = worker.compare(
            contenders,
            Options(threads=machine.threads, samples=25, budget=2.0, seed=seed, steady=True),
            reference_of(wanted),
            lambda event: status.update(f"{titles[event.index]}: {event.phase}"),
        )
        # Last, because the first user of an OpenMP runtime decides which runtime the process uses.
        status.update("copy bandwidth")
        copy = copy_bandwidth(footprint, machine.threads, worker, machine)
        console.print(
            f"copying {copy.footprint >> 20} MiB on {copy.threads} threads: {copy.bytes_per_second / 1e9:.1f} GB/s "
            f"({copy.variant})",
            highlight=False,
        )
    return copy, [TableRow(title, outcome, n) for title, outcome, n in zip(titles, outcomes, lengths, strict=True)]


def _conclude(console: Console, rows: Sequence[TableRow], seconds: float) -> None:
    by_title: dict[str, Outcome] = {row.title: row.outcome for row in rows}
    console.print("GB/s: bytes of x and y over the median; results compared with float64 NumPy", highlight=False)
    for note in timing_notes(list(by_title.items())):
        console.print(note, style="yellow", soft_wrap=True)
    ours = by_title[SHOWN]
    if not isinstance(ours, Ok):
        raise MeasurementError(f"the {SHOWN} program: {ours.summary}")
    others = {
        t: o
        for t, o in by_title.items()
        if t in ("plain", *(LIBRARIES[library].title for library in PEERS)) and isinstance(o, Ok)
    }
    for title, outcome in others.items():
        medians, minima = outcome.median / ours.median, outcome.minimum / ours.minimum
        line = f"{SHOWN} pass against {title}: {medians:.2f} times as fast (fastest samples: {minima:.2f})"
        console.print(line, highlight=False)
    console.print(f"done in {seconds:.0f} s", highlight=False)
    wrong = [title for title, outcome in by_title.items() if not isinstance(outcome, Ok)]
    if wrong:
        raise MeasurementError(f"not measured: {', '.join(wrong)}; see the table")


if __name__ == "__main__":
    sys.exit(main())

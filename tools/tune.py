"""`pdojo-tune`: tune a kernel by an expert pass, verify it, and measure what that gained."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from pdojo_tools.command import Arguments, positive, run_tool
from pdojo_tools.outputs import write_output
from pdojo_tools.programs import load_kernel, machine_for
from pdojo_tools.tables import Row, load_note, measurements, print_program, print_trace
from rich.console import Console

from pdojo.backends.arrays import parameters_of
from pdojo.backends.measure import KernelReference, Ok, Options, Outcome, Program, Worker
from pdojo.backends.measure.arrays import data_bytes
from pdojo.dialect.nest import nest_of
from pdojo.dialect.notation import print_notation
from pdojo.errors import InvalidKernel, MeasurementError
from pdojo.search.experts import EXPERT_PASSES
from pdojo.search.tuning import OracleVerdict, Tuning, check_meaning, tune, with_alignment
from pdojo.transforms.trace import Trace


def main(args: Sequence[str] | None = None) -> int:
    """Run the tool; returns the exit code."""
    return run_tool(_run, args)


def _arguments() -> Arguments:
    parser = Arguments(prog="pdojo-tune", description=__doc__)
    add = parser.add_argument
    add("program", metavar="KERNEL", help="a .pdojo or MLIR file, - for standard input, or a library kernel's name")
    add("--kernel", metavar="NAME", help="which kernel, where the file has several")
    add("--shape", metavar="AxBxC", help="sizes of a library kernel in its file's order, others by name: 8x64x56,S=2")
    add("--dtype", metavar="TYPE", help="element type of a library kernel: f32, f64, bf16, f16")
    add("--pass", dest="expert", choices=(*EXPERT_PASSES, "none"), default="heuristic", help="the expert pass")
    add("--trace", metavar="FILE", help="make the moves of a trace before the pass")
    add(
        "--machine",
        metavar="MACHINE",
        help="a name or a TOML file: the machine to tune for; by default the kernel's, or host",
    )
    add("--threads", type=positive, metavar="N", help="threads for parallel scopes; by default the machine's")
    add("--align", type=positive, default=64, metavar="BYTES", help="alignment that callers guarantee; 64 by default")
    add("--seed", type=int, default=0, metavar="N", help="seed of the random inputs")
    add("--explain", action="store_true", help="only print the moves, and why each was made")
    add("--no-measure", action="store_true", help="neither run nor time the programs")
    add("-o", "--output", metavar="FILE", help="store the trace")
    add("--emit", metavar="FILE", help="store the tuned program, in the notation")
    return parser


def _run(args: Sequence[str] | None) -> None:
    given = _arguments().parse_args(args)
    kernel = with_alignment(load_kernel(given.program, given.kernel, shape=given.shape, dtype=given.dtype), given.align)
    machine = machine_for(kernel, given.machine, given.threads)
    trace = None if given.trace is None else Trace.load(given.trace)
    console = Console()
    tuning = tune(kernel, machine, None if given.expert == "none" else given.expert, trace)
    console.print(f"machine {machine.name}, {machine.threads} threads; callers align arrays to {given.align} bytes")
    if given.explain:
        print_trace(console, "why", tuning)
        return
    print_program(console, "before", tuning.before)
    print_program(console, "after", tuning.after)
    print_trace(console, "trace", tuning)
    _verify(console, tuning)
    if not given.no_measure:
        _measure(console, tuning, given.seed)
    # Only what was verified is stored.
    if given.output is not None:
        write_output(tuning.game.trace.dump(), given.output)
    if given.emit is not None:
        write_output(print_notation(tuning.after), given.emit)


def _verify(console: Console, tuning: Tuning) -> None:
    """The exact oracle on small sizes, where the trace fits them."""
    verdict = check_meaning(tuning)
    match verdict:
        case OracleVerdict.EQUIVALENT:
            console.print("exact oracle at reduced sizes: the same meaning")
        case OracleVerdict():
            console.print(f"exact oracle: not applicable, {verdict.value}")
        case difference:
            raise InvalidKernel(f"the tuned program means something else: {difference}; please report this trace")


def _measure(console: Console, tuning: Tuning, seed: int) -> None:
    """Compare the compiled programs with the interpreter, and with each other."""
    machine = tuning.game.machine
    programs = [Program.of(kernel, machine) for kernel in (tuning.before, tuning.after)]
    options = Options(threads=machine.threads, seed=seed)
    with Worker() as worker, console.status("measuring", refresh_per_second=1) as status:
        titles = ("before", "after")
        outcomes = worker.compare(
            programs,
            options,
            KernelReference(programs[0].text),
            lambda event: status.update(f"{titles[event.index]}: {event.phase}"),
        )
    traffic = data_bytes(parameters_of(nest_of(tuning.before)))
    moves = (0, len(tuning.game.trace.steps))
    rows = [Row(title, outcome, n) for title, outcome, n in zip(titles, outcomes, moves, strict=True)]
    console.print(measurements(rows, traffic))
    note = load_note(outcomes)
    if note is not None:
        console.print(note, style="yellow", soft_wrap=True)
    _conclude(console, *outcomes)


def _conclude(console: Console, before: Outcome, after: Outcome) -> None:
    if not isinstance(after, Ok):
        raise MeasurementError(f"the tuned program: {after.summary}")
    if isinstance(before, Ok):
        console.print(f"{before.median / after.median:.2f} times as fast as before", highlight=False)


if __name__ == "__main__":
    sys.exit(main())

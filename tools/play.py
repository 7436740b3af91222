"""`pdojo-play`: make moves on a kernel by hand, and see the program, its code and its times after each."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec

from pdojo_tools.command import Arguments, add_align, positive, run_tool
from pdojo_tools.machines import add_machine
from pdojo_tools.outputs import check_writable
from pdojo_tools.programs import load_kernel, machine_for

from pdojo.errors import UsageError
from pdojo.search.dojo import Dojo
from pdojo.search.experts import EXPERT_PASSES
from pdojo.search.tuning import assume_alignment, make_moves
from pdojo.transforms.trace import Trace


def main(args: Sequence[str] | None = None) -> int:
    """Run the tool; returns the exit code."""
    return run_tool(_run, args)


def _arguments() -> Arguments:
    parser = Arguments(prog="pdojo-play", description=__doc__)
    parser.add_version()
    add = parser.add_argument
    add("program", metavar="KERNEL", help="a .pdojo or MLIR file, or a library kernel's name")
    add("--kernel", metavar="NAME", help="which kernel, where the file has several")
    add("--shape", metavar="AxBxC", help="sizes of a library kernel in its file's order, others by name: 8x64x56,S=2")
    add("--dtype", metavar="TYPE", help="element type of a library kernel: f32, f64, bf16, f16")
    add("--trace", metavar="FILE", help="begin with the moves of a trace")
    add("--pass", dest="expert", choices=(*EXPERT_PASSES, "none"), default="none", help="then with an expert pass's")
    add_machine(parser, "play for")
    add("--threads", type=positive, metavar="N", help="threads for parallel scopes; by default the machine's")
    add_align(parser)
    add("-o", "--output", metavar="FILE", help="where `s` saves the trace; asked for where left out")
    return parser


def _run(args: Sequence[str] | None) -> None:
    given = _arguments().parse_args(args)
    if given.program == "-":
        raise UsageError("standard input is the keyboard here; put the program into a file")
    if given.output == "-":
        raise UsageError("standard output is the screen here; name a file for the trace (-o FILE)")
    if given.output is not None:
        check_writable(given.output)
    trace = None if given.trace is None else Trace.load(given.trace)
    plain = load_kernel(given.program, given.kernel, shape=given.shape, dtype=given.dtype)
    kernel = assume_alignment(plain, given.align, trace)
    machine = machine_for(kernel, given.machine, given.threads, trust=given.trust_machine)
    _check_terminal()
    tuning = make_moves(kernel, machine, None if given.expert == "none" else given.expert, trace)
    _play(Dojo.of(tuning.game), given.output)


def _check_terminal() -> None:
    """Raise UsageError if there is no terminal to draw on."""
    streams = {"input": sys.__stdin__, "output": sys.__stdout__, "error": sys.__stderr__}
    missing = [name for name, stream in streams.items() if stream is None or not stream.isatty()]
    hint = "over ssh, ask for a terminal with `ssh -t`; without one, pdojo-opt lists and makes moves"
    if missing:
        raise UsageError(f"pdojo-play needs a terminal, and standard {' and '.join(missing)} is none; {hint}")
    if os.environ.get("TERM", "dumb") in ("", "dumb"):
        raise UsageError(
            f"pdojo-play needs a terminal that can move the cursor, and TERM says that this one cannot; {hint}"
        )


def _play(dojo: Dojo, path: str | None) -> None:
    if find_spec("textual") is None:
        raise UsageError("pdojo-play needs the package textual: pip install 'pdojo[play]'")
    from pdojo_tools.playing.app import PlayApp
    from pdojo_tools.playing.session import PlaySession

    app = PlayApp(PlaySession(dojo), path)
    said = app.run()
    if said:
        print(said)
    if app.return_code:
        sys.exit(app.return_code)


if __name__ == "__main__":
    sys.exit(main())

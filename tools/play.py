"""`pdojo-play`: make moves on a kernel by hand, and see the program, its code and its times after each."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from pdojo_tools.command import Arguments, add_align, add_machine, positive, tool
from pdojo_tools.phases import loading

from pdojo.errors import UsageError
from pdojo.names import EXPERT_PASSES

EXAMPLES = (
    ("pdojo-play softmax:64x512", "play with a kernel of the library"),
    ("pdojo-play softmax:64x512 --pass heuristic", "begin with the moves of the expert pass"),
    ("pdojo-play kernel.pdojo --trace mine.trace -o mine.trace", "go on with a trace of your own, and save it there"),
)


def parser() -> Arguments:
    """The command line."""
    made = Arguments(prog="pdojo-play", description=__doc__, examples=EXAMPLES)
    made.add_common()
    add = made.add_argument
    add("program", metavar="KERNEL", help="a .pdojo or MLIR file, or a library kernel's name")
    add("--kernel", metavar="NAME", help="which kernel, where the file has several")
    add("--shape", metavar="AxBxC", help="sizes of a library kernel in its file's order, others by name: 8x64x56,S=2")
    add("--dtype", metavar="TYPE", help="element type of a library kernel: f32, f64, bf16, f16")
    add("--trace", metavar="FILE", help="begin with the moves of a trace")
    add("--pass", dest="expert", choices=(*EXPERT_PASSES, "none"), default="none", help="then with an expert pass's")
    add_machine(made, "play for")
    add("--threads", type=positive, metavar="N", help="threads for parallel scopes; by default the machine's")
    add_align(made)
    add("-o", "--output", metavar="FILE", help="where `s` saves the trace; asked for where left out")
    return made


@tool
def main(args: Sequence[str] | None) -> None:
    """Run the tool."""
    given = parser().parse_args(args)
    if given.program == "-":
        raise UsageError("standard input is the keyboard here; put the program into a file")
    if given.output == "-":
        raise UsageError("standard output is the screen here; name a file for the trace (-o FILE)")
    with loading():
        from pdojo_tools.playing.begin import begin

    begin(given)


if __name__ == "__main__":
    sys.exit(main())

"""`pdojo-snitch`: run Snitch assembly on the simulator, or build it for another one."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from pdojo_tools.command import Arguments, add_json, positive, random_seed, tool
from pdojo_tools.phases import loading

EXAMPLES = (
    ("pdojo-snitch axpy.s --arg f64[16]=2 --arg f64[16] --arg f64[16]=out", "call a function on three arrays"),
    ("pdojo-snitch axpy.s --arg f64[16] --lines", "print the source with counts and stalls"),
    ("pdojo-snitch axpy.s --arg f64[16] --html trace.html", "write every cycle as a page"),
    ("pdojo-snitch axpy.s --rewrite -", "print text for an ordinary assembler"),
)


def parser() -> Arguments:
    """The command line."""
    made = Arguments(prog="pdojo-snitch", description=__doc__, examples=EXAMPLES)
    made.add_common()
    add = made.add_argument
    add("program", metavar="FILE.s", help="assembly in GNU syntax with Snitch's instructions; - for standard input")
    add("--entry", metavar="LABEL", default="", help="the function to call; by default the first one")
    add(
        "--arg",
        metavar="ARGUMENT",
        action="append",
        default=[],
        help="next argument: an integer, or an array (its address): f64[16,16] of random numbers, f64[8]=zero, "
        "f64[8]=1.5, f64[8]=out for one that is to be written completely",
    )
    add("--machine", metavar="MACHINE", default="snitch", help="snitch, snitch-2024, or a TOML file")
    add("--seed", type=random_seed, default=0, metavar="N", help="seed of the random numbers")
    add("--limit", type=positive, default=10_000_000, metavar="N", help="most cycles")
    add("--lines", action="store_true", help="print the source with counts and stalls")
    add("--cycles", action="store_true", help="print every cycle")
    add("--show", action="store_true", help="print the arrays afterwards")
    add("--html", metavar="FILE", help="write the trace as a page that needs nothing else")
    add("--rewrite", metavar="FILE", help="write text for ordinary assemblers, - for standard output; nothing is run")
    add("--elf", metavar="FILE", help="build a program that measures itself on a simulator of the hardware")
    add(
        "--snitch-sim",
        metavar="COMMAND",
        help="build that program, run COMMAND FILE, and print the cycles that it prints",
    )
    add_json(made)
    return made


@tool
def main(args: Sequence[str] | None) -> None:
    """Run the tool."""
    given = parser().parse_args(args)
    with loading():
        from pdojo_tools.simulating import run

    run(given)


if __name__ == "__main__":
    sys.exit(main())

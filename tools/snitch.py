"""`pdojo-snitch`: run Snitch assembly on the simulator, or build it for another one."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from pdojo_tools.command import Arguments, positive, random_seed, run_tool


def main(args: Sequence[str] | None = None) -> int:
    """Run the tool; returns the exit code."""
    return run_tool(_run, args)


def _arguments() -> Arguments:
    parser = Arguments(prog="pdojo-snitch", description=__doc__)
    parser.add_version()
    add = parser.add_argument
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
    add("--trace", action="store_true", help="print every cycle")
    add("--show", action="store_true", help="print the arrays afterwards")
    add("--html", metavar="FILE", help="write the trace as a page that needs nothing else")
    add("--rewrite", metavar="FILE", help="write text for ordinary assemblers, - for standard output; nothing is run")
    add("--elf", metavar="FILE", help="build a program that measures itself on a simulator of the hardware")
    add(
        "--snitch-sim",
        metavar="COMMAND",
        help="build that program, run COMMAND FILE, and print the cycles that it prints",
    )
    return parser


def _run(args: Sequence[str] | None) -> None:
    given = _arguments().parse_args(args)
    from pdojo_tools.simulating import run

    run(given)


if __name__ == "__main__":
    sys.exit(main())

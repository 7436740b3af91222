"""`pdojo-db`: what searches remember; list, show, diff, merge, prune, export, import."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from datetime import timedelta

from pdojo_tools.command import Arguments, add_json, tool, usual_database
from pdojo_tools.phases import loading

EXAMPLES = (
    ("pdojo-db list", "print the best of every kernel and machine"),
    ("pdojo-db show softmax --only trace -o best.trace", "store the trace of the best softmax"),
    ("pdojo-db diff 3f2a 91bc", "compare two programs, by the digits that list and show print"),
    ("pdojo-db prune --slower-than 3 --dry-run", "count the programs that would be forgotten"),
    ("pdojo-db export -o all.jsonl", "write everything, for pdojo-db import elsewhere"),
)


@tool
def main(args: Sequence[str] | None) -> None:
    """Run the tool."""
    given = parser().parse_args(args)
    with loading():
        from pdojo_tools.db_commands import COMMANDS

    COMMANDS[given.command](given)


def parser() -> Arguments:
    """The command line."""
    made = Arguments(prog="pdojo-db", description=__doc__, examples=EXAMPLES)
    made.add_common()
    commands = made.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=Arguments)

    def command(name: str, text: str) -> Callable[..., object]:
        one = commands.add_parser(name, help=text, description=text)
        one.add_argument("--database", metavar="FILE", help=f"the database; by default {usual_database()}")
        if name != "export":  # its lines are JSON
            add_json(one)
        return one.add_argument

    identifier = "a kernel (softmax, softmax:24576x512), or the first four digits or more of what list and show print"
    add = command("list", "the best of every kernel, shape, element type and machine")
    add("--kernel", metavar="NAME", help="only this kernel")
    add("--runs", action="store_true", help="the runs instead")
    add = command("show", "a run, a program, a trace, or the best of a kernel: trace, cost, where they come from")
    add("id", metavar="ID", help=identifier)
    add("--only", choices=("trace", "program"), help="print only this, as a file that other tools read")
    add("-o", "--output", metavar="FILE", help="write what --only or --json prints into a file")
    add = command("diff", "two programs and the moves that lead there")
    add("one", metavar="ID", help=identifier)
    add("other", metavar="ID", help="likewise")
    add = command("merge", "add what another database has")
    add("other", metavar="FILE", help="the other database")
    add = command("prune", "forget; bests and their traces stay")
    add("--older-than", type=_days, metavar="DAYS", help="logs of runs without progress for that many days")
    add("--slower-than", type=float, metavar="FACTOR", help="programs at least that many times as slow as the best")
    add("--failures", action="store_true", help="failures, which are tried again then")
    add("--dry-run", action="store_true", help="only count")
    add = command("export", "everything, as JSON lines")
    add("-o", "--output", metavar="FILE", help="by default standard output")
    add = command("import", "add what was exported, all or nothing")
    add("file", metavar="FILE", help="the export, - for standard input")
    return made


def _days(text: str) -> timedelta:
    try:
        days = timedelta(days=float(text))
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f"'{text}' is no number of days") from None
    if days < timedelta(0):
        raise argparse.ArgumentTypeError(f"{text} days is no age")
    return days


if __name__ == "__main__":
    sys.exit(main())

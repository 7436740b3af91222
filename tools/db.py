"""`pdojo-db`: what searches remember; list, show, diff, merge, prune, export, import."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TypeAlias

from pdojo_tools.command import Arguments, run_tool
from pdojo_tools.db_tables import print_counts, print_details, print_differences, run_table, standing_table
from pdojo_tools.inputs import read_long
from pdojo_tools.outputs import write_output
from rich.console import Console

from pdojo.errors import UsageError
from pdojo.files import exists
from pdojo.search.database import Database, default_path
from pdojo.search.database.details import details
from pdojo.search.database.exchange import export_lines, import_lines
from pdojo.search.database.pruning import Pruning, prune
from pdojo.search.database.queries import find, runs, standings, subject

Given: TypeAlias = argparse.Namespace
LARGEST = 1 << 30
"""Most bytes of an export that is read."""


def main(args: Sequence[str] | None = None) -> int:
    """Run the tool; returns the exit code."""
    return run_tool(_run, args)


def _run(args: Sequence[str] | None) -> None:
    given = _arguments().parse_args(args)
    command: Callable[[Given], None] = given.run
    command(given)


def _arguments() -> Arguments:
    parser = Arguments(prog="pdojo-db", description=__doc__)
    parser.add_version()
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def command(name: str, run: Callable[[Given], None], text: str) -> Callable[..., object]:
        made = commands.add_parser(name, help=text, description=text)
        made.set_defaults(run=run)
        made.add_argument("--database", metavar="FILE", help=f"the database; by default {_shown(default_path())}")
        return made.add_argument

    identifier = "a kernel (softmax, softmax:24576x512), or the first four digits or more of what list and show print"
    add = command("list", _list, "the best of every kernel, shape, element type and machine")
    add("--kernel", metavar="NAME", help="only this kernel")
    add("--runs", action="store_true", help="the runs instead")
    add("--json", action="store_true", help="as JSON")
    add = command(
        "show", _show, "a run, a program, a trace, or the best of a kernel: trace, cost, where they come from"
    )
    add("id", metavar="ID", help=identifier)
    add("--only", choices=("trace", "program"), help="print only this, as a file that other tools read")
    add("-o", "--output", metavar="FILE", help="write what --only or --json prints into a file")
    add("--json", action="store_true", help="as JSON")
    add = command("diff", _diff, "two programs and the moves that lead there")
    add("one", metavar="ID", help=identifier)
    add("other", metavar="ID", help="likewise")
    add = command("merge", _merge, "add what another database has")
    add("other", metavar="FILE", help="the other database")
    add = command("prune", _prune, "forget; bests and their traces stay")
    add("--older-than", type=_days, metavar="DAYS", help="logs of runs that did nothing for so many days")
    add("--slower-than", type=float, metavar="FACTOR", help="programs so many times as slow as the best, or slower")
    add("--failures", action="store_true", help="failures, which are tried again then")
    add("--dry-run", action="store_true", help="only count")
    add = command("export", _export, "everything, as JSON lines")
    add("-o", "--output", metavar="FILE", help="by default standard output")
    add = command("import", _import, "add what was exported, all or nothing")
    add("file", metavar="FILE", help="the export, - for standard input")
    return parser


def _days(text: str) -> timedelta:
    try:
        days = timedelta(days=float(text))
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f"'{text}' is no number of days") from None
    if days < timedelta(0):
        raise argparse.ArgumentTypeError(f"{text} days is no age")
    return days


def _open(given: Given, *, create: bool = False) -> Database:
    return Database(given.database, create=create)


def _print_json(value: object, path: str | None = None) -> None:
    write_output(json.dumps(value, indent=2) + "\n", path)


def _list(given: Given) -> None:
    with _open(given) as database:
        if given.runs:
            found = runs(database.connection)
            _check_kernel(given.kernel, [run.kernel for run in found])
            chosen = [run for run in found if given.kernel in (None, run.kernel)]
            table = run_table(chosen)
        else:
            found = standings(database.connection)
            _check_kernel(given.kernel, [standing.kernel for standing in found])
            chosen = [standing for standing in found if given.kernel in (None, standing.kernel)]
            table = standing_table(chosen)
    if given.json:
        _print_json([one.to_json() for one in chosen])
    else:
        Console().print(table)


def _check_kernel(wanted: str | None, known: Sequence[str]) -> None:
    if wanted is not None and wanted not in known:
        listed = ", ".join(sorted(set(known))) or "none"
        raise UsageError(f"nothing is known about a kernel '{wanted}'; known: {listed}")


def _show(given: Given) -> None:
    with _open(given) as database:
        connection = database.connection
        found = find(connection, given.id)
        if given.only is not None and given.json:
            raise UsageError("--only prints one thing as it is, --json everything; leave out one of them")
        if given.only is not None:
            meant = subject(connection, found)
            write_output(meant.trace if given.only == "trace" else meant.program, given.output)
        elif given.json:
            _print_json(details(connection, found), given.output)
        elif given.output is not None:
            raise UsageError("-o goes with --only or --json")
        else:
            print_details(Console(), details(connection, found))


def _diff(given: Given) -> None:
    with _open(given) as database:
        one, other = (
            subject(database.connection, find(database.connection, word)) for word in (given.one, given.other)
        )
    print_differences(Console(), one, other)


def _merge(given: Given) -> None:
    other = Path(given.other)
    here = default_path() if given.database is None else Path(given.database)
    if exists(other) and exists(here) and other.samefile(here):
        raise UsageError(f"'{other}' is the database itself")
    with Database(other, create=False) as source, _open(given, create=True) as database:
        added = import_lines(database.connection, export_lines(source.connection), str(other))
    print_counts(Console(), f"added from {other}", added)


def _prune(given: Given) -> None:
    what = Pruning(given.older_than, given.slower_than, given.failures)
    if what == Pruning():
        raise UsageError(
            "say what to forget: --older-than DAYS, --slower-than FACTOR, --failures; --dry-run only counts"
        )
    with _open(given) as database:
        removed = prune(database.connection, what, dry_run=given.dry_run)
    print_counts(Console(), "would be removed" if given.dry_run else "removed", removed)


def _export(given: Given) -> None:
    with _open(given) as database:
        write_output("\n".join(export_lines(database.connection)) + "\n", given.output)


def _shown(path: Path) -> str:
    """A path for argparse's help, with percent signs doubled."""
    return str(path).replace("%", "%%")


def _import(given: Given) -> None:
    text = read_long(given.file, LARGEST)
    source = "<stdin>" if given.file == "-" else given.file
    with _open(given, create=True) as database:
        added = import_lines(database.connection, text.split("\n"), source)
    print_counts(Console(), f"added from {source}", added)


if __name__ == "__main__":
    sys.exit(main())

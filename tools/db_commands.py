"""The commands of `pdojo-db`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TypeAlias

from pdojo_tools.db_tables import print_counts, print_details, print_differences, run_table, standing_table
from pdojo_tools.inputs import read_long
from pdojo_tools.outputs import write_json, write_output
from rich.console import Console

from pdojo.errors import UsageError
from pdojo.files import default_database, exists
from pdojo.search.database import Database
from pdojo.search.database.details import details
from pdojo.search.database.exchange import export_lines, import_lines
from pdojo.search.database.pruning import Pruning, prune
from pdojo.search.database.queries import find, moves_in, runs, standings, stored_program

Given: TypeAlias = argparse.Namespace
LARGEST = 1 << 30
"""Greatest size of an export in bytes."""


def _open(given: Given, *, create: bool = False) -> Database:
    return Database(given.database, create=create)


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
        write_json([one.to_json() for one in chosen])
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
            meant = stored_program(connection, found)
            write_output(meant.trace if given.only == "trace" else meant.program, given.output)
        elif given.json:
            write_json(details(connection, found), given.output)
        elif given.output is not None:
            raise UsageError("-o goes with --only or --json")
        else:
            print_details(Console(), details(connection, found))


def _diff(given: Given) -> None:
    with _open(given) as database:
        one, other = (
            stored_program(database.connection, find(database.connection, word)) for word in (given.one, given.other)
        )
    if given.json:
        write_json([{**asdict(each), "trace": moves_in(each.trace)} for each in (one, other)])
    else:
        print_differences(Console(), one, other)


def _merge(given: Given) -> None:
    other = Path(given.other)
    here = default_database() if given.database is None else Path(given.database)
    if exists(other) and exists(here) and other.samefile(here):
        raise UsageError(f"'{other}' is the database itself")
    with Database(other, create=False) as source, _open(given, create=True) as database:
        added = import_lines(database.connection, export_lines(source.connection), str(other))
    _print_counts(given, f"added from {other}", added)


def _prune(given: Given) -> None:
    what = Pruning(given.older_than, given.slower_than, given.failures)
    if what == Pruning():
        raise UsageError(
            "say what to forget: --older-than DAYS, --slower-than FACTOR, --failures; --dry-run only counts"
        )
    with _open(given) as database:
        removed = prune(database.connection, what, dry_run=given.dry_run)
    _print_counts(given, "would be removed" if given.dry_run else "removed", removed)


def _export(given: Given) -> None:
    with _open(given) as database:
        write_output("\n".join(export_lines(database.connection)) + "\n", given.output)


def _import(given: Given) -> None:
    text = read_long(given.file, LARGEST)
    source = "<stdin>" if given.file == "-" else given.file
    with _open(given, create=True) as database:
        added = import_lines(database.connection, text.split("\n"), source)
    _print_counts(given, f"added from {source}", added)


def _print_counts(given: Given, what: str, counts: Mapping[str, int]) -> None:
    """Print the number of rows of each table."""
    if given.json:
        write_json(dict(counts))
    else:
        print_counts(Console(), what, counts)


COMMANDS: Mapping[str, Callable[[Given], None]] = {
    "list": _list,
    "show": _show,
    "diff": _diff,
    "merge": _merge,
    "prune": _prune,
    "export": _export,
    "import": _import,
}
"""The commands by name."""

"""Pruning of old runs, slow programs, failures, and unreferenced rows."""

from __future__ import annotations

import sqlite3
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pdojo.errors import UsageError
from pdojo.search.database import checkpoints
from pdojo.search.database.connection import DatabaseConnection

_RUNNING = timedelta(hours=1)
"""A run in state `running` counts as ended after this time without a change."""

_LONGEST = timedelta(days=36_500)
"""The longest age: dates begin with the year 1."""


@dataclass(frozen=True)
class Pruning:
    """The rows to prune. Incumbents, their traces and their races always stay."""

    older_than: timedelta | None = None
    """Prune logs of runs unchanged for this long; their measurements stay."""
    slower_than: float | None = None
    """Prune programs whose cost exceeds this multiple of the best of their problem."""
    failures: bool = False
    """Prune failures; searches then try such programs again."""

    def __post_init__(self) -> None:
        if self.slower_than is not None and not self.slower_than >= 1:
            raise UsageError(f"programs to prune are at least 1 times as slow as the best, not {self.slower_than:g}")


def prune(connection: DatabaseConnection, what: Pruning, *, dry_run: bool = False) -> Counter[str]:
    """Prune in one transaction; returns the number of rows by table. A dry run only counts."""
    removed: Counter[str] = Counter()
    with connection.transaction(keep=not dry_run) as opened:
        if what.older_than is not None:
            _remove_runs(opened, what.older_than, removed)
        if what.slower_than is not None:
            _remove(opened, removed, "measurements", _SLOWER, what.slower_than)
        if what.failures:
            _remove(opened, removed, "measurements", _FAILED)
        _remove(opened, removed, "races", _UNMEASURED)
        _remove(opened, removed, "incumbents", _FORGOTTEN)
        for table, condition in _UNUSED.items():
            _remove(opened, removed, table, condition)
    if not dry_run:
        if connection.path is not None:
            runs = [row["hash"] for row in connection.rows("SELECT hash FROM runs")]
            gone = checkpoints.keep_only(connection.path, runs)
            if gone:
                removed["checkpoints"] = gone
        connection.shrink()
    return removed


_SLOWER = """failure = '' AND program NOT IN (SELECT program FROM best) AND id IN (
    SELECT m.id FROM measurements m JOIN traces t ON t.program = m.program
        JOIN best b ON b.problem = t.problem AND b.settings = m.settings
        JOIN measurements told ON told.program = b.program AND told.settings = b.settings
    GROUP BY m.id HAVING min(told.cost) > 0 AND min(m.cost / told.cost) > ?
)"""
# A failure in a race removes all races of its program, which must be tried again before it may be the best.
_FAILED = """failure <> '' OR (program, settings) IN (SELECT program, settings FROM failed)"""
_UNMEASURED = """NOT EXISTS (
    SELECT 1 FROM measurements m WHERE m.program = races.program AND m.settings = races.settings
) OR (against_failure <> '' AND NOT EXISTS (
    SELECT 1 FROM measurements m WHERE m.program = races.against AND m.settings = races.settings
))"""
_FORGOTTEN = """NOT EXISTS (
    SELECT 1 FROM measurements m WHERE m.program = incumbents.program AND m.settings = incumbents.settings
)"""
# Problems, settings and machines stay: they are few, and a running search holds their row numbers.
_UNUSED = {
    "traces": """program NOT IN (SELECT program FROM incumbents)
        AND NOT EXISTS (SELECT 1 FROM measurements x WHERE x.program = traces.program)
        AND NOT EXISTS (SELECT 1 FROM evaluations x WHERE x.trace = traces.id)
        AND NOT EXISTS (SELECT 1 FROM runs x WHERE x.root = traces.id)""",
    "programs": """NOT EXISTS (SELECT 1 FROM measurements x WHERE x.program = programs.id)
        AND NOT EXISTS (SELECT 1 FROM traces x WHERE x.program = programs.id)
        AND NOT EXISTS (SELECT 1 FROM races x WHERE x.program = programs.id)
        AND NOT EXISTS (SELECT 1 FROM races x WHERE x.against = programs.id)
        AND NOT EXISTS (SELECT 1 FROM incumbents x WHERE programs.id IN (x.program, x.against))
        AND NOT EXISTS (SELECT 1 FROM evaluations x WHERE x.program = programs.id)
        AND id NOT IN (SELECT parent FROM evaluations WHERE parent IS NOT NULL)
        AND id NOT IN (SELECT plain FROM problems)""",
    "environments": """id NOT IN (SELECT environment FROM measurements WHERE environment IS NOT NULL)
        AND id NOT IN (SELECT environment FROM races WHERE environment IS NOT NULL)""",
}


def _remove_runs(connection: sqlite3.Connection, age: timedelta, removed: Counter[str]) -> None:
    moment = datetime.now(UTC)
    spans = (min(age, _LONGEST), _RUNNING)
    old, running = ((moment - span).isoformat(timespec="microseconds") for span in spans)
    condition = "changed < ? AND (state <> 'running' OR changed < ?)"
    _remove(connection, removed, "evaluations", f"run IN (SELECT id FROM runs WHERE {condition})", old, running)
    _remove(connection, removed, "runs", condition, old, running)


def _remove(connection: sqlite3.Connection, removed: Counter[str], table: str, condition: str, *values: object) -> None:
    count = connection.execute(f"DELETE FROM {table} WHERE {condition}", values).rowcount
    if count:
        removed[table] += count

"""Export and import as JSON lines: a header, then one row per line, with hashes as references."""

from __future__ import annotations

import json
import math
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn, cast

from pdojo.errors import DatabaseError
from pdojo.search.contract.evaluation import JSON
from pdojo.search.database.connection import DatabaseConnection, damaged_cell
from pdojo.search.database.memory import race_of, samples_of
from pdojo.search.database.rows import Key, insert, read_json, visible
from pdojo.search.database.schema import TABLES, Column, Table, canonical, fits

FORMAT = "pdojo searches"
LAYOUT = 1
"""The layout of exported rows: the version of the tables that last changed it."""


def export_lines(connection: DatabaseConnection) -> Iterator[str]:
    """All rows as lines, in one snapshot; a row follows the rows that it refers to."""
    yield canonical({"format": FORMAT, "version": LAYOUT})
    with connection.snapshot():
        for name, table in TABLES.items():
            for row in connection.rows(f"SELECT {_columns(table)} FROM {name} t ORDER BY id"):
                values: JSON = {
                    column: read_json(row[column], connection.path) if spec.kind == "json" else row[column]
                    for column, spec in table.columns.items()
                }
                for column, spec in table.columns.items():
                    if not fits(replace(spec, least=None), values[column]):
                        raise damaged_cell(connection.name, column, values[column])
                yield canonical({"table": name, **({"hash": row["hash"]} if table.hashed else {}), **values})


def _columns(table: Table) -> str:
    listed = ["hash"] if table.hashed else []
    for name, spec in table.columns.items():
        listed.append(f"(SELECT r.hash FROM {spec.refers} r WHERE r.id = t.{name}) AS {name}" if spec.refers else name)
    return ", ".join(listed)


def import_lines(connection: DatabaseConnection, lines: Iterable[str], source: str) -> Counter[str]:
    """Add missing rows, all or none; returns their number by table. A second import adds nothing.

    Existing rows stay: the first measurement of a program counts, and a timed incumbent keeps its place. The log of a
    known run is extended if both logs agree. Raises DatabaseError, with the line, for text that is no export.
    """
    records = list(_parse(lines, source))
    importing = _Import(source)
    with connection.transaction() as opened:
        for record in records:
            importing.add(opened, record)
        importing.add_logs(opened)
    return importing.added


@dataclass(frozen=True)
class _Record:
    """A parsed line."""

    number: int
    table: str
    hash: str | None
    values: JSON


def _parse(lines: Iterable[str], source: str) -> Iterator[_Record]:
    numbered = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    number, first = next(numbered, (1, "{}"))
    _check_layout(_object(first, source, number), source, number)
    for number, line in numbered:
        values = _object(line, source, number)
        name = values.pop("table", None)
        if not isinstance(name, str) or name not in TABLES:
            _fail(source, number, f"'{str(name)[:40]}' is no table; known: {', '.join(TABLES)}")
        table = TABLES[name]
        expected = ([*table.columns, "hash"]) if table.hashed else [*table.columns]
        wrong = sorted(set(expected).symmetric_difference(values))
        if wrong:
            _fail(source, number, f"a row of '{name}' has {', '.join(expected)}; '{wrong[0][:40]}' is missing or extra")
        hashed = values.pop("hash", None)
        if table.hashed and not isinstance(hashed, str):
            _fail(source, number, "'hash' is no text")
        for column, spec in table.columns.items():
            if not _fits(spec, values[column]):
                sort = "hash" if spec.refers else "possible number" if spec.least is not None else spec.kind
                _fail(source, number, f"'{column}' is no {sort}")
        yield _Record(number, name, hashed, values)


def _check_layout(header: JSON, source: str, number: int) -> None:
    layout = header.get("version")
    if header.get("format") != FORMAT or not isinstance(layout, int):
        _fail(source, number, f"this is no export of searches: it begins with a line for '{FORMAT}'")
    if layout != LAYOUT:
        _fail(source, number, f"version {layout} was exported by another pdojo; this one knows {LAYOUT}")


def _object(line: str, source: str, number: int) -> JSON:
    def refuse(word: str) -> NoReturn:
        raise ValueError(f"{word} is no number")

    try:
        found = json.loads(line, parse_constant=refuse)
        line.encode()
        canonical(found).encode()
    except (ValueError, RecursionError) as error:
        _fail(source, number, f"not JSON: {error}")
    if not isinstance(found, dict):
        _fail(source, number, "not a JSON object")
    return cast(JSON, found)


def _fits(spec: Column, value: object) -> bool:
    # JSON may contain lone surrogates and control characters for terminals.
    return fits(spec, value) and (not isinstance(value, str) or visible(value) == value)


def _fail(source: str, number: int, what: str) -> NoReturn:
    raise DatabaseError(f"{source}:{number}: {what}; nothing was imported")


class _Import:
    """An import under way."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.added: Counter[str] = Counter()
        self.keys: dict[tuple[str, str], Key] = {}
        self.held: set[tuple[int, int]] | None = None
        self.logs: dict[int, list[tuple[_Record, JSON]]] = {}
        """Evaluations by run; they are added once all evaluations of a run are known."""

    def add(self, connection: sqlite3.Connection, record: _Record) -> None:
        """Add a row. Raises DatabaseError, with the line, if it contradicts itself or refers to an unknown row."""
        table = TABLES[record.table]
        stored: JSON = {}
        for column, spec in table.columns.items():
            value = record.values[column]
            if spec.refers and value is not None:
                stored[column] = self._key(connection, spec.refers, value, record)
            elif spec.kind == "json":
                stored[column] = canonical(value)
            else:
                stored[column] = float(value) if spec.kind == "real" and value is not None else value
        if table.hashed:
            self._add_hashed(connection, record, stored)
        elif record.table == "evaluations":
            self.logs.setdefault(stored["run"].id, []).append((record, stored))
        elif not self._is_there(connection, record.table, stored):
            if record.table == "races":
                self._check_race(record, stored)
            elif record.table == "incumbents":
                self._check_incumbent(connection, record, stored)
                if stored["timed"] and (stored["problem"].id, stored["settings"].id) in self._held(connection):
                    return
            self._insert(connection, record, stored)

    def _check_race(self, record: _Record, stored: JSON) -> None:
        """Raise DatabaseError if a race contradicts itself."""
        against = stored["against"] and stored["against"].id
        wrong = "the samples of this race were not taken in the same turns"
        try:
            found = race_of({**stored, "against": against, "facts": None, "cost": None}, self.source)
        except DatabaseError:
            _fail(self.source, record.number, wrong)
        samples = [each for side in (found.evaluation, found.other) for each in samples_of(side)]
        if not all(0 < each < math.inf for each in samples):
            _fail(self.source, record.number, wrong)

    def _check_incumbent(self, connection: sqlite3.Connection, record: _Record, stored: JSON) -> None:
        """Raise DatabaseError if an incumbent was never measured, or its computed cost is not the measured one."""
        query = "SELECT cost FROM measurements WHERE program = ? AND settings = ? AND failure = ''"
        found = connection.execute(query, (stored["program"].id, stored["settings"].id)).fetchone()
        if found is None or (not stored["timed"] and stored["cost"] != found[0]):
            _fail(self.source, record.number, "the measurements contradict this row: the program was never the best")

    def _held(self, connection: sqlite3.Connection) -> set[tuple[int, int]]:
        """Problems and settings that had an incumbent before the import: imported timed programs have not raced with
        it.
        """
        if self.held is None:
            rows = connection.execute("SELECT problem, settings FROM best").fetchall()
            self.held = {(row[0], row[1]) for row in rows}
        return self.held

    def add_logs(self, connection: sqlite3.Connection) -> None:
        """Add the evaluations of runs whose logs agree with the logs in the database."""
        for run, listed in self.logs.items():
            here = dict(connection.execute("SELECT number, program FROM evaluations WHERE run = ?", (run,)).fetchall())
            if any(here.get(stored["number"], stored["program"].id) != stored["program"].id for _, stored in listed):
                continue
            for record, stored in listed:
                if stored["number"] not in here:
                    self._insert(connection, record, stored)
                    here[stored["number"]] = stored["program"].id

    def _add_hashed(self, connection: sqlite3.Connection, record: _Record, stored: JSON) -> None:
        hashes = {name: value.hash if isinstance(value, Key) else value for name, value in stored.items()}
        found = TABLES[record.table].hash(hashes)
        if found != record.hash:
            _fail(self.source, record.number, f"the hash is {found[:12]}..., not {cast(str, record.hash)[:12]}...")
        row = connection.execute(f"SELECT id FROM {record.table} WHERE hash = ?", (found,)).fetchone()
        if row is None:
            self._insert(connection, record, {"hash": found, **stored})
        elif record.table == "runs":
            connection.execute(
                "UPDATE runs SET state = ?, changed = ? WHERE id = ? AND changed < ?",
                (stored["state"], stored["changed"], row[0], stored["changed"]),
            )

    def _key(self, connection: sqlite3.Connection, table: str, hashed: str, record: _Record) -> Key:
        known = self.keys.get((table, hashed))
        if known is None:
            row = connection.execute(f"SELECT id FROM {table} WHERE hash = ?", (hashed,)).fetchone()
            if row is None:
                _fail(self.source, record.number, f"no row of '{table}' before has the hash {hashed[:12]}...")
            known = self.keys[table, hashed] = Key(row[0], hashed)
        return known

    @staticmethod
    def _is_there(connection: sqlite3.Connection, table: str, stored: Mapping[str, Any]) -> bool:
        key = TABLES[table].key
        values = [stored[column].id if isinstance(stored[column], Key) else stored[column] for column in key]
        where = " AND ".join(f"{column} IS ?" for column in key)
        return connection.execute(f"SELECT 1 FROM {table} WHERE {where}", values).fetchone() is not None

    def _insert(self, connection: sqlite3.Connection, record: _Record, stored: JSON) -> None:
        try:
            insert(connection, record.table, stored)
        except sqlite3.IntegrityError as error:
            _fail(self.source, record.number, f"this row of '{record.table}' contradicts itself: {error}")
        self.added[record.table] += 1

"""Writing rows that may be there already, and reading what rows hold."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from pdojo.errors import DatabaseError
from pdojo.search.database.schema import JSON, TABLES


@dataclass(frozen=True)
class Key:
    """A row: by number in this file, by hash in all."""

    id: int
    hash: str


def put(connection: sqlite3.Connection, table: str, values: Mapping[str, Any]) -> Key:
    """Make sure of a row of a table with hashes. References are keys. The row that was there first stays."""
    hashes = {name: value.hash if isinstance(value, Key) else value for name, value in values.items()}
    found = TABLES[table].hash(hashes)
    row = connection.execute(f"SELECT id FROM {table} WHERE hash = ?", (found,)).fetchone()
    if row is not None:
        return Key(row[0], found)
    return Key(insert(connection, table, {"hash": found, **values}), found)


def insert(connection: sqlite3.Connection, table: str, values: Mapping[str, Any]) -> int:
    """Add a row; returns its number."""
    given = [value.id if isinstance(value, Key) else value for value in values.values()]
    marks = ", ".join("?" * len(given))
    done = connection.execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})", given)
    return cast(int, done.lastrowid)


def read_json(text: object, path: object) -> JSON:
    """The object in a cell. Raises DatabaseError where there is something else."""
    try:
        found = json.loads(cast(str, text))
    except (ValueError, TypeError):
        found = None
    if not isinstance(found, dict):
        raise DatabaseError(f"the database '{path}' holds '{str(text)[:40]}' where a JSON object should be")
    return cast(JSON, found)


def now() -> str:
    """The time, in a form that sorts."""
    return datetime.now(UTC).isoformat(timespec="microseconds")

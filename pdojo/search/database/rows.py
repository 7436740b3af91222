"""Insertion of rows that may exist already, and reading of cells."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from pdojo.errors import DatabaseError
from pdojo.search.contract.evaluation import JSON
from pdojo.search.database.schema import TABLES


@dataclass(frozen=True)
class Key:
    """A row: its number in this file, and its hash, which is the same in all files."""

    id: int
    hash: str


def put(connection: sqlite3.Connection, table: str, values: Mapping[str, Any]) -> Key:
    """Insert a row into a table with hashes unless it exists. References are keys."""
    hashes = {name: value.hash if isinstance(value, Key) else value for name, value in values.items()}
    found = TABLES[table].hash(hashes)
    row = connection.execute(f"SELECT id FROM {table} WHERE hash = ?", (found,)).fetchone()
    if row is not None:
        return Key(row[0], found)
    return Key(insert(connection, table, {"hash": found, **values}), found)


def insert(connection: sqlite3.Connection, table: str, values: Mapping[str, Any], *, unless_there: bool = False) -> int:
    """Insert a row; returns its number, or 0 if it exists and `unless_there` is set."""
    given = [value.id if isinstance(value, Key) else value for value in values.values()]
    target = f"{table} ({', '.join(values)}) VALUES ({', '.join('?' * len(given))})"
    done = connection.execute(f"INSERT INTO {target}{' ON CONFLICT DO NOTHING' * unless_there}", given)
    return cast(int, done.lastrowid) if done.rowcount else 0


_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that control a terminal, and surrogates."""


def visible(text: str) -> str:
    """The text with control characters escaped, for terminals."""
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


def _visible(value: object) -> object:
    match value:
        case str():
            return visible(value)
        case list():
            return [_visible(item) for item in cast("list[object]", value)]
        case _:
            return value


def _visible_pairs(pairs: list[tuple[str, object]]) -> JSON:
    return {visible(key): _visible(value) for key, value in pairs}


def read_json(text: object, path: object) -> JSON:
    """The object in a cell. Raises DatabaseError if the cell holds no JSON object."""
    try:
        found = json.loads(cast(str, text), object_pairs_hook=_visible_pairs)
    except (ValueError, TypeError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise DatabaseError(f"the database '{path}' holds '{str(text)[:40]}' where a JSON object should be")
    return cast(JSON, found)


def now() -> str:
    """The current time in a form that sorts."""
    return datetime.now(UTC).isoformat(timespec="microseconds")

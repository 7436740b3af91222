"""The tables of a search database, and the contents of their columns."""

from __future__ import annotations

import json
import math
import sqlite3
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Literal, TypeAlias, cast

APPLICATION = 0x70646F6A
"""`PRAGMA application_id` of search databases: the letters `pdoj`."""

_SCRIPT = """
CREATE TABLE machines (
    id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, name TEXT NOT NULL, text TEXT NOT NULL
);
CREATE TABLE programs (
    id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, text TEXT NOT NULL
);
CREATE TABLE problems (
    id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE,
    plain INTEGER NOT NULL REFERENCES programs, machine INTEGER NOT NULL REFERENCES machines,
    kernel TEXT NOT NULL, shape TEXT NOT NULL, dtype TEXT NOT NULL, label TEXT NOT NULL
);
CREATE TABLE traces (
    id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE,
    problem INTEGER NOT NULL REFERENCES problems, program INTEGER NOT NULL REFERENCES programs, text TEXT NOT NULL
);
CREATE INDEX traces_of_program ON traces (program);
CREATE TABLE settings (
    id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE,
    machine INTEGER NOT NULL REFERENCES machines, evaluator TEXT NOT NULL, unit TEXT NOT NULL, text TEXT NOT NULL
);
CREATE TABLE environments (
    id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, text TEXT NOT NULL
);
CREATE TABLE measurements (
    id INTEGER PRIMARY KEY,
    program INTEGER NOT NULL REFERENCES programs, settings INTEGER NOT NULL REFERENCES settings,
    cost REAL, failure TEXT NOT NULL, detail TEXT NOT NULL, environment INTEGER REFERENCES environments,
    seconds TEXT NOT NULL, measured TEXT NOT NULL,
    UNIQUE (program, settings), CHECK ((cost IS NULL) = (failure <> ''))
);
CREATE TABLE runs (
    id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE,
    problem INTEGER NOT NULL REFERENCES problems, settings INTEGER NOT NULL REFERENCES settings,
    root INTEGER NOT NULL REFERENCES traces, strategy TEXT NOT NULL, neighbourhood TEXT NOT NULL,
    seed INTEGER NOT NULL, text TEXT NOT NULL, started TEXT NOT NULL, changed TEXT NOT NULL, state TEXT NOT NULL
);
CREATE TABLE evaluations (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES runs, number INTEGER NOT NULL, program INTEGER NOT NULL REFERENCES programs,
    trace INTEGER NOT NULL REFERENCES traces, parent INTEGER REFERENCES programs,
    cost REAL, failure TEXT NOT NULL, best INTEGER NOT NULL, seconds REAL NOT NULL,
    UNIQUE (run, number), CHECK ((cost IS NULL) = (failure <> ''))
);
CREATE INDEX evaluations_of_program ON evaluations (program);
CREATE TABLE races (
    id INTEGER PRIMARY KEY,
    program INTEGER NOT NULL REFERENCES programs, against INTEGER REFERENCES programs,
    settings INTEGER NOT NULL REFERENCES settings, inputs INTEGER,
    failure TEXT NOT NULL, against_failure TEXT NOT NULL,
    detail TEXT NOT NULL, environment INTEGER REFERENCES environments, seconds TEXT NOT NULL, measured TEXT NOT NULL
);
CREATE TABLE incumbents (
    id INTEGER PRIMARY KEY,
    problem INTEGER NOT NULL REFERENCES problems, settings INTEGER NOT NULL REFERENCES settings,
    program INTEGER NOT NULL REFERENCES programs, timed INTEGER NOT NULL, cost REAL NOT NULL,
    against INTEGER REFERENCES programs, gain REAL, measured TEXT NOT NULL,
    UNIQUE (problem, settings, program), CHECK ((against IS NULL) = (gain IS NULL))
);
CREATE TABLE decisions (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL, settings INTEGER NOT NULL REFERENCES settings, text TEXT NOT NULL, gain REAL NOT NULL,
    measured TEXT NOT NULL, UNIQUE (kind, settings)
);
CREATE UNIQUE INDEX races_once ON races (program, settings, ifnull(against, 0), ifnull(inputs, -1));
CREATE INDEX races_against ON races (against, settings);
CREATE INDEX incumbents_of_program ON incumbents (program);
CREATE VIEW failed AS
SELECT program, settings FROM races WHERE failure <> ''
UNION SELECT against, settings FROM races WHERE against_failure <> '';
CREATE VIEW best AS
SELECT problem, settings, program, trace, timed, cost, against, gain, measured FROM (
    SELECT i.*, min(t.id) AS trace, row_number() OVER (
        PARTITION BY i.problem, i.settings ORDER BY CASE WHEN i.timed THEN -i.id ELSE i.cost END, i.id
    ) AS place
    FROM incumbents i JOIN traces t ON t.program = i.program AND t.problem = i.problem
        JOIN problems p ON p.id = i.problem JOIN settings s ON s.id = i.settings AND s.machine = p.machine
    WHERE (i.program, i.settings) NOT IN (SELECT program, settings FROM failed)
    GROUP BY i.id
) WHERE place = 1
"""
VERSION = 1
"""The version of the tables; `PRAGMA user_version` of a file."""


def create(connection: sqlite3.Connection) -> None:
    """Make the tables in an empty file."""
    for statement in _SCRIPT.split(";\n"):
        connection.execute(statement)


Kind: TypeAlias = Literal["text", "json", "integer", "real"]


@dataclass(frozen=True)
class Column:
    """The contents of a column: a value of a kind, or a row of another table."""

    kind: Kind = "text"
    least: float | None = None
    """The smallest allowed number."""
    refers: str = ""
    """The table that the column refers to."""
    optional: bool = False


@dataclass(frozen=True)
class Table:
    """The columns of a table. A row's key identifies it in every file; its `id` is valid in one file only."""

    columns: Mapping[str, Column]
    key: tuple[str, ...]
    """The columns that identify a row and determine its hash."""
    hashed: bool = True
    """True if rows have a column `hash`, which references in exports use."""

    def hash(self, values: Mapping[str, Any]) -> str:
        """The hash of a row; references in `values` are hashes."""
        if self is TABLES["programs"]:
            return digest(values["text"])
        return digest(canonical([values[column] for column in self.key]))


def _table(columns: str, key: str, *, hashed: bool = True) -> Table:
    """A table from its columns: `name`, `name:kind` or `name>table`; `?` marks an optional one."""
    found: dict[str, Column] = {}
    for word in columns.split():
        name, refers = (*word.rstrip("?").split(">"), "")[:2]
        name, kind = (*name.split(":"), "text")[:2]
        least = {"cost": sys.float_info.min, "seconds": 0.0}.get(kind)
        found[name] = Column(_KINDS[kind], least, refers, word.endswith("?"))
    return Table(found, tuple(key.split()), hashed)


_KINDS: Mapping[str, Kind] = {"text": "text", "json": "json", "integer": "integer", "cost": "real", "seconds": "real"}
TABLES: dict[str, Table] = {
    "machines": _table("name text:json", "text"),
    "environments": _table("text:json", "text"),
    "programs": _table("text", "text"),
    "problems": _table("plain>programs machine>machines kernel shape dtype label", "plain machine"),
    "traces": _table("problem>problems program>programs text", "problem text"),
    "settings": _table("machine>machines evaluator unit text:json", "machine evaluator unit text"),
    "measurements": _table(
        "program>programs settings>settings cost:cost? failure detail:json environment>environments? seconds:json"
        " measured",
        "program settings",
        hashed=False,
    ),
    "races": _table(
        "program>programs against>programs? settings>settings inputs:integer? failure against_failure detail:json"
        " environment>environments? seconds:json measured",
        "program against settings inputs",
        hashed=False,
    ),
    "incumbents": _table(
        "problem>problems settings>settings program>programs timed:integer cost:cost against>programs? gain:cost?"
        " measured",
        "problem settings program",
        hashed=False,
    ),
    "decisions": _table("kind settings>settings text:json gain:cost measured", "kind settings", hashed=False),
    "runs": _table(
        "problem>problems settings>settings root>traces strategy neighbourhood seed:integer text:json started changed"
        " state",
        "problem settings root strategy neighbourhood seed text",
    ),
    "evaluations": _table(
        "run>runs number:integer program>programs trace>traces parent>programs? cost:cost? failure best:integer"
        " seconds:seconds",
        "run number",
        hashed=False,
    ),
}
"""All tables; a table follows the tables that it refers to."""


def fits(column: Column, value: object) -> bool:
    """True if a column can hold the value; JSON is an object, and a reference is a hash."""
    if value is None:
        return column.optional
    match column.kind:
        case "json":
            return isinstance(value, dict)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63
        case "real":
            # JSON integers may have any size, SQLite's may not.
            least, most = -sys.float_info.max if column.least is None else column.least, sys.float_info.max
            return isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most
        case "text":
            return isinstance(value, str)


def _numbers() -> dict[str, Column]:
    """Columns of numbers, keyed by their names in queries. Joins yield None for missing rows."""
    found = {name: column for table in TABLES.values() for name, column in table.columns.items()}
    found |= dict.fromkeys(("root_cost", "plain_cost", "clock"), found["cost"])
    numbers = {name: column for name, column in found.items() if column.kind in ("integer", "real")}
    # The text of a measurement has that name too.
    del numbers["seconds"]
    # A user's evaluator may have costs below zero.
    return {name: replace(column, least=None, optional=True) for name, column in numbers.items()}


NUMBERS: Mapping[str, Column] = _numbers()
"""Columns of numbers, keyed by name. All other columns hold text, into which SQLite converts numbers."""


def digest(text: str) -> str:
    """Hexadecimal SHA-256."""
    return sha256(text.encode()).hexdigest()


def canonical(value: object) -> str:
    """The same text for equal JSON values: keys sorted, tuples as lists, infinities and NaN as words."""
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def _plain(value: object) -> object:
    match value:
        case dict():
            return {str(key): _plain(item) for key, item in cast("dict[object, object]", value).items()}
        case list() | tuple():
            return [_plain(item) for item in cast("list[object]", value)]
        case float() if not math.isfinite(value):
            return str(value)
        case _:
            return value

"""The tables of a search database: the migrations of all versions, and the columns of the current one."""

from __future__ import annotations

import json
import math
import sqlite3
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Literal, TypeAlias, cast

APPLICATION = 0x70646F6A
"""`PRAGMA application_id` of our files: the letters `pdoj`."""

_VERSION_1 = """
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
CREATE VIEW best AS
SELECT problem, settings, program, trace, cost, measured FROM (
    SELECT t.problem, m.settings, m.program, min(t.id) AS trace, m.cost, m.measured,
        row_number() OVER (PARTITION BY t.problem, m.settings ORDER BY m.cost, m.id) AS place
    FROM measurements m JOIN traces t ON t.program = m.program JOIN problems p ON p.id = t.problem
        JOIN settings s ON s.id = m.settings AND s.machine = p.machine
    WHERE m.failure = ''
    GROUP BY t.problem, m.id
) WHERE place = 1
"""

# The fastest in one measurement may lose a duel: the best is the winner of duels from here on.
_VERSION_2 = """
CREATE TABLE duels (
    id INTEGER PRIMARY KEY,
    program INTEGER NOT NULL REFERENCES programs, against INTEGER REFERENCES programs,
    settings INTEGER NOT NULL REFERENCES settings,
    cost REAL, failure TEXT NOT NULL, detail TEXT NOT NULL, environment INTEGER REFERENCES environments,
    against_cost REAL, against_failure TEXT NOT NULL, won INTEGER NOT NULL,
    seconds TEXT NOT NULL, measured TEXT NOT NULL, CHECK ((cost IS NULL) = (failure <> ''))
);
CREATE UNIQUE INDEX duels_once ON duels (program, settings, ifnull(against, 0));
CREATE INDEX duels_against ON duels (against, settings);
CREATE INDEX evaluations_of_program ON evaluations (program);
DROP VIEW best;
CREATE VIEW best AS
SELECT problem, settings, program, trace, cost, measured FROM (
    SELECT t.problem, d.settings, d.program, min(t.id) AS trace, d.cost, d.measured,
        row_number() OVER (PARTITION BY t.problem, d.settings ORDER BY d.cost, d.id) AS place
    FROM duels d JOIN traces t ON t.program = d.program JOIN problems p ON p.id = t.problem
        JOIN settings s ON s.id = d.settings AND s.machine = p.machine
    WHERE d.won
        AND NOT EXISTS (
            SELECT 1 FROM duels o WHERE o.program = d.program AND o.settings = d.settings
            AND (o.failure <> '' OR (o.won AND o.measured > d.measured))
        )
        AND NOT EXISTS (
            SELECT 1 FROM duels o WHERE o.against = d.program AND o.settings = d.settings
            AND o.won AND o.measured > d.measured AND NOT EXISTS (
                SELECT 1 FROM duels f WHERE f.program = o.program AND f.settings = o.settings AND f.failure <> ''
            )
        )
    GROUP BY t.problem, d.id
) WHERE place = 1
"""

# A failure as the best of a duel counts as a failure, and a lost duel disqualifies the best unless all lost.
_VERSION_3 = """
DROP VIEW best;
CREATE VIEW failed AS
SELECT program, settings FROM duels WHERE failure NOT IN ('', 'NotTimed')
UNION SELECT against, settings FROM duels WHERE against_failure NOT IN ('', 'NotTimed');
CREATE VIEW best AS
SELECT problem, settings, program, trace, cost, measured FROM (
    SELECT t.problem, d.settings, d.program, min(t.id) AS trace, d.cost, d.measured,
        row_number() OVER (
            PARTITION BY t.problem, d.settings
            ORDER BY EXISTS (
                SELECT 1 FROM duels o WHERE o.settings = d.settings AND o.measured > d.measured AND (
                    (o.against = d.program AND o.won
                        AND (o.program, o.settings) NOT IN (SELECT program, settings FROM failed))
                    OR (o.program = d.program AND NOT o.won
                        AND (o.against, o.settings) NOT IN (SELECT program, settings FROM failed))
                )
            ), d.cost, d.id
        ) AS place
    FROM duels d JOIN traces t ON t.program = d.program JOIN problems p ON p.id = t.problem
        JOIN settings s ON s.id = d.settings AND s.machine = p.machine
    WHERE d.won
        AND (d.program, d.settings) NOT IN (SELECT program, settings FROM failed)
        AND NOT EXISTS (
            SELECT 1 FROM duels o WHERE o.program = d.program AND o.settings = d.settings
            AND o.won AND o.measured > d.measured
        )
    GROUP BY t.problem, d.id
) WHERE place = 1
"""

# A duel shows that a program is faster by more than luck, a return match that it is not slower at another time.
_VERSION_4 = """
ALTER TABLE duels ADD COLUMN again INTEGER NOT NULL DEFAULT 0;
DROP INDEX duels_once;
CREATE UNIQUE INDEX duels_once ON duels (program, settings, ifnull(against, 0), again)
"""

# Races replace duels. Failures of duels stay; the best of each problem becomes its incumbent.
_VERSION_5 = """
CREATE TABLE races (
    id INTEGER PRIMARY KEY,
    program INTEGER NOT NULL REFERENCES programs, against INTEGER REFERENCES programs,
    settings INTEGER NOT NULL REFERENCES settings, kind TEXT NOT NULL,
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
INSERT INTO races SELECT NULL, program, NULL, settings, 'match', failure, '', detail, environment, seconds, measured
FROM duels WHERE id IN (
    SELECT max(id) FROM duels WHERE failure NOT IN ('', 'NotTimed') GROUP BY program, settings
);
INSERT INTO races SELECT NULL, against, NULL, settings, 'final', against_failure, '', '{}', NULL, '{}', measured
FROM duels WHERE id IN (
    SELECT max(id) FROM duels WHERE against_failure NOT IN ('', 'NotTimed') GROUP BY against, settings
);
INSERT INTO incumbents SELECT NULL, problem, settings, program, s.evaluator = 'runtime', cost, NULL, NULL, measured
FROM best JOIN settings s ON s.id = settings;
CREATE UNIQUE INDEX races_once ON races (program, settings, ifnull(against, 0), kind);
CREATE INDEX races_against ON races (against, settings);
CREATE INDEX incumbents_of_program ON incumbents (program);
DROP VIEW best;
DROP VIEW failed;
DROP TABLE duels;
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

# What measurements decided that a pass leaves open, by kind of kernel.
_VERSION_6 = """
CREATE TABLE decisions (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL, settings INTEGER NOT NULL REFERENCES settings, text TEXT NOT NULL, gain REAL NOT NULL,
    measured TEXT NOT NULL, UNIQUE (kind, settings)
)
"""


def _script(text: str) -> Callable[[sqlite3.Connection], None]:
    def migrate(connection: sqlite3.Connection) -> None:
        for statement in text.split(";\n"):
            connection.execute(statement)

    return migrate


MIGRATIONS: tuple[Callable[[sqlite3.Connection], None], ...] = tuple(
    _script(text) for text in (_VERSION_1, _VERSION_2, _VERSION_3, _VERSION_4, _VERSION_5, _VERSION_6)
)
"""Migration N turns version N into version N + 1; version 0 is an empty file. All run in one transaction."""
VERSION = len(MIGRATIONS)
"""The version that this pdojo reads and writes; `PRAGMA user_version` of a file."""

JSON: TypeAlias = dict[str, Any]
Kind: TypeAlias = Literal["text", "json", "integer", "real"]


@dataclass(frozen=True)
class Column:
    """The contents of a column: a value of a kind, or a row of another table."""

    kind: Kind = "text"
    least: float | None = None
    """The least number."""
    refers: str = ""
    """The table that it refers to."""
    optional: bool = False


@dataclass(frozen=True)
class Table:
    """The columns of a table. A row is identified by its key in every file; `id` is valid in one file only."""

    columns: Mapping[str, Column]
    key: tuple[str, ...]
    """The columns that identify a row, and that its hash is computed from."""
    hashed: bool = True
    """True if rows have a column `hash`, by which exported rows refer to them."""

    def hash(self, values: Mapping[str, Any]) -> str:
        """The hash of a row; `values` gives references as hashes."""
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
        "program>programs against>programs? settings>settings kind failure against_failure detail:json"
        " environment>environments? seconds:json measured",
        "program against settings kind",
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
    """True if a value can be in a column; JSON is an object, and a reference is a hash."""
    if value is None:
        return column.optional
    match column.kind:
        case "json":
            return isinstance(value, dict)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63
        case "real":
            # JSON has integers of any size, and SQLite has none.
            least, most = -sys.float_info.max if column.least is None else column.least, sys.float_info.max
            return isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most
        case "text":
            return isinstance(value, str)


def _numbers() -> dict[str, Column]:
    """Columns of numbers by the names that queries give them. Joins yield None for missing rows."""
    found = {name: column for table in TABLES.values() for name, column in table.columns.items()}
    found |= dict.fromkeys(("root_cost", "plain_cost", "clock"), found["cost"])
    numbers = {name: column for name, column in found.items() if column.kind in ("integer", "real")}
    # The text of a measurement has that name, too.
    del numbers["seconds"]
    # An evaluator of one's own may have costs below zero.
    return {name: replace(column, least=None, optional=True) for name, column in numbers.items()}


NUMBERS: Mapping[str, Column] = _numbers()
"""Columns of numbers by name. All other columns have texts, and SQLite makes texts of numbers in them."""


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

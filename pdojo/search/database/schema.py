"""The tables of a search database: what they were in each version, and how to read and write them now."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass
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

# What was fastest in one measurement need not be so in a duel: from here on the best is what stood duels.
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

# What failed as the best of a duel has failed, and what lost as a challenger is not the best either, unless all lost.
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

# A duel says that a program is faster by more than luck, a return match that it is not slower at another time.
_VERSION_4 = """
ALTER TABLE duels ADD COLUMN again INTEGER NOT NULL DEFAULT 0;
DROP INDEX duels_once;
CREATE UNIQUE INDEX duels_once ON duels (program, settings, ifnull(against, 0), again)
"""


def _script(text: str) -> Callable[[sqlite3.Connection], None]:
    def migrate(connection: sqlite3.Connection) -> None:
        for statement in text.split(";\n"):
            connection.execute(statement)

    return migrate


MIGRATIONS: tuple[Callable[[sqlite3.Connection], None], ...] = tuple(
    _script(text) for text in (_VERSION_1, _VERSION_2, _VERSION_3, _VERSION_4)
)
"""Number N makes version N + 1 of version N; version 0 is an empty file. They run in one transaction."""
VERSION = len(MIGRATIONS)
"""The version that this pdojo reads and writes; `PRAGMA user_version` of a file."""

JSON: TypeAlias = dict[str, Any]
Kind: TypeAlias = Literal["text", "json", "integer", "real"]


@dataclass(frozen=True)
class Column:
    """What a column holds: a value of a kind, or the row of another table."""

    kind: Kind = "text"
    refers: str = ""
    """The other table."""
    optional: bool = False


@dataclass(frozen=True)
class Table:
    """What is written into a table. Rows are known by their key, in every file; `id` is a matter of one file."""

    columns: Mapping[str, Column]
    key: tuple[str, ...]
    """The columns that make a row what it is; no two rows have the same. The hash of a table that has one is theirs."""
    hashed: bool = True
    """Whether rows have a column `hash`, by which other tables' rows are exported as referring to them."""

    def hash(self, values: Mapping[str, Any]) -> str:
        """The hash of a row, whose references are given as hashes."""
        if self is TABLES["programs"]:
            return digest(values["text"])
        return digest(canonical([values[column] for column in self.key]))


def _to(table: str, *, optional: bool = False) -> Column:
    return Column(refers=table, optional=optional)


_TEXT, _JSON, _REAL, _INTEGER = Column(), Column("json"), Column("real"), Column("integer")
_COST = Column("real", optional=True)

TABLES: dict[str, Table] = {
    "machines": Table({"name": _TEXT, "text": _JSON}, ("text",)),
    "environments": Table({"text": _JSON}, ("text",)),
    "programs": Table({"text": _TEXT}, ("text",)),
    "problems": Table(
        {
            "plain": _to("programs"),
            "machine": _to("machines"),
            "kernel": _TEXT,
            "shape": _TEXT,
            "dtype": _TEXT,
            "label": _TEXT,
        },
        ("plain", "machine"),
    ),
    "traces": Table({"problem": _to("problems"), "program": _to("programs"), "text": _TEXT}, ("problem", "text")),
    "settings": Table(
        {"machine": _to("machines"), "evaluator": _TEXT, "unit": _TEXT, "text": _JSON},
        ("machine", "evaluator", "unit", "text"),
    ),
    "measurements": Table(
        {
            "program": _to("programs"),
            "settings": _to("settings"),
            "cost": _COST,
            "failure": _TEXT,
            "detail": _JSON,
            "environment": _to("environments", optional=True),
            "seconds": _JSON,
            "measured": _TEXT,
        },
        ("program", "settings"),
        hashed=False,
    ),
    "duels": Table(
        {
            "program": _to("programs"),
            "against": _to("programs", optional=True),
            "settings": _to("settings"),
            "cost": _COST,
            "failure": _TEXT,
            "detail": _JSON,
            "environment": _to("environments", optional=True),
            "against_cost": _COST,
            "against_failure": _TEXT,
            "won": _INTEGER,
            "seconds": _JSON,
            "measured": _TEXT,
            "again": _INTEGER,
        },
        ("program", "against", "settings", "again"),
        hashed=False,
    ),
    "runs": Table(
        {
            "problem": _to("problems"),
            "settings": _to("settings"),
            "root": _to("traces"),
            "strategy": _TEXT,
            "neighbourhood": _TEXT,
            "seed": _INTEGER,
            "text": _JSON,
            "started": _TEXT,
            "changed": _TEXT,
            "state": _TEXT,
        },
        ("problem", "settings", "root", "strategy", "neighbourhood", "seed", "text"),
    ),
    "evaluations": Table(
        {
            "run": _to("runs"),
            "number": _INTEGER,
            "program": _to("programs"),
            "trace": _to("traces"),
            "parent": _to("programs", optional=True),
            "cost": _COST,
            "failure": _TEXT,
            "best": _INTEGER,
            "seconds": _REAL,
        },
        ("run", "number"),
        hashed=False,
    ),
}
"""All tables, those that others refer to before them."""


def digest(text: str) -> str:
    """Hexadecimal SHA-256."""
    return sha256(text.encode()).hexdigest()


def canonical(value: object) -> str:
    """One text for equal JSON values: keys sorted, tuples as lists, numbers without a JSON form as words."""
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

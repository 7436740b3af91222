"""Queries for people: the best of every problem, runs, and single rows."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, replace
from typing import Literal, TypeAlias

from pdojo.errors import DatabaseError, UsageError
from pdojo.search.contract.evaluation import JSON
from pdojo.search.database.connection import Cells, DatabaseConnection
from pdojo.search.database.memory import race_of
from pdojo.search.database.rows import read_json
from pdojo.transforms.trace import Trace

Kind: TypeAlias = Literal["problems", "programs", "traces", "runs"]
KINDS: tuple[Kind, ...] = ("problems", "programs", "traces", "runs")
"""Tables whose rows can be found by hash."""


@dataclass(frozen=True)
class ProblemStanding:
    """A problem under settings: its best program, and the effort so far. Rows are named by their hashes."""

    problem: str
    kernel: str
    shape: str
    dtype: str
    label: str
    machine: str
    threads: int
    evaluator: str
    unit: str
    settings: str
    plain: float | None
    """Cost of the plain kernel; None if it was not evaluated or failed."""
    cost: float | None
    """Cost of the best program; None if there is none yet."""
    program: str | None
    trace: str | None
    moves: int | None
    measured: str | None
    """Time of the best program's measurement."""
    programs: int
    """Number of evaluated programs."""
    failures: int
    runs: int
    gain: float | None
    """Speed-up of the best program over the plain kernel or over the start of its search, from a race if programs are
    timed; None if it was not measured.
    """
    beside: str
    """`plain` or `start`: the program that `gain` compares with."""

    def to_json(self) -> JSON:
        """As plain data."""
        return asdict(self)


_STANDINGS = """
SELECT p.hash AS problem, p.kernel, p.shape, p.dtype, p.label, m.name AS machine, m.text AS facts,
    s.evaluator, s.unit, s.hash AS settings, plain.cost AS plain_cost,
    b.cost, program.hash AS program, trace.hash AS trace, trace.text AS moves, b.measured,
    tried.programs, tried.failures,
    (SELECT count(*) FROM runs r WHERE r.problem = p.id AND r.settings = s.id) AS runs,
    CASE WHEN b.timed THEN b.gain ELSE plain.cost / b.cost END AS gain,
    CASE WHEN b.timed AND b.against <> p.plain THEN 'start' ELSE 'plain' END AS beside
FROM (
    SELECT t.problem, x.settings, count(*) AS programs, sum(x.failure <> '') AS failures
    FROM (SELECT DISTINCT problem, program FROM traces) t JOIN measurements x ON x.program = t.program
    GROUP BY t.problem, x.settings
) tried
JOIN problems p ON p.id = tried.problem JOIN machines m ON m.id = p.machine
JOIN settings s ON s.id = tried.settings AND s.machine = p.machine
LEFT JOIN best b ON b.problem = p.id AND b.settings = s.id
LEFT JOIN programs program ON program.id = b.program LEFT JOIN traces trace ON trace.id = b.trace
LEFT JOIN measurements plain ON plain.program = p.plain AND plain.settings = s.id
ORDER BY p.kernel, p.shape, p.dtype, m.name, s.evaluator, p.id, s.id
"""


def standings(connection: DatabaseConnection) -> list[ProblemStanding]:
    """The standing of every problem under every setting with an evaluation."""
    return [_standing(row, connection) for row in connection.rows(_STANDINGS)]


def _standing(row: Cells, connection: DatabaseConnection) -> ProblemStanding:
    values = dict(row)
    values["threads"] = read_json(values.pop("facts"), connection.path).get("threads", 1)
    values["plain"] = values.pop("plain_cost")
    values["moves"] = None if row["moves"] is None else len(moves_in(row["moves"]))
    return ProblemStanding(**values)


def moves_in(trace: str) -> list[str]:
    """The moves in the text of a trace, as printed."""
    return [str(move) for move in Trace.parse(trace, "a trace in the database").moves]


@dataclass(frozen=True)
class RunSummary:
    """A run and its result."""

    run: str
    problem: str
    kernel: str
    shape: str
    dtype: str
    machine: str
    evaluator: str
    unit: str
    settings: str
    strategy: str
    neighbourhood: str
    seed: int
    options: JSON
    """The settings of strategy and neighbourhood."""
    started: str
    changed: str
    state: str
    evaluations: int
    """Number of evaluations, without the root."""
    failures: int
    seconds: float | None
    root: float | None
    """Cost of the root."""
    cost: float | None
    """Cost of the best program, as the strategy received it."""
    trace: str | None
    """Hash of the best program's trace."""
    gain: float | None
    """Speed-up of the best program over the root, from a race if programs are timed; None if it was not measured."""
    is_timed: bool

    def to_json(self) -> JSON:
        """As plain data."""
        return asdict(self)


_RUNS = """
SELECT r.hash AS run, p.hash AS problem, p.kernel, p.shape, p.dtype, m.name AS machine, s.evaluator, s.unit,
    s.hash AS settings, r.strategy, r.neighbourhood, r.seed, r.text AS options, r.started, r.changed, r.state,
    (SELECT max(0, count(*) - 1) FROM evaluations e WHERE e.run = r.id) AS evaluations,
    (SELECT count(*) FROM evaluations e WHERE e.run = r.id AND e.failure <> '') AS failures,
    (SELECT max(seconds) FROM evaluations e WHERE e.run = r.id) AS clock,
    (SELECT cost FROM evaluations e WHERE e.run = r.id AND e.number = 0) AS root_cost,
    best.cost, trace.hash AS trace, start.hash AS start, program.hash AS program,
    EXISTS (SELECT 1 FROM incumbents i WHERE i.problem = p.id AND i.settings = s.id AND i.timed) AS is_timed
FROM runs r JOIN problems p ON p.id = r.problem JOIN machines m ON m.id = p.machine JOIN settings s ON s.id = r.settings
LEFT JOIN evaluations best ON best.run = r.id AND best.number = (
    SELECT max(number) FROM evaluations e WHERE e.run = r.id AND e.best
)
LEFT JOIN traces trace ON trace.id = best.trace LEFT JOIN programs program ON program.id = best.program
JOIN traces root ON root.id = r.root JOIN programs start ON start.id = root.program
ORDER BY r.started, r.id
"""


def runs(connection: DatabaseConnection) -> list[RunSummary]:
    """All runs, the oldest first."""
    found: list[RunSummary] = []
    for row in connection.rows(_RUNS):
        values: JSON = dict(row)
        values["options"], values["seconds"] = read_json(row["options"], connection.path), values.pop("clock")
        values["root"] = values.pop("root_cost")
        program, start = values.pop("program"), values.pop("start")
        values["is_timed"] = bool(row["is_timed"])
        run = RunSummary(**values, gain=None)
        found.append(replace(run, gain=gain_of(connection, run, program, start, run.cost)))
    return found


def gain_of(
    connection: DatabaseConnection, run: RunSummary, program: str | None, root: str, cost: float | None
) -> float | None:
    """The speed-up of a program of cost `cost` over the root of a run; programs are given as hashes.

    For timed programs it is the factor of their last match; None if there was none.
    """
    if not run.is_timed:
        return run.root / cost if run.root and cost else None
    if program == root:
        return 1.0
    rows = connection.rows(
        "SELECT x.*, NULL AS cost, NULL AS facts FROM races x JOIN programs p ON p.id = x.program"
        " JOIN programs a ON a.id = x.against JOIN settings s ON s.id = x.settings"
        " WHERE p.hash = ? AND a.hash = ? AND s.hash = ? AND x.inputs IS NOT NULL ORDER BY x.inputs DESC",
        program,
        root,
        run.settings,
    )
    races = [race_of(row, connection.path) for row in rows]
    return next((1 / race.ratio for race in races if race.ratio is not None), None)


def find_run(connection: DatabaseConnection, hashed: str) -> RunSummary:
    """The run with this hash. Raises DatabaseError if there is none."""
    found = next((run for run in runs(connection) if run.run == hashed), None)
    if found is None:
        raise DatabaseError(f"{connection.name} is damaged: it says nothing of run {hashed:.12}")
    return found


@dataclass(frozen=True)
class FoundRow:
    """The result of `find`."""

    kind: Kind
    hash: str


def find(connection: DatabaseConnection, word: str) -> FoundRow:
    """The row whose hash begins with `word` (at least four digits), or the problem with that kernel or label.

    Raises UsageError if there is no such row, or if there are several.
    """
    named = connection.rows(
        "SELECT p.hash, p.shape, p.dtype, m.name FROM problems p JOIN machines m ON m.id = p.machine"
        " WHERE p.kernel = ? OR p.label = ? OR p.kernel || ':' || p.shape = ? ORDER BY p.id",
        *([word] * 3),
    )
    found = [(FoundRow("problems", row["hash"]), f"{row['shape']} {row['dtype']} on {row['name']}") for row in named]
    if re.fullmatch(r"[0-9a-f]{4,64}", word):
        for kind in KINDS:
            rows = connection.rows(f"SELECT hash FROM {kind} WHERE substr(hash, 1, ?) = ?", len(word), word)
            found += [(FoundRow(kind, row["hash"]), kind.removesuffix("s")) for row in rows]
    if not found:
        raise UsageError(
            f"{connection.name} has no kernel '{word}', and nothing whose hash begins like that (four digits or more)"
        )
    if len(found) > 1:
        listed = "; ".join(f"{one.hash[:12]} ({what})" for one, what in found[:8])
        raise UsageError(f"'{word}' may be any of {len(found)}: {listed}{' ...' if len(found) > 8 else ''}")
    return found[0][0]


@dataclass(frozen=True)
class StoredProgram:
    """A program of a problem, with a trace to the program."""

    title: str
    problem: str
    program: str
    """The program's text."""
    fingerprint: str
    trace: str
    """The trace's text."""


def stored_program(connection: DatabaseConnection, found: FoundRow) -> StoredProgram:
    """The program of a row; the best program for a problem or run. Raises UsageError if there is none."""
    match found.kind:
        case "problems":
            standing = best_standing(connection, found.hash)
            where, value, title = "t.hash = ?", standing.trace, f"the best of {standing.kernel} {standing.shape}"
        case "runs":
            run = find_run(connection, found.hash)
            where, value, title = "t.hash = ?", run.trace, f"the best of run {found.hash[:8]}"
        case "traces":
            where, value, title = "t.hash = ?", found.hash, f"trace {found.hash[:8]}"
        case "programs":
            where, value, title = "x.hash = ?", found.hash, f"program {found.hash[:8]}"
    row = connection.row(
        "SELECT p.hash AS problem, x.text AS program, x.hash AS fingerprint, t.text AS trace FROM traces t"
        f" JOIN programs x ON x.id = t.program JOIN problems p ON p.id = t.problem WHERE {where} ORDER BY t.id",
        value,
    )
    if row is None:
        raise UsageError(f"{title}: there is none, nothing was found yet")
    return StoredProgram(title, **dict(row))


def best_standing(connection: DatabaseConnection, problem: str) -> ProblemStanding:
    """The standing of a problem with the most recent best. Raises UsageError if nothing was evaluated."""
    listed = [standing for standing in standings(connection) if standing.problem == problem]
    if not listed:
        raise UsageError(f"nothing was evaluated yet for problem {problem[:12]}")
    return max(listed, key=lambda standing: standing.measured or "")

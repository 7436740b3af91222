"""All facts about one row: a problem, a program, a trace or a run, as plain data."""

from __future__ import annotations

from pdojo.search.contract.evaluation import JSON
from pdojo.search.database.connection import DatabaseConnection
from pdojo.search.database.memory import race_of
from pdojo.search.database.queries import FoundRow, find_run, gain_of, standings
from pdojo.search.database.rows import read_json


def details(connection: DatabaseConnection, found: FoundRow) -> JSON:
    """All known facts about a row; `kind` names the row's kind."""
    match found.kind:
        case "problems":
            return _problem(connection, found.hash)
        case "programs":
            return {"kind": "program", "hash": found.hash, **_program(connection, found.hash)}
        case "traces":
            row = connection.only(
                "SELECT p.hash, t.text FROM traces t JOIN programs p ON p.id = t.program WHERE t.hash = ?", found.hash
            )
            program = _program(connection, row["hash"])
            return {"kind": "trace", "hash": found.hash, "trace": row["text"], "program": row["hash"], **program}
        case "runs":
            return _run(connection, found.hash)


def _problem(connection: DatabaseConnection, problem: str) -> JSON:
    row = connection.only(
        "SELECT p.kernel, p.shape, p.dtype, p.label, plain.text, m.name AS machine, m.text AS facts"
        " FROM problems p JOIN programs plain ON plain.id = p.plain JOIN machines m ON m.id = p.machine"
        " WHERE p.hash = ?",
        problem,
    )
    bests: list[JSON] = []
    for standing in standings(connection):
        if standing.problem != problem:
            continue
        best: JSON = {"standing": standing.to_json()}
        if standing.program is not None:
            best |= {"trace": _text(connection, "traces", standing.trace), **_program(connection, standing.program)}
        bests.append(best)
    facts = read_json(row["facts"], connection.path)
    plain = row.pop("text")
    return {"kind": "problem", "hash": problem, **row, "plain": plain, "facts": facts, "bests": bests}


def _program(connection: DatabaseConnection, fingerprint: str) -> JSON:
    """The text, traces, runs, measurements and settings of a program."""
    traces = connection.rows(
        "SELECT t.hash FROM traces t JOIN programs p ON p.id = t.program WHERE p.hash = ? ORDER BY t.id", fingerprint
    )
    seen = connection.rows(
        "SELECT r.hash AS run, e.number FROM evaluations e JOIN runs r ON r.id = e.run"
        " JOIN programs p ON p.id = e.program WHERE p.hash = ? ORDER BY r.started",
        fingerprint,
    )
    measured = _measurements(connection, fingerprint)
    return {
        "text": _text(connection, "programs", fingerprint),
        "traces": [row["hash"] for row in traces],
        "runs": [dict(row) for row in seen],
        "measurements": measured,
        "settings": {each["settings"]: _settings(connection, each["settings"]) for each in measured},
    }


def _measurements(connection: DatabaseConnection, fingerprint: str) -> list[JSON]:
    """All measurements of a program: evaluations and races."""
    rows = connection.rows(
        "SELECT x.how, s.evaluator, s.unit, s.hash AS settings, x.cost, x.failure, x.measured, x.detail,"
        " x.seconds, x.against, x.against_failure, e.text AS environment FROM ("
        " SELECT 'told' AS how, NULL AS against, '' AS against_failure, program, settings, cost, failure, detail,"
        " environment, seconds, measured FROM measurements"
        " UNION ALL SELECT iif(inputs IS NULL, 'race', 'match'), against, against_failure, program, settings, NULL,"
        " failure, detail, environment, seconds, measured FROM races"
        ") x JOIN programs p ON p.id = x.program JOIN settings s ON s.id = x.settings"
        " LEFT JOIN environments e ON e.id = x.environment WHERE p.hash = ? ORDER BY x.measured",
        fingerprint,
    )
    found: list[JSON] = []
    for row in rows:
        facts = {name: row[name] and read_json(row[name], connection.path) for name in ("detail", "environment")}
        race = race_of({**dict(row), "facts": None}, connection.path)
        found.append({**dict(row), **facts, "ratio": race.ratio})
    return found


def _settings(connection: DatabaseConnection, hashed: str) -> JSON:
    return read_json(_text(connection, "settings", hashed), connection.path)


def _text(connection: DatabaseConnection, table: str, hashed: str | None) -> str:
    return connection.only(f"SELECT text FROM {table} WHERE hash = ?", hashed)["text"]


def _run(connection: DatabaseConnection, hashed: str) -> JSON:
    run = find_run(connection, hashed)
    failures = connection.rows(
        "SELECT e.failure, count(*) AS count FROM evaluations e JOIN runs r ON r.id = e.run"
        " WHERE r.hash = ? AND e.failure <> '' GROUP BY e.failure ORDER BY 2 DESC",
        hashed,
    )
    improved = connection.rows(
        "SELECT e.number, e.seconds AS clock, e.cost, t.hash AS trace, p.hash AS program, s.hash AS start"
        " FROM evaluations e JOIN runs r ON r.id = e.run JOIN traces t ON t.id = e.trace"
        " JOIN programs p ON p.id = e.program"
        " JOIN traces root ON root.id = r.root JOIN programs s ON s.id = root.program"
        " WHERE r.hash = ? AND e.best ORDER BY e.number",
        hashed,
    )
    for row in improved:
        row["seconds"] = row.pop("clock")
        row["gain"] = gain_of(connection, run, row["program"], row.pop("start"), row["cost"])
    return {
        "kind": "run",
        "hash": hashed,
        "summary": run.to_json(),
        "failed": {row["failure"]: row["count"] for row in failures},
        "improvements": improved,
        "best_trace": None if run.trace is None else _text(connection, "traces", run.trace),
        "settings": _settings(connection, run.settings),
    }

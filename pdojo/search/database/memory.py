"""Costs, failures and races of one problem under one evaluator's settings; logs of runs."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from statistics import median
from typing import Any, TypeAlias, cast

from pdojo.errors import DatabaseError
from pdojo.search.contract.evaluation import JSON, Evaluation
from pdojo.search.contract.progress import HistoryRow
from pdojo.search.contract.racing import Race
from pdojo.search.database import checkpoints
from pdojo.search.database.checkpoints import Checkpoint
from pdojo.search.database.connection import Cells, DatabaseConnection
from pdojo.search.database.rows import Key, insert, now, put, read_json
from pdojo.search.database.schema import canonical
from pdojo.transforms.trace import Trace

_VOLATILE = ("huge_page_bytes",)
"""Facts of an environment that vary between measurements; they are stored with each measurement."""

Values: TypeAlias = dict[str, Any]


_FAILED = """(
    SELECT program, settings, NULL AS cost, failure, detail, environment, seconds FROM races WHERE failure <> ''
    UNION ALL SELECT against, settings, NULL, against_failure, json_object(
        'kind', against_failure, 'message', against_failure || ', in a race as the best'
    ), NULL, '{}' FROM races WHERE against_failure <> ''
)"""


@dataclass(frozen=True)
class LogEntry:
    """An evaluation in the log of a run."""

    row: HistoryRow
    text: str
    """The program's text."""
    trace: Trace
    parent: str | None
    """Fingerprint of the parent program of the proposal."""


@dataclass(frozen=True)
class Incumbent:
    """The best known program of a problem."""

    fingerprint: str
    trace: Trace
    cost: float
    """Its cost at the time when it became the incumbent."""


class StoredRun:
    """The log of a search. A search with the same problem and settings extends it."""

    def __init__(self, connection: DatabaseConnection, key: Key, problem: Key) -> None:
        self._connection = connection
        self._key = key
        self._problem = problem
        self._logged: dict[int, tuple[str, float]] = {
            row["number"]: (row["hash"], row["clock"])
            for row in connection.rows(
                "SELECT e.number, p.hash, e.seconds AS clock FROM evaluations e JOIN programs p ON p.id = e.program"
                " WHERE e.run = ?",
                key.id,
            )
        }
        self._met = {fingerprint for fingerprint, _ in self._logged.values()}

    def time_of(self, number: int, fingerprint: str) -> float | None:
        """Seconds from the start of the run to a logged evaluation; None if it is not logged.

        If another program has the number, because pdojo changed, the log is dropped from there on.
        """
        known = self._logged.get(number)
        if known is None:
            return None
        if known[0] != fingerprint:
            self._logged = {n: entry for n, entry in self._logged.items() if n < number}
            self._met = {hashed for hashed, _ in self._logged.values()}
            return None
        return known[1]

    def has(self, fingerprint: str) -> bool:
        """True if the log had this program when the run was opened."""
        return fingerprint in self._met

    @property
    def hash(self) -> str:
        """The run's identifier, the same in every file."""
        return self._key.hash

    def log(self, entries: Sequence[LogEntry], others: Sequence[tuple[str, Trace]]) -> None:
        """Log the evaluations `entries`, and other traces to known programs (`others`: text and trace).

        A different program at a logged number deletes the later evaluations. Raises DatabaseError if the run was
        pruned.
        """
        with self._connection.transaction() as connection:
            known = connection.execute(
                "UPDATE runs SET changed = ? WHERE id = ? AND hash = ?", (now(), self._key.id, self.hash)
            )
            if not known.rowcount:
                raise DatabaseError(
                    f"{self._connection.name} does not have run {self.hash[:12]} any more: it was pruned while it was"
                    " under way; what it measured is there, and the same search begins again with that"
                )
            for text, trace in others:
                self._trace(connection, text, trace)
            for entry in entries:
                self._entry(connection, entry)

    def amend(self, rows: Sequence[HistoryRow]) -> None:
        """Correct logged evaluations."""
        with self._connection.transaction() as connection:
            for row in rows:
                connection.execute(
                    "UPDATE evaluations SET cost = :cost, failure = :failure, best = :best"
                    " WHERE run = :run AND number = :number",
                    {**_logged(row), "run": self._key.id},
                )

    def proposals(self, count: int) -> list[tuple[str, str, Trace, str | None]]:
        """The first `count` programs of the log: fingerprint, text, trace, and the parent's fingerprint."""
        rows = self._connection.rows(
            "SELECT p.hash, p.text AS program, t.text, q.hash AS parent FROM evaluations e"
            " JOIN programs p ON p.id = e.program JOIN traces t ON t.id = e.trace"
            " LEFT JOIN programs q ON q.id = e.parent WHERE e.run = ? AND e.number < ? ORDER BY e.number",
            self._key.id,
            count,
        )
        return [
            (row["hash"], row["program"], Trace.parse(row["text"], "a trace in the database"), row["parent"])
            for row in rows
        ]

    @property
    def keeps_checkpoints(self) -> bool:
        """True unless the database ends with the process."""
        return self._connection.path is not None

    def checkpoint(self) -> Checkpoint | None:
        """The saved state of the strategy; None if there is none, or if the log has lost programs of the state."""
        path = self._connection.path
        found = None if path is None else checkpoints.read(path, self.hash)
        return None if found is None or found.told > len(self._logged) else found

    def keep_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Save the state of the strategy in place of an earlier one."""
        assert self._connection.path is not None
        checkpoints.write(self._connection.path, self.hash, checkpoint)

    def drop_checkpoint(self) -> None:
        """Delete the saved state, which does not fit the log."""
        if self._connection.path is not None:
            checkpoints.remove(self._connection.path, self.hash)

    def mark(self, state: str) -> None:
        """Set the state of the run: `running`, `finished`, `interrupted`, `failed`."""
        with self._connection.transaction() as connection:
            connection.execute(
                "UPDATE runs SET state = ?, changed = ? WHERE id = ? AND hash = ?",
                (state, now(), self._key.id, self.hash),
            )

    def _entry(self, connection: sqlite3.Connection, entry: LogEntry) -> None:
        program = put(connection, "programs", {"text": entry.text})
        parent = None
        if entry.parent is not None:
            # Another process may have pruned it.
            found = connection.execute("SELECT id FROM programs WHERE hash = ?", (entry.parent,)).fetchone()
            parent = found and found[0]
        known = connection.execute(
            "SELECT program FROM evaluations WHERE run = ? AND number = ?", (self._key.id, entry.row.number)
        ).fetchone()
        if known is not None and known[0] != program.id:
            connection.execute("DELETE FROM evaluations WHERE run = ? AND number > ?", (self._key.id, entry.row.number))
        connection.execute("DELETE FROM evaluations WHERE run = ? AND number = ?", (self._key.id, entry.row.number))
        values: Values = {
            "run": self._key,
            "program": program,
            "trace": self._trace(connection, entry.text, entry.trace),
            "parent": parent,
            **_logged(entry.row),
            "seconds": entry.row.seconds,
        }
        insert(connection, "evaluations", values)

    def _trace(self, connection: sqlite3.Connection, text: str, trace: Trace) -> Key:
        program = put(connection, "programs", {"text": text})
        return put(connection, "traces", {"problem": self._problem, "program": program, "text": trace.dump()})


class SearchMemory:
    """Evaluations of the programs of a problem, under settings that make costs comparable."""

    def __init__(self, connection: DatabaseConnection, problem: Key, settings: Key) -> None:
        self.connection = connection
        self.problem = problem
        self.settings = settings

    def find(self, fingerprint: str, *, alone: bool = False) -> Evaluation | None:
        """The evaluation of a program: a failure if there is one, else the first measurement.

        If `alone` is true, failures in races do not count.
        """
        query = (
            "SELECT x.*, e.text AS facts FROM {} x JOIN programs p ON p.id = x.program"
            " LEFT JOIN environments e ON e.id = x.environment WHERE p.hash = ? AND x.settings = ?"
        )
        known = self.connection.row(query.format("measurements"), fingerprint, self.settings.id)
        if known is None:
            return None
        failed = None if alone else self.connection.row(query.format(_FAILED), fingerprint, self.settings.id)
        return evaluation_of(failed or known, self.connection.path)

    def keep(self, text: str, trace: Trace, evaluation: Evaluation) -> Evaluation:
        """Store a measurement; returns the valid one, which is another process's if that came first."""
        with self.connection.transaction() as connection:
            program = put(connection, "programs", {"text": text})
            put(connection, "traces", {"problem": self.problem, "program": program, "text": trace.dump()})
            values = {"program": program, "settings": self.settings, **self._measured(connection, evaluation)}
            if insert(connection, "measurements", values, unless_there=True):
                return evaluation
        return self.find(program.hash) or evaluation

    def find_race(self, fingerprint: str, against: str | None, inputs: int | None) -> Race | None:
        """The race of a program with `against` (None: alone) on a set of inputs; None if there is none.

        Without `inputs` it is a race with the incumbent, which checked no results.
        """
        row = self.connection.row(
            "SELECT x.*, NULL AS cost, e.text AS facts FROM races x JOIN programs p ON p.id = x.program"
            " LEFT JOIN programs a ON a.id = x.against LEFT JOIN environments e ON e.id = x.environment"
            " WHERE p.hash = ? AND x.settings = ? AND a.hash IS ? AND x.inputs IS ?",
            fingerprint,
            self.settings.id,
            against,
            inputs,
        )
        return None if row is None else race_of(row, self.connection.path)

    def keep_race(self, text: str, against: str | None, inputs: int | None, race: Race, *, again: bool = False) -> Race:
        """Store a race with the program text `against`; returns the valid one, an earlier one unless `again` is set."""
        with self.connection.transaction() as connection:
            program = put(connection, "programs", {"text": text})
            other = None if against is None else put(connection, "programs", {"text": against})
            if again:
                connection.execute(
                    "DELETE FROM races WHERE program = ? AND against IS ? AND settings = ? AND inputs IS ?",
                    (program.id, other and other.id, self.settings.id, inputs),
                )
            measured = self._measured(connection, race.evaluation)
            del measured["cost"]
            beside = {} if race.other is None else {"other": {"samples": race.other.detail.get("samples", ())}}
            values: Values = {
                "program": program,
                "against": other,
                "settings": self.settings,
                "inputs": inputs,
                "against_failure": "" if race.other is None else race.other.failure,
                **measured,
                "detail": canonical({**read_json(measured["detail"], ""), **beside}),
            }
            if insert(connection, "races", values, unless_there=True):
                return race
        return self.find_race(program.hash, other and other.hash, inputs) or race

    def keep_incumbent(
        self,
        trace: Trace,
        text: str,
        cost: float,
        *,
        timed: bool,
        over: str,
        once: bool = False,
        beside: tuple[str, float] | None = None,
    ) -> None:
        """Make the program of a trace the incumbent.

        For computed costs, the program with the least cost is the incumbent. A `timed` program becomes the incumbent
        only if there is none, if it failed, or if its fingerprint is `over`; with `once`, never a second time.
        `beside` has the text of another program and the speed-up over it.
        """
        with self.connection.transaction() as connection:
            held = self.best()
            program = put(connection, "programs", {"text": text})
            put(connection, "traces", {"problem": self.problem, "program": program, "text": trace.dump()})
            against, gain = beside or (None, None)
            other = None if against is None else put(connection, "programs", {"text": against})
            key = (self.problem.id, self.settings.id, program.id)
            where = "problem = ? AND settings = ? AND program = ?"
            if held is not None and held.fingerprint == program.hash:
                if other is not None:
                    changed = (cost, other.id, gain, *key)
                    connection.execute(f"UPDATE incumbents SET cost = ?, against = ?, gain = ? WHERE {where}", changed)
                return
            known = connection.execute(f"SELECT 1 FROM incumbents WHERE {where}", key).fetchone()
            if timed and held is not None and (held.fingerprint != over or (once and known)):
                return
            connection.execute(f"DELETE FROM incumbents WHERE {where}", key)
            values: Values = {"problem": self.problem, "settings": self.settings, "program": program}
            values |= {"timed": int(timed), "cost": cost, "against": other, "gain": gain, "measured": now()}
            insert(connection, "incumbents", values)

    def best(self) -> Incumbent | None:
        """The incumbent of the problem; None if there is none."""
        row = self.connection.row(
            "SELECT p.hash, t.text, b.cost FROM best b JOIN programs p ON p.id = b.program"
            " JOIN traces t ON t.id = b.trace WHERE b.problem = ? AND b.settings = ?",
            self.problem.id,
            self.settings.id,
        )
        if row is None:
            return None
        trace = Trace.parse(row["text"], "a trace in the database")
        return Incumbent(row["hash"], trace, row["cost"])

    def run(self, root: tuple[str, Trace], strategy: str, neighbourhood: str, seed: int, settings: JSON) -> StoredRun:
        """The run of a search from the program `root` (text and trace); an earlier run's log is extended."""
        with self.connection.transaction() as connection:
            program = put(connection, "programs", {"text": root[0]})
            trace = put(connection, "traces", {"problem": self.problem, "program": program, "text": root[1].dump()})
            time = now()
            values = {
                "problem": self.problem,
                "settings": self.settings,
                "root": trace,
                "strategy": strategy,
                "neighbourhood": neighbourhood,
                "seed": seed,
                "text": canonical(settings),
                "started": time,
                "changed": time,
                "state": "running",
            }
            key = put(connection, "runs", values)
            # The run may have ended before: pruning must see that it is running again.
            connection.execute("UPDATE runs SET state = 'running', changed = ? WHERE id = ?", (time, key.id))
        return StoredRun(self.connection, key, self.problem)

    def _measured(self, connection: sqlite3.Connection, evaluation: Evaluation) -> Values:
        """The common columns of measurements and races. An environment is stored once."""
        detail = dict(evaluation.detail)
        environment = None
        facts = detail.pop("environment", None)
        if isinstance(facts, dict):
            facts = cast(JSON, facts)
            stable = {key: value for key, value in facts.items() if key not in _VOLATILE}
            environment = put(connection, "environments", {"text": canonical(stable)})
            detail["environment"] = {key: value for key, value in facts.items() if key in _VOLATILE}
        return {
            "cost": evaluation.cost if evaluation.is_ok else None,
            "failure": evaluation.failure,
            "detail": canonical(detail),
            "environment": environment,
            "seconds": canonical(dict(evaluation.seconds)),
            "measured": now(),
        }


def _logged(row: HistoryRow) -> Values:
    cost = None if row.failure else row.cost
    return {"number": row.number, "cost": cost, "failure": row.failure, "best": int(row.is_best)}


def evaluation_of(row: Cells, path: object) -> Evaluation:
    """The evaluation in a row of `measurements` or `races`; `facts` is the environment's text."""
    detail = read_json(row["detail"], path)
    if row["facts"] is not None:
        detail["environment"] = {**read_json(row["facts"], path), **detail.get("environment", {})}
    cost = inf if row["cost"] is None else row["cost"]
    return Evaluation(cost, row["failure"], detail, read_json(row["seconds"], path))


def race_of(row: Cells, path: object) -> Race:
    """The race in a row of `races`; `facts` is the environment's text, `cost` is None."""
    evaluation = evaluation_of(row, path)
    samples = _samples(evaluation.detail, path)
    if evaluation.is_ok:
        evaluation = replace(evaluation, cost=median(samples) if samples else inf)
    beside = evaluation.detail.pop("other", None)
    if row["against"] is None or beside is None:
        return Race(evaluation)
    others = _samples(beside, path)
    if len(others) != len(samples) and not row["against_failure"] and evaluation.is_ok:
        raise DatabaseError(f"the database '{path}' holds a race whose programs were measured unequally often")
    cost = median(others) if others and not row["against_failure"] else inf
    return Race(evaluation, Evaluation(cost, row["against_failure"], {"samples": others}))


def samples_of(evaluation: Evaluation | None) -> Sequence[float]:
    """The samples of one side of a race; empty if that side failed or its cost was computed."""
    return [] if evaluation is None else evaluation.detail.get("samples", ())


def _samples(detail: object, path: object) -> list[float]:
    found: object = cast(JSON, detail).get("samples", []) if isinstance(detail, dict) else None
    if not isinstance(found, list) or not all(isinstance(each, float | int) for each in cast(list[object], found)):
        raise DatabaseError(f"the database '{path}' holds samples that are no list of numbers")
    return cast(list[float], found)

"""What is known of one problem under one evaluator's settings: costs, failures, duels; and the log of runs."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, TypeAlias, cast

from pdojo.errors import DatabaseError
from pdojo.search.database.connection import Connection, Row
from pdojo.search.database.rows import Key, insert, now, put, read_json
from pdojo.search.database.schema import JSON, canonical
from pdojo.search.evaluation import NOT_TIMED, Evaluation
from pdojo.transforms.trace import Trace

_VOLATILE = ("huge_page_bytes",)
"""Parts of an environment that differ between measurements; they stay with each."""

Values: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Duel:
    """A program that seemed to be the best, timed beside the best so far."""

    evaluation: Evaluation
    against: Evaluation | None
    """The best so far, in the same duel; None where there was none."""
    won: bool
    """Whether the program is the best now."""

    @staticmethod
    def of(evaluation: Evaluation, against: Evaluation | None, *, again: bool = False) -> Duel:
        """The duel in which both were evaluated.

        In the return match of a former best (`again`) it wins where its cost is less, however little.
        """
        if against is None or not evaluation.is_ok:
            return Duel(evaluation, against, evaluation.is_ok)
        return Duel(evaluation, against, evaluation.cost < against.cost if again else evaluation.beats(against))

    @property
    def ratio(self) -> float | None:
        """The cost, as a multiple of the other's; None where not both were timed."""
        if self.against is None or not (self.evaluation.is_ok and self.against.is_ok):
            return None
        return self.evaluation.cost / self.against.cost

    @property
    def overturned(self) -> Evaluation | None:
        """How the best so far failed here, where it did: then it is none."""
        return self.against if self.against is not None and self.against.failed_itself else None


@dataclass(frozen=True)
class Entry:
    """An evaluation in the log of a run."""

    number: int
    text: str
    """The program."""
    trace: Trace
    parent: str | None
    """Fingerprint of the program that it was proposed from."""
    evaluation: Evaluation
    best: bool
    """Whether it was the best so far then, and did not lose its place by failing or in a return match."""
    seconds: float
    """Since the start of the run, pauses left out."""


@dataclass(frozen=True)
class Amended:
    """What is known of an evaluation by now that the log says something else of."""

    evaluation: Evaluation
    best: bool
    """As in `Entry`."""


class Run:
    """The log of a search. A search with the same problem and settings goes on with it."""

    def __init__(self, connection: Connection, key: Key, problem: Key) -> None:
        self._connection = connection
        self._key = key
        self._problem = problem
        self._logged: dict[int, tuple[str, float]] = {
            row["number"]: (row["hash"], row["seconds"])
            for row in connection.rows(
                "SELECT e.number, p.hash, e.seconds FROM evaluations e JOIN programs p ON p.id = e.program"
                " WHERE e.run = ?",
                key.id,
            )
        }
        self._met = {fingerprint for fingerprint, _ in self._logged.values()}

    def time_of(self, number: int, fingerprint: str) -> float | None:
        """When this evaluation was made before, in seconds since the start of the run; None where it was not.

        Where another program has the number, since pdojo changed, the evaluations from there on are of no use.
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
        """Whether the run has met this program before, in an earlier process."""
        return fingerprint in self._met

    @property
    def hash(self) -> str:
        """What the run is known by, in every file."""
        return self._key.hash

    def log(
        self, entries: Sequence[Entry], others: Sequence[tuple[str, Trace]], amended: Mapping[int, Amended]
    ) -> None:
        """Note what was evaluated, and other traces that lead to known programs, whose text is given.

        Then, what is known by now of evaluations that are logged, by number. Where a number was logged with another
        program before, the evaluations after it are forgotten. Raises DatabaseError where others pruned the run.
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
            for number, now_known in amended.items():
                values = {**cost_of(now_known.evaluation), "best": int(now_known.best)}
                connection.execute(
                    "UPDATE evaluations SET cost = :cost, failure = :failure, best = :best"
                    " WHERE run = :run AND number = :number",
                    {**values, "run": self._key.id, "number": number},
                )

    def mark(self, state: str) -> None:
        """Note how the run stands: `running`, `finished`, `interrupted`, `failed`."""
        with self._connection.transaction() as connection:
            connection.execute(
                "UPDATE runs SET state = ?, changed = ? WHERE id = ? AND hash = ?",
                (state, now(), self._key.id, self.hash),
            )

    def _entry(self, connection: sqlite3.Connection, entry: Entry) -> None:
        program = put(connection, "programs", {"text": entry.text})
        parent = None
        if entry.parent is not None:
            # Others may have pruned it.
            found = connection.execute("SELECT id FROM programs WHERE hash = ?", (entry.parent,)).fetchone()
            parent = found and found[0]
        known = connection.execute(
            "SELECT program FROM evaluations WHERE run = ? AND number = ?", (self._key.id, entry.number)
        ).fetchone()
        if known is not None and known[0] != program.id:
            connection.execute("DELETE FROM evaluations WHERE run = ? AND number > ?", (self._key.id, entry.number))
        connection.execute("DELETE FROM evaluations WHERE run = ? AND number = ?", (self._key.id, entry.number))
        values: Values = {
            "run": self._key,
            "number": entry.number,
            "program": program,
            "trace": self._trace(connection, entry.text, entry.trace),
            "parent": parent,
            **cost_of(entry.evaluation),
            "best": int(entry.best),
            "seconds": entry.seconds,
        }
        insert(connection, "evaluations", values)

    def _trace(self, connection: sqlite3.Connection, text: str, trace: Trace) -> Key:
        program = put(connection, "programs", {"text": text})
        return put(connection, "traces", {"problem": self._problem, "program": program, "text": trace.dump()})


class Memory:
    """Evaluations of the programs of a problem, under settings that make costs comparable."""

    def __init__(self, connection: Connection, problem: Key, settings: Key) -> None:
        self._connection = connection
        self.problem = problem
        self.settings = settings

    def find(self, fingerprint: str, *, alone: bool = False) -> Evaluation | None:
        """What is known of a program: its failure where it ever failed, else its first measurement.

        Where it is to be `alone`, its measurement whatever duels said.
        """
        query = (
            "SELECT x.*, e.text AS facts FROM {} x JOIN programs p ON p.id = x.program"
            " LEFT JOIN environments e ON e.id = x.environment WHERE p.hash = ? AND x.settings = ? {}"
        )
        known = self._connection.row(query.format("measurements", ""), fingerprint, self.settings.id)
        if known is None or alone:
            return None if known is None else self._evaluation(known)
        failed = self._connection.row(
            query.format("duels", f"AND x.failure NOT IN ('', '{NOT_TIMED}')"), fingerprint, self.settings.id
        )
        if failed is not None:
            return self._evaluation(failed)
        as_best = self._connection.row(
            "SELECT d.against_failure AS failure FROM duels d JOIN programs p ON p.id = d.against"
            f" WHERE p.hash = ? AND d.settings = ? AND d.against_failure NOT IN ('', '{NOT_TIMED}')",
            fingerprint,
            self.settings.id,
        )
        if as_best is not None:
            kind = str(as_best["failure"])
            return Evaluation.failed(kind, {"kind": kind, "message": f"{kind}, in a duel that it stood as the best"})
        return self._evaluation(known)

    def keep(self, text: str, trace: Trace, evaluation: Evaluation) -> Evaluation:
        """Store a measurement; returns the one that counts, which is the first where another process was faster."""
        with self._connection.transaction() as connection:
            program = put(connection, "programs", {"text": text})
            put(connection, "traces", {"problem": self.problem, "program": program, "text": trace.dump()})
            known = connection.execute(
                "SELECT 1 FROM measurements WHERE program = ? AND settings = ?", (program.id, self.settings.id)
            ).fetchone()
            if known is None:
                values = {"program": program, "settings": self.settings, **self._measured(connection, evaluation)}
                insert(connection, "measurements", values)
                return evaluation
        found = self.find(program.hash)
        return evaluation if found is None else found

    def improve(self, fingerprint: str, evaluation: Evaluation) -> None:
        """Store a better measurement of a program in place of the one that is there."""
        with self._connection.transaction() as connection:
            values = self._measured(connection, evaluation)
            given = [value.id if isinstance(value, Key) else value for value in values.values()]
            connection.execute(
                f"UPDATE measurements SET {', '.join(f'{name} = ?' for name in values)}"
                " WHERE settings = ? AND program = (SELECT id FROM programs WHERE hash = ?)",
                [*given, self.settings.id, fingerprint],
            )

    def find_duel(self, fingerprint: str, against: str | None, *, again: bool = False) -> Duel | None:
        """The duel of two programs, or their return match (`again`), where there was one."""
        row = self._connection.row(
            "SELECT d.*, e.text AS facts FROM duels d JOIN programs p ON p.id = d.program"
            " LEFT JOIN programs a ON a.id = d.against LEFT JOIN environments e ON e.id = d.environment"
            " WHERE p.hash = ? AND d.settings = ? AND a.hash IS ? AND d.again = ?",
            fingerprint,
            self.settings.id,
            against,
            int(again),
        )
        if row is None:
            return None
        cost = inf if row["against_cost"] is None else row["against_cost"]
        other = None if against is None else Evaluation(cost, row["against_failure"])
        return Duel(self._evaluation(row), other, bool(row["won"]))

    def keep_duel(self, text: str, against: str | None, duel: Duel, *, again: bool = False) -> Duel:
        """Store a duel of two programs, given as text, or a return match; returns the one that counts, the first."""
        with self._connection.transaction() as connection:
            program = put(connection, "programs", {"text": text})
            other = None if against is None else put(connection, "programs", {"text": against})
            known = connection.execute(
                "SELECT 1 FROM duels WHERE program = ? AND against IS ? AND settings = ? AND again = ?",
                (program.id, other and other.id, self.settings.id, int(again)),
            ).fetchone()
            if known is None:
                costs = {"cost": None, "failure": ""} if duel.against is None else cost_of(duel.against)
                values: Values = {
                    "program": program,
                    "against": other,
                    "settings": self.settings,
                    **self._measured(connection, duel.evaluation),
                    **{f"against_{name}": value for name, value in costs.items()},
                    "won": int(duel.won),
                    "again": int(again),
                }
                insert(connection, "duels", values)
                return duel
        return self.find_duel(program.hash, other and other.hash, again=again) or duel

    def run(self, root: tuple[str, Trace], strategy: str, neighbourhood: str, seed: int, settings: JSON) -> Run:
        """The run of a search from the program `root` and its trace; the log goes on where it was begun before."""
        with self._connection.transaction() as connection:
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
            # It may have been there, and ended: whoever prunes must see that it is under way.
            connection.execute("UPDATE runs SET state = 'running', changed = ? WHERE id = ?", (time, key.id))
        return Run(self._connection, key, self.problem)

    def _measured(self, connection: sqlite3.Connection, evaluation: Evaluation) -> Values:
        """What the tables of measurements and duels have in common. Environments are stored once."""
        detail = dict(evaluation.detail)
        environment = None
        facts = detail.pop("environment", None)
        if isinstance(facts, dict):
            facts = cast(JSON, facts)
            stable = {key: value for key, value in facts.items() if key not in _VOLATILE}
            environment = put(connection, "environments", {"text": canonical(stable)})
            detail["environment"] = {key: value for key, value in facts.items() if key in _VOLATILE}
        return {
            **cost_of(evaluation),
            "detail": canonical(detail),
            "environment": environment,
            "seconds": canonical(dict(evaluation.seconds)),
            "measured": now(),
        }

    def _evaluation(self, row: Row) -> Evaluation:
        return evaluation_of(row, self._connection.path)


def cost_of(evaluation: Evaluation) -> Values:
    """The cost and the failure of an evaluation, as they are stored."""
    return {"cost": evaluation.cost if evaluation.is_ok else None, "failure": evaluation.failure}


def evaluation_of(row: Row, path: object) -> Evaluation:
    """The evaluation in a row of `measurements` or `duels` with the environment's text as `facts`."""
    detail = read_json(row["detail"], path)
    if row["facts"] is not None:
        detail["environment"] = {**read_json(row["facts"], path), **detail.get("environment", {})}
    cost = row["cost"]
    if not isinstance(cost, float | None):
        raise DatabaseError(f"the database '{path}' holds '{str(cost)[:40]}' where a cost should be")
    return Evaluation(inf if cost is None else cost, row["failure"], detail, read_json(row["seconds"], path))

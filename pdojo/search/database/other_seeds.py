"""Earlier runs of a search that differ only in the seed."""

from __future__ import annotations

from dataclasses import dataclass

from pdojo.search.contract.evaluation import JSON
from pdojo.search.database.database import Database
from pdojo.search.database.memory import SearchMemory
from pdojo.search.database.schema import canonical
from pdojo.transforms.trace import Trace


@dataclass(frozen=True)
class EarlierRun:
    """A run in the database."""

    seed: int
    evaluations: int
    """Number of logged evaluations, without the root."""


def earlier_runs(
    database: Database, memory: SearchMemory, root: Trace, strategy: str, neighbourhood: str, settings: JSON
) -> list[EarlierRun]:
    """Runs of a problem from the trace `root` with equal strategy, neighbourhood and settings, the latest last."""
    rows = database.connection.rows(
        "SELECT r.seed, (SELECT max(0, count(*) - 1) FROM evaluations e WHERE e.run = r.id) AS evaluations"
        " FROM runs r JOIN traces t ON t.id = r.root"
        " WHERE r.problem = ? AND r.settings = ? AND t.text = ?"
        " AND r.strategy = ? AND r.neighbourhood = ? AND r.text = ? ORDER BY r.changed, r.id",
        memory.problem.id,
        memory.settings.id,
        root.dump(),
        strategy,
        neighbourhood,
        canonical(settings),
    )
    return [EarlierRun(row["seed"], row["evaluations"]) for row in rows]

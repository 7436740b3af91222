"""A search of one kernel: its database, its proposers, and the loop."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from random import Random

from pdojo.budget import Budget
from pdojo.errors import UsageError
from pdojo.kernels import Workload
from pdojo.search.contract.evaluation import JSON, Evaluator
from pdojo.search.contract.neighbourhood import Neighbourhood
from pdojo.search.contract.progress import Listener, SearchResult
from pdojo.search.contract.strategy import Strategy, check_proposers
from pdojo.search.database import Database, Problem
from pdojo.search.engine.batches import Batches
from pdojo.search.engine.executor import proposal_executor
from pdojo.search.engine.loop import SearchLoop
from pdojo.search.engine.resuming import OldCheckpoint
from pdojo.transforms.game import Game


def search(
    game: Game,
    evaluator: Evaluator,
    strategy: Strategy,
    neighbourhood: Neighbourhood,
    budget: Budget,
    seed: int,
    *,
    database: Database | None = None,
    listener: Listener | None = None,
    workload: Workload | None = None,
    rivals: Sequence[Game] = (),
    proposers: int = 1,
) -> SearchResult:
    """Search for better programs from a state until the budget is used up. See docs/search.md.

    Programs in the database are not evaluated again, and an interrupted search resumes from there; without a database
    nothing outlives the call. Ctrl-C ends the search with the best so far. `workload` names the kernel in the database.
    `rivals` are programs from elsewhere: the result includes the best of all known programs. `proposers` is the number
    of processes that make the proposals of a batch; the result does not depend on it. The evaluator stays open.
    Raises UsageError for a seed of more than 64 bits, and for several proposers of a strategy that is no `Breeder`.
    """
    if not -(2**63) <= seed < 2**63:
        raise UsageError(f"a seed has at most 64 bits, not {seed}")
    check_proposers(strategy, proposers)
    with (
        nullcontext(database) if database is not None else Database.in_memory() as known,
        proposal_executor(neighbourhood, game, proposers) as makers,
    ):
        memory = known.memory(Problem.of(game, workload), evaluator)
        settings = run_settings(strategy, neighbourhood)
        while True:
            log = memory.run((game.text, game.trace), strategy.name, neighbourhood.name, seed, settings)
            batches = Batches(game, evaluator, strategy, budget, memory, log, listener)
            try:
                return SearchLoop(batches, strategy, budget).run(neighbourhood, makers, Random(seed), rivals)
            except OldCheckpoint:
                # pdojo has changed since: everything is proposed again.
                log.drop_checkpoint()


def run_settings(strategy: Strategy, neighbourhood: Neighbourhood) -> JSON:
    """The facts that identify a run in addition to names, problem and seed."""
    return {"strategy": strategy.settings, "neighbourhood": neighbourhood.settings, "batch": strategy.batch}

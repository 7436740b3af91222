"""The progress of a search, as listeners get it, and its result."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from pdojo.search.contract.progress import Ending, KnownBest, Progress, SearchResult

if TYPE_CHECKING:
    from pdojo.search.engine.batches import Batches


def progress(batches: Batches, doing: str = "") -> Progress:
    """The state of a search; `doing` is the evaluator's work now."""
    best, record = batches.incumbent.best, batches.record
    return Progress(
        max(0, batches.evaluated - 1),
        batches.costs.remembered,
        record.repeated,
        batches.clock.time(),
        batches.costs.made / max(perf_counter() - batches.clock.began, 1e-9),
        batches.last,
        record.root.cost if record.known else batches.last,
        batches.incumbent.cost,
        best is None or best.is_measured,
        None if best is None else best.match,
        dict(record.failures),
        {phase: max(0.0, seconds) for phase, seconds in batches.times.spent.items()},
        doing,
    )


def result(batches: Batches, ending: Ending, known: KnownBest | None) -> SearchResult:
    """The result of a search; `known` is the best program of all searches."""
    best, record = batches.incumbent.best, batches.record
    node = None if best is None else best.node
    return SearchResult(node, record.root, known, record.history, record.examples, ending, progress(batches))

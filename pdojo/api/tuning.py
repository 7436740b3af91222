"""Tuning a kernel from Python."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pdojo.api.options import checked
from pdojo.api.programs import KernelLike, machine_for, named
from pdojo.budget import EVALUATIONS, Budget
from pdojo.dialect.machines.machine import Machine
from pdojo.errors import UsageError, did_you_mean
from pdojo.names import NEIGHBOURHOODS, STRATEGIES, UNIFORM, strategy_names
from pdojo.passes.scheduled_kernel import assume_alignment, make_moves
from pdojo.passes.task import TuningTask
from pdojo.search.contract.strategy import check_proposers
from pdojo.search.database import Database
from pdojo.search.evaluators.named import check_runs_here, evaluator_for
from pdojo.search.neighbourhoods import check_proposals
from pdojo.search.strategies import strategy
from pdojo.search.tuning.result import TuneResult
from pdojo.search.tuning.run import SearchConfig, usual_neighbourhood
from pdojo.search.tuning.timing import FRESH
from pdojo.search.tuning.workflow import TuneListener, tune_task
from pdojo.transforms.trace import Trace


@checked
def tune(
    kernel: KernelLike,
    machine: Machine | str | None = None,
    *,
    expert: str | None = "heuristic",
    trace: Trace | str | Path | None = None,
    search: str | None = None,
    neighbourhood: str | None = None,
    proposals: str | None = None,
    evaluations: int | None = None,
    seconds: float | None = None,
    evaluator: str | None = None,
    start: str | None = None,
    agent: Mapping[str, Any] | None = None,
    seed: int | None = None,
    fresh: bool = False,
    proposers: int = 1,
    threads: int | None = None,
    align: int | None = None,
    database: str | Path | Database | None = None,
    measure: bool = True,
    listener: TuneListener | None = None,
) -> TuneResult:
    """Tune a kernel: an expert pass, a search if one is named, verification, and a last measurement.

    `kernel` is a kernel, its text, the path of its file, or the name of a library kernel. `machine` is a description
    or its name; None is the machine that the kernel names, or this processor. `threads` is the number of threads for
    parallel scopes; None is the machine's. `align` is the number of bytes to which callers align arrays; None is the
    trace's, or 64 (`pdojo.aligned` makes such copies).

    First, `trace` (a trace or the path of a trace file) is replayed. Then the pass `expert` makes its moves: `naive`,
    `greedy` or `heuristic`; None is no pass.

    `search` is a strategy: `sample`, `anneal`, `evolve`, `elites`, `model`, `perfllm`, or another package's; None
    is no search. `agent` has options of the strategy by name, as `perfllm` has hyper-parameters (docs/perfllm.md);
    None is the defaults. `neighbourhood` determines the neighbours of a program: `edges`, `mutate` or `heuristic`;
    None is the machine's default, or `mutate` for learned `proposals`, which are `learned:FILE`; None is `uniform`. The
    search ends after so many `evaluations` or `seconds`; 1000 evaluations if
    neither is given. `evaluator` determines costs: `runtime`, `analytical` or `cycles`; None is the machine's
    default. `start` is the program that the search starts from: the `plain` kernel, or the result of the `pass`;
    None is `pass`. `seed` seeds the search and the random inputs; None continues the last such run in the database.
    `fresh` takes a seed that no run has used; without a search it races variants again.

    `proposers` is the number of processes that make proposals, for strategies that propose a batch (`sample`, `evolve`,
    `elites`, `model`); the result does not depend on it. With more than 1, a script needs the guard
    `if __name__ == "__main__":`, because the processes import the script.

    Without a search, up to 16 variants of the program, which differ in choices that the pass cannot decide, race for
    some seconds, and the fastest is taken; the database remembers the winner for similar kernels. There is no race if
    `measure` is false.

    `database` is a file, or an open database, that keeps measurements and the best program, and from which runs
    continue; None keeps nothing. The result is verified and, unless `measure` is false, measured in turns with the
    plain program. `listener` receives progress callbacks. Ctrl-C ends the search with the best so far.

    Raises UsageError for an unknown name or contradicting options, LocationError or IllegalMove for a
    trace that does not apply, LoweringError if this computer cannot run the machine's code, MeasurementError if the
    tuned program failed, InvalidKernel if a move has changed the meaning.

    >>> import pdojo
    >>> tuned = pdojo.tune("dot:4x16", "snitch", search="sample", evaluations=4, seed=1)
    >>> tuned.is_verified, tuned.unit, tuned.after < tuned.before
    (True, 'cycles', True)
    >>> pdojo.tune("dot:4x16", search="annealing")
    Traceback (most recent call last):
    ...
    pdojo.errors.UsageError: unknown strategy 'annealing'; did you mean 'anneal'?
    """
    found = named(kernel)
    described = machine_for(found.kernel, machine, threads)
    if seed is not None and not 0 <= seed < FRESH:
        raise UsageError(f"a seed is a number from 0 to 2^62, not {seed}")
    options = {
        "neighbourhood": neighbourhood,
        "proposals": proposals,
        "evaluations": evaluations,
        "seconds": seconds,
        "evaluator": evaluator,
        "start": start,
        "agent": agent,
        "proposers": None if proposers == 1 else proposers,
    }
    given = next((name for name, value in options.items() if value is not None), None)
    if search is None and given is not None:
        raise UsageError(f"{given} belongs to a search; say which one with search={STRATEGIES[0]!r}")
    plan = None
    if search is not None:
        _check_search(search, neighbourhood, proposals, start, trace, seed, agent, proposers, fresh=fresh)
        budget = Budget(EVALUATIONS) if evaluations is None and seconds is None else Budget(evaluations, seconds)
        chosen = evaluator_for(described, evaluator)
        check_runs_here(chosen, described)
        drawn = proposals or UNIFORM
        near = neighbourhood or usual_neighbourhood(described, drawn)
        plan = SearchConfig(search, near, budget, chosen, start or "pass", seed, fresh, agent, proposers, drawn)
    known = Trace.load(trace) if isinstance(trace, str | Path) else trace
    begun = make_moves(assume_alignment(found.kernel, align, known), described, None, known)
    return tune_task(
        TuningTask(found.title, found.workload, begun, found.source, expert or "none", known),
        plan,
        listener or TuneListener(),
        database=database,
        seed=seed or 0,
        is_measured=measure,
        is_fresh=fresh,
    )


def _check_search(
    search: str,
    neighbourhood: str | None,
    proposals: str | None,
    start: str | None,
    trace: object,
    seed: int | None,
    agent: Mapping[str, Any] | None,
    proposers: int,
    *,
    fresh: bool,
) -> None:
    """Raise UsageError for unknown names, contradicting options, and a missing package."""
    if search not in strategy_names():
        raise UsageError(f"unknown strategy '{search}'; {did_you_mean(search, strategy_names())}")
    if neighbourhood is not None and neighbourhood not in NEIGHBOURHOODS:
        raise UsageError(f"unknown neighbourhood '{neighbourhood}'; {did_you_mean(neighbourhood, NEIGHBOURHOODS)}")
    check_proposals(proposals or UNIFORM, neighbourhood)
    if start not in (None, "pass", "plain"):
        raise UsageError(f"a search starts from 'pass' or 'plain', not '{start}'")
    if start == "plain" and trace is not None:
        raise UsageError("start='plain' would leave out the moves of the trace; leave out one of them")
    if fresh and seed is not None:
        raise UsageError("a run is known by its seed: fresh takes one that had none, so leave out seed")
    check_proposers(strategy(search, options=agent), proposers)

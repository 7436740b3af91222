"""The options of `pdojo-tune` that depend on machines and on strategies, checked and completed."""

from __future__ import annotations

import argparse
import os

from pdojo_tools.tuning.arguments import NONE
from pdojo_tools.tuning.usual import USUAL_BUDGET, strategy_of

from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.registry import machine
from pdojo.errors import UsageError
from pdojo.names import UNIFORM
from pdojo.search.contract.strategy import Breeder, StrategyOptions, check_proposers
from pdojo.search.evaluators.named import check_runs_here, estimating_evaluator, evaluator_for
from pdojo.search.neighbourhoods import check_proposals, loaded_proposals
from pdojo.search.strategies import has_options, options_of, strategy
from pdojo.search.tuning.run import SearchConfig, usual_neighbourhood


def check_search(given: argparse.Namespace) -> None:
    """Check machine, strategies and their packages before a pass that takes minutes.

    Raises UsageError.
    """
    if given.machine is not None and (given.search not in (None, [NONE]) or given.compare):
        evaluator_for(machine(given.machine), given.evaluator)
    for near in given.neighbourhood or (None,):
        check_proposals(given.proposals, near)
    loaded_proposals(given.proposals)
    for name in given.search or ():
        if name == NONE:
            continue
        searching = strategy(name, options=options_for(given, name))
        check_proposers(searching, given.proposers or 1)


def options_for(given: argparse.Namespace, name: str) -> StrategyOptions | None:
    """The options of a strategy by `--agent`, which in a comparison is for the strategies that have options.

    Raises UsageError for wrong options.
    """
    if given.agent is None or (given.compare and not has_options(name)):
        return None
    return options_of(name, given.agent)


def check_target(given: argparse.Namespace, described: Machine) -> None:
    """Check the options that depend on the machine. Raises UsageError."""
    name = evaluator_of(given, described)
    if given.ray is not None:
        return
    if given.no_measure and name == "runtime":
        raise UsageError("--no-measure leaves the search nothing to go by: --evaluator runtime measures")
    check_runs_here(name, described)


def evaluator_of(given: argparse.Namespace, described: Machine) -> str:
    """The evaluator of the search: the given one, or the machine's; with --no-measure one that runs no programs.

    Raises UsageError if it does not fit the machine.
    """
    name = evaluator_for(described, given.evaluator)
    if given.evaluator is None and given.no_measure:
        return estimating_evaluator(described) or name
    return name


def neighbourhoods_for(given: argparse.Namespace, described: Machine) -> list[str]:
    """The given neighbourhoods, or the machine's default; comparisons add edges."""
    if given.neighbourhood is not None:
        return given.neighbourhood
    usual = usual_neighbourhood(described, given.proposals)
    return ["edges", usual] if given.compare and given.proposals == UNIFORM else [usual]


def plan_of(given: argparse.Namespace, described: Machine) -> SearchConfig | None:
    """The plan of a search; None for no search. Raises UsageError if the evaluator does not fit the machine."""
    name = strategy_of(given, described)
    if name is None:
        return None
    return SearchConfig(
        name,
        neighbourhoods_for(given, described)[0],
        USUAL_BUDGET if given.search is None else given.budget,
        evaluator_of(given, described),
        given.start,
        given.seed,
        given.fresh,
        options_for(given, name),
        given.proposers or _usual_proposers(given, name),
        given.proposals,
    )


def _usual_proposers(given: argparse.Namespace, name: str) -> int:
    """One proposer per processor; 1 for strategies without batches, and on a cluster, which searches many kernels."""
    searching = strategy(name, options=options_for(given, name))
    if given.ray is not None or not isinstance(searching, Breeder):
        return 1
    return min(searching.batch, len(os.sched_getaffinity(0)))

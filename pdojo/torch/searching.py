"""Searches for faster programs of a model's kernels."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from pdojo.budget import Budget
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.notation import print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.errors import PdojoError
from pdojo.passes.scheduled_kernel import PASS, assume_alignment, make_moves
from pdojo.passes.task import TuningTask
from pdojo.search.database import Database
from pdojo.search.evaluators.named import evaluator_for
from pdojo.search.tuning.run import SearchConfig, usual_neighbourhood
from pdojo.search.tuning.workflow import TuneListener, tune_task
from pdojo.torch.fallbacks import FallbackWarning

_STRATEGY = "anneal"


def search_kernels(kernels: Iterable[KernelOp], machine: Machine, budget: str, database: Database) -> None:
    """Search for a faster program of each kernel; one that fails is left to the expert pass, with a warning."""
    for kernel in kernels:
        try:
            search_kernel(kernel, machine, Budget.parse(budget), database)
        except PdojoError as error:
            warnings.warn(
                f"no search for kernel '{kernel.sym_name.data}', which the expert pass tunes: {error}",
                FallbackWarning,
                stacklevel=2,
            )


def search_kernel(kernel: KernelOp, machine: Machine, budget: Budget, database: Database) -> None:
    """Search for a faster program of a kernel, which the database then has; a search that it knows goes on.

    Raises KeyboardInterrupt after Ctrl-C: the best so far is kept. Raises PdojoError if no program could be run.
    """
    begun = make_moves(assume_alignment(kernel, None), machine, None)
    task = TuningTask(kernel.sym_name.data, None, begun, print_notation(kernel), PASS)
    plan = SearchConfig(_STRATEGY, usual_neighbourhood(machine), budget, evaluator_for(machine, None), "pass")
    if tune_task(task, plan, TuneListener(), database=database, is_measured=False).is_interrupted:
        raise KeyboardInterrupt

"""The option `tune`: kernels as they are, with the moves of the expert pass, or with those of a search."""

from __future__ import annotations

import warnings
from dataclasses import replace

import torch

from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.registry import machine as machine_named
from pdojo.dialect.notation import print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.errors import PdojoError
from pdojo.model.compiled import PASS, CompiledModel
from pdojo.model.model import Model
from pdojo.search.contract.progress import Budget
from pdojo.search.database import Database
from pdojo.search.evaluators.named import evaluator_for
from pdojo.search.tuning.run import SearchConfig, usual_neighbourhood
from pdojo.search.tuning.scheduled_kernel import assume_alignment, make_moves
from pdojo.search.tuning.task import TuningTask
from pdojo.search.tuning.workflow import TuneListener, tune_task
from pdojo.torch.fallbacks import FallbackWarning
from pdojo.torch.options import Options

_STRATEGY = "anneal"


def compile_tuned(model: Model, options: Options) -> CompiledModel:
    """The model as a callable, for the threads that PyTorch uses now."""
    threads = torch.get_num_threads()
    if options.tune == "none":
        return model.compile(tune="none", threads=threads)
    if options.tune == "pass":
        with Database.existing(options.database) as database:
            return model.compile(threads=threads, database=database)
    machine = replace(machine_named("host"), threads=threads)
    with Database(options.database) as database:
        for kernel in model.kernels:
            try:
                search_kernel(kernel, machine, Budget.parse(options.budget), database)
            except PdojoError as error:
                warnings.warn(
                    f"no search for kernel '{kernel.sym_name.data}', which the expert pass tunes: {error}",
                    FallbackWarning,
                    stacklevel=2,
                )
        return model.compile(threads=threads, database=database)


def search_kernel(kernel: KernelOp, machine: Machine, budget: Budget, database: Database) -> None:
    """Search for a faster program of a kernel, which the database then has; a search that it knows goes on.

    Raises KeyboardInterrupt after Ctrl-C: the best so far is kept. Raises PdojoError if no program could be run.
    """
    begun = make_moves(assume_alignment(kernel, None), machine, None)
    task = TuningTask(kernel.sym_name.data, None, begun, print_notation(kernel), PASS)
    plan = SearchConfig(_STRATEGY, usual_neighbourhood(machine), budget, evaluator_for(machine, None), "pass")
    if tune_task(task, plan, TuneListener(), database=database, is_measured=False).is_interrupted:
        raise KeyboardInterrupt

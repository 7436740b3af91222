"""The option `tune`: kernels without moves, with the moves of the expert pass, or with the moves of a search."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import torch

from pdojo.dialect.machines.registry import machine as machine_named
from pdojo.files import existing_database
from pdojo.model.compiled import CompiledModel
from pdojo.model.model import Model
from pdojo.model.sized_programs import SizedPrograms
from pdojo.passes.scheduled_kernel import Scheduler
from pdojo.torch.options import Options

if TYPE_CHECKING:
    from pdojo.model.device_models import DeviceModel, Place


def compile_tuned(
    model: Model, options: Options, programs: SizedPrograms | None = None, place: Place | None = None
) -> CompiledModel | DeviceModel:
    """The model as a callable, for the threads that PyTorch uses now, or on the GPU of a place.

    Searches are loaded when they are needed. `programs` are those of the same region at other shapes; None if it has no
    other shapes.
    """
    threads = torch.get_num_threads()

    def compiled(tune: Literal["none", "pass"] = "pass", scheduler: Scheduler | None = None) -> Any:
        if place is None:
            return model.compile(tune=tune, threads=threads, scheduler=scheduler, programs=programs)
        from pdojo.model.device_models import compile_on

        return compile_on(model, place, tune=tune, scheduler=scheduler, programs=programs)

    if options.tune == "none":
        return compiled("none")
    if options.tune == "pass" and existing_database(options.database) is None:
        return compiled()
    from pdojo.search.database import Database
    from pdojo.search.tuning.known import best_known

    if options.tune == "pass":
        with Database.existing(options.database) as database:
            return compiled(scheduler=best_known(database))
    from pdojo.torch.searching import search_kernels

    machine = replace(machine_named("host"), threads=threads) if place is None else place.machine
    with Database(options.database) as database:
        search_kernels(model.kernels, machine, options.budget, database)
        return compiled(scheduler=best_known(database))

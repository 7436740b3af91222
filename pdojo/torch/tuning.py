"""The option `tune`: kernels without moves, with the moves of the expert pass, or with the moves of a search."""

from __future__ import annotations

import torch

from pdojo.files import existing_database
from pdojo.model.compiled import CompiledModel
from pdojo.model.model import Model
from pdojo.model.sized_programs import SizedPrograms
from pdojo.torch.options import Options


def compile_tuned(model: Model, options: Options, programs: SizedPrograms | None = None) -> CompiledModel:
    """The model as a callable, for the threads that PyTorch uses now. Searches are loaded when they are needed.

    `programs` are those of the same region at other shapes; None if it has no other shapes.
    """
    threads = torch.get_num_threads()
    if options.tune == "none":
        return model.compile(tune="none", threads=threads, programs=programs)
    if options.tune == "pass" and existing_database(options.database) is None:
        return model.compile(threads=threads, programs=programs)
    from pdojo.search.database import Database
    from pdojo.search.tuning.known import best_known

    if options.tune == "pass":
        with Database.existing(options.database) as database:
            return model.compile(threads=threads, scheduler=best_known(database), programs=programs)
    from pdojo.torch.searching import search_kernels

    with Database(options.database) as database:
        search_kernels(model.kernels, threads, options.budget, database)
        return model.compile(threads=threads, scheduler=best_known(database), programs=programs)

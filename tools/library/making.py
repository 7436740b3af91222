"""The work of `pdojo-lib build`: reads models, builds, checks and publishes a library."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from typing import TYPE_CHECKING

from pdojo_tools.library.models import sources
from pdojo_tools.library.reporter import BuildReporter
from pdojo_tools.phases import phase
from pdojo_tools.tuning.limits import many
from rich.console import Console

from pdojo.dialect.ops import KernelOp
from pdojo.library.build import build_library
from pdojo.library.findings import Listener
from pdojo.library.spec import LibrarySpec
from pdojo.library.verify import check_proof

if TYPE_CHECKING:
    from pdojo.search.database import Database


def make(given: argparse.Namespace, spec: LibrarySpec) -> None:
    """Make the library of a specification and of the models on the command line. Raises PdojoError."""
    console = Console()
    with phase(console, "reading models"):
        kernels = _kernels(given)
        models = sources(spec) if spec.models else ()
    measured = spec.tuning.measure
    with ExitStack() as stack:
        database = stack.enter_context(_database(given.database) if measured else nullcontext())
        if given.ray is not None:
            from pdojo_tools.library.on_cluster import search_on_cluster

            search_on_cluster(console, given, spec, kernels)
        reporter = stack.enter_context(BuildReporter(console))
        found = build_library(
            spec,
            given.output,
            kernels,
            models=models,
            database=database,
            listener=reporter,
            check=lambda folder: check_proof(folder, _Steps(reporter)),
            force=given.force,
            keep_going=given.keep_going,
        )
    count = len(found.entries)
    entries = f"{count} {'entry' if count == 1 else 'entries'}"
    if found.models:
        entries = f"{many(len(found.models), 'model')}{f', {entries}' if count else ''}"
    parts = (kernel for plan in found.models for kernel in plan.kernels)
    programs = many(sum(len(entry.variants) for entry in (*found.entries, *parts)), "program")
    console.print(
        f"library '{found.name}' {found.version} in {given.output}: "
        f"{entries}, {programs} for {', '.join(found.levels)}"
        f"{'; entries that failed are left out' if reporter.has_failures else ''}",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )


def _database(path: str | None) -> Database:
    from pdojo.search.database import Database

    return Database(path)


class _Steps(Listener):
    """Shows the steps of the proof as steps of the build."""

    def __init__(self, reporter: BuildReporter) -> None:
        self._reporter = reporter

    def step(self, what: str) -> None:
        """Show a step."""
        self._reporter.detail(what)


def _kernels(given: argparse.Namespace) -> Sequence[tuple[str, KernelOp]]:
    """The kernels of the models on the command line, with their titles."""
    found: list[tuple[str, KernelOp]] = []
    if given.onnx is not None:
        from pdojo_tools.onnx_models import kernels_of

        found += kernels_of(given.onnx, given.shape)
    if given.from_torch is not None:
        from pdojo_tools.torch_models import torch_model

        found += torch_model(given.from_torch).kernels
    return found

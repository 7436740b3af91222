"""`pdojo-lib build`: a library from a specification, from models, or from both."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from pathlib import Path

from pdojo_tools.library.reporter import BuildReporter
from rich.console import Console

from pdojo.dialect.ops import KernelOp
from pdojo.errors import UsageError
from pdojo.library.build import build_library
from pdojo.library.findings import Listener
from pdojo.library.reserved import name_problem, prefix_problem
from pdojo.library.spec import LibrarySpec, read_spec
from pdojo.library.verify import check_proof
from pdojo.search.database import Database


def build(given: argparse.Namespace) -> None:
    """Run the command line. Raises PdojoError."""
    console = Console()
    models = _models(given)
    if given.spec is None and not models:
        raise UsageError("name a specification (SPEC.toml), or a model by --from or --from-torch")
    if given.workers is not None and given.ray is None:
        raise UsageError("--workers belongs to --ray")
    if given.ray is not None and given.spec is None:
        raise UsageError("--ray is for searches, which a specification asks for; name one")
    spec = _of_model(given) if given.spec is None else read_spec(given.spec)
    measured = spec.tuning.measure
    with ExitStack() as stack:
        database = stack.enter_context(Database(given.database) if measured else nullcontext())
        if given.ray is not None:
            from pdojo_tools.library.on_cluster import search_on_cluster

            search_on_cluster(console, given, spec, models)
        reporter = stack.enter_context(BuildReporter(console))
        found = build_library(
            spec,
            given.output,
            models,
            database=database,
            listener=reporter,
            check=lambda folder: check_proof(folder, _Steps(reporter)),
            force=given.force,
        )
    count = sum(len(entry.variants) for entry in found.entries)
    console.print(
        f"library '{found.name}' {found.version} in {given.output}: {len(found.entries)} entries, {count} programs for "
        f"{', '.join(found.levels)}",
        highlight=False,
        soft_wrap=True,
    )


class _Steps(Listener):
    """Shows the steps of the proof as steps of the build."""

    def __init__(self, reporter: BuildReporter) -> None:
        self._reporter = reporter

    def step(self, what: str) -> None:
        """Show a step."""
        self._reporter.detail(what)


def _models(given: argparse.Namespace) -> Sequence[tuple[str, KernelOp]]:
    """The kernels of the models on the command line, with their titles."""
    if given.shape is not None and given.onnx is None:
        raise UsageError("--shape belongs to --from")
    found: list[tuple[str, KernelOp]] = []
    if given.onnx is not None:
        from pdojo_tools.onnx_models import kernels_of

        found += kernels_of(given.onnx, given.shape)
    if given.from_torch is not None:
        from pdojo_tools.torch_models import torch_model

        found += torch_model(given.from_torch).kernels
    return found


def model_library(title: str) -> str:
    """The name of a library without a specification: that of its model, or a similar one."""
    name = re.sub(r"[^a-z0-9_]", "_", title.lower()).lstrip("_0123456789")[:56] or "model"
    return name if name_problem(name) is None and prefix_problem(name) is None else f"{name}_model"


def _of_model(given: argparse.Namespace) -> LibrarySpec:
    """The specification of a library that has the kernels of a model only."""
    title = Path(given.onnx).stem if given.onnx is not None else given.from_torch.rpartition(":")[2]
    name = model_library(title)
    return LibrarySpec(name, prefix=name)

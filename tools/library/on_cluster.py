"""Searches of a library's programs on a Ray cluster, before the library is built (docs/cluster.md)."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from pdojo_tools.phases import phase
from pdojo_tools.tuning.arguments import parse
from pdojo_tools.tuning.on_cluster import check_one_machine, tune_on_cluster
from pdojo_tools.tuning.result_files import Targets
from pdojo_tools.tuning.session import TuneSession
from rich.console import Console

from pdojo.dialect.machines.machine_file import machine_facts
from pdojo.dialect.machines.registry import host
from pdojo.dialect.ops import KernelOp
from pdojo.errors import UsageError
from pdojo.library.entries import entries_of
from pdojo.library.levels import levels_of
from pdojo.library.spec import LibrarySpec, TuningSpec
from pdojo.library.tuning import DatabaseTuner
from pdojo.search.database import Database
from pdojo.search.evaluators.cluster import Cluster, Connection


def search_on_cluster(
    console: Console, given: argparse.Namespace, spec: LibrarySpec, models: Sequence[tuple[str, KernelOp]]
) -> None:
    """Search the programs that the database lacks, and store the results. Raises PdojoError."""
    if spec.tuning.search is None:
        raise UsageError('--ray is for searches; name one in the specification: [tuning] search = "evolve"')
    (level,) = (each for each in levels_of(spec, measure=True) if each.is_measured)
    entries = entries_of(spec, models, has_models=bool(spec.models))
    with Database(given.database) as database:
        tuner = DatabaseTuner(spec.tuning, database)
        lacking = [each for each in entries if each.is_timed and tuner.known(each, level) is None]
        tasks = [tuner.task(entry, level) for entry in lacking]
        if not tasks:
            return
        with phase(console, f"connecting to {given.ray}"):
            connection = Connection(given.ray)
        with connection:
            if machine_facts(connection.host())["features"] != machine_facts(host())["features"]:
                raise UsageError("--ray: the workers' processors differ from this one, which the level describes")
            check_one_machine(tasks)
            options = _options(given, spec.tuning, [task.title for task in tasks])
            session = TuneSession(console, options, [], Targets.of(None, None, None, tasks))
            with phase(console, "starting workers"):
                cluster = Cluster(connection, tasks[0].machine, most=given.workers)
            try:
                session.environment = cluster.environment
                tune_on_cluster(session, tasks, cluster)
            finally:
                cluster.close()
        for task, chapter in zip(tasks, session.chapters, strict=True):
            tuner.keep(task, chapter.result.trace)


def _options(given: argparse.Namespace, plan: TuningSpec, titles: Sequence[str]) -> argparse.Namespace:
    """The options of `pdojo-tune` for these searches."""
    limits = [plan.budget.evaluations, None if plan.budget.seconds is None else f"{plan.budget.seconds:g}s"]
    budget = ",".join(str(limit) for limit in limits if limit is not None)
    options = ["--search", str(plan.search), "--budget", budget, "--seed", str(plan.seed), "--ray", given.ray]
    if given.database is not None:
        options += ["--database", given.database]
    return parse([*titles, *options])

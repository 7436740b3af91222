"""The start of `pdojo-tune`: reads the kernels, runs the pass, and starts a session."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

from pdojo_tools.calibrating import calibrate_once
from pdojo_tools.outputs import write_json
from pdojo_tools.phases import phase
from pdojo_tools.tables import print_findings, print_trace
from pdojo_tools.tuning.task import tasks_of
from pdojo_tools.tuning.usual import strategy_of
from rich.console import Console

if TYPE_CHECKING:
    from pdojo.passes.task import TuningTask
    from pdojo.search.evaluators.cluster import Connection

WIDTH = 140
"""Width of comparison tables in files."""


def begin(given: argparse.Namespace, command: Sequence[str]) -> None:
    """Run the command line. Raises PdojoError."""
    if given.search is not None or given.compare:
        from pdojo_tools.tuning.choices import check_search

        check_search(given)
    console = Console(stderr=given.json)
    if given.compare:
        if not console.is_terminal:
            console = Console(width=WIDTH, stderr=given.json)
        from pdojo_tools.tuning.comparing import compare

        compare(console, given)
        return
    if given.ray is None:
        _tune(console, given, command)
        return
    from pdojo.search.evaluators.cluster import Connection

    with phase(console, f"connecting to {given.ray}"):
        connection = Connection(given.ray)
    with connection:
        _tune(console, given, command, connection)


def _tune(
    console: Console, given: argparse.Namespace, command: Sequence[str], connection: Connection | None = None
) -> None:
    """Tune on this machine, or on the connection's cluster."""
    from pdojo_tools.tuning.result_files import Targets
    from pdojo_tools.tuning.session import TuneSession

    if connection is None and given.machine in (None, "host"):
        calibrate_once(console, wanted=not (given.no_calibrate or given.no_measure))
    with phase(console, "kernels and traces"):
        host = None if connection is None else connection.host()
        tasks = [task for title in given.programs for task in tasks_of(title, given, host)]
    for task in tasks:
        if strategy_of(given, task.machine) is not None:
            from pdojo_tools.tuning.choices import check_target

            check_target(given, task.machine)
    facts = ((each.machine.name, each.machine.threads, each.alignment) for each in tasks)
    for name, threads, alignment in dict.fromkeys(facts):
        console.print(f"machine {name}, {threads} threads; callers align arrays to {alignment} bytes")
        there = len(os.sched_getaffinity(0))
        if connection is None and not given.no_measure and threads > there:
            console.print(f"{threads} threads share {there} processors, and wait for each other", style="yellow")
    if given.why:
        _print_reasons(console, given, tasks)
        return
    targets = Targets.of(given.output, given.emit, given.report, tasks)
    session = TuneSession(console, given, command, targets)
    if given.torch:
        from pdojo_tools.torch_models import sections

        session.models = partial(sections, given.programs, given.database, with_inductor=given.inductor)
    if connection is None:
        session.run(tasks)
        return
    from pdojo_tools.tuning.on_cluster import check_one_machine, tune_on_cluster

    from pdojo.search.evaluators.cluster import Cluster

    check_one_machine(tasks)
    with phase(console, "starting workers"):
        cluster = Cluster(connection, tasks[0].machine, most=given.workers)
    try:
        session.environment = cluster.environment
        tune_on_cluster(session, tasks, cluster)
    finally:
        cluster.close()


def _print_reasons(console: Console, given: argparse.Namespace, tasks: Sequence[TuningTask]) -> None:
    """Print the moves of the expert pass with their reasons."""
    from pdojo_tools.tuning.result_json import reasons_json

    from pdojo.passes.registry import kind_of_machine

    found: list[dict[str, object]] = []
    for task in tasks:
        with phase(console, "expert pass"):
            passed = task.passed
        if not given.json:
            print_trace(console, "why" if len(tasks) == 1 else f"{task.title}: why", passed)
        audit = kind_of_machine(task.machine).audit
        findings = [] if audit is None else audit()(passed.game)
        if audit is not None and not given.json:
            print_findings(console, findings)
        row = {"kernel": task.title, "machine": task.machine.name, "moves": reasons_json(passed)}
        found.append({**row, "findings": [asdict(each) for each in findings]})
    if given.json:
        write_json(found)

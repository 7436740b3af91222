"""The experiment as a benchmark: its jobs, tables and page."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial

from rich.console import Console

from benchmarks.origin import JSON, installed
from benchmarks.perfllm.cell import measured_cell, measured_reference
from benchmarks.perfllm.grid import Grid
from benchmarks.perfllm.page import page
from benchmarks.perfllm.statistics import Findings
from benchmarks.perfllm.tables import Sheet, conditions, print_sheets, sheets
from benchmarks.records import Record
from benchmarks.runs import Benchmark, Job
from pdojo.dialect.machines.registry import known_machine
from pdojo.errors import UsageError, did_you_mean
from pdojo.search.evaluators.named import version_of

AGAINST = "perfllm-max-single"
"""The paper's agent, with which the others are compared."""
_PACKAGES = ("torch", "transformers", "scikit-learn", "numpy")


def version_facts(grid: Grid) -> JSON:
    """The versions of evaluators and packages, which must not change within a file."""
    kinds = {(task.evaluator, task.machine) for task in grid.tasks}
    return {
        "evaluators": {name: version_of(name, known_machine(machine)) for name, machine in sorted(kinds)},
        "versions": {name: installed(name) for name in _PACKAGES},
    }


def _facts(settings: JSON) -> JSON:
    return version_facts(Grid.from_json(settings["grid"]))


def _jobs(settings: JSON, _: ExitStack) -> list[Job]:
    """The references first, then the cells."""
    grid = Grid.from_json(settings["grid"])
    jobs = [
        Job(f"{task.label}: the heuristic's program", 1, partial(measured_reference, task), is_timed=task.is_timed)
        for task in grid.tasks
    ]
    for cell in grid.cells():
        measure = partial(measured_cell, cell, settings["jobs"])
        jobs.append(Job(cell.label, 1, measure, (cell.task.label, cell.method.name), cell.task.is_timed))
    return jobs


def findings_of(settings: JSON, records: Sequence[Record]) -> Findings:
    """The findings of records. Raises UsageError if there are no finished searches."""
    found = Findings.of(settings, records)
    if not any(found.has_reference(task) for task in found.tasks):
        raise UsageError("there are no finished searches")
    return found


def _sheets(findings: Findings, against: str | None) -> list[Sheet]:
    if against is not None and against not in findings.methods:
        raise UsageError(f"the file has no method '{against}'; {did_you_mean(against, findings.methods)}")
    return sheets(findings, against or (AGAINST if AGAINST in findings.methods else findings.methods[0]))


def _print_tables(console: Console, settings: JSON, records: Sequence[Record]) -> None:
    findings = findings_of(settings, records)
    for line in conditions(findings):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    print_sheets(console, _sheets(findings, settings.get("against")))


def _page(records: Sequence[Record], settings: JSON) -> str:
    findings = findings_of(settings, records)
    return page(findings, _sheets(findings, settings.get("against")))


def _means(_: Sequence[Record]) -> JSON:
    """Tables of an experiment depend on the method that the others are compared with, so none is stored."""
    return {}


BENCHMARK = Benchmark(_jobs, _print_tables, _means, page=_page, facts=_facts)

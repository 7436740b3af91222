"""The benchmark of kernels on this processor: jobs of settings, tables and plots."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

from rich.console import Console

from benchmarks.job import measure, options_for
from benchmarks.origin import JSON, installed
from benchmarks.peers import LIBRARIES, TVM_TRIALS
from benchmarks.plots import figures_of
from benchmarks.records import Record, summary
from benchmarks.report import print_record, print_summary
from benchmarks.runs import Benchmark, Job, Listener
from benchmarks.searching import plan_of
from benchmarks.unseen import workload_from
from pdojo.backends.measure.environment import environment
from pdojo.dialect.machines.registry import known_machine
from pdojo.kernels import Workload

DISTRIBUTIONS = {"tvm": "apache-tvm", "xgboost": "xgboost-cpu"}
"""Names in the index of packages whose modules have another one."""


def machine_facts(settings: JSON) -> JSON:
    """Facts about the machine that must not change before a run resumes."""
    libraries: list[str] = settings["libraries"]
    packages = sorted({package for library in libraries for package in LIBRARIES[library].packages} | {"numpy"})
    return {
        "environment": environment(),
        "versions": {package: installed(DISTRIBUTIONS.get(package, package)) for package in packages},
    }


def _jobs(settings: JSON, _: ExitStack) -> list[Job]:
    return [
        Job(workload.label or workload.kernel, threads, partial(_measure, settings, workload, threads))
        for workload in map(workload_from, settings["workloads"])
        for threads in settings["threads"]
    ]


def _measure(settings: JSON, workload: Workload, threads: int, tell: Listener) -> JSON:
    chosen = settings.get("search")
    plan = None
    if chosen is not None:
        plan = plan_of(chosen, "heuristic", settings["evaluations"], "runtime", settings["seed"])
    measuring = {name: settings[name] for name in ("samples", "budget", "cold", "seed")}
    return measure(
        workload,
        replace(known_machine(settings.get("machine", "host")), threads=threads),
        settings["expert"],
        settings["libraries"],
        options_for(workload, threads, **measuring),
        tell,
        autotune=settings["autotune"],
        tvm_trials=settings.get("tvm_trials", TVM_TRIALS),
        plan=plan,
        database=settings.get("database"),
        is_raced=settings.get("race", True),
    )


def _print_summary(console: Console, _: JSON, records: Sequence[Record]) -> None:
    print_summary(console, records)


BENCHMARK = Benchmark(_jobs, _print_summary, summary, print_record, figures_of, facts=machine_facts)

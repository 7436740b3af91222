"""A cell's search, and the reference costs of a task's searches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf, isfinite
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage

from benchmarks.origin import JSON, commit
from benchmarks.perfllm.grid import Cell, Task
from benchmarks.perfllm.sampling import Sampling
from benchmarks.runs import Listener
from benchmarks.snitch.kernels import MICRO_KERNELS, MicroKernel
from pdojo.budget import Budget
from pdojo.dialect.alignment import ALIGNMENT
from pdojo.dialect.assumptions import with_alignment
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.registry import known_machine
from pdojo.dialect.ops import KernelOp
from pdojo.errors import MeasurementError, UsageError
from pdojo.kernels import Workload, workload
from pdojo.passes.scheduled_kernel import make_moves
from pdojo.passes.task import TuningTask
from pdojo.search.contract.evaluation import Evaluator
from pdojo.search.contract.progress import Ending, HistoryRow, Progress
from pdojo.search.database import Database, Problem
from pdojo.search.engine.search import run_settings, search
from pdojo.search.evaluators.named import make_evaluator
from pdojo.search.neighbourhoods import neighbourhood
from pdojo.search.strategies import strategy
from pdojo.search.tuning.run import baselines_of
from pdojo.transforms.game import Game

DTYPE = "f64"
"""Element type of micro-kernels: the one for which other authors' programs are known."""
_OTHERS = (
    MicroKernel("maxpool:1x1x8x8x3,S=1,P=1", "maxpool3x3 8x8 with a border", has_maximum=True),
    MicroKernel("cumsum:16x16", "cumsum 16x16"),
    MicroKernel("causal_softmax:1x12", "causal softmax 12x12", divides=True, has_maximum=True),
    MicroKernel("colsum:16x16", "sums of columns 16x16"),
)
"""Kernels beside the micro-kernels."""


def kernel_of(task: Task) -> tuple[KernelOp, Machine, Workload]:
    """The plain kernel, its machine, and its workload. Raises UsageError if there is no such micro-kernel."""
    machine = known_machine(task.machine)
    if machine.backend != "snitch":
        named = workload(task.kernel)
        return with_alignment(named.instantiate(), ALIGNMENT), replace(machine, threads=1), named
    kernel = next((each for each in (*MICRO_KERNELS, *_OTHERS) if each.text == task.kernel), None)
    if kernel is None:
        raise UsageError(f"'{task.kernel}' is no micro-kernel")
    return kernel.instantiate(DTYPE), kernel.machine(machine), kernel.workload(DTYPE)


def reference(task: Task) -> JSON:
    """The costs of the plain program and of the expert heuristic's. Raises MeasurementError if either is missing.

    Timed costs come from one match between the two.
    """
    plain, machine, named = kernel_of(task)
    tuned = TuningTask(task.kernel, named, make_moves(plain, machine, None), None, "heuristic")
    evaluator = make_evaluator(task.evaluator, machine, plain, 0)
    try:
        with Database.in_memory() as database:
            memory = database.memory(Problem.of(tuned.start("plain"), named), evaluator)
            found = baselines_of(tuned, "plain", evaluator, memory, in_turns=True)
    finally:
        evaluator.close()
    if not (isfinite(found.plain) and isfinite(found.passed)):
        raise MeasurementError(
            "the plain program and the heuristic's have no costs to compare: one failed, or the processors were busy"
        )
    moves = len(tuned.start("pass").trace.steps)
    return {"unit": evaluator.unit, "plain": found.plain, "expert": found.passed, "moves": moves}


def measured_reference(task: Task, _: Listener) -> JSON:
    """The record of a task's reference."""
    return {
        **_record(f"{task.label}: the heuristic's program"),
        "kind": "reference",
        "task": task.label,
        **reference(task),
    }


def measured_cell(cell: Cell, jobs: int, tell: Listener) -> JSON:
    """The record of a cell, one of `jobs` at once."""

    def listen(now: Progress) -> None:
        tell(f"{now.evaluations}, {now.root / now.best:.2f} times as fast as the plain program")

    facts: JSON = {
        "kind": "cell",
        "task": cell.task.label,
        "method": cell.method.name,
        "seed": cell.seed,
        "budget": cell.task.evaluations,
        "commit": commit(),
        "jobs": 1 if cell.task.is_timed else jobs,
    }
    return {**_record(cell.label), **facts, **searched(cell, listen)}


def _record(label: str) -> JSON:
    return {"label": label, "threads": 1, "cold": False, "rows": []}


def searched(cell: Cell, listener: Callable[[Progress], None]) -> JSON:
    """The result of a cell's search, as plain data.

    Raises UsageError if a package is missing, and KeyboardInterrupt if the search was interrupted.
    """
    plain, machine, named = kernel_of(cell.task)
    made = strategy(cell.method.strategy, cell.task.evaluations, cell.method.options)
    near = neighbourhood(cell.method.neighbourhood, cell.method.proposals, cell.task.evaluations)
    settings = run_settings(made, near)
    began = _processor_seconds()
    evaluator: Evaluator = make_evaluator(cell.task.evaluator, machine, plain, cell.seed)
    try:
        with Sampling() as sampled:
            result = search(
                Game(plain, machine),
                evaluator,
                made,
                near,
                Budget(cell.task.evaluations),
                cell.seed,
                listener=listener,
                workload=named,
            )
    finally:
        evaluator.close()
    if result.ending is Ending.INTERRUPTED:
        raise KeyboardInterrupt
    progress = result.progress
    return {
        "settings": settings,
        "unit": evaluator.unit,
        "root": _finite(progress.root),
        "history": improvements(result.history),
        "made": progress.evaluations,
        "seconds": round(progress.seconds, 3),
        "processor_seconds": round(_processor_seconds() - began, 3),
        "repeated": progress.repeated,
        "failures": dict(progress.failures),
        "spent": {phase: round(seconds, 3) for phase, seconds in progress.spent.items()},
        "parts": {part: round(share, 4) for part, share in sampled.shares().items()},
        "ending": result.ending.value,
        "moves": len(result.trace.steps),
        "trace": result.trace.dump(),
    }


def _processor_seconds() -> float:
    """Processor time of this process, and of its ended child processes."""
    own, others = (getrusage(who) for who in (RUSAGE_SELF, RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime


def improvements(history: Sequence[HistoryRow]) -> list[list[float | None]]:
    """Evaluations, seconds of the run and best cost, whenever the best changes; null for no cost."""
    found: list[list[float | None]] = []
    best = -inf
    for row in history:
        if row.best != best:
            best = row.best
            found.append([row.number, round(row.seconds, 3), _finite(best)])
    return found


def _finite(cost: float) -> float | None:
    return cost if isfinite(cost) else None

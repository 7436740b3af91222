"""One micro-kernel of one type: tuned by every strategy, and simulated along with plain C."""

from __future__ import annotations

import time
from collections.abc import Sequence

from benchmarks.origin import JSON
from benchmarks.records import OURS
from benchmarks.runs import Listener
from benchmarks.searching import plan_of, searched
from benchmarks.snitch.baselines import baselines_of
from benchmarks.snitch.compiler import Compiler, compiled_outcome
from benchmarks.snitch.kernels import MicroKernel, lanes_of, required_operations
from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.measure import CompileError, KernelReference, MeasuredProgram, Outcome, Simulation
from pdojo.backends.measure.arrays import random_inputs
from pdojo.backends.measure.pool import Workers
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.notation import print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.view.build import nest_of
from pdojo.errors import PdojoError
from pdojo.names import EXPERT_PASSES
from pdojo.passes.scheduled_kernel import ScheduledKernel, make_moves
from pdojo.search.evaluators.cycles import Cycles
from pdojo.transforms.trace import Trace

BY_HAND, SEARCH = "transformed", "search"
STRATEGIES = (*EXPERT_PASSES, BY_HAND, SEARCH)
"""The passes, weakest first, then handmade traces, and a search from the naive program."""
USUAL = (*EXPERT_PASSES, BY_HAND)
"""The default strategies, which take minutes instead of hours."""
SEARCHED = ("elites", "mutate")
"""The search's strategy and its neighbourhood, which knows nothing of Snitch cores."""
COMPILER = "plain C"
"""The library name of a compiler's rows."""


def label_of(kernel: MicroKernel, dtype: str) -> str:
    """The label of a record."""
    return f"{kernel.text} {dtype}"


def measure(
    kernel: MicroKernel,
    dtype: str,
    machine: Machine,
    strategies: Sequence[str],
    evaluations: int,
    compiler: Compiler | None,
    seed: int,
    simulators: Workers,
    tell: Listener,
) -> JSON:
    """A record (`benchmarks.records.Record`), including failures.

    Raises MeasurementError if the plain kernel's results differ from the reference that the kernel brings.
    """
    plain = kernel.instantiate(dtype)
    _check(kernel, dtype, plain, seed)
    core = kernel.machine(machine)
    record: JSON = {
        "label": label_of(kernel, dtype),
        "threads": 1,
        "cold": False,
        "kernel": kernel.text,
        "title": kernel.title,
        "dtype": dtype,
        "divider_added": core != machine,
        "numerics": [n.value for n in plain.permitted],
        "required_operations": required_operations(nest_of(plain)),
        "lanes": lanes_of(dtype),
        "baselines": baselines_of(kernel.text, dtype),
    }
    rows: list[JSON] = []
    for strategy in strategies:
        tell(f"{strategy}: tuning")
        started = time.perf_counter()
        try:
            tuning = _tuned(kernel, dtype, core, strategy, evaluations, seed, tell)
        except PdojoError as error:
            rows.append(_row(OURS, strategy, CompileError(str(error))))
            continue
        if tuning is not None:
            facts = {
                "moves": len(tuning.game.trace.steps),
                "tuning_seconds": round(time.perf_counter() - started, 3),
                "trace": tuning.game.trace.dump(),
                "program": print_notation(tuning.after),
            }
            rows.append({"library": OURS, "variant": strategy, **facts})
    tell("simulating")
    ours = [row for row in rows if "outcome" not in row]
    reference = KernelReference(print_notation(plain))
    wanted = [Simulation(MeasuredProgram(row["program"], core), reference, seed, exact=True) for row in ours]
    for row, outcome in zip(ours, simulators.simulate_all(wanted), strict=True):
        row["outcome"] = outcome.to_json()
    if compiler is not None:
        tell(compiler.title)
        rows.append(
            _row(COMPILER, compiler.title, compiled_outcome(compiler, kernel.c_source(dtype), plain, core, seed))
        )
    return {**record, "rows": rows}


def _check(kernel: MicroKernel, dtype: str, plain: KernelOp, seed: int) -> None:
    """Compare the interpreter's results with the kernel's own reference, with which all programs are compared."""
    nest = nest_of(plain)
    parameters = parameters_of(nest)
    inputs = random_inputs(parameters, seed)
    outputs = interpret(nest, inputs)
    kernel.check(dtype, inputs, {p.name: outputs[p.name] for p in parameters if p.written})


def _tuned(
    kernel: MicroKernel, dtype: str, machine: Machine, strategy: str, evaluations: int, seed: int, tell: Listener
) -> ScheduledKernel | None:
    """The program of a strategy; None if there is no handmade trace."""
    plain = kernel.instantiate(dtype)
    if strategy == SEARCH:
        return _searched(plain, machine, evaluations, seed, tell)
    if strategy in EXPERT_PASSES:
        return make_moves(plain, machine, strategy)
    path = kernel.trace(dtype)
    return None if path is None else make_moves(plain, machine, None, Trace.load(str(path)))


def _searched(plain: KernelOp, machine: Machine, evaluations: int, seed: int, tell: Listener) -> ScheduledKernel:
    """The best program of a search from the naive program. Raises the errors of `searched`."""
    passed = make_moves(plain, machine, "naive")
    evaluator = Cycles(machine, plain)
    try:
        return searched(plan_of(*SEARCHED, evaluations, "cycles", seed), passed, evaluator, tell).best
    finally:
        evaluator.close()


def _row(library: str, variant: str, outcome: Outcome) -> JSON:
    return {"library": library, "variant": variant, "outcome": outcome.to_json()}

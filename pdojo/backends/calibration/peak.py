"""The arithmetic peak of this machine, measured with a kernel in the notation that touches registers only."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pdojo.backends.measure import MeasuredProgram, Ok, Options, Worker
from pdojo.dialect.functions import byte_width
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.registry import host
from pdojo.errors import MeasurementError

_CHAINS = (8, 10, 12, 14)
"""Numbers of independent sums to try: at least latency times units, at most the number of registers."""
SAMPLES = 10
"""Samples of each variant; the fastest counts."""
_STEPS = 20_000
"""Steps of each sum per call, enough to hide the cost of starting the threads."""


@dataclass(frozen=True)
class Peak:
    """The peak rate of multiplying and adding in registers."""

    flops_per_second: float
    """Operations per second in the fastest sample of the fastest variant; a fused multiply-add counts as two."""
    dtype: str
    threads: int
    chains: int
    """Independent sums of the fastest variant."""


def arithmetic_peak(
    dtype: str, threads: int, worker: Worker, machine: Machine | None = None, *, samples: int = SAMPLES
) -> Peak:
    """Measure fused multiply-adds of vectors of `dtype` on all threads.

    Raises MeasurementError if no variant runs: the machine cannot compute in this type.
    """
    machine = replace(machine or host(), threads=threads)
    lanes = max(machine.vector_lanes(dtype), default=1)
    options = Options(threads=threads, samples=samples, budget=0.5, check=False, steady=True)
    times: dict[int, float] = {}
    reasons: list[str] = []
    for chains in _CHAINS:
        (outcome,) = worker.compare([MeasuredProgram(peak_kernel(dtype, threads, chains, lanes), machine)], options)
        if isinstance(outcome, Ok):
            times[chains] = outcome.minimum / chains
        else:
            reasons.append(f"{chains} sums: {outcome.summary}")
    if not times:
        raise MeasurementError(f"the arithmetic peak of {dtype} cannot be measured: {'; '.join(reasons)}")
    best = min(times, key=lambda chains: times[chains])
    return Peak(2 * threads * lanes * _STEPS / times[best], dtype, threads, best)


def peak_kernel(dtype: str, threads: int, chains: int, lanes: int, steps: int = _STEPS) -> str:
    """The kernel in the notation: `steps` fused multiply-adds of each of `chains` vectors on each thread.

    Both factors are one vector in a register. The product is not rounded, so compilers cannot hoist it out of the loop.
    """
    heap = f"heap align {byte_width(dtype) * lanes}"
    parallel = f"{threads}:p" if threads > 1 else f"{threads}"
    vector = f"{lanes}:v" if lanes > 1 else f"{lanes}"
    return (
        f"kernel peak(x) -> (y)\n"
        f"x {dtype} [{threads}, {lanes}] {heap}\n"
        f"y {dtype} [{threads}, {chains}, {lanes}] {heap}\n"
        f"s {dtype} [{threads}:N, {chains}, {lanes}] stack\n\n"
        f"{parallel}\n"
        f"| {chains}:u {vector} s[{{0}},{{1}},{{2}}] = 0\n"
        f"| {steps} {chains}:u {vector} s[{{0}},{{2}},{{3}}] fma= x[{{0}},{{3}}] * x[{{0}},{{3}}]\n"
        f"| {chains}:u {vector} y[{{0}},{{1}},{{2}}] = s[{{0}},{{1}},{{2}}]\n"
    )

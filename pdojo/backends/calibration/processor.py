"""Calibration: bandwidths and rates of a processor, measured with kernels in the notation.

Bandwidths are measured on one thread and on all, with plain and non-temporal stores, one and four address streams, with
and without prefetching. Rates of operations are measured on one thread, on arrays in the private cache.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypeVar

from pdojo.backends.calibration.bandwidth import copy_programs, read_programs
from pdojo.backends.calibration.peak import peak_kernel
from pdojo.backends.llvm.worker import CpuWorker
from pdojo.backends.measure import MeasuredProgram, Ok, Options, Worker
from pdojo.dialect.attributes import Intent
from pdojo.dialect.functions import byte_width
from pdojo.dialect.intrinsic import Intrinsic
from pdojo.dialect.machines.host import processor_name
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.measured import CopyRate, ProcessorMeasurements, ReadRate
from pdojo.dialect.machines.pattern import pattern_of
from pdojo.dialect.notation.printer import tree_lines
from pdojo.errors import MeasurementError

KeyT = TypeVar("KeyT")

FOOTPRINTS = (1 << 20, 8 << 20, 32 << 20, 96 << 20, 256 << 20)
"""Bytes of the arrays of copies, from the size of a private cache to sizes that only memory holds."""
READ = (8 << 20, 256 << 20)
"""Bytes of the arrays that are read."""
DISTANCES = (0, 512, 1024, 2048, 4096)
"""Prefetch distances of reads in bytes."""
_SAMPLES = 5
_BUDGET = 0.03
"""Seconds for the samples of one program."""
_ELEMENTS = 1 << 14
"""Elements of the arrays of operations."""
_STEPS = 2_000
_ACCUMULATORS = 6
"""Registers that instructions add to: at least latency times units, at most the number of tiles."""
_CHAINS = (8, 10, 12)
"""Independent sums of multiply-adds to try."""

Tell = Callable[[str, float], None]
"""Receives the current step, and the fraction of all steps that is done."""


def calibrate(machine: Machine, tell: Tell, command: str = "") -> ProcessorMeasurements:
    """Measure this processor, which `machine` describes; this takes about ten seconds.

    `command` is recorded as the origin of the numbers. Raises MeasurementError if copies cannot be measured.
    """
    counts = tuple(sorted({1, machine.threads}))
    steps = len(counts) * (len(FOOTPRINTS) + len(READ)) + 2
    done = 0

    def step(what: str) -> None:
        nonlocal done
        tell(what, done / steps)
        done += 1

    copies: list[CopyRate] = []
    reads: list[ReadRate] = []
    with CpuWorker() as worker:
        for threads in counts:
            spelled = f"{threads} thread{'s' * (threads > 1)}"
            for footprint in FOOTPRINTS:
                step(f"copying {footprint >> 20} MiB, {spelled}")
                copies += _copies(footprint, threads, machine, worker)
            for footprint in READ:
                step(f"reading {footprint >> 20} MiB, {spelled}")
                reads += _reads(footprint, threads, machine, worker)
        step("operations")
        rates = dict(_rates(replace(machine, threads=1), worker))
        step("starting threads")
        start = _thread_start(machine, worker)
    if not copies:
        raise MeasurementError("no copy could be measured on this processor")
    now = datetime.now(UTC).strftime("%Y-%m-%d")
    return ProcessorMeasurements(processor_name(), now, command, tuple(copies), tuple(reads), rates, start)


def _copies(footprint: int, threads: int, machine: Machine, worker: Worker) -> Iterator[CopyRate]:
    copied, programs = copy_programs(footprint, threads, machine)
    for (past, streams), seconds in _times(programs, threads, worker):
        yield CopyRate(threads, footprint, past, streams, _rounded(copied / seconds))


def _reads(footprint: int, threads: int, machine: Machine, worker: Worker) -> Iterator[ReadRate]:
    read, programs = read_programs(footprint, threads, machine, DISTANCES)
    for (streams, distance), seconds in _times(programs, threads, worker):
        yield ReadRate(threads, footprint, streams, distance, _rounded(read / seconds))


def _times(programs: dict[KeyT, MeasuredProgram], threads: int, worker: Worker) -> Iterator[tuple[KeyT, float]]:
    """The shortest time of each program that could be run."""
    options = Options(threads=threads, samples=_SAMPLES, budget=_BUDGET, check=False, even=True)
    for key, outcome in zip(programs, worker.compare(list(programs.values()), options), strict=True):
        if isinstance(outcome, Ok):
            yield key, outcome.minimum


def _rates(machine: Machine, worker: Worker) -> Iterator[tuple[str, float]]:
    """Elements per second of one thread, keyed by operation."""
    for width in machine.vector_bytes:
        lanes = width // byte_width("f32")
        found: list[float] = []
        for chains in _CHAINS:
            program = MeasuredProgram(peak_kernel("f32", 1, chains, lanes, _STEPS), machine)
            found += [chains * lanes * _STEPS / seconds for _, seconds in _times({chains: program}, 1, worker)]
        if found:
            yield f"fma_{width}", _rounded(max(found))
    yield from _instructions(machine, worker)
    lanes = max(machine.vector_lanes("f32"), default=1)
    for name, kernel in _operations(lanes):
        for _, seconds in _times({name: MeasuredProgram(kernel, machine)}, 1, worker):
            yield name, _rounded(_ELEMENTS / seconds)


def _instructions(machine: Machine, worker: Worker) -> Iterator[tuple[str, float]]:
    """Instructions per second of one thread, keyed by intrinsic; only intrinsics that add to an operand."""
    for intrinsic in machine.intrinsics:
        if not (intrinsic.available(machine.features) and intrinsic.trusted):
            continue
        text = accumulating_kernel(intrinsic, _ACCUMULATORS, _STEPS)
        if text is not None:
            for _, seconds in _times({intrinsic.name: MeasuredProgram(text, machine)}, 1, worker):
                yield intrinsic.name, _rounded(_ACCUMULATORS * _STEPS / seconds)


def accumulating_kernel(intrinsic: Intrinsic, accumulators: int, steps: int) -> str | None:
    """A kernel that runs the intrinsic `steps` times on each of `accumulators` accumulators in registers.

    Returns None unless the intrinsic adds to exactly one operand. Operands are dense.
    """
    pattern = pattern_of(intrinsic)
    written = [array for array in pattern.operands.values() if pattern.writes(array)]
    if len(written) != 1 or written[0].intent is not Intent.INOUT:
        return None
    (total,) = written
    name, shape = total.name, [accumulators, *total.shape]
    factors = [array for array in pattern.operands.values() if array is not total]
    inner = [array for array in pattern.nest.arrays.values() if array.name not in pattern.operands]

    def within(line: str) -> str:
        """A line of the intrinsic's meaning, moved two scopes inwards; the second new scope selects the accumulator."""
        deeper = re.sub(r"\{(\d+)\}", lambda m: f"{{{int(m[1]) + 2}}}", line)
        return re.sub(rf"\b{name}\[", f"{name}[{{1}},", deeper)

    first, *rest = tree_lines(pattern.nest.children)
    extent, _, statement = first.partition(" ")
    every = f"{accumulators}:u {' '.join(map(str, total.shape))}"
    index = ",".join(f"{{{depth}}}" for depth in range(len(shape)))
    lines = [
        f"kernel rate({', '.join(array.name for array in factors)}) -> ({name}_out)",
        "numerics reassociate contract flush",
        *(f"{array.name} {array.dtype} {list(array.shape)} heap align 64" for array in factors),
        f"{name}_out {total.dtype} {shape} heap align 64",
        f"{name} {total.dtype} {shape} stack",
        *(f"{array.name} {array.dtype} {list(array.shape)} stack" for array in inner),
        "",
        f"{every} {name}[{index}] = 0",
        f"{steps} {accumulators}:u {extent}:m({intrinsic.name}) {within(statement)}".rstrip(),
        *map(within, rest),
        f"{every} {name}_out[{index}] = {name}[{index}]",
    ]
    return "\n".join(lines) + "\n"


def _operations(lanes: int) -> Iterator[tuple[str, str]]:
    vector = f"{lanes}:v" if lanes > 1 else "1"
    place = f"{{0}}*{lanes}+{{1}}"
    rows = _ELEMENTS // lanes
    statements = {
        "copy": ("", f"y[{place}] = x[{place}]"),
        "division": ("", f"y[{place}] = 1 / x[{place}]"),
        "exp": ("", f"y[{place}] = exp(x[{place}])"),
        "gather": ("", f"y[{place}] = x[{{0}}*{4 * lanes}+{{1}}*4]"),
        "masked_store": (f" where ({place} < {_ELEMENTS - 1})", f"y[{place}] = x[{place}]"),
    }
    for name, (guard, statement) in statements.items():
        size = 4 * _ELEMENTS if name == "gather" else _ELEMENTS
        rest = f"\ny[{_ELEMENTS - 1}] = 0" if guard else ""
        heap = f"heap align {lanes * byte_width('f32')}"
        header = f"kernel {name}(x) -> (y)\nx f32 [{size}] {heap}\ny f32 [{_ELEMENTS}] {heap}\n"
        yield name, f"{header}\n{rows} {vector}{guard} {statement}{rest}\n"


def _thread_start(machine: Machine, worker: Worker) -> float:
    """Seconds that starting and joining all threads takes; 0 for one thread, or if it cannot be measured."""
    threads = machine.threads
    if threads < 2:
        return 0.0
    head = f"kernel start(x) -> (y)\nx f32 [{threads}] heap\ny f32 [{threads}] heap\n\n{threads}"
    programs = {mapping: MeasuredProgram(f"{head}{mapping} y[{{0}}] = x[{{0}}]\n", machine) for mapping in ("", ":p")}
    times = dict(_times(programs, threads, worker))
    return max(0.0, times[":p"] - times[""]) if len(times) == len(programs) else 0.0


def _rounded(rate: float) -> float:
    """The rate, rounded to three digits; further digits are noise."""
    return float(f"{rate:.3g}")

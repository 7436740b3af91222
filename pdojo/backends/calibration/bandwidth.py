"""The bandwidth of this machine, measured with kernels in the notation: the bound of memory-bound kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from pdojo.backends.measure import MeasuredProgram, Ok, Options, Worker
from pdojo.dialect.functions import byte_width
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.registry import host
from pdojo.errors import MeasurementError

STREAMS = 4
"""Address streams per thread, each on its own section of the array; a single stream reaches less bandwidth."""
_CHAINS = 4
"""Independent vector sums of the reading kernel; a single sum would be bound by latency."""
_AHEAD = 2048
"""Prefetch distance in bytes."""
SAMPLES = 15
"""Samples of each variant; the fastest counts."""


@dataclass(frozen=True)
class Bandwidth:
    """The bandwidth of streaming through memory."""

    bytes_per_second: float
    """Bytes read plus bytes written per second, in the fastest sample of the fastest variant."""
    footprint: int
    """Bytes of all arrays."""
    threads: int
    variant: str
    """The fastest variant: the kind of stores (plain or non-temporal), or "reading"; and the number of streams."""


def copy_bandwidth(
    footprint: int,
    threads: int,
    worker: Worker,
    machine: Machine | None = None,
    *,
    cold: bool = False,
    samples: int = SAMPLES,
) -> Bandwidth:
    """Measure the copy of one array into another, together `footprint` bytes (rounded down to whole vectors).

    `cold`: the arrays are in no cache. Raises MeasurementError if no variant runs.
    """
    copied, programs = copy_programs(footprint, threads, machine or host())
    options = Options(threads=threads, samples=samples, budget=0.25, cold=cold, even=True)
    named = {
        f"{'non-temporal' if past else 'plain'} stores, {_count(streams)}": program
        for (past, streams), program in programs.items()
    }
    return _best("copy", copied, named, options, worker)


def copy_programs(
    footprint: int, threads: int, machine: Machine
) -> tuple[int, dict[tuple[bool, int], MeasuredProgram]]:
    """The copied bytes (`footprint` rounded down to whole vectors), and the programs that copy them.

    The key of a program says whether its stores bypass the caches, and gives the number of address streams.
    """
    rows = max(1, footprint // (2 * threads * STREAMS * _vector_bytes(machine)))
    return 2 * threads * STREAMS * rows * _vector_bytes(machine), dict(_copies(rows, threads, machine))


def read_bandwidth(
    footprint: int,
    threads: int,
    worker: Worker,
    machine: Machine | None = None,
    *,
    cold: bool = False,
    samples: int = SAMPLES,
) -> Bandwidth:
    """Measure reading an array of `footprint` bytes (rounded down to whole vectors), into sums of a few vectors.

    `cold`: the array is in no cache. Raises MeasurementError if no variant runs.
    """
    read, programs = read_programs(footprint, threads, machine or host())
    options = Options(threads=threads, samples=samples, budget=0.25, cold=cold, even=True)
    named = {
        f"reading, {_count(streams)}{', prefetched' if distance else ''}": program
        for (streams, distance), program in programs.items()
    }
    return _best("read", read, named, options, worker)


def read_programs(
    footprint: int, threads: int, machine: Machine, distances: Sequence[int] = (0, _AHEAD)
) -> tuple[int, dict[tuple[int, int], MeasuredProgram]]:
    """The read bytes (`footprint` rounded down to whole vectors), and the programs that read them.

    The key of a program gives the number of address streams and the prefetch distance in bytes (0: no prefetch).
    """
    rows = max(1, footprint // (threads * STREAMS * _CHAINS * _vector_bytes(machine)))
    programs = dict(_reads(rows, threads, machine, distances))
    return threads * STREAMS * rows * _CHAINS * _vector_bytes(machine), programs


def _best(
    pattern: str, moved: int, variants: dict[str, MeasuredProgram], options: Options, worker: Worker
) -> Bandwidth:
    outcomes = dict(zip(variants, worker.compare(list(variants.values()), options), strict=True))
    times = {name: outcome.minimum for name, outcome in outcomes.items() if isinstance(outcome, Ok)}
    if not times:
        reasons = "; ".join(f"{name}: {outcome.summary}" for name, outcome in outcomes.items())
        raise MeasurementError(f"the {pattern} bandwidth cannot be measured: {reasons}")
    best = min(times, key=lambda name: times[name])
    return Bandwidth(moved / times[best], moved, options.threads, best)


def _copies(rows: int, threads: int, machine: Machine) -> Iterator[tuple[tuple[bool, int], MeasuredProgram]]:
    lanes = _lanes(machine)
    for hint in ("", "!nontemporal"):
        if hint and not machine.vector_lanes("f32"):
            continue
        for streams in (1, STREAMS):
            # Both loops walk through the same array; with several streams, iterations of the unrolled scope are far
            # apart.
            order = ((rows, ""), (STREAMS, ":u")) if streams > 1 else ((STREAMS, ""), (rows, ""))
            first, second = ("{2}", "{1}") if streams > 1 else ("{1}", "{2}")
            index = f"[{{0}},{first},{second},{{3}}]"
            scopes = " ".join(f"{extent}{mapping}" for extent, mapping in order)
            shape = f"f32 [{threads}, {STREAMS}, {rows}, {lanes}] heap align {_alignment(lanes)}"
            text = (
                f"kernel copy(x) -> (y)\nx {shape}\ny {shape}\n\n"
                f"{_parallel(threads)} {scopes} {_vector(lanes)} y{index}{hint} = x{index}\n"
            )
            yield (bool(hint), streams), MeasuredProgram(text, replace(machine, threads=threads))


def _reads(
    rows: int, threads: int, machine: Machine, distances: Sequence[int]
) -> Iterator[tuple[tuple[int, int], MeasuredProgram]]:
    lanes = _lanes(machine)
    heap = f"heap align {_alignment(lanes)}"
    vector = _vector(lanes)
    for streams, distance in product((1, STREAMS), distances):
        hint = f"!prefetch({distance})" if distance else ""
        order = f"{rows} {STREAMS}:u" if streams > 1 else f"{STREAMS} {rows}"
        stream, row = ("{2}", "{1}") if streams > 1 else ("{1}", "{2}")
        text = (
            f"kernel read(x) -> (y)\n"
            f"x f32 [{threads}, {STREAMS}, {rows}, {_CHAINS}, {lanes}] {heap}\n"
            f"y f32 [{threads}, {STREAMS}, {_CHAINS}, {lanes}] {heap}\n"
            f"s f32 [{threads}:N, {STREAMS}, {_CHAINS}, {lanes}] stack\n\n"
            f"{_parallel(threads)}\n"
            f"| {STREAMS}:u {_CHAINS}:u {vector} s[{{0}},{{1}},{{2}},{{3}}] = 0\n"
            f"| {order} {_CHAINS}:u {vector} "
            f"s[{{0}},{stream},{{3}},{{4}}] += x[{{0}},{stream},{row},{{3}},{{4}}]{hint}\n"
            f"| {STREAMS}:u {_CHAINS}:u {vector} y[{{0}},{{1}},{{2}},{{3}}] = s[{{0}},{{1}},{{2}},{{3}}]\n"
        )
        yield (streams, distance), MeasuredProgram(text, replace(machine, threads=threads))


def _parallel(threads: int) -> str:
    return f"{threads}:p" if threads > 1 else f"{threads}"


def _vector(lanes: int) -> str:
    return f"{lanes}:v" if lanes > 1 else f"{lanes}"


def _count(streams: int) -> str:
    return f"{streams} stream{'s' * (streams > 1)}"


def _alignment(lanes: int) -> int:
    return byte_width("f32") * lanes


def _lanes(machine: Machine) -> int:
    return max(machine.vector_lanes("f32"), default=1)


def _vector_bytes(machine: Machine) -> int:
    return _lanes(machine) * byte_width("f32")

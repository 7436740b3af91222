"""The copy bandwidth of this machine, measured with kernels in the notation: the yardstick of memory-bound kernels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from pdojo.backends.measure import Ok, Options, Program, Worker
from pdojo.dialect.functions import byte_width
from pdojo.dialect.machine import Machine, host
from pdojo.errors import MeasurementError

STREAMS = 4
"""Places of its part of the array that a thread works on at once: one keeps the memory less busy."""


@dataclass(frozen=True)
class Bandwidth:
    """What copying an array achieves."""

    bytes_per_second: float
    """Bytes read and bytes written, of the fastest variant's fastest sample."""
    footprint: int
    """Bytes of both arrays."""
    threads: int
    variant: str
    """The fastest variant: plain or non-temporal stores, and the number of address streams."""


def copy_bandwidth(footprint: int, threads: int, worker: Worker, machine: Machine | None = None) -> Bandwidth:
    """Measure the copy of one array into another, `footprint` bytes both together (rounded down to whole vectors).

    Raises MeasurementError where no variant runs.
    """
    machine = machine or host()
    variants = dict(_variants(footprint, threads, machine))
    options = Options(threads=threads, samples=25, budget=0.5)
    outcomes = dict(zip(variants, worker.compare(list(variants.values()), options), strict=True))
    times = {name: outcome.minimum for name, outcome in outcomes.items() if isinstance(outcome, Ok)}
    if not times:
        reasons = "; ".join(f"{name}: {outcome.summary}" for name, outcome in outcomes.items())
        raise MeasurementError(f"the copy bandwidth cannot be measured: {reasons}")
    best = min(times, key=lambda name: times[name])
    copied = _footprint(footprint, threads, machine)
    return Bandwidth(copied / times[best], copied, threads, best)


def _variants(footprint: int, threads: int, machine: Machine) -> Iterator[tuple[str, Program]]:
    lanes, rows = _lanes(machine), _rows(footprint, threads, machine)
    for kind, hint in (("plain", ""), ("non-temporal", "!nontemporal")):
        if hint and not machine.vector_lanes("f32"):
            continue
        for streams in (1, STREAMS):
            # Both walk through the same array; with several streams, iterations of the unrolled scope are far apart.
            order = ((rows, ""), (STREAMS, ":u")) if streams > 1 else ((STREAMS, ""), (rows, ""))
            first, second = ("{2}", "{1}") if streams > 1 else ("{1}", "{2}")
            index = f"[{{0}},{first},{second},{{3}}]"
            scopes = " ".join(f"{extent}{mapping}" for extent, mapping in order)
            shape = f"f32 [{threads}, {STREAMS}, {rows}, {lanes}] heap align {max(4, 4 * lanes)}"
            vector = ":v" if lanes > 1 else ""
            text = (
                f"kernel copy(x) -> (y)\nx {shape}\ny {shape}\n\n"
                f"{threads}{':p' if threads > 1 else ''} {scopes} {lanes}{vector} y{index}{hint} = x{index}\n"
            )
            yield (
                f"{kind} stores, {streams} stream{'s' * (streams > 1)}",
                Program(text, replace(machine, threads=threads)),
            )


def _lanes(machine: Machine) -> int:
    return max(machine.vector_lanes("f32"), default=1)


def _rows(footprint: int, threads: int, machine: Machine) -> int:
    """Vectors in a stream of a thread."""
    return max(1, footprint // (2 * threads * STREAMS * _lanes(machine) * byte_width("f32")))


def _footprint(footprint: int, threads: int, machine: Machine) -> int:
    return 2 * threads * STREAMS * _rows(footprint, threads, machine) * _lanes(machine) * byte_width("f32")

"""Measurements of a processor, and their consequences for programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

GAIN = 1.05
"""Least ratio of bandwidths that counts as a difference."""


@dataclass(frozen=True, order=True)
class CopyRate:
    """The bandwidth of copying one array into another."""

    threads: int
    footprint: int
    """Bytes of both arrays."""
    nontemporal: bool
    """Whether the stores go past the caches."""
    streams: int
    """Address streams per thread, each through another part of the array."""
    rate: float
    """Bytes read and written per second."""


@dataclass(frozen=True, order=True)
class ReadRate:
    """The bandwidth of reading an array."""

    threads: int
    footprint: int
    """Bytes of the array."""
    streams: int
    """Address streams per thread, each through another part of the array."""
    prefetch: int
    """Distance of prefetches in bytes; 0 for none."""
    rate: float
    """Bytes read per second."""


@dataclass(frozen=True)
class ProcessorMeasurements:
    """Measurements of a processor (`pdojo-machine calibrate`); false if empty."""

    processor: str = ""
    """The processor that was measured, in the system's words."""
    date: str = ""
    command: str = ""
    copy: tuple[CopyRate, ...] = ()
    read: tuple[ReadRate, ...] = ()
    rates: Mapping[str, float] = field(default_factory=dict[str, float])
    """Rates by operation or intrinsic: f32 elements per second of one thread (`fma_64`: multiply-adds of 64-byte
    vectors), or instructions per second."""
    thread_start: float = 0.0
    """Seconds that a parallel scope takes if its threads have nothing to do."""

    def __bool__(self) -> bool:
        return bool(self.copy)

    def usable_cache(self, threads: int) -> int | None:
        """The largest measured footprint in bytes whose copies stay in caches; None if that was not measured.

        They stay in caches if they are at least 1.5 times as fast as copies of the largest footprint, which is in
        memory.
        """
        plain = {f: max(rates) for f, rates in _by_footprint(r for r in self._copies(threads) if not r.nontemporal)}
        if len(plain) < 2:
            return None
        memory = plain[max(plain)]
        return max((f for f in plain if plain[f] >= 1.5 * memory), default=min(plain))

    def nontemporal_from(self, threads: int, streams: int = 1) -> int | None:
        """The smallest measured footprint in bytes from which stores past the caches are faster; None if there is none.

        Each thread stores to `streams` places in turn. The measurement with the next larger number of streams counts.
        """
        copies = self._copies(threads)
        plain = dict(_by_footprint(r for r in copies if not r.nontemporal))
        counts = {r.streams for r in copies if r.nontemporal}
        count = min((c for c in counts if c >= streams), default=max(counts, default=1))
        past = dict(_by_footprint(r for r in copies if r.nontemporal and r.streams == count))
        found: int | None = None
        for footprint in sorted(plain.keys() & past.keys(), reverse=True):
            if max(past[footprint]) < GAIN * max(plain[footprint]):
                break
            found = footprint
        return found

    def prefetch_distance(self, threads: int) -> int | None:
        """The prefetch distance in bytes for the fastest reads from memory; 0 if none is faster, None if unmeasured."""
        reads = [r for r in self.read if r.threads == self._nearest(threads)]
        if not reads:
            return None
        memory = max(r.footprint for r in reads)
        best = {r.prefetch: 0.0 for r in reads}
        for each in reads:
            if each.footprint == memory:
                best[each.prefetch] = max(best[each.prefetch], each.rate)
        distance = max(best, key=lambda d: best[d])
        return distance if best[distance] >= GAIN * best.get(0, 0.0) else 0

    def _copies(self, threads: int) -> list[CopyRate]:
        return [r for r in self.copy if r.threads == self._nearest(threads)]

    def _nearest(self, threads: int) -> int:
        """The largest measured number of threads up to `threads`, or else the smallest one."""
        counts = {r.threads for r in (*self.copy, *self.read)}
        return max((c for c in counts if c <= threads), default=min(counts, default=0))


def _by_footprint(rates: Iterable[CopyRate]) -> Iterable[tuple[int, list[float]]]:
    found: dict[int, list[float]] = {}
    for each in rates:
        found.setdefault(each.footprint, []).append(each.rate)
    return found.items()

"""What was measured on a processor, and what follows from it for programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

GAIN = 1.05
"""Ratio of bandwidths from which a difference counts."""


@dataclass(frozen=True, order=True)
class CopyRate:
    """The bandwidth of copying one array into another."""

    threads: int
    footprint: int
    """Bytes of both arrays."""
    nontemporal: bool
    """Whether the stores go past the caches."""
    streams: int
    """Places of its part of the array that each thread walks through at the same time."""
    rate: float
    """Bytes read and written per second."""


@dataclass(frozen=True, order=True)
class ReadRate:
    """The bandwidth of reading an array."""

    threads: int
    footprint: int
    """Bytes of the array."""
    streams: int
    """Places of its part of the array that each thread walks through at the same time."""
    prefetch: int
    """Bytes that are prefetched ahead; 0 for none."""
    rate: float
    """Bytes read per second."""


@dataclass(frozen=True)
class Measured:
    """Measurements of a processor (`pdojo-machine calibrate`); empty, and false, if there are none."""

    processor: str = ""
    """The processor that was measured, in the system's words."""
    date: str = ""
    command: str = ""
    copy: tuple[CopyRate, ...] = ()
    read: tuple[ReadRate, ...] = ()
    rates: Mapping[str, float] = field(default_factory=dict[str, float])
    """Elements of f32 per second of one thread, by operation (`fma_64`: multiply-adds of vectors of 64 bytes), and
    instructions per second, by the name of an intrinsic."""
    thread_start: float = 0.0
    """Seconds that a parallel scope takes whose threads have nothing to do."""

    def __bool__(self) -> bool:
        return bool(self.copy)

    def usable_cache(self, threads: int) -> int | None:
        """The largest measured footprint in bytes that copies stay in caches up to; None if that was not measured.

        They do if they are at least 1.5 times as fast as from memory, which the largest footprint is in.
        """
        plain = {f: max(rates) for f, rates in _by_footprint(r for r in self._copies(threads) if not r.nontemporal)}
        if len(plain) < 2:
            return None
        memory = plain[max(plain)]
        return max((f for f in plain if plain[f] >= 1.5 * memory), default=min(plain))

    def nontemporal_from(self, threads: int) -> int | None:
        """The smallest measured footprint in bytes from which stores past the caches are faster; None if none is."""
        plain = dict(_by_footprint(r for r in self._copies(threads) if not r.nontemporal))
        past = dict(_by_footprint(r for r in self._copies(threads) if r.nontemporal))
        found: int | None = None
        for footprint in sorted(plain.keys() & past.keys(), reverse=True):
            if max(past[footprint]) < GAIN * max(plain[footprint]):
                break
            found = footprint
        return found

    def prefetch_distance(self, threads: int) -> int | None:
        """The distance in bytes that reads from memory gain most from; 0 if they gain nothing, None if not measured."""
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
        """The largest measured number of threads that is no more than `threads`, or the smallest one."""
        counts = {r.threads for r in (*self.copy, *self.read)}
        return max((c for c in counts if c <= threads), default=min(counts, default=0))


def _by_footprint(rates: Iterable[CopyRate]) -> Iterable[tuple[int, list[float]]]:
    found: dict[int, list[float]] = {}
    for each in rates:
        found.setdefault(each.footprint, []).append(each.rate)
    return found.items()

"""The cores of processors, on Linux."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

_TOPOLOGY = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"


def core_order(processors: Iterable[int]) -> list[int]:
    """The processors, with the first one of each core first."""
    cores: dict[str, list[int]] = {}
    for processor in sorted(processors):
        cores.setdefault(_core(processor), []).append(processor)
    places = {p: place for siblings in cores.values() for place, p in enumerate(siblings)}
    return sorted(places, key=lambda p: (places[p], p))


def core_count(processors: Iterable[int]) -> int:
    """Number of cores of the processors. Processors of one core disturb each other's timings."""
    return len({_core(processor) for processor in processors})


def _core(processor: int) -> str:
    """The processors of a processor's core, as the system lists them; the processor alone if the system lists none."""
    try:
        return Path(_TOPOLOGY.format(processor)).read_text().strip()
    except OSError:
        return str(processor)

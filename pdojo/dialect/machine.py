"""Machine descriptions: the hardware facts that moves, expert passes and backends may ask for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import cast

from pdojo.dialect.functions import DTYPES, byte_width
from pdojo.errors import UsageError


@dataclass(frozen=True)
class Machine:
    """What is known of a processor. Sizes in bytes."""

    name: str
    vector_bytes: tuple[int, ...]
    """Widths of the vector registers, ascending; empty where there are none."""
    vector_registers: int
    """Number of architectural vector registers."""
    gather: bool
    """Whether vector loads and stores may be strided."""
    threads: int
    """Processors that a parallel scope may use."""
    cache_bytes: tuple[int, ...] = (32 << 10, 1 << 20)
    """Data cache sizes, innermost first; the last may be shared."""
    cache_line: int = 64
    features: tuple[str, ...] = ()
    """Instruction set features in the compiler's spelling, sorted."""
    unroll_limit: int = 256
    """Most statement instances that nested unrolled scopes may expand to."""
    stack_bytes: int = 256 << 10
    """Most bytes that stack buffers of a kernel may take per thread."""
    register_bytes: int = 2048
    """Most bytes that register buffers of a kernel may take per thread."""
    lanes: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    """Lane counts per dtype where they do not follow from `vector_bytes`."""
    warp_size: int = 0
    """Threads that run in lock step and exchange registers; 0 where there are no warps."""
    block_threads: int = 0
    """Most threads of a block; 0 where there are no blocks."""
    shared_bytes: int = 0
    """Most bytes of shared memory per block; 0 where there is none."""
    async_copy_bytes: tuple[int, ...] = ()
    """Sizes of the copies from global to shared memory that run on their own, ascending; empty where there are none."""
    stream_registers: int = 0
    """Registers through which memory can be streamed (Snitch SSR); 0 where there are none."""
    stream_dims: int = 0
    """Most nested loops of a stream's address generator."""
    frep_instructions: int = 0
    """Most instructions of a hardware loop (Snitch FREP); 0 where there is none."""
    frep_trips: int = 0
    """Most iterations of a hardware loop."""

    def vector_lanes(self, dtype: str) -> tuple[int, ...]:
        """Lane counts at least 2 of the vectors of `dtype`, ascending."""
        if dtype in self.lanes:
            return self.lanes[dtype]
        width = byte_width(dtype)
        return tuple(b // width for b in self.vector_bytes if b // width >= 2)


_AVX512 = ("avx", "avx2", "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl", "bmi", "bmi2", "f16c", "fma")
_AVX2 = ("avx", "avx2", "bmi", "bmi2", "f16c", "fma")

MACHINES: dict[str, Machine] = {
    m.name: m
    for m in (
        Machine("x86-64-avx512", (16, 32, 64), 32, gather=True, threads=2, features=_AVX512),
        Machine("x86-64-avx2", (16, 32), 16, gather=True, threads=2, features=_AVX2),
        # A machine with tiny vectors, so that every mapping fits the small extents that the oracle enumerates.
        Machine(
            "toy",
            (),
            8,
            gather=True,
            threads=2,
            lanes=dict.fromkeys(DTYPES, (2, 4)),
            unroll_limit=64,
            cache_bytes=(256,),
        ),
        Machine(
            "toy-gpu",
            (),
            8,
            gather=False,
            threads=2,
            lanes=dict.fromkeys(DTYPES, (2, 4)),
            unroll_limit=64,
            cache_bytes=(256,),
            warp_size=4,
            block_threads=32,
            shared_bytes=1024,
            async_copy_bytes=(4, 8, 16),
        ),
        Machine(
            "toy-snitch",
            (),
            8,
            gather=False,
            threads=1,
            lanes={},
            unroll_limit=64,
            cache_bytes=(256,),
            stream_registers=3,
            stream_dims=4,
            frep_instructions=8,
            frep_trips=64,
        ),
    )
}
"""Known machine descriptions by name; `host` is detected."""


def machine(name: str = "host") -> Machine:
    """The machine description of that name; `host` describes the processor this runs on.

    Raises UsageError for a name that is not known.
    """
    if name == "host":
        return host()
    if name not in MACHINES:
        raise UsageError(f"unknown machine '{name}'; known: host, {', '.join(MACHINES)}")
    return MACHINES[name]


@lru_cache(maxsize=1)
def host() -> Machine:
    """Describe the processor that this runs on, from the operating system and LLVM."""
    import os

    import llvmlite.binding as llvm

    detected = cast("Mapping[str, bool]", llvm.get_host_cpu_features())
    features = {name for name, present in detected.items() if present}
    base = MACHINES["x86-64-avx512" if "avx512f" in features else "x86-64-avx2"]
    if not features & {"avx2", "avx512f"}:
        base = replace(base, vector_bytes=(16,), vector_registers=16, gather=False)
    return replace(
        base,
        name="host",
        threads=len(os.sched_getaffinity(0)),
        cache_bytes=_cache_bytes() or base.cache_bytes,
        features=tuple(sorted(features)),
    )


def _cache_bytes() -> tuple[int, ...]:
    """Data cache sizes of processor 0, innermost first, from sysfs; empty where it does not tell."""
    sizes: dict[int, int] = {}
    for entry in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            kind, level, size = ((entry / f).read_text().strip() for f in ("type", "level", "size"))
        except OSError:
            return ()
        if kind != "Instruction":
            sizes[int(level)] = int(size.rstrip("K")) << 10
    return tuple(size for _, size in sorted(sizes.items()))

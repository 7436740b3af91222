"""Machine descriptions: hardware facts for moves, expert passes and backends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf

from pdojo.dialect.functions import byte_width
from pdojo.dialect.intrinsic import Intrinsic
from pdojo.dialect.machines.matrix_load import MatrixLoad
from pdojo.dialect.machines.measured import ProcessorMeasurements


@dataclass(frozen=True)
class KindFacts:
    """Facts of one kind of machine; false if the machine has none of them."""

    def __bool__(self) -> bool:
        return self != type(self)()


@dataclass(frozen=True)
class Cpu(KindFacts):
    """Pipelines of a core, for models of run time."""

    fma_pipes: int = 1
    """Pipelines of a core, each of which can start a fused multiply-add of vectors per cycle."""
    load_pipes: int = 1
    """Pipelines of a core, each of which can start a load or a broadcast load of a vector per cycle."""
    pipe_bytes: int = 0
    """Width of these pipelines; a wider vector takes several passes. 0 if no vector is wider."""
    fma_latency: int = 4
    """Latency of a fused multiply-add, in cycles."""
    near_load: float = 2.0
    """Cycles to load a vector from a core's further caches."""
    far_load: float = 5.0
    """Cycles to load a vector from beyond the core's caches."""
    far_line: float = 16.0
    """Cycles to load a cache line from beyond the first cache, if the previous loads do not announce it."""
    gather_lane: float = 3.0
    """Cycles per lane of a gather from different cache lines."""
    gather_conflict: float = 7.0
    """Cycles per lane of a gather from many cache lines that lie at equal distances and evict each other."""
    pack_vector: float = 4.0
    """Cycles to copy a vector of contiguous elements into a panel."""
    pack_lane: float = 0.75
    """Cycles to copy an element into a panel if neighbours in the panel are lines apart."""
    add_lanes: float = 20.0
    """Cycles to add up the lanes of the vectors of a sum."""
    store_vector: float = 6.0
    """Cycles to zero and to store a vector of a block of results, besides the sum."""
    store_lane: float = 20.0
    """Cycles per lane to store on a line of its own, which travels between the second cache and the core."""

    def passes(self, size: int) -> int:
        """How often a vector of `size` bytes passes through a pipeline."""
        return -(-size // self.pipe_bytes) if self.pipe_bytes else 1


@dataclass(frozen=True)
class Gpu(KindFacts):
    """Limits and rates of a graphics processor."""

    warp_size: int = 0
    """Threads that run in lock step and exchange registers; 0 if there are no warps."""
    block_threads: int = 0
    """Most threads of a block; 0 if there are no blocks."""
    grid_threads: int = 0
    """Most threads of all blocks of a launch together; 0 if only the number of blocks is limited."""
    shared_bytes: int = 0
    """Most bytes of shared memory per block; 0 if there is none."""
    multiprocessors: int = 0
    """Processors that run blocks at the same time; 0 if there are no blocks."""
    async_copy_bytes: tuple[int, ...] = ()
    """Sizes of asynchronous copies from global to shared memory, ascending; empty if there are none."""
    atomics: tuple[str, ...] = ()
    """Atomic accumulations into global memory, such as `add.f32`: operation (`add mul max min umax umin and or`) and
    element type."""
    flushing_atomics: tuple[str, ...] = ()
    """The atomics that flush denormals to zero."""
    registers: int = 0
    """32-bit registers of a multiprocessor, which the threads of its blocks share; 0 if they limit nothing."""
    memory_bandwidth: float = 0.0
    """Bytes per cycle that all multiprocessors together read from or write to global memory; 0 if not known."""
    cache_bandwidth: float = 0.0
    """Bytes per cycle that all multiprocessors together read from the last cache; 0 if not known."""
    fma_lanes: int = 0
    """Fused multiply-adds of 32 bits that a multiprocessor starts per cycle; 0 if not known."""
    schedulers: int = 0
    """Instructions of a warp that a multiprocessor starts per cycle; 0 if not known."""
    clock: float = 0.0
    """Cycles of a multiprocessor per second; 0 if not known."""


@dataclass(frozen=True)
class Snitch(KindFacts):
    """Streams and hardware loops of a Snitch core."""

    stream_registers: int = 0
    """Registers through which memory can be streamed (Snitch SSR); 0 if there are none."""
    stream_dims: int = 0
    """Most nested loops of a stream's address generator."""
    stream_repeats: int = 0
    """The largest number of times that a stream delivers one element before it moves on."""
    frep_instructions: int = 0
    """Most instructions of a hardware loop (Snitch FREP); 0 if there is none."""
    frep_nesting: int = 0
    """Most hardware loops inside each other."""
    frep_trips: int = 0
    """Most iterations of a hardware loop."""


@dataclass(frozen=True)
class Machine:
    """The facts about a processor. Sizes in bytes. The fields are the keys of a machine file (docs/machines.md).

    >>> import pdojo
    >>> pdojo.machine("x86-64-avx2")
    <Machine x86-64-avx2, 2 threads>
    """

    name: str
    vector_bytes: tuple[int, ...]
    """Widths of the vector registers (GPU: of a thread's memory accesses), ascending; empty if there are none."""
    vector_registers: int
    """Number of architectural vector registers."""
    gather: bool
    """Whether vector loads and stores may be strided."""
    threads: int
    """Processors that a parallel scope may use."""
    description: str = ""
    """One line for people."""
    architecture: str = ""
    """Instruction set, as LLVM's triples name it (`x86_64`, `nvptx64`); empty for a model, whose code runs anywhere."""
    backend: str = "llvm"
    """Name of the backend that generates code for the machine (`llvm`, `snitch`); empty if there is none."""
    processor: str = ""
    """The processor's name in the compiler's spelling (`sm_90`); empty if the features are enough."""
    cache_bytes: tuple[int, ...] = (32 << 10, 1 << 20)
    """Data cache sizes, innermost first; the last cache may be shared."""
    cache_line: int = 64
    features: tuple[str, ...] = ()
    """Instruction set features in the compiler's spelling, sorted."""
    unroll_limit: int = 256
    """Most statement instances that nested unrolled scopes may expand to."""
    aligned_vectors: bool = False
    """Whether a vector in memory must start at a multiple of its size."""
    stack_bytes: int = 256 << 10
    """Most bytes that stack buffers of a kernel may take per thread."""
    register_bytes: int = 2048
    """Most bytes that register buffers of a kernel may take per thread."""
    lanes: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    """Lane counts per dtype that do not follow from `vector_bytes`."""
    cpu: Cpu = Cpu()
    gpu: Gpu = Gpu()
    snitch: Snitch = Snitch()
    measured: ProcessorMeasurements = field(default_factory=ProcessorMeasurements)
    """Measurements of the processor; they do not identify a machine."""
    intrinsics: tuple[Intrinsic, ...] = ()
    """Instructions that compute whole nests, for `tensorize`; each may need features that the machine lacks."""
    matrix_loads: tuple[MatrixLoad, ...] = ()
    """Instructions with which a warp loads operands of its intrinsics from shared memory, the preferred ones first."""

    def __repr__(self) -> str:
        return f"<Machine {self.name}, {self.threads} thread{'s' * (self.threads != 1)}>"

    @property
    def has_parallel_scopes(self) -> bool:
        """Whether processors may share the iterations of a scope `:p`; not so for GPUs (`:g`, `:b`) and Snitch cores.

        A single processor may run such a scope, too.
        """
        return not (self.gpu or self.snitch)

    @property
    def private_cache(self) -> int:
        """Bytes of the largest cache that belongs to one core: the second one, or the only one."""
        return self.cache_bytes[min(1, len(self.cache_bytes) - 1)] if self.cache_bytes else 0

    @property
    def usable_cache(self) -> int:
        """Bytes of the caches that a kernel on all threads may count on.

        Without measurements: the size that the system reports, but at most the private cache plus 2 MiB per thread,
        because virtual machines report the last cache of the whole socket.
        """
        found = self.measured.usable_cache(self.threads)
        if found is not None:
            return found
        return min(self.cache_bytes[-1], (2 << 20) * self.threads + self.private_cache)

    @property
    def streaming_bytes(self) -> float:
        """Bytes of all arrays of a kernel from which stores past the caches pay, with one place of stores a thread."""
        return self.streaming_from(1)

    def streaming_from(self, streams: int) -> float:
        """Bytes of all arrays from which stores past the caches pay; infinite if they never do.

        Each thread stores to `streams` places in turn. Without measurements: the last cache, but at most 16 MiB, as
        virtual machines report the cache of the whole socket.
        """
        if self.measured:
            found = self.measured.nontemporal_from(self.threads, streams)
            return inf if found is None else found
        return min(self.cache_bytes[-1], 16 << 20)

    def vector_lanes(self, dtype: str) -> tuple[int, ...]:
        """Lane counts at least 2 of the vectors of `dtype`, ascending."""
        if dtype in self.lanes:
            return self.lanes[dtype]
        width = byte_width(dtype)
        return tuple(b // width for b in self.vector_bytes if b // width >= 2)

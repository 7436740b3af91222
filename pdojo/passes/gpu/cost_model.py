"""An analytical model of a program's cost on a graphics processor: bytes, occupancy, issue slots.

It ranks candidates without a device. It counts the memory transactions of a warp exactly, at one place of the iteration
space. It ignores the compiler's registers and conflicts between multiprocessors, so it is right about factors, not
about percents.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, prod

from pdojo.backends.common.addresses import address_of, layout_of
from pdojo.backends.common.placement import ALIGNMENT
from pdojo.backends.gpu.atomic_text import atomics_of
from pdojo.backends.gpu.homes import own_part
from pdojo.backends.gpu.launches import Launch, holds_grid, launch, reduced_by
from pdojo.backends.gpu.operand_loads import MemoryOperand, Piece
from pdojo.backends.gpu.resources import MULTIPROCESSORS, Resources, occupancy
from pdojo.dialect.attributes import Mapping, Memory
from pdojo.dialect.functions import byte_width
from pdojo.dialect.machines.collectives import Collective, SpreadAccess
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.rules.block_threads import threads_of
from pdojo.dialect.rules.threads import tree_bytes
from pdojo.dialect.view.nest import Access, Leaf, Nest, Node, Scope
from pdojo.errors import LoweringError
from pdojo.math.functions import FUNCTIONS

LAUNCH = 4000.0
"""Cycles between the ends of two launches in one stream, roughly 2 microseconds."""
LATENCY = 600.0
"""Cycles until a load from global memory arrives."""
BARRIER = 40.0
"""Cycles of a barrier, or of a phase of a block."""
UPDATE = 4.0
"""Cycles between two atomic operations on one number, roughly; pdojo's own estimate, not measured."""
SECTOR = 32
"""Bytes of a memory transaction (CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory")."""
BANKS = 128
"""Bytes per cycle of the shared memory of a multiprocessor."""
TENSOR = 16
"""Products of 16-bit factors that a tensor unit adds up per cycle, for each multiply-add that its scheduler issues
(NVIDIA H100 Tensor Core GPU Architecture: 2048 and 128 per multiprocessor).
"""
ONE_WARP = 0.63
"""The part of that rate that products of single warps reach where several warps share an instruction (Luo et al.,
"Benchmarking and Dissecting the Nvidia Hopper GPU Architecture via Microbenchmarking", 2024: mma.sync on an H100).
"""
OTHER_REGISTERS = 24
"""Registers of a thread besides its buffers, roughly."""


@dataclass(frozen=True, slots=True)
class LaunchCost:
    """The parts of the estimate of one launch, in cycles of a multiprocessor."""

    cycles: float
    issue: float
    """Issue slots of the busiest multiprocessor."""
    shared: float
    """Shared memory of the busiest multiprocessor."""
    memory: float
    """Global memory."""
    cache: float
    """The last-level cache."""
    occupancy: float
    """Resident warps as a fraction of the maximum."""
    blocks: int
    times: int
    """Number of launches by the host."""


@dataclass(frozen=True, slots=True)
class GpuCost:
    """The estimate of a call."""

    cycles: float
    launches: tuple[LaunchCost, ...]


def estimate_gpu(nest: Nest, machine: Machine) -> GpuCost | None:
    """The cost of one call; None for programs and machines outside of the model."""
    if machine.processor not in MULTIPROCESSORS or not machine.gpu.memory_bandwidth or not machine.gpu.multiprocessors:
        return None
    try:
        launches = tuple(
            _Launch(nest, machine, node).cost(times) for node, times in _launched(nest.children) if times > 0
        )
    except LoweringError:
        return None
    return GpuCost(sum(cost.times * cost.cycles for cost in launches), launches)


def _launched(nodes: Sequence[Node], times: int = 1) -> Iterator[tuple[Node, int]]:
    """The nodes that the host launches, and the number of launches of each."""
    for node in nodes:
        if isinstance(node, Scope) and holds_grid(node) and node.mapping is not Mapping.GRID:
            yield from _launched(node.children, times * node.extent)
        else:
            yield node, times


class _Launch:
    def __init__(self, nest: Nest, machine: Machine, node: Node) -> None:
        self.nest, self.machine = nest, machine
        self.found: Launch = launch(nest, node, machine)
        self.atomics = atomics_of(nest, self.found)
        self.outer = len(self.found.grids) + node.depth if isinstance(node, Scope) else node.depth

    def cost(self, times: int) -> LaunchCost:
        """The estimate for one of `times` launches."""
        gpu, found = self.machine.gpu, self.found
        resident, share = self._resident()
        issue = sum(self._issue(leaf) for leaf in found.leaves) / max(1, gpu.schedulers)
        shared = sum(self._shared(leaf) for leaf in found.leaves)
        busy = ceil(found.blocks / gpu.multiprocessors)
        rounds = ceil(found.blocks / (gpu.multiprocessors * resident))
        # A multiprocessor with several blocks is as busy as all of them together.
        blocks = min(busy, rounds * resident)
        traffic, footprint = self._traffic()
        under_way = min(found.blocks, gpu.multiprocessors * resident) * found.threads * 32
        rate = min(gpu.memory_bandwidth, under_way / LATENCY)
        memory = footprint / rate
        cache = traffic / min(gpu.cache_bandwidth or gpu.memory_bandwidth, 2 * under_way / LATENCY)
        phases = len(found.nodes) * (BARRIER + LATENCY / 4) * rounds
        longest = max(blocks * issue, blocks * shared, memory, cache, self._conflicting_updates())
        return LaunchCost(
            LAUNCH + LATENCY + phases + longest,
            *(blocks * issue, blocks * shared, memory, cache, share, found.blocks, times),
        )

    def _resident(self) -> tuple[int, float]:
        """Resident blocks of a multiprocessor, and the resident fraction of its warps."""
        found, nest = self.found, self.nest
        buffers = {a.array.buffer for leaf in found.leaves for a in leaf.accesses}
        own = [b for b in buffers if b.op is not None and b.memory is Memory.REGISTER]
        registers = OTHER_REGISTERS + sum(own_part(found, nest, b).layout.size_bytes for b in own) // 4
        shared = sum(layout_of(nest, b).size_bytes for b in buffers if b.memory is Memory.SHARED)
        shared += sum(tree_bytes(leaf, found.threads) for leaf in found.leaves)
        limits = MULTIPROCESSORS[self.machine.processor]
        fits = occupancy(Resources(min(registers, limits.thread_registers), shared=shared), found.threads, limits)
        return max(1, fits.blocks), fits.share

    def _instances(self, leaf: Leaf) -> int:
        """Instances of a statement in one block."""
        return prod(leaf.extents[self.outer :])

    def _warps(self, leaf: Leaf) -> float:
        """Warp instructions of a block for a statement, executed once per instance."""
        instances = self._instances(leaf)
        together = self.found.collectives.of(leaf)
        if together is not None:
            # One for a tile.
            return instances / prod(leaf.extents[together.scope.depth :])
        stores = leaf.output.array.buffer.memory in (Memory.HEAP, Memory.SHARED)
        # Outside of threads one thread stores, but all threads of a group compute register values.
        copies = 1 if stores else self.found.group(leaf.chain)
        threads = prod(s.extent for s in threads_of(leaf.chain))
        warp = self.machine.gpu.warp_size
        return instances / threads * ceil(threads * copies / warp)

    def _lanes(self, leaf: Leaf) -> int:
        """Elements that one access moves together."""
        scope = leaf.chain[-1] if leaf.chain else None
        if scope is None or scope.mapping is not Mapping.VECTOR:
            return 1
        return min(scope.extent, 16 // byte_width(leaf.output.array.dtype) or 1)

    def _issue(self, leaf: Leaf) -> float:
        """Warp instructions of a block for a statement."""
        warps = self._warps(leaf)
        together = self.found.collectives.of(leaf)
        if together is not None:
            return warps * self._tensor_issue(leaf, together)
        work = 0.0 if leaf.function is None else FUNCTIONS[leaf.function].instructions
        work += 1.0 if leaf.accumulate is not None and not leaf.contracted else 0.0
        moved = sum(a.array.buffer.memory is not Memory.REGISTER for a in leaf.accesses)
        return warps * (work + 1.5 * moved / self._lanes(leaf))

    def _tensor_issue(self, leaf: Leaf, together: Collective) -> float:
        """Cycles of a scheduler for a statement that is part of a warp instruction."""
        gpu = self.machine.gpu
        loads = sum(1.5 * len(self._pieces(leaf, s)) for s in self._loaded(leaf))
        if leaf is not together.scope.leaves[-1]:
            return loads
        operands = (*together.operands.values(), *together.shared.values())
        width = min(byte_width(s.access.array.dtype) for s in operands)
        rate = TENSOR * 2 / width * gpu.fma_lanes / max(1, gpu.schedulers)
        if together.intrinsic.warps < max(i.warps for i in self.machine.intrinsics):
            rate *= ONE_WARP
        return loads + max(1.0, prod(leaf.extents[together.scope.depth :]) / max(1.0, rate))

    def _pieces(self, leaf: Leaf, spread: SpreadAccess) -> list[Piece]:
        """The instructions that load an operand of a warp instruction."""
        buffer = spread.access.array.buffer
        alignment = buffer.alignment if buffer.op is None else ALIGNMENT
        operand = MemoryOperand(spread, leaf.depth, layout_of(self.nest, buffer), alignment)
        return operand.pieces(self.machine.matrix_loads)

    def _loaded(self, leaf: Leaf) -> list[SpreadAccess]:
        """The operands of a warp instruction that a statement loads."""
        spreads = self.found.collectives.spreads
        touched = [a for a in self.found.touched(leaf) if a.array.buffer.memory is not Memory.REGISTER]
        return [spreads[a] for a in touched if a in spreads]

    def _shared(self, leaf: Leaf) -> float:
        """Cycles of shared memory in a block for a statement."""
        total = 0.0
        if self.found.collectives.of(leaf) is not None:
            loaded = (s for s in self._loaded(leaf) if s.access.array.buffer.memory is Memory.SHARED)
            words = sum(s.fragment.slots * s.fragment.threads * byte_width(s.access.array.dtype) for s in loaded)
            read = (self.found.collectives.shared.get(a) for a in leaf.accesses)
            words += sum(prod(leaf.extents[d] for d in s.depths) * byte_width(s.access.array.dtype) for s in read if s)
            return self._warps(leaf) * words / BANKS
        for access in leaf.accesses:
            if access.array.buffer.memory is Memory.SHARED:
                total += self._warps(leaf) / self._lanes(leaf) * self._conflicts(leaf, access)
        return total

    def _conflicts(self, leaf: Leaf, access: Access) -> float:
        """Cycles in which shared memory serves a warp: the most words in one bank."""
        width, size = byte_width(access.array.dtype), byte_width(access.array.dtype) * self._lanes(leaf)
        words: dict[int, set[int]] = {}
        for address in self._addresses(leaf, access):
            for word in range(address * width // 4, (address * width + size + 3) // 4):
                words.setdefault(word % (BANKS // 4), set()).add(word)
        return max((len(each) for each in words.values()), default=1)

    def _traffic(self) -> tuple[float, float]:
        """Bytes between the last-level cache and the multiprocessors, and bytes of global memory."""
        traffic = 0.0
        footprints: dict[tuple[int, bool], float] = {}
        for leaf in self.found.leaves:
            warps = self._warps(leaf) * self.found.blocks
            for access in self.found.touched(leaf):
                buffer = access.array.buffer
                if buffer.memory is not Memory.HEAP:
                    continue
                spread = self.found.collectives.spreads.get(access)
                if spread is None:
                    moved = warps / self._lanes(leaf) * self._sectors(leaf, access) * SECTOR
                else:
                    moved = warps * prod(spread.fragment.shape) * byte_width(buffer.dtype)
                # An atomic operation makes the last-level cache read the value before it is written.
                traffic += 2 * moved if leaf in self.atomics and access is leaf.output else moved
                key = id(buffer), access is leaf.output
                footprints[key] = max(footprints.get(key, 0.0), self._footprint(leaf, access, moved))
        return traffic, sum(footprints.values())

    def _conflicting_updates(self) -> float:
        """Cycles of the last-level cache for atomic operations on one number, which run one after the other."""
        most = 0.0
        for leaf in self.atomics:
            used = {v for e in leaf.output.index for v in e.variables() if v >= self.outer - len(self.found.grids)}
            cells = min(prod(leaf.extents[v] for v in used), prod(leaf.output.array.buffer.shape))
            # Threads that add up their terms first make one operation.
            together = prod(s.extent for s in reduced_by(leaf))
            most = max(most, self._instances(leaf) / together * self.found.blocks / cells)
        return most * UPDATE

    def _footprint(self, leaf: Leaf, access: Access, moved: float) -> float:
        """Bytes of global memory that an access moves: each element once, and again after its loss from the last-level
        cache.
        """
        used = {v for e in access.index for v in e.variables()}
        elements = min(prod(leaf.extents[v] for v in used), prod(access.array.buffer.shape))
        size = elements * byte_width(access.array.dtype)
        kept = self.machine.cache_bytes[-1] / 2
        return min(moved, size) if size <= kept else min(moved, max(size, moved / 8))

    def _sectors(self, leaf: Leaf, access: Access) -> float:
        """Memory transactions of one access of a warp, for a lane or a vector."""
        width = byte_width(access.array.dtype)
        size = width * self._lanes(leaf)
        first = {address * width // SECTOR for address in self._addresses(leaf, access)}
        last = {(address * width + size - 1) // SECTOR for address in self._addresses(leaf, access)}
        return len(first | last)

    def _addresses(self, leaf: Leaf, access: Access) -> list[int]:
        """The elements accessed by the threads of the first warp, in their first iterations."""
        linear = address_of(access, layout_of(self.nest, access.array.buffer), leaf.chain).linear
        threads = threads_of(leaf.chain)
        count = min(self.machine.gpu.warp_size, max(1, self.found.threads))
        found: list[int] = []
        for thread in range(count):
            point = [0] * len(leaf.chain)
            for scope in threads:
                point[scope.depth] = thread // self.found.strides[scope] % scope.extent
            found.append(linear.evaluate(point))
        return found

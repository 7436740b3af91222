"""An analytical model of a program's cost on a CPU: arithmetic, cache traffic, loops and threads.

It ranks candidates and replaces measurements if costs must be reproducible. It models no prefetching, no associativity
and no compiler optimisations of loops, so it is right about factors, not about percents. docs/search.md says what it
leaves out and how well it agrees with measurements.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2, prod

from pdojo.dialect.attributes import Intent, Mapping, Memory
from pdojo.dialect.functions import byte_width, is_float
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.rules.lanes import Stride, lane_stride
from pdojo.dialect.view.binding import binding_nests
from pdojo.dialect.view.nest import Access, Leaf, Nest, Node, Scope
from pdojo.dialect.view.storage import physical_index, physical_shape
from pdojo.math.functions import FUNCTIONS

BYTES_PER_CYCLE = (64.0, 32.0, 8.0)
"""Bytes per cycle that a core reads from its second cache, its third one and memory, roughly."""
MEMORY_CORES = 2.0
"""Cores that saturate the memory bandwidth."""
LOOP = 1.0
"""Cycles of an iteration's counter and branch."""
START = 24000.0
"""Cycles to start the threads and to wait for the last of them, where that was not measured: 10 us at 2.4 GHz, as
measured with threads that sleep (libgomp with two threads on an AMD EPYC, November 2026)."""
_UNMAPPED = frozenset({Mapping.SEQUENTIAL, Mapping.UNROLL, Mapping.VECTOR, Mapping.PARALLEL})


@dataclass(frozen=True, slots=True)
class ModelCost:
    """The parts of an estimate, in cycles."""

    cycles: float
    """The sum of the bounds of all parts of the program."""
    compute: float
    """All arithmetic, loads, stores and loops, without waiting."""
    memory: tuple[float, ...]
    """The traffic from each cache level to the one before, and from memory to the last."""
    starts: float
    """Cycles of starting threads."""


def estimate(nest: Nest, machine: Machine) -> ModelCost | None:
    """The cost of one call; None for programs with mappings of machines other than CPUs.

    The nests that write constants run at binding, not in a call.
    """
    if any(scope.mapping not in _UNMAPPED and scope.mapping is not Mapping.TENSOR for scope in nest.scopes):
        return None
    model = _Model(nest, machine)
    total = compute = starts = 0.0
    memory = [0.0] * len(machine.cache_bytes)
    early = binding_nests(nest)
    for node in (node for node in nest.children if node not in early):
        work, begun = model.compute(node)
        waits = model.waits(node)
        total += max(work, *waits) + begun if waits else work + begun
        compute, starts = compute + work, starts + begun
        memory = [a + b for a, b in zip(memory, waits, strict=True)]
    return ModelCost(total, compute, tuple(memory), starts)


def cycles(node: Node, nest: Nest, machine: Machine) -> float:
    """Cycles of computing in one run of a node, without waits for memory or threads."""
    return _Model(nest, machine).compute(node)[0]


def alone(node: Node, nest: Nest, machine: Machine) -> float:
    """Cycles of a node without parallel scopes on one thread, if caches contain all data that fits."""
    model = _Model(nest, machine)
    return max([model.compute(node)[0], *model.waits(node, warm=True)])


def start_cycles(machine: Machine) -> float:
    """Cycles to start the threads and to wait for the last of them: measured on a calibrated machine, else `START`."""
    return machine.measured.thread_start * _clock(machine) or START


def _clock(machine: Machine) -> float:
    """Cycles per second, from the measured rate of multiply-adds in the widest vectors; 0 if it was not measured."""
    width = max(machine.vector_bytes, default=0)
    rate = machine.measured.rates.get(f"fma_{width}", 0.0)
    return rate * machine.cpu.passes(width) / (machine.cpu.fma_pipes * (width // byte_width("f32"))) if rate else 0.0


def _shared(leaf: Leaf, access: Access) -> float:
    """The fraction of a load charged to one instance, if unrolled loops around it share the element."""
    part = 1.0
    for scope in reversed(leaf.chain):
        if scope.mapping not in (Mapping.UNROLL, Mapping.VECTOR):
            break
        if scope.mapping is Mapping.UNROLL and not any(e.uses(scope.depth) for e in access.index):
            part /= scope.extent
    return part


class _Model:
    def __init__(self, nest: Nest, machine: Machine) -> None:
        self.nest = nest
        self.machine = machine
        self._shapes = {buffer: physical_shape(nest, buffer) for buffer in nest.buffers}
        self._footprints: dict[tuple[int, int], float] = {}

    # Arithmetic, loops, threads

    def compute(self, node: Node) -> tuple[float, float]:
        """Cycles of one run of a node, and cycles of starting threads in it."""
        if isinstance(node, Leaf):
            return self._instance(node), 0.0
        if node.mapping is Mapping.VECTOR:
            return self._vector(node.leaves[0], node), 0.0
        if node.mapping is Mapping.TENSOR:
            # One instruction for the whole tile.
            return float(self.machine.cpu.passes(max(self.machine.vector_bytes, default=1))), 0.0
        parts = [self.compute(child) for child in node.children]
        body, begun = sum(work for work, _ in parts), sum(start for _, start in parts)
        match node.mapping:
            case Mapping.UNROLL:
                return body * node.extent, begun * node.extent
            case Mapping.PARALLEL:
                return (body + LOOP) * ceil(node.extent / self.machine.threads), START + begun * node.extent
            case _:
                chain = max((self._chain(leaf, node) for leaf in node.leaves), default=0.0)
                return max(body + LOOP, chain) * node.extent, begun * node.extent

    def _instance(self, leaf: Leaf) -> float:
        """Cycles of one scalar instance of a statement."""
        loads = sum(_shared(leaf, a) for a in leaf.accesses[1:] if a.array.buffer.memory is not Memory.REGISTER)
        store = leaf.output.array.buffer.memory is not Memory.REGISTER
        loads += store and leaf.accumulate is not None
        return max(loads / self.machine.cpu.load_pipes, self._arithmetic(leaf) / self._pipes(leaf)) + store

    def _vector(self, leaf: Leaf, scope: Scope) -> float:
        """Cycles of one vector instance of a statement."""
        size = scope.extent * max(byte_width(a.array.dtype) for a in leaf.accesses)
        passes = self.machine.cpu.passes(size)
        loads = sum(self._load(leaf, a, scope, passes) for a in leaf.accesses[1:])
        stored = leaf.output
        folds = leaf.accumulate is not None and not any(e.uses(scope.depth) for e in stored.index)
        store = 0.0
        if stored.array.buffer.memory is not Memory.REGISTER:
            store = self._load(leaf, stored, scope, passes) * self.machine.cpu.load_pipes
            loads += store if leaf.accumulate is not None else 0.0
        work = self._arithmetic(leaf) * passes / self._pipes(leaf)
        across = self.machine.cpu.fma_latency * log2(scope.extent) if folds else 0.0
        return max(loads / self.machine.cpu.load_pipes, work) + store + across

    def _load(self, leaf: Leaf, access: Access, scope: Scope, passes: int) -> float:
        """Number of loads for the lanes of an access."""
        if access.array.buffer.memory is Memory.REGISTER:
            return 0.0
        index = physical_index(access, leaf.chain)
        match lane_stride(index, self._shapes[access.array.buffer], scope.depth):
            case Stride.BROADCAST:
                loads = 1
            case Stride.CONTIGUOUS:
                loads = passes
            case _:
                loads = scope.extent
        return loads * _shared(leaf, access)

    def _pipes(self, leaf: Leaf) -> int:
        return self.machine.cpu.fma_pipes if is_float(leaf.output.array.dtype) else max(2, self.machine.cpu.fma_pipes)

    def _arithmetic(self, leaf: Leaf) -> float:
        """Number of arithmetic instructions."""
        function = 0.0 if leaf.function is None else FUNCTIONS[leaf.function].cycles
        return function + (leaf.accumulate is not None and not leaf.contracted)

    def _chain(self, leaf: Leaf, scope: Scope) -> float:
        """Latency cycles per iteration of a loop that accumulates into one element."""
        if leaf.accumulate is None or any(e.uses(scope.depth) for e in leaf.output.index):
            return 0.0
        inside = leaf.chain[scope.depth + 1 :]
        # Only the innermost accumulating loop counts; the loops around it wait for it anyway.
        if any(s.mapping is Mapping.SEQUENTIAL for s in inside):
            return 0.0
        repeats = prod(s.extent for s in inside if not any(e.uses(s.depth) for e in leaf.output.index))
        return float(self.machine.cpu.fma_latency * repeats)

    # Traffic

    def waits(self, node: Node, *, warm: bool = False) -> list[float]:
        """Cycles of a node's traffic, for each cache level; if `warm`, only for levels that the node's data exceed."""
        threads = self._threads(node)
        depth = 0 if isinstance(node, Leaf) else node.depth
        found: list[float] = []
        for level, capacity in enumerate(self.machine.cache_bytes):
            last = level + 1 == len(self.machine.cache_bytes)
            rate = BYTES_PER_CYCLE[-1 if last else min(level, len(BYTES_PER_CYCLE) - 2)]
            sharers = min(threads, MEMORY_CORES) if last else threads
            fits = warm and self._footprint(node, depth) <= capacity
            found.append(0.0 if fits else self._traffic(node, depth, capacity) / (rate * sharers))
        return found

    def _threads(self, node: Node) -> int:
        """Number of threads that execute a node."""
        scopes = () if isinstance(node, Leaf) else (s for s in self.nest.scopes if node in s.chain)
        widest = max((s.extent for s in scopes if s.mapping is Mapping.PARALLEL), default=1)
        return min(self.machine.threads, widest)

    def _traffic(self, node: Node, depth: int, capacity: int) -> float:
        """Bytes from beyond a cache of `capacity` bytes in one run of a node.

        If an iteration fits into the cache, the next one reuses its data.
        """
        whole = self._footprint(node, depth)
        if isinstance(node, Leaf) or whole <= capacity or self._footprint(node, depth + 1) <= capacity:
            return whole
        return node.extent * sum(self._traffic(child, depth + 1, capacity) for child in node.children)

    def _footprint(self, node: Node, depth: int) -> float:
        """Bytes of cache lines touched in one run of a node; stores count twice, as a line is read before it is
        written.
        """
        key = id(node), depth
        if key not in self._footprints:
            leaves = [node] if isinstance(node, Leaf) else node.leaves
            groups: dict[tuple[int, object], float] = {}
            for leaf in leaves:
                for access in leaf.accesses:
                    if access.array.buffer.memory is Memory.REGISTER:
                        continue
                    moved = tuple(
                        (atom, c)
                        for e in access.index
                        for atom, c in e.terms
                        if not isinstance(atom, int) or atom >= depth
                    )
                    group = id(access.array.buffer), moved
                    groups[group] = max(groups.get(group, 0.0), self._lines(leaf, access, depth))
            self._footprints[key] = sum(groups.values())
        return self._footprints[key]

    def _lines(self, leaf: Leaf, access: Access, depth: int) -> float:
        """Bytes of cache lines that an access touches in one run of the loops from `depth` on."""
        shape = self._shapes[access.array.buffer]
        width, line = byte_width(access.array.dtype), self.machine.cache_line
        extents = tuple(1 if k < depth else n for k, n in enumerate(leaf.extents))
        counts: list[int] = []
        for expression, extent in zip(physical_index(access, leaf.chain), shape, strict=True):
            low, high = expression.bounds(extents)
            instances = prod(extents[v] for v in expression.variables())
            counts.append(min(high - low + 1, extent, instances))
        rows, run = prod(counts[:-1]), counts[-1] if counts else 1
        size = rows * (run * width if run * width >= line else line)
        # Rows shorter than a line share it with the next row.
        size = min(size, max(prod(shape) * width, line))
        stores = access is leaf.output
        bypasses = "nontemporal" in access.hints.data
        interface = access.array.buffer.op is None and access.array.intent is not Intent.IN
        return float(size) * (2.0 if stores and interface and not bypasses else 1.0)

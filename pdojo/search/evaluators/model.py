"""An analytical model of what a program costs on a CPU: arithmetic, traffic through the caches, loops and threads.

It orders candidates and stands in for measurements where these must not differ from run to run. It knows no
prefetching, no associativity and nothing of what the compiler makes of a loop, so it is right about factors, not about
percents. docs/search.md says what it leaves out and how well it agrees with measurements.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2, prod

from pdojo.dialect.analysis.lanes import Stride, lane_stride
from pdojo.dialect.attributes import Intent, Mapping, Memory
from pdojo.dialect.functions import byte_width, is_float
from pdojo.dialect.machine import Machine
from pdojo.dialect.nest import Access, Leaf, Nest, Node, Scope
from pdojo.dialect.storage import physical_index, physical_shape

BYTES_PER_CYCLE = (64.0, 32.0, 8.0)
"""What a core takes from its second cache, its third one and memory in a cycle, roughly."""
MEMORY_CORES = 2.0
"""Cores that together take all that memory gives."""
LOOP = 1.0
"""Cycles for the counter and the branch of an iteration."""
START = 4000.0
"""Cycles to start the threads and to wait for the last."""
FUNCTION_CYCLES = {
    "arith.divf": 10.0,
    "arith.remf": 40.0,
    "arith.divsi": 20.0,
    "arith.divui": 20.0,
    "arith.remsi": 20.0,
    "arith.remui": 20.0,
    "math.sqrt": 12.0,
    "math.rsqrt": 20.0,
    "math.exp": 14.0,
    "math.exp2": 12.0,
    "math.expm1": 20.0,
    "math.log": 18.0,
    "math.log2": 18.0,
    "math.log1p": 22.0,
    "math.sin": 25.0,
    "math.cos": 25.0,
    "math.tanh": 24.0,
    "math.erf": 28.0,
    "math.powf": 40.0,
}
"""Cycles of functions that are more than one instruction, for a vector that goes through the pipelines at once."""
_UNMAPPED = frozenset({Mapping.SEQUENTIAL, Mapping.UNROLL, Mapping.VECTOR, Mapping.PARALLEL})


@dataclass(frozen=True, slots=True)
class ModelCost:
    """The parts of an estimate, in cycles."""

    cycles: float
    """The whole: what bounds each part of the program, added up."""
    compute: float
    """All arithmetic, loads, stores and loops, as if nothing ever had to be waited for."""
    memory: tuple[float, ...]
    """The traffic from each cache level to the one before, and from memory to the last."""
    starts: float
    """Starting threads."""


def estimate(nest: Nest, machine: Machine) -> ModelCost | None:
    """The cost of one call; None for programs with mappings of other machines than CPUs."""
    if any(scope.mapping not in _UNMAPPED and scope.mapping is not Mapping.TENSOR for scope in nest.scopes):
        return None
    model = _Model(nest, machine)
    total = compute = starts = 0.0
    memory = [0.0] * len(machine.cache_bytes)
    for node in nest.children:
        work, begun = model.compute(node)
        waits = model.waits(node)
        total += max(work, *waits) + begun if waits else work + begun
        compute, starts = compute + work, starts + begun
        memory = [a + b for a, b in zip(memory, waits, strict=True)]
    return ModelCost(total, compute, tuple(memory), starts)


def _shared(leaf: Leaf, access: Access) -> float:
    """The part of a load that an instance pays for where unrolled loops around it need the same element."""
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
        """Cycles of one run of a node, and those of starting threads in it."""
        if isinstance(node, Leaf):
            return self._instance(node), 0.0
        if node.mapping is Mapping.VECTOR:
            return self._vector(node.leaves[0], node), 0.0
        if node.mapping is Mapping.TENSOR:
            # One instruction, whatever it computes.
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
        """A statement on its own, without lanes."""
        loads = sum(_shared(leaf, a) for a in leaf.accesses[1:] if a.array.buffer.memory is not Memory.REGISTER)
        store = leaf.output.array.buffer.memory is not Memory.REGISTER
        loads += store and leaf.accumulate is not None
        return max(loads / self.machine.cpu.load_pipes, self._arithmetic(leaf) / self._pipes(leaf)) + store

    def _vector(self, leaf: Leaf, scope: Scope) -> float:
        """A statement on all lanes at once."""
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
        """Loads that the lanes of an access take."""
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
        """Instructions of arithmetic."""
        function = 0.0 if leaf.function is None else FUNCTION_CYCLES.get(leaf.function, 1.0)
        return function + (leaf.accumulate is not None and not leaf.contracted)

    def _chain(self, leaf: Leaf, scope: Scope) -> float:
        """Cycles from one iteration to the next of a loop that adds to the same element in each."""
        if leaf.accumulate is None or any(e.uses(scope.depth) for e in leaf.output.index):
            return 0.0
        inside = leaf.chain[scope.depth + 1 :]
        # Only the innermost loop that adds: those around it wait for it anyway.
        if any(s.mapping is Mapping.SEQUENTIAL for s in inside):
            return 0.0
        repeats = prod(s.extent for s in inside if not any(e.uses(s.depth) for e in leaf.output.index))
        return float(self.machine.cpu.fma_latency * repeats)

    # Traffic

    def waits(self, node: Node) -> list[float]:
        """Cycles that the traffic of a node takes, for each cache level."""
        threads = self._threads(node)
        found: list[float] = []
        for level, capacity in enumerate(self.machine.cache_bytes):
            last = level + 1 == len(self.machine.cache_bytes)
            rate = BYTES_PER_CYCLE[-1 if last else min(level, len(BYTES_PER_CYCLE) - 2)]
            sharers = min(threads, MEMORY_CORES) if last else threads
            found.append(self._traffic(node, 0 if isinstance(node, Leaf) else node.depth, capacity) / (rate * sharers))
        return found

    def _threads(self, node: Node) -> int:
        """Threads that work on a node."""
        scopes = () if isinstance(node, Leaf) else (s for s in self.nest.scopes if node in s.chain)
        widest = max((s.extent for s in scopes if s.mapping is Mapping.PARALLEL), default=1)
        return min(self.machine.threads, widest)

    def _traffic(self, node: Node, depth: int, capacity: int) -> float:
        """Bytes that come from beyond a cache of that capacity in one run of a node.

        Where an iteration fits, what the next one needs too is still there.
        """
        whole = self._footprint(node, depth)
        if isinstance(node, Leaf) or whole <= capacity or self._footprint(node, depth + 1) <= capacity:
            return whole
        return node.extent * sum(self._traffic(child, depth + 1, capacity) for child in node.children)

    def _footprint(self, node: Node, depth: int) -> float:
        """Bytes of cache lines that one run of a node touches; what is stored counts twice, as it is read first."""
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
        """Bytes of the lines that an access touches while the loops from `depth` on run."""
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
        # A row that is shorter than a line shares it with the next.
        size = min(size, max(prod(shape) * width, line))
        stores = access is leaf.output
        bypasses = "nontemporal" in access.hints.data
        interface = access.array.buffer.op is None and access.array.intent is not Intent.IN
        return float(size) * (2.0 if stores and interface and not bypasses else 1.0)

"""Features of programs for learned cost models: numbers that say how a program uses a CPU, by name.

| features | what they are |
| --- | --- |
| `model.*` | the parts of the analytical model's estimate, in log cycles; 0 if it has none |
| `scopes.*`, `instances.*` | per mapping: scopes, and the log of the statement instances inside |
| `lanes.*` | share of the instances in vectors, mean lanes of these, shortest and longest vector |
| `unrolled.*` | log of the statements after unrolling: of all, and of the outermost unrolled scope with most |
| `threads.*` | log of the starts of threads, of the instances of a start, and how evenly they are shared |
| `bytes.*`, `buffers.*`, `traffic.*` | per memory: log bytes and count of temporaries; log bytes accessed |
| `loads.*`, `stores.*` | per stride class over the innermost scope: share of the accesses |
| `hints.*` | accesses with each hint, and the mean log distance of those that fetch ahead |
| `depth.*`, `loops.*` | deepest and mean nesting; log of the loop iterations, mean log extent of innermost loops |
| `sums.*` | accumulations into one element over a loop: their share, and the mean log of independent copies |
| `size.*` | statements, nests, guarded instances |

Instances are those of one call. Means and shares are weighted with them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from math import log, log1p, prod

from pdojo.dialect.analysis.hints import value_of
from pdojo.dialect.analysis.lanes import Stride, lane_stride
from pdojo.dialect.attributes import Mapping, Memory
from pdojo.dialect.functions import byte_width
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.view.nest import Leaf, Nest, Scope
from pdojo.dialect.view.storage import physical_index, physical_shape
from pdojo.search.evaluators.model import estimate
from pdojo.search.experts.threads import balance

VERSION = 1
"""Version of the features: models of other versions are not comparable."""
HINTS = ("nontemporal", "prefetch")
LEVELS = 3
"""Cache levels that have a feature."""


def features(nest: Nest, machine: Machine) -> list[float]:
    """The features of a program, in the same order for all programs."""
    return [value for _, value in named_features(nest, machine)]


def named_features(nest: Nest, machine: Machine) -> list[tuple[str, float]]:
    """The features with their names."""
    counts = {leaf: prod(leaf.extents) for leaf in nest.leaves}
    total = max(1, sum(counts.values()))
    return [
        *_estimated(nest, machine),
        *_mappings(nest, counts),
        *_vectors(nest, counts, total),
        *_unrolled(nest),
        *_threads(nest, machine),
        *_memories(nest, counts),
        *_strides(nest, counts),
        *_hints(nest),
        *_loops(nest, counts, total),
        *_sums(nest, counts, total),
        ("size.statements", float(len(nest.leaves))),
        ("size.nests", float(len(nest.children))),
        ("size.guarded", sum(n for leaf, n in counts.items() if leaf.guards) / total),
    ]


_Named = Iterator[tuple[str, float]]
_Counts = dict[Leaf, int]


def _estimated(nest: Nest, machine: Machine) -> _Named:
    cost = estimate(nest, machine)
    yield "model.known", float(cost is not None)
    yield "model.cycles", log1p(cost.cycles) if cost else 0.0
    yield "model.compute", log1p(cost.compute) if cost else 0.0
    yield "model.starts", log1p(cost.starts) if cost else 0.0
    memory = (*(cost.memory if cost else ()), *(0.0,) * LEVELS)[:LEVELS]
    yield from ((f"model.memory{level}", log1p(cycles)) for level, cycles in enumerate(memory))


def _mappings(nest: Nest, counts: _Counts) -> _Named:
    for mapping in Mapping:
        scopes = [scope for scope in nest.scopes if scope.mapping is mapping]
        inside = sum(n for leaf, n in counts.items() if any(s.mapping is mapping for s in leaf.chain))
        yield f"scopes.{mapping.value}", float(len(scopes))
        yield f"instances.{mapping.value}", log1p(inside)


def _vectors(nest: Nest, counts: _Counts, total: int) -> _Named:
    lanes = {leaf: s.extent for leaf in nest.leaves for s in leaf.chain[-1:] if s.mapping is Mapping.VECTOR}
    inside = sum(counts[leaf] for leaf in lanes)
    yield "lanes.share", inside / total
    yield "lanes.mean", sum(counts[leaf] * n for leaf, n in lanes.items()) / max(1, inside)
    yield "lanes.shortest", float(min(lanes.values(), default=1))
    yield "lanes.longest", float(max(lanes.values(), default=1))


def _unrolled(nest: Nest) -> _Named:
    copies: defaultdict[Scope | Leaf, int] = defaultdict(int)
    for leaf in nest.leaves:
        outermost = next((s for s in leaf.chain if s.mapping is Mapping.UNROLL), leaf)
        copies[outermost] += leaf.copies
    yield "unrolled.all", log1p(sum(copies.values()))
    yield "unrolled.most", log1p(max(copies.values(), default=0))


def _threads(nest: Nest, machine: Machine) -> _Named:
    parallel = [s for s in nest.scopes if s.mapping is Mapping.PARALLEL]
    starts = sum(prod(outer.extent for outer in s.chain[:-1]) for s in parallel)
    smallest = min((_inside(s) for s in parallel), default=0)
    yield "threads.starts", log1p(starts)
    yield "threads.smallest", log1p(smallest)
    yield "threads.balance", min((balance(s.extent, machine.threads) for s in parallel), default=0.0)


def _inside(scope: Scope) -> int:
    """Statement instances of one run of a scope."""
    return sum(prod(leaf.extents[scope.depth :]) for leaf in scope.leaves)


def _memories(nest: Nest, counts: _Counts) -> _Named:
    traffic: defaultdict[Memory, int] = defaultdict(int)
    for leaf, n in counts.items():
        for access in leaf.accesses:
            traffic[access.array.buffer.memory] += n * byte_width(access.array.dtype)
    for memory in Memory:
        buffers = [b for b in nest.buffers if b.op is not None and b.memory is memory]
        yield f"bytes.{memory.value}", log1p(sum(prod(physical_shape(nest, b)) * byte_width(b.dtype) for b in buffers))
        yield f"buffers.{memory.value}", float(len(buffers))
        yield f"traffic.{memory.value}", log1p(traffic[memory])


def _strides(nest: Nest, counts: _Counts) -> _Named:
    shapes = {buffer: physical_shape(nest, buffer) for buffer in nest.buffers}
    for kind in ("loads", "stores"):
        found: defaultdict[Stride, int] = defaultdict(int)
        for leaf, n in counts.items():
            for access in (leaf.accesses[1:] if kind == "loads" else leaf.accesses[:1]) if leaf.chain else ():
                index = physical_index(access, leaf.chain)
                found[lane_stride(index, shapes[access.array.buffer], leaf.depth - 1)] += n
        every = max(1, sum(found.values()))
        yield from ((f"{kind}.{stride.value}", found[stride] / every) for stride in Stride)


def _hints(nest: Nest) -> _Named:
    hints = [access.hints.data for leaf in nest.leaves for access in leaf.accesses]
    yield from ((f"hints.{kind}", float(sum(kind in data for data in hints))) for kind in HINTS)
    distances = [value_of(data["prefetch"]) for data in hints if "prefetch" in data]
    yield "hints.distance", sum(log1p(max(0, d)) for d in distances) / max(1, len(distances))


def _loops(nest: Nest, counts: _Counts, total: int) -> _Named:
    yield "depth.deepest", float(max((leaf.depth for leaf in nest.leaves), default=0))
    yield "depth.mean", sum(n * leaf.depth for leaf, n in counts.items()) / total
    loops = [s for s in nest.scopes if s.mapping is Mapping.SEQUENTIAL]
    yield "loops.iterations", log1p(sum(prod(outer.extent for outer in s.chain) for s in loops))
    innermost = {leaf: [s.extent for s in leaf.chain if s.mapping is Mapping.SEQUENTIAL][-1:] for leaf in nest.leaves}
    yield "loops.innermost", sum(counts[leaf] * log(n) for leaf, extents in innermost.items() for n in extents) / total


def _sums(nest: Nest, counts: _Counts, total: int) -> _Named:
    share = copies = 0.0
    for leaf, n in counts.items():
        own = {v for e in leaf.output.index for v in e.variables()}
        if leaf.accumulate is not None and any(s.depth not in own for s in leaf.chain):
            share += n / total
            independent = (s.extent for s in leaf.chain if s.mapping is Mapping.UNROLL and s.depth in own)
            copies += n / total * log(prod(independent))
    yield "sums.share", share
    yield "sums.copies", copies / share if share else 0.0

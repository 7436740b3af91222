"""Structural features of programs: numbers about a program's structure, without a model of a machine.

| features | what they are |
| --- | --- |
| `scopes.*`, `instances.*` | per mapping: scopes, and the log of the statement instances inside |
| `lanes.*` | share of the instances in vectors, mean lanes of these, shortest and longest vector |
| `unrolled.*` | log of the statements after unrolling: of all, and of the outermost unrolled scope with most |
| `threads.*` | log of the starts of threads, of the instances of a start, and how evenly they are shared |
| `bytes.*`, `buffers.*`, `traffic.*` | per memory: log bytes and count of temporaries; log bytes accessed |
| `loads.*`, `stores.*` | per stride class over the innermost scope: share of the accesses |
| `stride.N` | mean log distance in bytes between two iterations of the N-th scope around an access, 0 the innermost |
| `extent.N` | mean log extent of the N-th scope around a statement |
| `layout.*` | of the buffers that are accessed: dimensions, their order, slots, swizzles, arrays that share a buffer |
| `order.*` | statements between one access of a buffer and the next, and log of their instances |
| `operations.*` | per kind of operation: log of the instances |
| `hints.*` | accesses with each hint, and the mean log distance of those that fetch ahead |
| `depth.*`, `loops.*` | deepest and mean nesting; log of the loop iterations, mean log extent of innermost loops |
| `sums.*` | accumulations into one element over a loop: their share, and the mean log of independent copies |
| `size.*` | statements, nests, guarded instances |

Numbers of instances are for one call; means and shares are weighted by them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from math import log, log1p, prod

from pdojo.dialect.affine import Div, Expr, Lookup
from pdojo.dialect.attributes import Mapping, Memory
from pdojo.dialect.functions import byte_width
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.rules.hints import value_of
from pdojo.dialect.rules.lanes import Stride, lane_stride, linear_address
from pdojo.dialect.table import Table
from pdojo.dialect.view.nest import Buffer, Constant, Index, Leaf, Nest, Scope
from pdojo.dialect.view.storage import physical_index, physical_shape
from pdojo.math.functions import FUNCTIONS
from pdojo.passes.cpu.threads import balance

VERSION = 3
"""Version of the features: models of other versions are not comparable."""
SIZE = 99
"""Number of the features."""
HINTS = ("nontemporal", "prefetch")
NEAREST = 4
"""Number of scopes around an access with their own features."""
OPERATIONS = ("copy", "add", "mul", "div", "max", "select", "cast", "elementary", "other")
"""Kinds of operations."""

_Named = Iterator[tuple[str, float]]
_Counts = dict[Leaf, int]
_Shapes = dict[Buffer, tuple[int, ...]]
"""Physical shapes of the accessed buffers."""


def structure(nest: Nest, machine: Machine) -> list[float]:
    """The features of a program, in the same order for all programs."""
    return [value for _, value in named_structure(nest, machine)]


def named_structure(nest: Nest, machine: Machine) -> list[tuple[str, float]]:
    """The features with their names."""
    counts = {leaf: prod(leaf.extents) for leaf in nest.leaves}
    total = max(1, sum(counts.values()))
    shapes = {buffer: physical_shape(nest, buffer) for buffer in nest.accesses}
    return [
        *_mappings(nest, counts),
        *_vectors(nest, counts, total),
        *_unrolled(nest),
        *_threads(nest, machine),
        *_memories(nest, counts, shapes),
        *_strides(nest, counts, shapes),
        *_extents(counts, total),
        *_layouts(nest, shapes),
        *_order(nest, counts),
        *_operations(counts),
        *_hints(nest),
        *_loops(nest, counts, total),
        *_sums(nest, counts, total),
        ("size.statements", float(len(nest.leaves))),
        ("size.nests", float(len(nest.children))),
        ("size.guarded", sum(n for leaf, n in counts.items() if leaf.guards) / total),
    ]


def _mappings(nest: Nest, counts: _Counts) -> _Named:
    scopes, inside = dict.fromkeys(Mapping, 0), dict.fromkeys(Mapping, 0)
    for scope in nest.scopes:
        scopes[scope.mapping] += 1
    for leaf, n in counts.items():
        for mapping in {scope.mapping for scope in leaf.chain}:
            inside[mapping] += n
    for mapping in Mapping:
        yield f"scopes.{mapping.value}", float(scopes[mapping])
        yield f"instances.{mapping.value}", log1p(inside[mapping])


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


def _memories(nest: Nest, counts: _Counts, shapes: _Shapes) -> _Named:
    traffic: defaultdict[Memory, int] = defaultdict(int)
    for leaf, n in counts.items():
        for access in leaf.accesses:
            traffic[access.array.buffer.memory] += n * byte_width(access.array.dtype)
    for memory in Memory:
        buffers = [b for b in shapes if b.op is not None and b.memory is memory]
        yield f"bytes.{memory.value}", log1p(sum(prod(shapes[b]) * byte_width(b.dtype) for b in buffers))
        yield f"buffers.{memory.value}", float(len(buffers))
        yield f"traffic.{memory.value}", log1p(traffic[memory])


def _strides(nest: Nest, counts: _Counts, shapes: _Shapes) -> _Named:
    classes = {kind: defaultdict[Stride, int](int) for kind in ("loads", "stores")}
    distances, every = [0.0] * NEAREST, 1
    for leaf, n in counts.items():
        for access in leaf.accesses if leaf.chain else ():
            index, shape = physical_index(access, leaf.chain), shapes[access.array.buffer]
            stride, steps = _steps(index, shape, leaf.depth, byte_width(access.array.dtype))
            # Neither distance is known before the code runs.
            stride = Stride.IRREGULAR if stride is Stride.LOOKED_UP else stride
            classes["stores" if access is leaf.output else "loads"][stride] += n
            every += n
            for near, step in enumerate(steps):
                distances[near] += n * step
    for kind, found in classes.items():
        some = max(1, sum(found.values()))
        yield from (
            (f"{kind}.{stride.value}", found[stride] / some) for stride in Stride if stride is not Stride.LOOKED_UP
        )
    yield from ((f"stride.{near}", distance / every) for near, distance in enumerate(distances))


@lru_cache(maxsize=1 << 14)
def _steps(index: tuple[Expr, ...], shape: tuple[int, ...], depth: int, size: int) -> tuple[Stride, tuple[float, ...]]:
    """The stride of an access of `size` bytes over the innermost of `depth` scopes, and its log distances.

    Cached, because a move changes few accesses.
    """
    address = linear_address(index, shape)
    slopes = (slope(address, depth - 1 - near) for near in range(min(NEAREST, depth)))
    return lane_stride(index, shape, depth - 1), tuple(log1p(size * abs(each)) for each in slopes)


def slope(address: Expr, depth: int) -> float:
    """The mean change of an expression between two iterations of the scope at a depth."""
    mean = 0.0
    for atom, coefficient in address.terms:
        if isinstance(atom, int):
            mean += coefficient if atom == depth else 0
        elif isinstance(atom, Lookup) and isinstance(atom.table, Table):
            mean += coefficient * slope(atom.operands[0], depth) * _mean_step(atom.table)
        elif isinstance(atom, Div):
            mean += coefficient * slope(atom.numerator, depth) / atom.divisor
    return mean


def _mean_step(table: Table) -> float:
    """The mean distance between neighbouring entries."""
    distances = [abs(b - a) for a, b in pairwise(table.entries)]
    return sum(distances) / max(1, len(distances))


def _extents(counts: _Counts, total: int) -> _Named:
    for near in range(NEAREST):
        inside = ((n, leaf.extents[-1 - near]) for leaf, n in counts.items() if near < leaf.depth)
        yield f"extent.{near}", sum(n * log(extent) for n, extent in inside) / total


def _layouts(nest: Nest, shapes: _Shapes) -> _Named:
    """Sums over the buffers, which show a change of any buffer."""
    yield "layout.dimensions", float(sum(map(len, shapes.values())))
    yield "layout.order", sum(map(_inside_out, shapes.values()))
    yield "layout.declared", sum(_inside_out(b.shape) for b in shapes)
    yield "layout.inner", sum(log(shape[-1]) for shape in shapes.values() if shape)
    slots = [(k, n) for b in shapes for k, n in enumerate(b.reuse) if n]
    yield "layout.reused", sum(1 / (1 + k) for k, _ in slots)
    yield "layout.folded", sum(log(n) for _, n in slots)
    yield "layout.elements", sum(log(prod(b.shape)) for b in shapes)
    swizzles = [(d, s) for b in shapes for d, s in b.swizzles.items()]
    yield "layout.swizzles", float(len(swizzles))
    yield "layout.granules", sum(log1p(s.granule) + s.by / 8 for _, s in swizzles)
    yield "layout.alignment", sum(log(b.alignment) for b in shapes)
    yield "layout.arrays", float(sum(len({a.array.name for _, a in nest.accesses[b]}) for b in shapes))


def _inside_out(shape: Sequence[int]) -> float:
    """A number that distinguishes orders of dimensions: the weight decreases from the innermost outwards."""
    return sum(log(extent) / (2 + k) for k, extent in enumerate(reversed(shape)))


def _order(nest: Nest, counts: _Counts) -> _Named:
    """Distances between successive accesses of a buffer, in program order."""
    before = [0]
    for leaf in nest.leaves:
        before.append(before[-1] + counts[leaf])
    statements = instances = 0.0
    for found in nest.accesses.values():
        for (first, _), (second, _) in pairwise(found):
            statements += log1p(second.order - first.order)
            instances += log1p(before[second.order] - before[first.order])
    yield "order.statements", statements
    yield "order.instances", instances
    # The centre of the work: swapping neighbours changes it.
    yield "order.centre", sum(log1p(n) * (1 + k) ** 0.5 for k, n in enumerate(counts.values()))
    yield "order.depth", sum(leaf.depth * (1 + k) ** 0.5 for k, leaf in enumerate(nest.leaves))


def _operations(counts: _Counts) -> _Named:
    found: defaultdict[str, int] = defaultdict(int)
    for leaf, n in counts.items():
        found[_kind(leaf.function)] += n
        if leaf.accumulate is not None:
            found[_kind(leaf.accumulate)] += n
    yield from ((f"operations.{kind}", log1p(found[kind])) for kind in OPERATIONS)
    yield "operations.contracted", log1p(sum(n for leaf, n in counts.items() if leaf.contracted))
    yield "operations.asynchronous", log1p(sum(n for leaf, n in counts.items() if leaf.asynchronous))
    yield "operations.constants", float(sum(isinstance(i, Constant) for leaf in counts for i in leaf.inputs))
    yield "operations.indices", float(sum(isinstance(i, Index) for leaf in counts for i in leaf.inputs))


def _kind(function: str | None) -> str:
    if function is None:
        return "copy"
    return FUNCTIONS[function].kind or ("elementary" if function.startswith("math.") else "other")


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

"""Which memory of a graphics processor can hold a buffer: which threads see its values.

A statement outside of `:w` (or `:b`) scopes is executed once per iteration of the scopes around it. If it writes
registers, every thread of the warp (of the block) executes it for itself. So a buffer in registers or on a thread's
stack is, for the threads of a warp and again for those of a block,

- *distributed*: each cell belongs to one thread, the same at every access; or
- *replicated*: all threads have a copy of every cell, which they all write (outside of the scope, or by a reduction
  tree, whose result every thread gets).

A buffer in shared memory belongs to the block. None of these buffers outlives an iteration of the innermost grid scope.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, product
from math import prod
from typing import TypeAlias

from pdojo.dialect.affine import Expr, linear, var
from pdojo.dialect.analysis.collision import EQUAL, Query
from pdojo.dialect.analysis.excerpts import bytes_in_memory, uses_content
from pdojo.dialect.analysis.program import Conflict, Program
from pdojo.dialect.analysis.uses import Use
from pdojo.dialect.attributes import Mapping, Memory
from pdojo.dialect.functions import byte_width
from pdojo.dialect.reason import Reason
from pdojo.dialect.view.grids import launch_of
from pdojo.dialect.view.messages import describe_access, describe_scope
from pdojo.dialect.view.nest import Access, Buffer, Leaf, Nest, Scope
from pdojo.dialect.view.storage import accesses_of, copy_depths, physical_index

Placed: TypeAlias = tuple[Leaf, Access]


def visibility_problems(program: Program) -> Iterator[Reason]:
    """Buffers whose memory some of their accesses cannot reach."""
    for buffer in program.live_ranges:
        if buffer.memory is not Memory.HEAP:
            question = "memory", uses_content(program, buffer)
            problem = program.known.remembered.verdict(question, lambda b=buffer: memory_problem(program, b))
            if problem is not None:
                yield problem


def memory_problem(program: Program, buffer: Buffer) -> Reason | None:
    """Why the memory of a buffer cannot be where it is; None if it can, or if the buffer is not used in a grid."""
    accesses = accesses_of(program.nest, buffer)
    launches = list(dict.fromkeys(launch_of(leaf) for leaf, _ in accesses))
    name = buffer.names[0]
    if launches == [None]:
        return Reason(f"'{name}' is in shared memory, but is not used in a grid") if _is_shared(buffer) else None
    launch = next(s for s in launches if s is not None)
    if len(launches) > 1:
        outside = next(a for leaf, a in accesses if launch_of(leaf) is not launch)
        return Reason(
            f"'{name}' is in {_place(buffer)}, which lasts for one iteration of {describe_scope(launch)}, but is used "
            "outside it",
            f"{describe_access(outside)} is outside it",
        )
    violation = program.storage_violation(name, buffer.reuse, within=launch.depth)
    if violation is not None:
        return Reason(
            f"'{name}' is in {_place(buffer)}, which lasts for one iteration of {describe_scope(launch)}: "
            f"{violation.text}",
            violation.witness,
        )
    if _is_shared(buffer):
        copies = copy_depths([(a, leaf.chain) for leaf, a in accesses], buffer.reuse)
        if any(depth > launch.depth for depth in copies):
            return Reason(f"each thread has its own copy of '{name}', which shared memory does not hold")
        return None
    for level in (Mapping.BLOCK, Mapping.WARP):
        problem = _Level(program, buffer, launch, level).problem()
        if problem is not None:
            return problem
    return _index_problem(buffer, accesses)


def _is_shared(buffer: Buffer) -> bool:
    return buffer.memory is Memory.SHARED


def _place(buffer: Buffer) -> str:
    places = {Memory.SHARED: "shared memory", Memory.REGISTER: "registers", Memory.STACK: "stack memory of a thread"}
    return places[buffer.memory]


@dataclass(frozen=True)
class _Level:
    """The threads of a block, or of a warp, and a buffer of which each thread has its own."""

    program: Program
    buffer: Buffer
    launch: Scope
    mapping: Mapping

    def problem(self) -> Reason | None:
        """Why the buffer is neither distributed nor replicated; None if it is one of them."""
        uses = [t for leaf in self.program.nest.leaves for t in self.program.uses[leaf] if self._is_mine(t)]
        threads = [self._threads(t.leaf) for t in uses]
        # Outside of all threads, or always in the first one.
        if not any(threads) or all(around and all(s.extent == 1 for s in around) for around in threads):
            return None
        indexed = [t for t in uses if any(e.uses(s.depth) for s in self._threads(t.leaf) for e in t.cell)]
        return self._not_distributed(uses, indexed) if indexed else self._not_replicated(uses)

    def _is_mine(self, use: Use) -> bool:
        return use.access.array.buffer is self.buffer

    def _threads(self, leaf: Leaf) -> list[Scope]:
        return [s for s in leaf.chain if s.mapping is self.mapping]

    def _not_distributed(self, uses: Sequence[Use], indexed: Sequence[Use]) -> Reason | None:
        name, place = self.buffer.names[0], _place(self.buffer)
        wanted = [s.extent for s in self._threads(indexed[0].leaf)]
        for use in uses:
            if [s.extent for s in self._threads(use.leaf)] != wanted:
                return Reason(
                    f"'{name}' is in {place}: threads that are indexed at one access must be so at every access",
                    f"{describe_access(indexed[0].access)} is, {describe_access(use.access)} is not by the same",
                )
        for one, other in combinations_with_replacement(uses, 2):
            conflict = self._shared_cell(one, other)
            if conflict is not None:
                return Reason(f"'{name}' is in {place}, but two threads access one of its cells", str(conflict))
        return None

    def _shared_cell(self, one: Use, other: Use) -> Conflict | None:
        """Two different threads that access one cell."""
        pairs = zip(self._threads(one.leaf), self._threads(other.leaf), strict=True)
        query = Query(
            one.domain,
            other.domain,
            tuple(zip(one.cell, other.cell, strict=True)),
            (EQUAL,) * (self.launch.depth + 1),
            tuple((var(a.depth), var(b.depth)) for a, b in pairs),
        )
        witness = self.program.collisions.find(query)
        if witness is None:
            return None
        return Conflict(one.leaf, one.access, other.leaf, other.access, witness, one.writes, other.writes)

    def _not_replicated(self, uses: Sequence[Use]) -> Reason | None:
        name, place = self.buffer.names[0], _place(self.buffer)
        for write in uses:
            threads = self._threads(write.leaf)
            if not write.writes or not threads:
                continue
            if write.leaf.accumulate is None:
                return Reason(
                    f"'{name}' is in {place}, of which only one thread of {describe_scope(threads[-1])} would have the "
                    "value",
                    f"write of {describe_access(write.access)}",
                )
            for read in uses:
                if threads[0] in read.leaf.chain and read.commutes_with != write.commutes_with:
                    return Reason(
                        f"'{name}' is in {place}, where threads have the sum over {describe_scope(threads[0])} only "
                        "after it",
                        f"accumulation into {describe_access(write.access)}, access to {describe_access(read.access)} "
                        "inside",
                    )
        return None


def _index_problem(buffer: Buffer, accesses: Sequence[Placed]) -> Reason | None:
    """Why an index does not fit: constants index registers, no thread or grid variable the stack; None if all fit."""
    name, place = buffer.names[0], _place(buffer)
    allowed = (Mapping.UNROLL, Mapping.VECTOR)
    parts: set[tuple[tuple[tuple[Mapping, int, int], ...], ...]] = set()
    for leaf, access in accesses:
        for expression in _own_index(access, leaf):
            for depth in expression.variables():
                scope = leaf.chain[depth]
                if scope.mapping is Mapping.GRID:
                    return Reason(
                        f"{describe_access(access)} is indexed by {describe_scope(scope)}; reuse the dimension"
                    )
                if buffer.memory is Memory.REGISTER and scope.mapping not in allowed:
                    return Reason(
                        f"{describe_access(access)} is indexed by {describe_scope(scope)}; registers need constants"
                    )
                if scope.mapping in (Mapping.BLOCK, Mapping.WARP):
                    return Reason(f"{describe_access(access)} divides the number of a thread, which has its own stack")
        parts.add(tuple(_thread_part(e, leaf) for e in physical_index(access, leaf.chain)))
    if len(parts) > 1:
        return Reason(f"'{name}' is in {place}, but not indexed by threads in the same way at every access")
    return None


def _own_index(access: Access, leaf: Leaf) -> tuple[Expr, ...]:
    """The index within one thread's part of the buffer."""
    return tuple(_split(e, leaf)[1] for e in physical_index(access, leaf.chain))


def _split(expression: Expr, leaf: Leaf) -> tuple[Expr, Expr]:
    """The terms in the variables of threads alone, and the rest."""
    threads = {s.depth for s in leaf.chain if s.mapping in (Mapping.BLOCK, Mapping.WARP)}
    own = linear(0, [(atom, factor) for atom, factor in expression.terms if atom in threads])
    return own, expression - own


def _thread_part(expression: Expr, leaf: Leaf) -> tuple[tuple[Mapping, int, int], ...]:
    """How threads index a dimension: mapping, number among the scopes of that mapping, and factor."""
    part: list[tuple[Mapping, int, int]] = []
    for atom, factor in _split(expression, leaf)[0].terms:
        assert isinstance(atom, int)
        scope = leaf.chain[atom]
        number = sum(s.mapping is scope.mapping for s in leaf.chain[:atom])
        part.append((scope.mapping, number, factor))
    return tuple(sorted(part))


def thread_bytes(nest: Nest, buffer: Buffer) -> int:
    """Bytes that each thread needs for its part of a buffer in registers or on its stack."""
    parts = [(leaf.extents, _own_index(access, leaf)) for leaf, access in accesses_of(nest, buffer)]
    sizes = (_distinct([(extents, index[d]) for extents, index in parts]) for d in range(len(buffer.shape)))
    return prod(sizes) * byte_width(buffer.dtype)


def _thread_bytes(program: Program, buffer: Buffer) -> int:
    """`thread_bytes`, remembered with the uses of the buffer."""
    question = "bytes of a thread", uses_content(program, buffer)
    return program.known.remembered.verdict(question, lambda: thread_bytes(program.nest, buffer))


def _distinct(expressions: Sequence[tuple[tuple[int, ...], Expr]]) -> int:
    """How many values some expressions take together; the span of their bounds if these are too many to list."""
    bounds = [e.bounds(extents) for extents, e in expressions]
    values: set[int] = set()
    for extents, expression in expressions:
        used = sorted(expression.variables())
        if prod(extents[v] for v in used) > _LISTED:
            return max(high for _, high in bounds) - min(low for low, _ in bounds) + 1
        point = [0] * len(extents)
        for iteration in product(*(range(extents[v]) for v in used)):
            for depth, value in zip(used, iteration, strict=True):
                point[depth] = value
            values.add(expression.evaluate(point))
    return len(values)


_LISTED = 4096
"""Most values that are listed."""


def gpu_limits(program: Program) -> Iterator[Reason]:
    """What the machine lacks: warps, blocks, threads per block, memory."""
    machine = program.machine
    for scope in program.nest.scopes:
        if scope.mapping in (Mapping.GRID, Mapping.BLOCK) and not machine.gpu.block_threads:
            yield Reason(f"{describe_scope(scope)}: {machine.name} has no blocks of threads")
        if scope.mapping is Mapping.WARP and not machine.gpu.warp_size:
            yield Reason(f"{describe_scope(scope)}: {machine.name} has no warps")
        elif scope.mapping is Mapping.WARP and machine.gpu.warp_size % scope.extent:
            yield Reason(
                f"{describe_scope(scope)} does not divide the warps of {machine.name}, which have "
                f"{machine.gpu.warp_size} threads"
            )
    for leaf in program.nest.leaves:
        threads = prod(s.extent for s in leaf.chain if s.mapping in (Mapping.BLOCK, Mapping.WARP))
        if launch_of(leaf) is not None and threads > machine.gpu.block_threads > 0:
            yield Reason(f"blocks would have {threads} threads; {machine.name} allows {machine.gpu.block_threads}")
    yield from _memory_limits(program)


def _memory_limits(program: Program) -> Iterator[Reason]:
    machine, nest = program.machine, program.nest
    found: dict[Scope, dict[Memory, list[Buffer]]] = {}
    for buffer in program.live_ranges:
        launch = next((s for leaf, _ in accesses_of(nest, buffer) if (s := launch_of(leaf)) is not None), None)
        if launch is not None:
            found.setdefault(launch, {}).setdefault(buffer.memory, []).append(buffer)
    for leaf in nest.leaves:
        launch = launch_of(leaf)
        if launch is not None and tree_bytes(leaf):
            found.setdefault(launch, {})
    for launch, buffers in found.items():
        threads = block_threads(launch)
        shared = sum(bytes_in_memory(program, b) for b in buffers.get(Memory.SHARED, ()) if _is_shared(b))
        trees = [(leaf.output.array.name, taken) for leaf in launch.leaves if (taken := tree_bytes(leaf))]
        scratch = sum(taken for _, taken in trees)
        stack = sum(_thread_bytes(program, b) for b in buffers.get(Memory.STACK, ()))
        registers = _register_bytes(program, buffers.get(Memory.REGISTER, ()))
        if shared + scratch > machine.gpu.shared_bytes:
            listed = ", ".join(f"'{name}' {taken}" for name, taken in trees)
            also = f", and reduction trees {scratch} ({listed})" if trees else ""
            yield Reason(
                f"shared buffers would take {shared} bytes{also}; {machine.name} allows {machine.gpu.shared_bytes}"
            )
        for memory, size, limit in (
            (Memory.STACK, stack, machine.stack_bytes),
            (Memory.REGISTER, registers, machine.register_bytes),
        ):
            if size > limit:
                yield Reason(f"{memory.value} buffers would take {size} bytes; {machine.name} allows {limit}")
        if registers // 4 * threads > machine.gpu.registers > 0:
            yield Reason(
                f"{threads} threads with {registers // 4} registers each would take {registers // 4 * threads}; a "
                f"multiprocessor of {machine.name} has {machine.gpu.registers}"
            )


def _register_bytes(program: Program, buffers: Sequence[Buffer]) -> int:
    """The most bytes of register buffers that a thread has in use at one statement."""
    spans = [(program.live_ranges[b].span, _thread_bytes(program, b)) for b in buffers]
    # The sum changes where a range begins.
    return max((sum(size for (low, high), size in spans if low <= at <= high) for (at, _), _ in spans), default=0)


def block_threads(launch: Scope) -> int:
    """Threads of a block of a grid scope: as many as the statement with most of them needs."""
    chains = ([s.extent for s in leaf.chain if s.mapping in (Mapping.BLOCK, Mapping.WARP)] for leaf in launch.leaves)
    return max(map(prod, chains))


def tree_bytes(leaf: Leaf) -> int:
    """Bytes of shared memory in which threads of several warps add up a result: one value for each thread."""
    added = leaf.accumulate is not None and any(
        s.mapping is Mapping.BLOCK and s.extent > 1 and not any(e.uses(s.depth) for e in leaf.output.index)
        for s in leaf.chain
    )
    launch = launch_of(leaf)
    return block_threads(launch) * byte_width(leaf.output.array.dtype) if added and launch is not None else 0

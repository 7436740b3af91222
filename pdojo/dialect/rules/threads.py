"""Visibility rules of GPU memory: which threads can see the values of a buffer.

A statement outside of `:w` (or `:b`) scopes is executed once per iteration of the scopes around it. If it writes
registers, every thread of the warp (of the block) executes it for itself. For the threads of a warp, and again for the
threads of a block, a buffer in registers or on a thread's stack is

- *distributed*: each cell belongs to one thread, the same at every access; or
- *replicated*: all threads have a copy of every cell, and all write it (outside of the scope, or by a reduction tree,
  whose result every thread gets).

An instruction of a whole warp runs in all of its threads, each of which touches some elements of the operands
(`pdojo.dialect.machines.collectives`). A buffer with a tile that such an instruction uses is distributed by the
fragment of that tile.

A buffer in shared memory belongs to the block. None of these buffers outlives an iteration of the innermost grid scope.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, product
from math import prod
from typing import TypeAlias

from pdojo.dialect.affine import Expr, linear, var
from pdojo.dialect.attributes import Mapping, Memory
from pdojo.dialect.flow.collision import EQUAL, Query
from pdojo.dialect.flow.content import uses_content
from pdojo.dialect.flow.program import Conflict, Program
from pdojo.dialect.flow.uses import Use
from pdojo.dialect.functions import byte_width
from pdojo.dialect.machines.collectives import Collectives, Held, collectives_of, lane_in
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.reason import Reason
from pdojo.dialect.rules.block_threads import BlockThreads, block_threads, is_aligned
from pdojo.dialect.rules.lanes import bytes_in_memory, in_tensor_scope
from pdojo.dialect.view.grids import MOST_BLOCKS, launch_of
from pdojo.dialect.view.messages import describe_access, describe_scope
from pdojo.dialect.view.nest import Access, Buffer, Leaf, Scope
from pdojo.dialect.view.storage import accesses_of, copy_depths, physical_index

Placed: TypeAlias = tuple[Leaf, Access]


def collectives(program: Program) -> Collectives:
    """The scopes that warps of the program's machine compute together."""
    return program.memoised("collectives", lambda: collectives_of(program.nest))


def visibility_problems(program: Program) -> Iterator[Reason]:
    """Buffers in memory that some of their accesses cannot reach."""
    for buffer in program.live_ranges:
        if buffer.memory is not Memory.HEAP:
            question = "memory", uses_content(program.nest, buffer)
            problem = program.known.remembered.verdict(question, lambda b=buffer: memory_problem(program, b))
            if problem is not None:
                yield problem


def memory_problem(program: Program, buffer: Buffer) -> Reason | None:
    """The reason why a buffer cannot be in its memory; None if it can, or if no grid uses it."""
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
            return Reason(
                f"each thread has its own copy of '{name}', but shared memory holds one for all threads of a block"
            )
        return None
    held = collectives(program).held(program.nest, buffer)
    for level in (Mapping.BLOCK, Mapping.WARP):
        problem = _Level(program, buffer, launch, level, held if isinstance(held, Held) else None).problem()
        if problem is not None:
            return problem
    if isinstance(held, Reason):
        return held
    if held is not None and (problem := _held_problem(program, buffer, held, launch)) is not None:
        return problem
    return _index_problem(buffer, accesses, held)


def _held_problem(program: Program, buffer: Buffer, held: Held, launch: Scope) -> Reason | None:
    """The reason why an access outside of warp instructions misses the thread that holds its element."""
    name, spreads = buffer.names[0], collectives(program).spreads
    for leaf in program.nest.leaves:
        for use in program.uses[leaf]:
            if use.access.array.buffer is not buffer or use.access in spreads:
                continue
            lane, thread = held.lane(use.access, leaf), held.thread(leaf.chain)
            if thread is None:
                return Reason(
                    f"the threads of a warp hold '{name}' by a fragment, so {_around(held)} must be around every other "
                    "access",
                    f"{describe_access(use.access)}",
                )
            relation = (EQUAL,) * len(leaf.chain)
            elsewhere = Query(use.domain, use.domain, (), relation, ((lane, thread),))
            if program.collisions.find(elsewhere) is not None:
                return Reason(
                    f"the threads of a warp hold '{name}' by a fragment, but other threads would access its elements",
                    f"{describe_access(use.access)} is in lane {_spell(lane)}, not {_spell(thread)}",
                )
    return None


def _around(held: Held) -> str:
    """The scopes whose iterations are the threads that hold a tile."""
    if held.warps > 1:
        return f"a ':w' scope of {held.fragment.threads // held.warps} iterations inside a ':b' scope of {held.warps}"
    return f"a ':w' scope of {held.fragment.threads} iterations, or ':b' scopes and a ':w' scope with as many threads,"


def _spell(expression: Expr) -> str:
    return expression.render("{{{}}}".format)


def _is_shared(buffer: Buffer) -> bool:
    return buffer.memory is Memory.SHARED


def _place(buffer: Buffer) -> str:
    places = {Memory.SHARED: "shared memory", Memory.REGISTER: "registers", Memory.STACK: "stack memory of a thread"}
    return places[buffer.memory]


@dataclass(frozen=True)
class _Level:
    """The threads of a block or a warp, and a buffer with a copy for each thread."""

    program: Program
    buffer: Buffer
    launch: Scope
    mapping: Mapping
    held: Held | None
    """The tile of the buffer that is spread over the threads of a warp."""

    def problem(self) -> Reason | None:
        """The reason why the buffer is neither distributed nor replicated; None if it is either."""
        uses = [t for leaf in self.program.nest.leaves for t in self.program.uses[leaf] if self._is_mine(t)]
        threads = [self._threads(t) for t in uses]
        # The access is outside of all threads, or always in the first one.
        if not any(threads) or all(around and all(n == 1 for n, _ in around) for around in threads):
            return None
        indexed = [t for t in uses if self._indexes(t)]
        return self._not_distributed(uses, indexed) if indexed else self._not_replicated(uses)

    def _is_mine(self, use: Use) -> bool:
        return use.access.array.buffer is self.buffer

    def _scopes(self, leaf: Leaf) -> list[Scope]:
        return [s for s in leaf.chain if s.mapping is self.mapping]

    def _threads(self, use: Use) -> list[tuple[int, Expr]]:
        """Per thread scope, outermost first, the number of threads, and the number of the accessing thread."""
        spread = collectives(self.program).spreads.get(use.access)
        warp = collectives(self.program).warp(self.held, use.leaf, use.access)
        if warp and self.mapping is Mapping.WARP:
            return [(prod(s.extent for s in warp), lane_in(warp))]
        scopes = [(s.extent, var(s.depth)) for s in self._scopes(use.leaf) if s not in warp]
        if spread is None:
            return scopes
        numbers = spread.numbers
        return [*scopes, *(numbers[-1:] if self.mapping is Mapping.WARP else numbers[:-1])]

    def _indexes(self, use: Use) -> bool:
        """Whether threads access cells of their own."""
        return any(e.uses(d) for _, thread in self._threads(use) for d in thread.variables() for e in use.cell)

    def _not_distributed(self, uses: Sequence[Use], indexed: Sequence[Use]) -> Reason | None:
        name, place = self.buffer.names[0], _place(self.buffer)
        wanted = [n for n, _ in self._threads(indexed[0])]
        for use in uses:
            if [n for n, _ in self._threads(use)] != wanted:
                return Reason(
                    f"'{name}' is in {place}: every access must be indexed by the same threads",
                    f"{describe_access(indexed[0].access)} and {describe_access(use.access)} differ in their threads",
                )
        for one, other in combinations_with_replacement(uses, 2):
            conflict = self._shared_cell(one, other)
            if conflict is not None:
                return Reason(f"'{name}' is in {place}, but two threads access one of its cells", str(conflict))
        return None

    def _shared_cell(self, one: Use, other: Use) -> Conflict | None:
        """Two different threads that access one cell."""
        pairs = zip(self._threads(one), self._threads(other), strict=True)
        query = Query(
            one.domain,
            other.domain,
            tuple(zip(one.cell, other.cell, strict=True)),
            (EQUAL,) * (self.launch.depth + 1),
            tuple((a, b) for (_, a), (_, b) in pairs),
        )
        witness = self.program.collisions.find(query)
        if witness is None:
            return None
        return Conflict(one.leaf, one.access, other.leaf, other.access, witness, one.writes, other.writes)

    def _not_replicated(self, uses: Sequence[Use]) -> Reason | None:
        name, place = self.buffer.names[0], _place(self.buffer)
        for write in uses:
            threads = self._scopes(write.leaf)
            if not write.writes or not threads:
                continue
            if write.leaf.accumulate is None:
                return Reason(
                    f"'{name}' is in {place}: only one thread of {describe_scope(threads[-1])} would have the value",
                    f"write of {describe_access(write.access)}",
                )
            for read in uses:
                if threads[0] in read.leaf.chain and read.commutes_with != write.commutes_with:
                    return Reason(
                        f"'{name}' is in {place}: threads have the sum over {describe_scope(threads[0])} only "
                        "after that scope",
                        f"accumulation into {describe_access(write.access)}, access to {describe_access(read.access)} "
                        "inside",
                    )
        return None


def _index_problem(buffer: Buffer, accesses: Sequence[Placed], held: Held | None) -> Reason | None:
    """The reason why an index does not fit: registers need constants, a stack no thread or grid variables; or None."""
    name, place = buffer.names[0], _place(buffer)
    allowed = (Mapping.UNROLL, Mapping.VECTOR)
    parts: set[tuple[tuple[tuple[Mapping, int, int], ...], ...]] = set()
    for leaf, access in accesses:
        for expression in _own_index(access, leaf, held):
            for depth in expression.variables():
                scope = leaf.chain[depth]
                if held is not None and in_tensor_scope(scope):
                    continue  # slots of a tile, which the instruction indexes
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
        index = physical_index(access, leaf.chain)
        parts.add(tuple(_thread_part(e, leaf) for d, e in enumerate(index) if held is None or d not in held.dims))
    if len(parts) > 1:
        return Reason(f"'{name}' is in {place}, but not indexed by threads in the same way at every access")
    return None


def _own_index(access: Access, leaf: Leaf, held: Held | None) -> tuple[Expr, ...]:
    """The index within one thread's part of the buffer: the part without thread variables; the slot in a fragment."""
    index = enumerate(physical_index(access, leaf.chain))
    own = tuple(_split(e, leaf)[1] for d, e in index if held is None or d not in held.dims)
    return own if held is None else (*own, held.slot(access, leaf))


def _split(expression: Expr, leaf: Leaf) -> tuple[Expr, Expr]:
    """The terms in the variables of threads alone, and the rest."""
    threads = {s.depth for s in leaf.chain if s.mapping in (Mapping.BLOCK, Mapping.WARP)}
    own = linear(0, [(atom, factor) for atom, factor in expression.terms if atom in threads])
    return own, expression - own


def _thread_part(expression: Expr, leaf: Leaf) -> tuple[tuple[Mapping, int, int], ...]:
    """The thread variables in a dimension: mapping, number among the scopes of that mapping, and factor."""
    part: list[tuple[Mapping, int, int]] = []
    for atom, factor in _split(expression, leaf)[0].terms:
        assert isinstance(atom, int)
        scope = leaf.chain[atom]
        number = sum(s.mapping is scope.mapping for s in leaf.chain[:atom])
        part.append((scope.mapping, number, factor))
    return tuple(sorted(part))


def _thread_bytes(program: Program, buffer: Buffer) -> int:
    """`thread_bytes`, cached with the uses of the buffer."""
    question = "bytes of a thread", uses_content(program.nest, buffer)
    return program.known.remembered.verdict(question, lambda: thread_bytes(program, buffer))


def thread_bytes(program: Program, buffer: Buffer) -> int:
    """Bytes that each thread needs for its part of a buffer in registers or on its stack."""
    held = collectives(program).held(program.nest, buffer)
    tile = held if isinstance(held, Held) else None
    parts = [(leaf.extents, _own_index(access, leaf, tile)) for leaf, access in accesses_of(program.nest, buffer)]
    count = len(parts[0][1]) if parts else 0
    sizes = (_distinct([(extents, index[d]) for extents, index in parts]) for d in range(count))
    return prod(sizes) * byte_width(buffer.dtype)


def _distinct(expressions: Sequence[tuple[tuple[int, ...], Expr]]) -> int:
    """The number of values of some expressions together; the span of their bounds if there are too many to list."""
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
    """Exceeded limits of the machine: warps, blocks, threads per block, blocks of a grid, memory."""
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
    for launch in dict.fromkeys(map(launch_of, program.nest.leaves)):
        if launch is None:
            continue
        threads = _block_threads(program, launch).count
        if threads > machine.gpu.block_threads > 0:
            yield Reason(f"blocks would have {threads} threads; {machine.name} allows {machine.gpu.block_threads}")
        blocks = prod(s.extent for s in launch.chain if s.mapping is Mapping.GRID)
        if (problem := grid_problem(blocks, threads, machine)) is not None:
            yield Reason(problem)
    yield from _unaligned_warps(program)
    yield from _memory_limits(program)


def _unaligned_warps(program: Program) -> Iterator[Reason]:
    """Scopes that are the threads of a warp which holds a buffer, but not in the order of its threads."""
    found, nest = collectives(program), program.nest
    for buffer in program.live_ranges if found.spreads else ():
        held = found.held(nest, buffer)
        if not isinstance(held, Held):
            continue
        for leaf, access in accesses_of(nest, buffer):
            launch, warp = launch_of(leaf), found.warp(held, leaf, access)
            if launch is None or not warp:
                continue
            if not is_aligned(warp, held.fragment.threads, _block_threads(program, launch).strides):
                yield Reason(
                    f"{describe_scope(warp[0])} and the thread scopes inside it must be all threads of a warp, which "
                    f"holds '{buffer.names[0]}': other statements in these scopes take more threads"
                )


def _memory_limits(program: Program) -> Iterator[Reason]:
    machine, nest = program.machine, program.nest
    found: dict[Scope, dict[Memory, list[Buffer]]] = {}
    for buffer in program.live_ranges:
        launch = next((s for leaf, _ in accesses_of(nest, buffer) if (s := launch_of(leaf)) is not None), None)
        if launch is not None:
            found.setdefault(launch, {}).setdefault(buffer.memory, []).append(buffer)
    for leaf in nest.leaves:
        launch = launch_of(leaf)
        if launch is not None and _has_tree(leaf):
            found.setdefault(launch, {})
    for launch, buffers in found.items():
        threads = _block_threads(program, launch).count
        shared = sum(bytes_in_memory(program, b) for b in buffers.get(Memory.SHARED, ()) if _is_shared(b))
        trees = [(leaf.output.array.name, taken) for leaf in launch.leaves if (taken := tree_bytes(leaf, threads))]
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
    # The sum changes only at the start of a range.
    return max((sum(size for (low, high), size in spans if low <= at <= high) for (at, _), _ in spans), default=0)


def _block_threads(program: Program, launch: Scope) -> BlockThreads:
    """Threads of a block of a launch."""
    return program.memoised(
        ("threads", launch), lambda: block_threads(program.nest, launch.children, collectives(program))
    )


def _has_tree(leaf: Leaf) -> bool:
    return leaf.accumulate is not None and any(
        s.mapping is Mapping.BLOCK and s.extent > 1 and not any(e.uses(s.depth) for e in leaf.output.index)
        for s in leaf.chain
    )


def tree_bytes(leaf: Leaf, threads: int) -> int:
    """Bytes of shared memory in which the threads of a block reduce a result: one value per thread."""
    return threads * byte_width(leaf.output.array.dtype) if _has_tree(leaf) and launch_of(leaf) is not None else 0


def grid_problem(blocks: int, threads: int, machine: Machine) -> str | None:
    """The reason why a machine cannot launch a grid of `blocks` blocks with `threads` threads each; None if it can."""
    if blocks > MOST_BLOCKS:
        return f"a grid would have {blocks} blocks, more than {MOST_BLOCKS}"
    most = machine.gpu.grid_threads
    if 0 < most < blocks * threads:
        return f"a grid would have {blocks} blocks of {threads} threads; {machine.name} allows {most} threads in all"
    return None

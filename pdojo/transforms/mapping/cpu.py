"""Mappings of a CPU: unrolled code, threads, vector lanes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from math import prod
from typing import ClassVar, Self

from pdojo.errors import Undecided
from pdojo.transforms.api import (
    ACCUMULATIONS,
    BEFORE,
    NONTEMPORAL,
    Access,
    Leaf,
    Mapping,
    Memory,
    Numerics,
    Program,
    Promises,
    Reason,
    Scope,
    accesses_of,
    async_copy_problem,
    byte_width,
    describe_access,
    describe_scope,
    lane_problem,
    parallel_problem,
    streaming_misfit,
    unrolled,
)
from pdojo.transforms.common.ordering import reassociates, same_iteration
from pdojo.transforms.mapping.scope import MapScope


@dataclass(frozen=True)
class Unroll(MapScope):
    """Unroll a scope: one copy of its body per iteration.

    `unroll@y:0`:

    4 y[{0}] = x[{0}]  -->  4:u y[{0}] = x[{0}]

    Always legal around sequential code; only expansions within the machine's limit are proposed.
    """

    name: ClassVar[str] = "unroll"
    finishes: ClassVar = True
    mapping: ClassVar = Mapping.UNROLL

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Scope, Self]]:
        """Sequential scopes whose expansion stays within the machine's limit."""
        for scope in program.nest.scopes:
            if scope.mapping is Mapping.SEQUENTIAL and expansion(scope) <= program.machine.unroll_limit:
                yield scope, cls()

    def argues(self, program: Program, site: Scope) -> bool:
        """True if no special mapping is inside, and the unrolled kernel is small enough: cells and order stay."""
        inside = {s for leaf in site.leaves for s in leaf.chain[site.depth :]}
        return not any(s.mapping.is_special for s in inside) and unrolled(program.nest, also=site) is None

    promises: ClassVar = Promises(conditions=argues, grows=False, is_local=True)

    def check_mapping(self, program: Program, site: Scope) -> Reason | None:  # as in the base
        """Requires that no parallel scope is inside."""
        outermost = (Mapping.PARALLEL, Mapping.GRID)
        if any(s.mapping in outermost for leaf in site.leaves for s in leaf.chain[site.depth + 1 :]):
            return Reason("a parallel scope cannot be inside an unrolled one")
        return None


def expansion(site: Scope) -> int:
    """Copies of statements in the outermost unrolled scope around the site, as if the site were unrolled."""
    outermost = next((s for s in site.chain if s.mapping is Mapping.UNROLL), site)
    return sum(
        prod(s.extent for s in leaf.chain if s.mapping is Mapping.UNROLL or s is site) for leaf in outermost.leaves
    )


@dataclass(frozen=True)
class Parallelize(MapScope):
    """Give the iterations of a scope to threads.

    `parallelize@y:0`:

    N y[{0}] = x[{0}]  -->  N:p y[{0}] = x[{0}]

    Legal iff no two different iterations conflict, accumulations included: not exists i != j: body(i) conflicts with
    body(j). Buffers reused in a dimension that the scope indexes become private to each iteration. GPUs and Snitch
    cores have no parallel scopes. Proposed only for machines with several threads.
    """

    name: ClassVar[str] = "parallelize"
    mapping: ClassVar = Mapping.PARALLEL

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Scope, Self]]:
        """Sequential scopes, if the machine has parallel scopes and several threads."""
        if program.machine.has_parallel_scopes and program.machine.threads > 1:
            yield from super().candidates(program)

    def argues(self, program: Program, site: Scope) -> bool:
        """True if buffers inside have a cell per element, or one slot per lane and all uses inside, and keep values.

        Copies for each iteration are all that the mapping adds to cells, so lanes inside and sizes stay; with all uses
        inside, no frame has a copy that another one needs. The check asks about races. Registers belong to one thread,
        and hints depend on alignment: both are left to `conditions`.
        """
        leaves = {*site.leaves}
        for buffer in {access.array.buffer for leaf in leaves for access in leaf.accesses}:
            if buffer.memory is Memory.REGISTER or any(slots > 1 for slots in buffer.reuse):
                return False
            users = accesses_of(program.nest, buffer) if any(buffer.reuse) else ()
            if any(leaf not in leaves or access.hints.data for leaf, access in users):
                return False
            with suppress(Undecided):
                mapped = {site: Mapping.PARALLEL}
                if not users or program.storage_violation(buffer.names[0], buffer.reuse, mapped) is None:
                    continue
            return False
        return True

    promises: ClassVar = Promises(conditions=argues, grows=False, is_local=True)

    def check_mapping(self, program: Program, site: Scope) -> Reason | None:
        """Requires a machine with parallel scopes, no mapped scopes around or inside, and no race."""
        if (missing := parallel_problem(program, self.mapped(site))) is not None:
            return missing
        for outer in site.chain[:-1]:
            if outer.mapping is not Mapping.SEQUENTIAL:
                return Reason(f"a parallel scope cannot be inside {describe_scope(outer)}")
        for leaf in site.leaves:
            for inner in leaf.chain[site.depth + 1 :]:
                if inner.mapping.is_threaded:
                    return Reason(f"{describe_scope(inner)} inside is parallel already")
        relation = (*same_iteration(site), BEFORE)
        uses = program.uses_if({site: Mapping.PARALLEL})
        race = program.conflict(site.leaves, site.leaves, relation, racing=True, uses=uses)
        if race is not None:
            summed = race.first is race.second and race.first.accumulate is not None and race.first_writes
            summed &= race.second_writes and not any(e.uses(site.depth) for e in race.first.output.index)
            hint = "; split_reduction gives each iteration a partial result" if summed else ""
            return Reason(f"different iterations race on '{race.first_access.array.name}'{hint}", str(race))
        return None


@dataclass(frozen=True)
class Vectorize(MapScope):
    """Run the iterations of a scope as the lanes of one vector instruction (paper section 2).

    `vectorize@y:0`:

    16 y[{0}] = exp(x[{0}])  -->  16:v y[{0}] = exp(x[{0}])

    The extent is a vector length of the machine for the widest operand. The scope wraps one statement, whose accesses
    are contiguous, broadcast or, if the machine can, strided. If the machine has `aligned_vectors`, a vector in heap
    or shared memory must start at a multiple of its size. Legal iff no lane reads a value that an earlier lane writes;
    a cell that all lanes write must be an accumulation, whose lanes are combined by a tree.
    """

    name: ClassVar[str] = "vectorize"
    finishes: ClassVar = True
    mapping: ClassVar = Mapping.VECTOR

    def argues(self, program: Program, site: Scope) -> bool:
        """True if no cell changes: the scope indexes no reused or folded dimension, and no load must be aligned.

        The check tests all other conditions of vectors.
        """
        (leaf,) = site.leaves
        moved = any(
            slots and expression.uses(site.depth)
            for access in leaf.accesses
            for slots, expression in zip(access.array.buffer.reuse, access.index, strict=True)
        )
        return not moved and not any(NONTEMPORAL in access.hints.data for access in leaf.reads)

    promises: ClassVar = Promises(conditions=argues, grows=False, is_local=True)

    def check_mapping(self, program: Program, site: Scope) -> Reason | None:
        """Requires the shape, the lane count, the strides, and independent lanes."""
        leaf = site.children[0]
        if len(site.children) != 1 or not isinstance(leaf, Leaf):
            return Reason("a vector scope wraps exactly one op")
        widest = max((_dtype(leaf, k) for k in range(-1, len(leaf.inputs))), key=byte_width)
        lanes = program.machine.vector_lanes(widest)
        if site.extent not in lanes:
            known = ", ".join(map(str, lanes)) or "none"
            return Reason(f"extent {site.extent} is no vector length of {program.machine.name} for {widest}: {known}")
        if leaf.asynchronous and (unsized := async_copy_problem(leaf, program.machine, site)) is not None:
            return unsized
        for access in leaf.accesses:
            problem = lane_problem(access, leaf, site, program.machine)
            if problem is not None:
                return problem
        if NONTEMPORAL in leaf.output.hints.data and (misfit := streaming_misfit(leaf, site)) is not None:
            return Reason(f"{misfit}; the hint 'nontemporal' would no longer apply, clear it first")
        return self._lanes_independent(program, site, leaf)

    @staticmethod
    def _lanes_independent(program: Program, site: Scope, leaf: Leaf) -> Reason | None:
        if leaf.accumulate is None and not any(e.uses(site.depth) for e in leaf.output.index):
            return Reason(f"all lanes would write {describe_access(leaf.output)}")
        # All lanes read before any writes, so a value is lost only if an earlier lane writes it and a later reads it.
        uses = program.uses_if({site: Mapping.VECTOR})
        writes = {leaf: tuple(t for t in uses[leaf] if t.writes)}
        reads = {leaf: tuple(t for t in uses[leaf] if not t.writes)}
        relation = (*same_iteration(site), BEFORE)
        conflict = program.conflict([leaf], [leaf], relation, uses=writes, seconds=reads)
        if conflict is not None:
            return Reason("a lane reads what an earlier lane writes", str(conflict))
        return None

    def numerics(self, program: Program, site: Scope) -> Numerics:
        """Reassociation if lanes accumulate into one cell, in another order."""
        leaf = site.children[0]
        assert isinstance(leaf, Leaf)
        summed = leaf.accumulate is not None and not ACCUMULATIONS[leaf.accumulate].exact
        return reassociates(summed and not any(e.uses(site.depth) for e in leaf.output.index))


def _dtype(leaf: Leaf, position: int) -> str:
    value = leaf.output if position < 0 else leaf.inputs[position]
    return value.array.dtype if isinstance(value, Access) else value.dtype

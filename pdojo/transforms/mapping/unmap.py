"""Unmapping: making a mapped scope sequential again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from pdojo.transforms.api import (
    BEFORE,
    Leaf,
    Mapping,
    MappingAttr,
    Memory,
    Move,
    Numerics,
    PatternRewriter,
    Program,
    Promises,
    Reason,
    Scope,
    Transformation,
    describe_scope,
    find_race,
    has_extremum,
    physical_index,
    remapped_chain,
)
from pdojo.transforms.common.ordering import reassociates, same_iteration


@dataclass(frozen=True)
class Unmap(Transformation[Scope]):
    """Make a mapped scope sequential again.

    `unmap@y:0`:

    16:v y[{0}] = x[{0}]  -->  16 y[{0}] = x[{0}]

    Legal iff the scope indexes no registers, and, if it indexes a reused dimension, no value is lost when all
    iterations share one slot instead of having one each. A reduction tree becomes a sum in order.
    """

    name: ClassVar[str] = "unmap"
    undoes: ClassVar = True
    promises: ClassVar = Promises(conditions=True, grows=False, is_local=True)

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Scope, Self]]:
        """Mapped scopes."""
        for scope in program.nest.scopes:
            if scope.mapping is not Mapping.SEQUENTIAL:
                yield scope, cls()

    def check(self, program: Program, site: Scope) -> Reason | None:
        """Requires constant indices of registers, and private cells that can be merged."""
        if site.mapping is Mapping.SEQUENTIAL:
            return Reason(f"{describe_scope(site)} is not mapped")
        if site.mapping is Mapping.GRID and any(leaf.asynchronous and _is_alone(site, leaf) for leaf in site.leaves):
            return Reason("copies inside are asynchronous, which only blocks of a grid support; sync_copy first")
        for leaf in site.leaves:
            chain = remapped_chain(leaf, {site: Mapping.SEQUENTIAL})
            # All scopes of an instruction's nest become loops, not only the one with its name.
            loops = range(site.depth, leaf.depth if site.mapping is Mapping.TENSOR else site.depth + 1)
            for access in leaf.accesses:
                in_register = access.array.buffer.memory is Memory.REGISTER
                if in_register and any(e.uses(d) for e in physical_index(access, chain) for d in loops):
                    return Reason(f"'{access.array.name}' is in registers, which only constants index")
        return storage_reason(program, site)

    def numerics(self, program: Program, site: Scope) -> Numerics:
        """Reassociation for a reduction tree; for a hardware loop, the class of a maximum that ignores NaN."""
        if site.mapping is Mapping.FREP and has_extremum(site):
            return Numerics.NUMBERS
        relation = (*same_iteration(site), BEFORE)
        return reassociates(site.mapping.is_concurrent and program.reorders(site.leaves, site.leaves, relation))

    def rewrite(self, program: Program, site: Scope, rewriter: PatternRewriter) -> None:
        site.op.properties["mapping"] = MappingAttr(Mapping.SEQUENTIAL)
        site.op.properties.pop("intrinsic", None)
        rewriter.notify_op_modified(site.op)

    def inverse(self, program: Program, site: Scope) -> Move:
        parameters = (("intrinsic", site.intrinsic),) if site.intrinsic else ()
        return Move(_MAPPERS[site.mapping], f"%{site.id}", parameters)


def _is_alone(site: Scope, leaf: Leaf) -> bool:
    """Whether no other scope around a statement is a grid."""
    return all(s is site or s.mapping is not Mapping.GRID for s in leaf.chain)


_MAPPERS = {
    Mapping.UNROLL: "unroll",
    Mapping.PARALLEL: "parallelize",
    Mapping.VECTOR: "vectorize",
    Mapping.GRID: "map_grid",
    Mapping.BLOCK: "map_block",
    Mapping.WARP: "map_warp",
    Mapping.STREAM: "stream",
    Mapping.FREP: "frep",
    Mapping.TENSOR: "tensorize",
}


def storage_reason(program: Program, site: Scope) -> Reason | None:
    """The reason why values are lost in the new cells of buffers whose reused dimensions the scope indexes; or None."""
    mappings = {site: Mapping.SEQUENTIAL}
    for buffer in dict.fromkeys(a.array.buffer for leaf in site.leaves for a in leaf.accesses):
        if any(buffer.reuse) and _reused_by(site, buffer.names):
            violation = program.storage_violation(buffer.names[0], buffer.reuse, mappings)
            if violation is not None:
                return violation
            race = find_race(program, program.uses_if(mappings, only={buffer}), {buffer}, site.chain[:-1])
            if race is not None:
                return Reason(f"iterations of {describe_scope(race.scope)} would share a slot", str(race.conflict))
    return None


def _reused_by(site: Scope, names: tuple[str, ...]) -> bool:
    """Whether the scope's variable indexes a reused dimension of these arrays."""
    return any(
        reused and expression.uses(site.depth)
        for leaf in site.leaves
        for access in leaf.accesses
        if access.array.name in names
        for expression, reused in zip(access.index, access.array.buffer.reuse, strict=True)
    )

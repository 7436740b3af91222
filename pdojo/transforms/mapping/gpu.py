"""Mappings of a graphics processor: grids of blocks, threads of a block, warps (docs/mappings.md)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from pdojo.transforms.api import (
    BEFORE,
    Machine,
    Mapping,
    Numerics,
    Program,
    Reason,
    Scope,
    atomics_needed,
    atomics_problem,
    misplaced_mapping,
)
from pdojo.transforms.common.ordering import reassociates, same_iteration
from pdojo.transforms.mapping.scope import MapScope


@dataclass(frozen=True)
class MapThreads(MapScope):
    """Base of the mappings to threads: iterations may run in any order and interleaving."""

    example_machine: ClassVar = "toy-gpu"

    @classmethod
    def missing(cls, machine: Machine) -> str:
        """Blocks of threads."""
        return "" if machine.gpu.block_threads else "blocks of threads"

    def check_mapping(self, program: Program, site: Scope) -> Reason | None:
        """Requires that there is no race, and atomic operations of the machine for common cells without a tree."""
        # Most scopes cannot be mapped to threads, and races take longer to find.
        if (misplaced := misplaced_mapping(self.mapped(site))) is not None:
            return misplaced
        relation = (*same_iteration(site), BEFORE)
        race = program.conflict(site.leaves, site.leaves, relation, uses=program.uses_if({site: self.mapping}))
        if race is not None:
            return Reason(f"different iterations race on '{race.first_access.array.name}'", str(race))
        inside = set(site.leaves)
        for leaf, witness in atomics_needed(program, {site: self.mapping}).items():
            problem = atomics_problem(program, leaf, witness) if leaf in inside else None
            if problem is not None:
                return replace(problem, text=f"{problem.text}; split_reduction gives each iteration a partial result")
        return None

    def numerics(self, program: Program, site: Scope) -> Numerics:
        """Reassociation if iterations accumulate into one cell: a tree or atomic operations have another order."""
        return reassociates(program.reorders(site.leaves, site.leaves, (*same_iteration(site), BEFORE)))


@dataclass(frozen=True)
class MapGrid(MapThreads):
    """Give the iterations of a scope to the blocks of a grid.

    `map_grid@y:0`:

    N y[{0}] = x[{0}]  -->  N:g y[{0}] = x[{0}]

    Each outermost grid scope, together with the grid scopes that are only children, is one launch. Legal iff no two
    different iterations conflict, except for accumulations into one cell of the heap: those are atomic operations,
    which the machine must have, and no other access in the launch may touch the cell. Only sequential scopes and grids
    may be around it. Buffers reused in a dimension that the scope indexes get a copy per block.
    """

    name: ClassVar[str] = "map_grid"
    mapping: ClassVar = Mapping.GRID


@dataclass(frozen=True)
class MapBlock(MapThreads):
    """Give the iterations of a scope to the threads of a block.

    `map_block@y:1`:

    N:g 4 y[{0},{1}] = x[{0},{1}]  -->  N:g 4:b y[{0},{1}] = x[{0},{1}]

    Legal iff no two different iterations conflict, except for accumulations into one cell: those are a reduction tree,
    or atomic operations if threads index the cells (`y[{1}//2] +=`), and no other access inside may touch the cell. The
    scope is inside a grid, with as many threads as the machine allows; registers and stack belong to one thread, and
    hold only values that this thread writes or that all threads write.
    """

    name: ClassVar[str] = "map_block"
    mapping: ClassVar = Mapping.BLOCK


@dataclass(frozen=True)
class MapWarp(MapThreads):
    """Give the iterations of a scope to the threads of a warp, which exchange registers.

    `map_warp@m#1:1`:

    N:g                             N:g
    | m[{0}] = 0                    | m[{0}] = 0
    | 4 m[{0}] max= x[{0},{1}] -->  | 4:w m[{0}] max= x[{0},{1}]

    Legal as for `map_block`. The extent divides the warp size of the machine, and no thread scopes are inside. After a
    reduction tree every thread of the warp has the result.
    """

    name: ClassVar[str] = "map_warp"
    mapping: ClassVar = Mapping.WARP

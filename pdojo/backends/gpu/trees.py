"""Reduction trees: threads of a block that accumulate into one cell.

Each thread accumulates into a partial result in its registers. At the end of the outermost scope of such threads, warps
combine partial results by butterfly shuffles, blocks do so in shared memory, and the result is added to the cell.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TypeAlias

from pdojo.backends.c.names import Identifiers
from pdojo.backends.common.walk import decided
from pdojo.backends.gpu.launches import Launch, reduced_by
from pdojo.backends.gpu.numbering import Below, Digit, within
from pdojo.dialect.affine import Expr, const, var
from pdojo.dialect.attributes import Mapping
from pdojo.dialect.flow.integer_sets import projected
from pdojo.dialect.functions import identity_value
from pdojo.dialect.rules.block_threads import threads_of
from pdojo.dialect.view.nest import Constant, Leaf, Scope

Checked: TypeAlias = Callable[[], AbstractContextManager[None]]
"""A function that gives a context in which appended code runs only in threads that meet the conditions around it."""
_LOOPS = (Mapping.SEQUENTIAL, Mapping.UNROLL)


@dataclass(frozen=True, eq=False)
class Tree:
    """A statement by which several threads accumulate into one cell."""

    launch: Launch
    leaf: Leaf
    root: Scope
    """The outermost thread scope whose threads accumulate into one cell."""
    reduced: tuple[Scope, ...]
    """The thread scopes whose threads accumulate into one cell, outermost first."""
    kept: tuple[Scope, ...]
    """The thread scopes inside the root whose iterations have different cells."""
    cells: tuple[Scope, ...]
    """The loops inside the root whose iterations have different cells."""
    name: str
    """Name of the thread's partial result."""

    @property
    def dtype(self) -> str:
        """The element type."""
        return self.leaf.output.array.dtype

    @property
    def accumulate(self) -> str:
        """The function that combines two results."""
        assert self.leaf.accumulate is not None
        return self.leaf.accumulate

    @property
    def shared(self) -> str:
        """The name of the array in shared memory, for trees of several warps."""
        return f"{self.name}s"

    @property
    def blocks(self) -> tuple[Scope, ...]:
        """The block scopes whose threads combine their results in shared memory."""
        return tuple(s for s in self.reduced if s.mapping is Mapping.BLOCK)

    @property
    def offsets(self) -> list[int]:
        """Distances of the threads that exchange results in each step of the butterflies."""
        warps = [s.extent for s in self.reduced if s.mapping is Mapping.WARP]
        return [extent >> k for extent in warps for k in range(1, extent.bit_length())]

    @property
    def neutral(self) -> Constant:
        """The initial value of a partial result."""
        value = -0.0 if self.accumulate == "arith.addf" else identity_value(self.accumulate, self.dtype)
        return Constant(value, self.dtype)

    @property
    def size(self) -> int:
        """Number of partial results of each thread."""
        return prod(s.extent for s in self.cells)

    @property
    def cell(self) -> Expr:
        """The index of the partial result."""
        total = const(0)
        for scope in self.cells:
            total = total * scope.extent + var(scope.depth)
        return total

    @cached_property
    def outer(self) -> tuple[Scope, ...]:
        """The thread scopes around the root."""
        return threads_of(self.root.chain[:-1])

    @property
    def reuses_scratch(self) -> bool:
        """Whether the array in shared memory is used for several results, one after the other."""
        return self.size > 1 or any(
            s.extent > 1 and s.mapping in _LOOPS for s in self.root.chain[self.launch.depth : -1]
        )

    # Addresses in the array in shared memory, which has one element per thread

    def first(self) -> list[tuple[Digit, int]]:
        """The number of the first thread that contributes to the same cell, as a sum of digits with factors."""
        around = within(self.launch, self.outer)
        terms = [(Digit(around[:k], stride), stride) for k, stride in enumerate(around)]
        return terms + [(self._number(s), self.launch.strides[s]) for s in self.kept]

    def _number(self, scope: Scope) -> Digit:
        """The thread's iteration of a scope inside the root, below the extent even for idle threads."""
        stride = self.launch.strides[scope]
        around = within(self.launch, threads_of(scope.chain[:-1]))
        aligned = all(width % (stride * scope.extent) == 0 for width in around)
        return Digit(() if aligned else around, stride, scope.extent)

    def contributors(self) -> list[int]:
        """The distances, from the first contributing thread, of one thread of each warp whose results are added."""
        found = [0]
        for scope in self.blocks:
            stride = self.launch.strides[scope]
            found = [before + number * stride for before in found for number in range(scope.extent)]
        return found

    # The thread that adds the result to the cell

    def with_cells(self) -> list[Below]:
        """The condition of threads with an iteration of the root; empty if all have one."""
        width, whole = self.root.extent * self.launch.strides[self.root], self.launch.threads
        kept_blocks = any(s.mapping is Mapping.BLOCK for s in self.kept)
        return [Below(Digit(), width)] if kept_blocks and not self.outer and width < whole else []

    def only_one(self) -> list[Below]:
        """The conditions of exactly one thread per cell: the first that has its result and an iteration of the root."""
        conditions: list[Below] = []
        strides, around = self.launch.strides, threads_of(self.leaf.chain)
        covered = 1
        for number in reversed(range(len(self.outer), len(around))):
            scope = around[number]
            if strides[scope] > covered:
                conditions.append(Below(Digit(within(self.launch, around[: number + 1])), covered))
            if scope in self.reduced:
                conditions.append(Below(self._number(scope), 1))
            covered = strides[scope] * scope.extent
        if covered < (strides[self.outer[-1]] if self.outer else self.launch.threads):
            conditions.append(Below(Digit(within(self.launch, self.outer)), covered))
        return conditions

    @cached_property
    def guards(self) -> list[list[Expr]]:
        """Alternatives, one of which holds iff some thread contributes to the cell. An empty one always holds."""
        inside = self.leaf.chain[self.root.depth :]
        constraints = [c for scope in inside for c in scope.guard]
        gone = [s.depth for s in inside if s not in (*self.kept, *self.cells) and s.extent > 1]
        apart = [c for c in constraints if c.variables().isdisjoint(gone)]
        mixed = [c for c in constraints if c not in apart]
        extents = self.leaf.extents
        found = [[*apart, *piece] for piece in projected(extents, mixed, gone)] if mixed else [apart]
        found = [[c for c in piece if decided(c, extents) is not True] for piece in found]
        return found if all(found) else [[]]


def trees_of(found: Launch, names: Identifiers) -> list[Tree]:
    """The trees of a launch."""
    trees: list[Tree] = []
    for leaf in found.leaves:
        reduced = reduced_by(leaf)
        if not reduced:
            continue
        around, index = threads_of(leaf.chain), leaf.output.index
        root = reduced[0]
        inside = leaf.chain[root.depth + 1 :]
        kept = tuple(s for s in inside if s in around and s not in reduced)
        cells = tuple(s for s in inside if s not in around and s.extent > 1 and any(e.uses(s.depth) for e in index))
        name = names.fresh(f"{leaf.output.array.name}_part")
        trees.append(Tree(found, leaf, root, reduced, kept, cells, name))
    return trees

"""Reduction trees: threads of a block that accumulate into one cell.

Each thread accumulates into a partial result of its own, in registers. When the outermost scope of such threads ends,
warps combine theirs by butterflies of shuffles, blocks in shared memory, and the result is added to the cell.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

from pdojo.backends.c.names import Names
from pdojo.backends.gpu.launches import Launch, reduced_by, threads_of
from pdojo.backends.gpu.numbering import Below, Digit, partly_run
from pdojo.backends.walk import describe
from pdojo.dialect.affine import Expr, const, var
from pdojo.dialect.attributes import Mapping
from pdojo.dialect.functions import identity_value
from pdojo.dialect.view.nest import Constant, Leaf, Scope
from pdojo.errors import LoweringError

_LOOPS = (Mapping.SEQUENTIAL, Mapping.UNROLL)


@dataclass(frozen=True, eq=False)
class Tree:
    """An accumulation of several threads into one cell."""

    launch: Launch
    leaf: Leaf
    root: Scope
    """The outermost thread scope whose threads accumulate into one cell."""
    reduced: tuple[Scope, ...]
    """The thread scopes whose threads accumulate into one cell, outermost first."""
    kept: tuple[Scope, ...]
    """The thread scopes inside the root with cells of their own."""
    cells: tuple[Scope, ...]
    """The loops inside the root with cells of their own."""
    name: str
    """The thread's partial result."""

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
        """The scopes whose threads combine their results in shared memory."""
        return tuple(s for s in self.reduced if s.mapping is Mapping.BLOCK)

    @property
    def offsets(self) -> list[int]:
        """How far each thread of a warp is from the one whose result it adds, butterfly by butterfly."""
        warps = [s.extent for s in self.reduced if s.mapping is Mapping.WARP]
        return [extent >> k for extent in warps for k in range(1, extent.bit_length())]

    @property
    def neutral(self) -> Constant:
        """What a partial result begins with."""
        value = -0.0 if self.accumulate == "arith.addf" else identity_value(self.accumulate, self.dtype)
        return Constant(value, self.dtype)

    @property
    def size(self) -> int:
        """Partial results of each thread."""
        return prod(s.extent for s in self.cells)

    @property
    def cell(self) -> Expr:
        """The number of the partial result."""
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
        """Whether the array in shared memory holds several results, one after the other."""
        return self.size > 1 or any(
            s.extent > 1 and s.mapping in _LOOPS for s in self.root.chain[self.launch.depth : -1]
        )

    # Addresses in the array in shared memory, which has an element per thread

    def first(self) -> list[tuple[Digit, int]]:
        """The first thread that contributes to the same cell, as a sum of multiples."""
        strides = self.launch.strides
        terms: list[tuple[Digit, int]] = []
        if self.outer:
            stride = strides[self.outer[-1]]
            terms.append((Digit(stride=stride), stride))
        return terms + [(Digit(stride=strides[s], extent=s.extent), strides[s]) for s in self.kept]

    def contributors(self) -> list[int]:
        """The distances of the threads whose results are added, one of each warp, from the first of them."""
        found = [0]
        for scope in self.blocks:
            stride = self.launch.strides[scope]
            found = [before + number * stride for before in found for number in range(scope.extent)]
        return found

    # Who adds the result to the cell

    def within(self) -> list[Below]:
        """The threads that have cells: those with an iteration of the root."""
        width, whole = self.root.extent * self.launch.strides[self.root], self.launch.threads
        kept_blocks = any(s.mapping is Mapping.BLOCK for s in self.kept)
        return [Below(Digit(), width)] if kept_blocks and not self.outer and width < whole else []

    def only_one(self) -> list[Below]:
        """The first of the threads that have the result of a cell, and an iteration of the root."""
        conditions: list[Below] = []
        strides = self.launch.strides
        within = strides[self.outer[-1]] if self.outer else 0
        covered = 1
        for scope in reversed(threads_of(self.leaf.chain)[len(self.outer) :]):
            if strides[scope] > covered:
                conditions.append(Below(Digit(within, extent=strides[scope]), covered))
                covered = strides[scope]
            if scope in self.reduced:
                conditions.append(Below(Digit(within, strides[scope], scope.extent), 1))
            covered = strides[scope] * scope.extent
        if covered < (within or self.launch.threads):
            conditions.append(Below(Digit(within), covered))
        return conditions

    def guards(self) -> list[Expr]:
        """The guards that decide whether a cell exists."""
        found: list[Expr] = []
        inside, kept = self.leaf.chain[self.root.depth :], (*self.kept, *self.cells)
        gone = {s.depth for s in inside if s not in kept and s.extent > 1}
        for scope in inside:
            for constraint in scope.guard:
                if not constraint.variables() & gone:
                    found.append(constraint)
                elif any(constraint.uses(s.depth) for s in kept):
                    raise LoweringError(
                        f"a guard of {describe(scope)} mixes threads that add up with threads that have cells"
                    )
        return found

    def check_complete(self) -> None:
        """Raise LoweringError unless all threads of the block run what combines results in shared memory."""
        for scope in partly_run(self.launch, self.root.chain[:-1]):
            raise LoweringError(
                f"threads of {describe(scope)} add up in shared memory, but not all threads of the block run it"
            )


def trees_of(found: Launch, names: Names) -> list[Tree]:
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

"""Launches of a kernel, and the threads that run each scope of a block.

An outermost `:g` scope, together with `:g` scopes that are only children, is one launch of a device function.
Statements outside of grids run in one thread of the device; loops around grids run on the host. docs/mappings.md has
the rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from pdojo.backends.common.walk import describe, loop_bounds
from pdojo.dialect.affine import Expr
from pdojo.dialect.attributes import Mapping
from pdojo.dialect.lookups import lookups_in, sizes_in
from pdojo.dialect.machines.collectives import Collectives, Held, collectives_of
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.rules.block_threads import block_threads, is_aligned, own_accesses, threads_of
from pdojo.dialect.rules.threads import grid_problem
from pdojo.dialect.view.grids import MOST_BLOCKS, launch_of
from pdojo.dialect.view.messages import describe_access
from pdojo.dialect.view.nest import Access, Leaf, Nest, Node, Scope
from pdojo.errors import LoweringError


@dataclass(frozen=True, eq=False)
class Launch:
    """A launch of a device function: its blocks, their code and threads.

    Thread `t` of a block runs iteration `t // stride % extent` of a thread scope, where `stride` is the number of
    threads that one iteration takes.
    """

    root: Node
    """The outermost grid scope, or a node outside of grids."""
    grids: tuple[Scope, ...]
    """The grid scopes, outermost first; empty for a node that one thread runs."""
    nodes: Sequence[Node]
    """The nodes that each block runs."""
    threads: int
    """Number of threads of a block."""
    strides: dict[Scope, int]
    """The number of consecutive threads that run one iteration, keyed by thread scope."""
    collectives: Collectives
    """The scopes that the threads of a warp compute together."""

    @property
    def blocks(self) -> int:
        """Number of blocks, at the greatest sizes."""
        return prod(s.extent for s in self.grids)

    @property
    def depth(self) -> int:
        """The number of scopes around the nodes: loops of the host, and grids."""
        return self.nodes[0].depth

    @property
    def leaves(self) -> Sequence[Leaf]:
        """The statements, in textual order."""
        return self.root.leaves if isinstance(self.root, Scope) else [self.root]

    def touched(self, leaf: Leaf) -> Sequence[Access]:
        """The accesses of a statement in the code; an instruction of a warp hides the accesses to its temporaries."""
        if self.collectives.of(leaf) is None:
            return leaf.accesses
        found = self.collectives
        return [access for access in leaf.accesses if access in found.spreads or access in found.shared]

    def group(self, chain: Sequence[Scope]) -> int:
        """The number of consecutive threads that cover all those running one instance of a chain's inside.

        Threads of a warp that no iteration of a warp scope needs run its body, too, on their own registers.
        """
        around = list(threads_of(chain))
        if not around:
            return self.threads
        innermost = around.pop()
        whole = self.strides[around[-1]] if around else self.threads
        stride = self.strides[innermost]
        copies = innermost.mapping is Mapping.WARP and whole > innermost.extent * stride
        return whole if copies else stride


def holds_grid(node: Node) -> bool:
    """Whether a node contains a grid, so that it is a grid or a loop of the host."""
    leaves = node.leaves if isinstance(node, Scope) else [node]
    return any(s.mapping is Mapping.GRID for leaf in leaves for s in leaf.chain)


def root_of(leaf: Leaf) -> Node:
    """The node whose launch runs a statement."""
    return next((s for s in leaf.chain if s.mapping is Mapping.GRID or not holds_grid(s)), leaf)


def grids_of(root: Node) -> list[Scope]:
    """The grid scopes that begin with a node and are the only children of each other, outermost first."""
    grids: list[Scope] = []
    nodes: Sequence[Node] = [root]
    while len(nodes) == 1 and isinstance(nodes[0], Scope) and nodes[0].mapping is Mapping.GRID:
        grids.append(nodes[0])
        nodes = nodes[0].children
    return grids


def grid_limits(scope: Scope) -> tuple[Expr, ...]:
    """Numbers of iterations, each of them enough, of a grid scope that needs fewer than its extent at some sizes.

    They depend on sizes and on variables of the host, which does not see indices. The code checks guards, so that more
    iterations do no harm.
    """
    host = next(s.depth for s in scope.chain if s.mapping is Mapping.GRID)
    highs = loop_bounds(scope, [s.extent for s in scope.chain]).highs
    known = (e for e in highs if sizes_in([e]) and not lookups_in([e]))
    return tuple(e for e in known if all(depth < host for depth in e.variables()))


def reduced_by(leaf: Leaf) -> tuple[Scope, ...]:
    """The thread scopes whose threads accumulate into one cell, outermost first; empty if cells are private."""
    if leaf.accumulate is None:
        return ()
    several = (s for s in threads_of(leaf.chain) if s.extent > 1)
    return tuple(s for s in several if not any(e.uses(s.depth) for e in leaf.output.index))


def launch(nest: Nest, node: Node, machine: Machine) -> Launch:
    """The launch of an outermost grid, or of a node outside of grids.

    Raises LoweringError if statements stand beside an inner grid, if a block has too many threads, or if
    a buffer would be distributed over the threads in two ways.
    """
    grids = grids_of(node)
    nodes: Sequence[Node] = grids[-1].children if grids else [node]
    leaves = node.leaves if isinstance(node, Scope) else [node]
    for leaf in leaves:
        inner = launch_of(leaf)
        if inner is not (grids[-1] if grids else None):
            assert inner is not None
            raise LoweringError(f"{describe(inner)} is not the only child of the grid around it")
    collectives = collectives_of(nest)
    block = block_threads(nest, nodes, collectives)
    threads, strides = block.count, block.strides
    limits = machine.gpu
    if threads > limits.block_threads:
        where = describe(grids[-1]) if grids else "no grid"
        raise LoweringError(f"a block of {where} would have {threads} threads, more than {limits.block_threads}")
    found = Launch(node, tuple(grids), nodes, threads, strides, collectives)
    _check_numbers(node, found, machine)
    for scope in strides:
        if scope.mapping is Mapping.WARP and limits.warp_size % scope.extent:
            raise LoweringError(f"{describe(scope)} does not divide a warp of {limits.warp_size} threads")
    _check_distributed(nest, found)
    return found


def _check_numbers(node: Node, found: Launch, machine: Machine) -> None:
    """Raise LoweringError if a block's number, or the variable of a loop around the launch, has more than 31 bits."""
    if found.grids and (problem := grid_problem(found.blocks, found.threads, machine)) is not None:
        raise LoweringError(f"{describe(found.grids[-1])}: {problem}")
    for scope in node.chain[: -1 if isinstance(node, Scope) else None]:
        if scope.extent > MOST_BLOCKS:
            raise LoweringError(f"{describe(scope)} would launch more than {MOST_BLOCKS} grids, one after the other")


def _check_distributed(nest: Nest, found: Launch) -> None:
    for buffer in nest.buffers:
        known: tuple[tuple[int, int], ...] | None = None
        spreads, held = found.collectives.spreads, found.collectives.held(nest, buffer)
        for leaf, access in own_accesses(nest, buffer):
            scopes = [s for s in threads_of(leaf.chain) if s in found.strides]
            warp = found.collectives.warp(held, leaf, access) if scopes else ()
            used = tuple(
                (s.extent, found.strides[s])
                for s in scopes
                if s not in warp and any(e.uses(s.depth) for e in access.index)
            )
            if access in spreads:
                counts = [count for count, _ in spreads[access].numbers]
                used = (*used, *((count, prod(counts[k + 1 :])) for k, count in enumerate(counts)))
            elif warp and isinstance(held, Held) and is_aligned(warp, held.fragment.threads, found.strides):
                used = (*used, (held.fragment.threads, 1))
            if known is None:
                known = used
            elif scopes and used != known:
                raise LoweringError(
                    f"{describe_access(access)}: '{buffer.names[0]}' is distributed over the threads of a block in two "
                    f"ways, by (extent, stride) {known} and {used}"
                )

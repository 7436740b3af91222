"""Launches of a kernel, and the threads that run each scope of a block.

An outermost `:g` scope, with the `:g` scopes that are its only children, is one launch of a device function. What is
outside of grids runs as one thread of the device; loops around grids run on the host. docs/mappings.md has the rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from pdojo.backends.walk import describe
from pdojo.dialect.attributes import Mapping, Memory
from pdojo.dialect.machines.collectives import Collectives, collectives_of
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.view.grids import MOST_BLOCKS, grid_problem, launch_of
from pdojo.dialect.view.messages import describe_access
from pdojo.dialect.view.nest import Access, Buffer, Leaf, Nest, Node, Scope
from pdojo.errors import LoweringError

THREADS = (Mapping.BLOCK, Mapping.WARP)
"""Mappings whose iterations are threads."""


@dataclass(frozen=True, eq=False)
class Launch:
    """A device function: what one block runs, and its threads.

    Thread `t` of a block runs iteration `t // stride % extent` of a thread scope, where `stride` counts the threads
    that one iteration takes.
    """

    root: Node
    """The outermost grid scope, or a node outside of grids."""
    grids: tuple[Scope, ...]
    """The grid scopes, outermost first; none for a node that one thread runs."""
    nodes: Sequence[Node]
    """What each block runs."""
    threads: int
    """Threads of a block."""
    strides: dict[Scope, int]
    """Consecutive threads that run one iteration of a thread scope together."""
    collectives: Collectives
    """The scopes that the threads of a warp compute together."""

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return prod(s.extent for s in self.grids)

    @property
    def depth(self) -> int:
        """How many scopes are around the nodes: loops of the host, and grids."""
        return self.nodes[0].depth

    @property
    def leaves(self) -> Sequence[Leaf]:
        """The statements, in textual order."""
        return self.root.leaves if isinstance(self.root, Scope) else [self.root]

    def touched(self, leaf: Leaf) -> Sequence[Access]:
        """The accesses of a statement in the code: an instruction of a warp keeps its temporaries to itself."""
        if self.collectives.of(leaf) is None:
            return leaf.accesses
        return [access for access in leaf.accesses if access in self.collectives.spreads]

    def group(self, chain: Sequence[Scope]) -> int:
        """How many consecutive threads contain all that run one instance of what is inside of a chain of scopes.

        Threads of a block beyond those of a warp scope run it, too, on their own registers.
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
    """Whether there is a grid in a node, so that it is a grid or a loop of the host."""
    leaves = node.leaves if isinstance(node, Scope) else [node]
    return any(s.mapping is Mapping.GRID for leaf in leaves for s in leaf.chain)


def root_of(leaf: Leaf) -> Node:
    """The node whose launch runs a statement."""
    return next((s for s in leaf.chain if s.mapping is Mapping.GRID or not holds_grid(s)), leaf)


def threads_of(chain: Sequence[Scope]) -> tuple[Scope, ...]:
    """The thread scopes of a chain, outermost first."""
    return tuple(s for s in chain if s.mapping in THREADS)


def reduced_by(leaf: Leaf) -> tuple[Scope, ...]:
    """The thread scopes whose threads accumulate into one cell, outermost first; none if each has its own."""
    if leaf.accumulate is None:
        return ()
    several = (s for s in threads_of(leaf.chain) if s.extent > 1)
    return tuple(s for s in several if not any(e.uses(s.depth) for e in leaf.output.index))


def launch(nest: Nest, node: Node, machine: Machine) -> Launch:
    """The launch of an outermost grid, or of a node outside of grids.

    Raises LoweringError if statements stand beside a grid inside another one, if a block has too many threads, or if
    a buffer would be distributed over the threads in two ways.
    """
    grids: list[Scope] = []
    nodes: Sequence[Node] = [node]
    while len(nodes) == 1 and isinstance(nodes[0], Scope) and nodes[0].mapping is Mapping.GRID:
        grids.append(nodes[0])
        nodes = nodes[0].children
    leaves = node.leaves if isinstance(node, Scope) else [node]
    for leaf in leaves:
        inner = launch_of(leaf)
        if inner is not (grids[-1] if grids else None):
            assert inner is not None
            raise LoweringError(f"{describe(inner)} is not the only child of the grid around it")
    collectives = collectives_of(nest)
    strides = _strides(nest, nodes, collectives)
    widths = [s.extent * stride for s, stride in strides.items() if not threads_of(s.chain[:-1])]
    threads = max(widths, default=1)
    # Groups that exchange registers are complete: the last one, too.
    whole = max((s.extent for s in strides if s.mapping is Mapping.WARP), default=1)
    whole = max(whole, *(collectives.threads(leaf.chain) for leaf in leaves))
    threads = -(-threads // whole) * whole
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
    """Raise LoweringError if the number of a block or of a loop around the launch has more than 31 bits."""
    if found.grids and (problem := grid_problem(found.blocks, found.threads, machine)) is not None:
        raise LoweringError(f"{describe(found.grids[-1])}: {problem}")
    for scope in node.chain[: -1 if isinstance(node, Scope) else None]:
        if scope.extent > MOST_BLOCKS:
            raise LoweringError(f"{describe(scope)} would launch more than {MOST_BLOCKS} grids, one after the other")


def _strides(nest: Nest, nodes: Sequence[Node], collectives: Collectives) -> dict[Scope, int]:
    """Threads per iteration of each thread scope: as many as the widest thread scope inside needs.

    Scopes whose threads index one buffer in registers get the same, so that each finds its own cells.
    """
    least: dict[Scope, int] = {}
    while True:
        strides: dict[Scope, int] = {}
        for node in nodes:
            _measure(node, strides, least, collectives)
        raised = False
        for buffer in nest.buffers:
            innermost = [
                threads[-1]
                for leaf, access in _own_accesses(nest, buffer)
                if (threads := [s for s in leaf.chain if s in strides and s.mapping is Mapping.BLOCK])
                and any(e.uses(s.depth) for s in threads for e in access.index)
            ]
            most = max((strides[s] for s in innermost), default=1)
            for scope in innermost:
                if strides[scope] < most:
                    least[scope], raised = most, True
        if not raised:
            return strides


def _measure(node: Node, strides: dict[Scope, int], least: dict[Scope, int], collectives: Collectives) -> int:
    """Threads that a node needs; notes the strides of the thread scopes within."""
    if isinstance(node, Leaf):
        return 1
    if node in collectives.scopes:
        return collectives.scopes[node].intrinsic.threads
    inner = max([1, *(_measure(child, strides, least, collectives) for child in node.children)])
    if node.mapping not in THREADS:
        return inner
    # A warp's threads begin at a multiple of their number, so they run one iteration only if all begin there.
    inside = [leaf.chain[node.depth + 1 :] for leaf in node.leaves]
    warp = max((s.extent for chain in inside for s in chain if s.mapping is Mapping.WARP), default=1)
    warp = max(warp, *(collectives.threads(chain) for chain in inside))
    strides[node] = -(-max(inner, least.get(node, 1)) // warp) * warp
    return node.extent * strides[node]


def _own_accesses(nest: Nest, buffer: Buffer) -> Iterator[tuple[Leaf, Access]]:
    """The accesses to a buffer of which each thread has its own."""
    if buffer.memory in (Memory.REGISTER, Memory.STACK):
        yield from ((leaf, a) for leaf in nest.leaves for a in leaf.accesses if a.array.buffer is buffer)


def _check_distributed(nest: Nest, found: Launch) -> None:
    for buffer in nest.buffers:
        known: tuple[tuple[int, int], ...] | None = None
        spreads = found.collectives.spreads
        for leaf, access in _own_accesses(nest, buffer):
            scopes = [s for s in threads_of(leaf.chain) if s in found.strides]
            used = tuple((s.extent, found.strides[s]) for s in scopes if any(e.uses(s.depth) for e in access.index))
            if access in spreads:
                used = (*used, (spreads[access].fragment.threads, 1))
            if known is None:
                known = used
            elif scopes and used != known:
                raise LoweringError(
                    f"{describe_access(access)}: '{buffer.names[0]}' is distributed over the threads of a block in two "
                    f"ways, by (extent, stride) {known} and {used}"
                )

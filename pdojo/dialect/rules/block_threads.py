"""Threads of a block of a graphics processor, and the number of threads that run one iteration of a thread scope."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass

from pdojo.dialect.attributes import Mapping, Memory
from pdojo.dialect.machines.collectives import Collectives
from pdojo.dialect.view.nest import Access, Buffer, Leaf, Nest, Node, Scope, leaves_of

THREADS = (Mapping.BLOCK, Mapping.WARP)
"""Mappings whose iterations are threads."""


@dataclass(frozen=True, eq=False)
class BlockThreads:
    """The threads of a block.

    Thread `t` runs iteration `t // stride % extent` of a thread scope, where `stride` counts the threads that one
    iteration takes.
    """

    count: int
    strides: dict[Scope, int]


def threads_of(chain: Sequence[Scope]) -> tuple[Scope, ...]:
    """The thread scopes of a chain, outermost first."""
    return tuple(s for s in chain if s.mapping in THREADS)


def is_aligned(warp: Sequence[Scope], threads: int, strides: MappingOf[Scope, int]) -> bool:
    """Whether scopes whose iterations are the threads of a warp number them without gaps, from the warp's first on."""
    count = 1
    for scope in reversed(warp):
        if strides[scope] != count:
            return False
        count *= scope.extent
    return all(strides[s] % threads == 0 for s in threads_of(warp[0].chain[:-1]))


def block_threads(nest: Nest, nodes: Sequence[Node], collectives: Collectives) -> BlockThreads:
    """The threads of a block that runs these nodes."""
    strides = _strides(nest, nodes, collectives)
    widths = [s.extent * stride for s, stride in strides.items() if not threads_of(s.chain[:-1])]
    # Groups that exchange registers are complete, including the last one.
    whole = max((s.extent for s in strides if s.mapping is Mapping.WARP), default=1)
    whole = max([whole, *(collectives.threads(leaf.chain) for node in nodes for leaf in leaves_of(node))])
    return BlockThreads(-(-max(widths, default=1) // whole) * whole, strides)


def own_accesses(nest: Nest, buffer: Buffer) -> Iterator[tuple[Leaf, Access]]:
    """The accesses to a buffer with a copy for each thread."""
    if buffer.memory in (Memory.REGISTER, Memory.STACK):
        yield from ((leaf, a) for leaf in nest.leaves for a in leaf.accesses if a.array.buffer is buffer)


def _strides(nest: Nest, nodes: Sequence[Node], collectives: Collectives) -> dict[Scope, int]:
    """Threads per iteration of each thread scope: the number that the widest thread scope inside needs.

    Scopes whose threads index one buffer in registers get equal strides, so that each thread finds its own cells. They
    have equally many thread scopes around them, else the buffer's memory is illegal (`pdojo.dialect.rules.threads`).
    """
    least: dict[Scope, int] = {}
    while True:
        strides: dict[Scope, int] = {}
        for node in nodes:
            _measure(node, strides, least, collectives)
        raised = False
        for alike in _alike(nest, strides, collectives):
            most = max(strides[s] for s in alike)
            for scope in alike:
                if strides[scope] < most:
                    least[scope], raised = most, True
        # A stride depends only on strides further inside, so the innermost settle first and the loop ends.
        if not raised:
            return strides


def _alike(nest: Nest, strides: dict[Scope, int], collectives: Collectives) -> Iterator[list[Scope]]:
    """Groups of innermost thread scopes that access one buffer in registers, keyed by the number of outer ones.

    Scopes that are the threads of a warp count as none if the warp holds the buffer.
    """
    for buffer in nest.buffers:
        levels: dict[int, list[Scope]] = {}
        held = collectives.held(nest, buffer)
        for leaf, access in own_accesses(nest, buffer):
            warp = collectives.warp(held, leaf, access)
            threads = [s for s in leaf.chain if s in strides and s.mapping is Mapping.BLOCK and s not in warp]
            if any(e.uses(s.depth) for s in threads for e in access.index):
                levels.setdefault(len(threads), []).append(threads[-1])
        yield from levels.values()


def _measure(node: Node, strides: dict[Scope, int], least: dict[Scope, int], collectives: Collectives) -> int:
    """The number of threads that a node needs; records the strides of the thread scopes inside."""
    if isinstance(node, Leaf):
        return 1
    if node in collectives.scopes:
        return collectives.scopes[node].intrinsic.threads
    inner = max([1, *(_measure(child, strides, least, collectives) for child in node.children)])
    if node.mapping not in THREADS:
        return inner
    # A warp's threads begin at a multiple of their number, so that each iteration must begin at such a multiple.
    inside = [leaf.chain[node.depth + 1 :] for leaf in node.leaves]
    warp = max((s.extent for chain in inside for s in chain if s.mapping is Mapping.WARP), default=1)
    warp = max(warp, *(collectives.threads(chain) for chain in inside))
    strides[node] = -(-max(inner, least.get(node, 1)) // warp) * warp
    return node.extent * strides[node]

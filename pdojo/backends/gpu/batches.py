"""Batches of asynchronous instructions: products that tensor units compute while the threads go on.

A batch is a node whose statements are all of instructions of one name, whose accumulators are in registers. A fence
stands before it, which orders the accumulators; a *group* of instructions ends after it. The threads wait for the group
before they touch the accumulators, and before any thread writes what the units read.

Waits count groups. Fence and end of the group stand inside the batch's guard if the guard leaves out only the first
iterations of the loop around: after the first group there is one in each iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pdojo.backends.gpu.launches import Launch
from pdojo.dialect.affine import Expr, var
from pdojo.dialect.attributes import Mapping, Memory
from pdojo.dialect.machines.collectives import Collective
from pdojo.dialect.rules.block_threads import THREADS
from pdojo.dialect.view.nest import Buffer, Leaf, Node, Scope


@dataclass(frozen=True, eq=False)
class Batch:
    """A node of asynchronous instructions."""

    node: Scope
    inside: Scope
    """The node that fence and end of the group enclose: `node`, or a node inside its guard."""
    leaves: Sequence[Leaf]
    accumulators: tuple[Buffer, ...]


def is_asynchronous(collective: Collective) -> bool:
    """Whether the threads go on while the instruction runs; it waits by itself for accumulators in memory."""
    written = (s.access.array.buffer for s in collective.operands.values() if s.writes)
    return bool(collective.shared) and all(buffer.memory is Memory.REGISTER for buffer in written)


def batches_of(found: Launch) -> list[Batch]:
    """The batches of a launch, in textual order; each is as large as it can be."""
    batches: dict[Scope, Batch] = {}
    for collective in found.collectives.scopes.values():
        leaf = collective.scope.leaves[0]
        if leaf not in found.leaves or not is_asynchronous(collective):
            continue
        node = collective.scope
        for scope in reversed(leaf.chain[found.depth : node.depth]):
            if not _is_batch(found, scope, collective):
                break
            node = scope
        batches[node] = Batch(node, _inside(found, node, collective.scope), node.leaves, _written(found, node))
    return list(batches.values())


def _inside(found: Launch, node: Scope, last: Scope) -> Scope:
    """The node inside scopes of one iteration, whose guards leave out the first iterations of the loop around."""
    around = [s for s in node.chain[found.depth : -1] if s.extent > 1]
    loop = around[-1] if around else None
    while node is not last and node.extent == 1 and len(node.children) == 1 and isinstance(node.children[0], Scope):
        if node.mapping is not Mapping.SEQUENTIAL or not all(_grows(g, node, loop) for g in node.guard):
            break
        node = node.children[0]
    return node


def _grows(guard: Expr, scope: Scope, loop: Scope | None) -> bool:
    """Whether a constraint, once met in an iteration of the loop, is met in all later ones, by every thread."""
    if any(s.mapping in THREADS and guard.uses(s.depth) for s in scope.chain):
        return False
    if loop is None or not guard.uses(loop.depth):
        return True
    factor = guard.coefficient(loop.depth)
    return factor > 0 and not (guard - var(loop.depth) * factor).uses(loop.depth)


def _is_batch(found: Launch, scope: Scope, collective: Collective) -> bool:
    inside = [found.collectives.of(leaf) for leaf in scope.leaves]
    return all(
        one is not None and is_asynchronous(one) and one.intrinsic.name == collective.intrinsic.name for one in inside
    )


def _written(found: Launch, node: Scope) -> tuple[Buffer, ...]:
    spreads = found.collectives.spreads
    written = [leaf.output.array.buffer for leaf in node.leaves if leaf.output in spreads]
    return tuple(dict.fromkeys(written))


def holds(node: Node, leaf: Leaf) -> bool:
    """Whether a statement is in a node."""
    return leaf is node or node in leaf.chain

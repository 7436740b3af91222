"""Exchanging neighbouring nodes."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from pdojo.transforms.api import (
    Buffer,
    Conflict,
    InsertPoint,
    Leaf,
    Move,
    Node,
    Numerics,
    PatternRewriter,
    Program,
    Promises,
    Reason,
    Scope,
    Transformation,
    Undecided,
    leaves_of,
)
from pdojo.transforms.common.ordering import Uses, carried, reassociates, reordered, same_iteration, shared_buffers


def observed(program: Program, exchanged: Sequence[Leaf]) -> set[Buffer]:
    """The buffers of the exchanged statements in which the order of their stores matters.

    These are the caller's memory, all buffers that statements read, the outputs of exchanged accumulations and
    asynchronous copies, and the outputs of accumulations whose elements share memory: an accumulation needs its old
    value even if no statement reads the result.
    """
    own = {leaf.output.array.buffer for leaf in exchanged if leaf.accumulate is not None or leaf.asynchronous}
    used = {access.array.buffer for leaf in exchanged for access in leaf.accesses}
    return own | {buffer for buffer in used if _is_observed(program, buffer)}


def _is_observed(program: Program, buffer: Buffer) -> bool:
    """Whether the order of stores to a buffer matters, whatever statements are exchanged."""

    def decide() -> bool:
        users = dict.fromkeys(user for user, _ in program.nest.accesses.get(buffer, ()))
        if any(read.array.buffer is buffer for user in users for read in user.reads):
            return True
        shares = any(buffer.reuse) or len(buffer.names) > 1
        return shares and any(user.accumulate is not None for user in users)

    return buffer.op is None or program.nest.about_uses(buffer, "observed", decide)


def are_tied(program: Program, first: Node, second: Node) -> bool:
    """Whether `swap_nodes` never exchanges two nodes of one scope, whatever stands between them.

    They conflict in memory that has a cell for each element, or the question is not settled; other buffers depend on
    the order of the other nodes.
    """
    pair = leaves_of(first), leaves_of(second)
    plain = observed(program, [*pair[0], *pair[1]]).difference(shared_buffers(*pair))
    try:
        return program.conflict(*pair, same_iteration(first), only=plain) is not None
    except Undecided:
        return True


@dataclass(frozen=True)
class SwapNodes(Transformation[Scope | Leaf]):
    """Exchange a node with the one that immediately follows it.

    `swap_nodes@a:0`:

    N a[{0}] = x[{0}]       N b[{0}] = x[{0}]
    N b[{0}] = x[{0}]  -->  N a[{0}] = x[{0}]

    Legal iff, within one iteration of the scopes around, no instance of one node conflicts with an instance of the
    other, in memory that is read.
    """

    name: ClassVar[str] = "swap_nodes"
    exchanges: ClassVar = "order"
    promises: ClassVar = Promises(conditions=True, adds=0)

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Scope | Leaf, Self]]:
        """Nodes with a following sibling."""
        for node in (*program.nest.scopes, *program.nest.leaves):
            if program.nest.next_sibling(node) is not None:
                yield node, cls()

    def check(self, program: Program, site: Scope | Leaf) -> Reason | None:
        """Requires two independent nodes."""
        second = program.nest.next_sibling(site)
        if second is None:
            return Reason("nothing follows in the same scope")
        pair, relation = (leaves_of(site), leaves_of(second)), same_iteration(site)
        seen = observed(program, [*leaves_of(site), *leaves_of(second)])

        def exchanged(uses: Uses) -> Conflict | None:
            return program.conflict(*pair, relation, uses=uses, only=seen)

        found = reordered(program, self, site, shared_buffers(*pair), exchanged)
        return carried("the second depends on the first", found) if isinstance(found, Conflict) else found

    def numerics(self, program: Program, site: Scope | Leaf) -> Numerics:
        """Reassociation if two accumulations into one element may change order."""
        second = program.nest.next_sibling(site)
        assert second is not None
        return reassociates(program.reorders(leaves_of(site), leaves_of(second), same_iteration(site)))

    def rewrite(self, program: Program, site: Scope | Leaf, rewriter: PatternRewriter) -> None:
        """Move the second before the first."""
        second = program.nest.next_sibling(site)
        assert second is not None
        second.op.detach()
        rewriter.insert(second.op, InsertPoint.before(site.op))

    def touched(self, program: Program, site: Scope | Leaf) -> Container[Node]:
        """The scopes around them, whose children change places."""
        return site.chain

    def inverse(self, program: Program, site: Scope | Leaf) -> Move:
        second = program.nest.next_sibling(site)
        assert second is not None
        return SwapNodes().as_move(f"%{second.id}")

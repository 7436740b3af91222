"""The first and the last step of a sum in registers: no zero before it, no copy behind it."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from pdojo.dialect.attributes import Mapping, Memory
from pdojo.dialect.view.nest import Leaf, Node, Scope
from pdojo.search.kinds.common.builder import PassBuilder
from pdojo.search.kinds.snitch.hardware import streams_needed

FEWEST = 3
"""Fewest steps of a sum of which two may be peeled off."""
MOST = 48
"""Most statements of a sum over several loops, which become straight code."""


def shorten_sums(builder: PassBuilder) -> None:
    """Let the first step of sums start from the initial value, and the last step write the result."""
    for identifier in [s.id for s in builder.nest.scopes if s.mapping is Mapping.SEQUENTIAL]:
        shortening = _Shortening.of(builder, identifier)
        if shortening is not None:
            builder.transact(shortening.made)


@dataclass(frozen=True)
class _Shortening:
    """The moves for the loops of a sum: `zeros, loops {steps}, copies`, each an unrolled scope around a statement."""

    builder: PassBuilder
    parent: str
    zeros: str
    copies: str | None
    """The scope that copies the results to memory; None if results are used in another way."""
    levels: int
    """Number of loops around the steps, each the only child of the one before."""

    why: ClassVar = "the first step starts from the initial value, the last one writes the result"

    @staticmethod
    def of(builder: PassBuilder, identifier: str) -> _Shortening | None:
        """The moves for the sum whose outermost loop is given; None if it is no such sum."""
        loop = builder.scope(identifier)
        if loop is None or loop.parent is None:
            return None
        levels, steps = _steps(loop)
        zeros, copies = builder.nest.previous_sibling(loop), builder.nest.next_sibling(loop)
        if steps is None or not _is_sum(steps) or zeros is None or not _starts(zeros, steps):
            return None
        count = prod(s.extent for s in steps.chain[loop.depth :])
        unit = steps.chain[-1].extent
        if count < FEWEST * unit or (levels > 1 and count > MOST):
            return None
        is_copied = copies is not None and _ends(copies, steps)
        return _Shortening(builder, loop.parent.id, zeros.id, copies.id if copies and is_copied else None, levels)

    def made(self) -> bool:
        """Make the moves; False if streams would not suffice."""
        builder, why = self.builder, self.why
        needed = streams_needed(builder, self._parent())
        start, end = builder.nest.by_id[self.zeros].position, self._after(self.zeros, 1 if self.copies is None else 2)
        behind = len(self._parent().children) - end.position - 1
        first, last = self._after(self.zeros, 1), self.copies
        unrolled = [self.zeros, _innermost(first).id, *([last] if last is not None else [])]
        name = self._array()
        builder.make("set_location", name, why, location="stack")
        for scope in unrolled:
            builder.make("unmap", f"%{scope}", why)
        if last is not None:
            self._peel(last, -1)
            self._join(self._after(last, -1), "forward_sum")
        self._peel(self.zeros, 1)
        self._join(self._after(self.zeros, 0), "absorb_init")
        for child in self._parent().children[start : len(self._parent().children) - behind]:
            for scope in reversed(_loops(child)) if self.levels > 1 else _loops(child)[-1:]:
                if scope.mapping is Mapping.SEQUENTIAL:
                    builder.make("unroll", scope, why)
        builder.make("set_location", name, why, location="register")
        return streams_needed(builder, self._parent()) <= max(needed, builder.game.machine.snitch.stream_registers)

    def _array(self) -> str:
        """The first array in the memory of the sum."""
        zeros = self.builder.scope(self.zeros)
        assert zeros is not None
        return zeros.leaves[0].output.array.buffer.names[0]

    def _parent(self) -> Scope:
        scope = self.builder.scope(self.parent)
        assert scope is not None
        return scope

    def _after(self, identifier: str, places: int) -> Scope:
        """The node so many places behind another one."""
        node = self.builder.nest.by_id[identifier]
        found = self._parent().children[node.position + places]
        assert isinstance(found, Scope)
        return found

    def _peel(self, beside: str, places: int) -> None:
        """Peel the step next to a node off all loops around it."""
        for _ in range(self.levels):
            loop = self._after(beside, places)
            if loop.extent > 1:
                self.builder.make("peel_scope", loop, self.why, after=1 if places > 0 else loop.extent - 1)
            self.builder.make("collapse_scopes", self._after(beside, places), self.why)

    def _join(self, step: Scope, move: str) -> None:
        """Merge a scope with the next one, and their statements by a move."""
        builder, place = self.builder, step.position
        builder.make("join_scopes", step, self.why)
        joined = self._parent().children[place]
        assert isinstance(joined, Scope)
        builder.make(move, joined.children[1], self.why)
        if move == "forward_sum":
            joined = self._parent().children[place]
            assert isinstance(joined, Scope)
            builder.make("delete_op", joined.children[1], self.why)


def _steps(loop: Scope) -> tuple[int, Leaf | None]:
    """The number of loops around the unrolled steps of a sum, and the statement; None if there is something else."""
    levels, node = 0, loop
    while node.mapping is Mapping.SEQUENTIAL and not node.guard and len(node.children) == 1:
        levels += 1
        (child,) = node.children
        if not isinstance(child, Scope):
            return levels, None
        node = child
    return levels, _only_statement(node)


def _loops(node: Node) -> list[Scope]:
    """A scope and the scopes that are its first descendants, outermost first."""
    found: list[Scope] = []
    while isinstance(node, Scope):
        found.append(node)
        node = node.children[0]
    return found


def _innermost(scope: Scope) -> Scope:
    return _loops(scope)[-1]


def _only_statement(node: Node) -> Leaf | None:
    """The statement in an unrolled scope that contains nothing else; else None."""
    if not isinstance(node, Scope) or node.mapping is not Mapping.UNROLL or len(node.children) != 1:
        return None
    (leaf,) = node.children
    return leaf if isinstance(leaf, Leaf) else None


def _is_sum(leaf: Leaf) -> bool:
    """True if a statement accumulates into registers by one operation."""
    is_one = leaf.contracted or leaf.function is None
    return leaf.accumulate is not None and is_one and leaf.output.array.buffer.memory is Memory.REGISTER


def _starts(node: Node, steps: Leaf) -> bool:
    """True if a node assigns the initial values of a sum."""
    leaf = _only_statement(node)
    return (
        leaf is not None
        and leaf.function is None
        and leaf.accumulate is None
        and leaf.output.array is steps.output.array
        and leaf.chain[-1].extent == steps.chain[-1].extent
    )


def _ends(node: Node, steps: Leaf) -> bool:
    """True if a node copies the results of a sum to memory."""
    leaf = _only_statement(node)
    return (
        leaf is not None
        and leaf.function is None
        and leaf.accumulate is None
        and len(leaf.reads) == 1
        and leaf.reads[0].array is steps.output.array
        and leaf.output.array.buffer.memory is Memory.HEAP
        and leaf.chain[-1].extent == steps.chain[-1].extent
    )

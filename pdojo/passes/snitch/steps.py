"""The first and the last step of a sum in registers: no zero before it, no copy after it."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from pdojo.dialect.attributes import Mapping, Memory
from pdojo.dialect.view.nest import Leaf, Node, Scope, leaves_of
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.snitch.hardware import streams_needed
from pdojo.passes.snitch.registers import STRAIGHT

FEWEST = 2
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
        loop = builder.find_scope(identifier)
        if loop is None or loop.parent is None:
            return None
        levels, steps = _steps(loop)
        zeros, copies = builder.nest.previous_sibling(loop), builder.nest.next_sibling(loop)
        if steps is None or not _is_sum(steps) or zeros is None or not _starts(zeros, steps):
            return None
        if steps.chain[-1].mapping is Mapping.VECTOR and all(s.extent == 1 for s in loop.chain[:-1]):
            # Zeros that are assigned once, before streams deliver, cost nothing.
            return None
        if (
            leaves_of(zeros)[0].reads
            and streams_needed(builder, loop.parent) > builder.game.machine.snitch.stream_registers
        ):
            # Loads of initial values beside streams let streams deliver the rest of a nest.
            return None
        count = prod(s.extent for s in steps.chain[loop.depth :])
        unit = prod(extent for _, extent in _straight(steps))
        if count < FEWEST * unit or (levels > 1 and count > MOST):
            return None
        is_copied = copies is not None and _ends(copies, steps)
        return _Shortening(builder, loop.parent.id, zeros.id, copies.id if copies and is_copied else None, levels)

    def made(self) -> bool:
        """Make the moves; False if streams would not suffice."""
        builder, why = self.builder, self.why
        needed = streams_needed(builder, self.builder.scope(self.parent))
        start, end = builder.nest.by_id[self.zeros].position, self._after(self.zeros, 1 if self.copies is None else 2)
        behind = len(self.builder.scope(self.parent).children) - end.position - 1
        first, last = self._after(self.zeros, 1), self.copies
        ends = [builder.scope(self.zeros), first, *([] if last is None else [builder.scope(last)])]
        straight = [scope.id for end in ends for scope in _loops(end) if scope.mapping in STRAIGHT]
        is_packed = builder.leaf(first.leaves[0].id).chain[-1].mapping is Mapping.VECTOR
        name = self._array()
        builder.make("set_location", name, why, location="stack")
        folded = self._folded(name) if is_packed else []
        for dimension in folded:
            builder.make("materialize_dims", f"{name}:{dimension}", why)
        for scope in straight:
            builder.make("unmap", f"%{scope}", why)
        if last is not None:
            self._peel(last, -1)
            self._join(self._after(last, -1), "forward_sum", is_packed=is_packed)
        self._peel(self.zeros, 1)
        self._join(self._after(self.zeros, 0), "absorb_init", is_packed=is_packed)
        for child in self.builder.scope(self.parent).children[
            start : len(self.builder.scope(self.parent).children) - behind
        ]:
            loops = [scope.id for scope in _loops(child)]
            if is_packed:
                self._vectorize(loops.pop())
            for scope in reversed(loops):
                found = builder.scope(scope)
                is_straight = self.levels > 1 or found.extent == 1 or scope == loops[-1]
                if is_straight and found.mapping is Mapping.SEQUENTIAL:
                    builder.make("unroll", f"%{scope}", why)
        for dimension in folded:
            builder.make("reuse_dims", f"{name}:{dimension}", why)
        builder.make("set_location", name, why, location="register")
        return streams_needed(builder, self.builder.scope(self.parent)) <= max(
            needed, builder.game.machine.snitch.stream_registers
        )

    def _folded(self, name: str) -> list[int]:
        """The dimensions of the sums that lanes index and that have room for one register only."""
        reuse = self.builder.nest.arrays[name].buffer.reuse
        return [
            d for d, slots in enumerate(reuse) if slots and any(_moves(w, d) for w in self.builder.nest.writers[name])
        ]

    def _array(self) -> str:
        """The first array in the memory of the sum."""
        zeros = self.builder.scope(self.zeros)
        return zeros.leaves[0].output.array.buffer.names[0]

    def _after(self, identifier: str, places: int) -> Scope:
        """The node a number of places after another one."""
        node = self.builder.nest.by_id[identifier]
        found = self.builder.scope(self.parent).children[node.position + places]
        assert isinstance(found, Scope)
        return found

    def _peel(self, beside: str, places: int) -> None:
        """Peel the step next to a node off all loops around it."""
        for _ in range(self.levels):
            loop = self._after(beside, places)
            if loop.extent > 1:
                self.builder.make("peel_scope", loop, self.why, after=1 if places > 0 else loop.extent - 1)
            self.builder.make("collapse_scopes", self._after(beside, places), self.why)

    def _vectorize(self, identifier: str) -> None:
        if self.builder.scope(identifier).mapping is Mapping.SEQUENTIAL:
            self.builder.make("vectorize", f"%{identifier}", self.why)

    def _join(self, step: Scope, move: str, *, is_packed: bool) -> None:
        """Merge a scope, and its lanes, with the next one, and their statements by a move."""
        builder, place = self.builder, step.position
        builder.make("join_scopes", step, self.why)
        if is_packed:
            builder.make("join_scopes", self._joined(place).children[0], self.why)
        builder.make(move, _innermost(self._joined(place)).children[1], self.why)
        if move == "forward_sum":
            builder.make("delete_op", _innermost(self._joined(place)).children[1], self.why)

    def _joined(self, place: int) -> Scope:
        joined = self.builder.scope(self.parent).children[place]
        assert isinstance(joined, Scope)
        return joined


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
    """The statement, or packed statement, in an unrolled scope that contains nothing else; else None."""
    if not isinstance(node, Scope) or node.mapping is not Mapping.UNROLL or len(node.children) != 1:
        return None
    (child,) = node.children
    if isinstance(child, Scope) and child.mapping is Mapping.VECTOR:
        (child,) = child.children
    return child if isinstance(child, Leaf) else None


def _straight(leaf: Leaf) -> list[tuple[Mapping, int]]:
    """Mappings and extents of the innermost scopes around a statement, or a packed statement."""
    return [(s.mapping, s.extent) for s in leaf.chain[-2 if leaf.chain[-1].mapping is Mapping.VECTOR else -1 :]]


def _moves(leaf: Leaf, dimension: int) -> bool:
    """True if the lanes of a packed statement index a dimension of its output."""
    lanes = leaf.chain[-1]
    return lanes.mapping is Mapping.VECTOR and leaf.output.index[dimension].uses(lanes.depth)


def _is_sum(leaf: Leaf) -> bool:
    """True if a statement accumulates into registers by one operation; a packed one does not add to other places."""
    lanes = leaf.chain[-1]
    is_packed = lanes.mapping is Mapping.VECTOR
    is_one = leaf.function is None or (leaf.contracted and not is_packed)
    if is_packed and not any(e.uses(lanes.depth) for e in leaf.output.index):
        return False
    return leaf.accumulate is not None and is_one and leaf.output.array.buffer.memory is Memory.REGISTER


def _starts(node: Node, steps: Leaf) -> bool:
    """True if a node assigns the initial values of a sum."""
    leaf = _only_statement(node)
    return (
        leaf is not None
        and leaf.function is None
        and leaf.accumulate is None
        and leaf.output.array is steps.output.array
        and _straight(leaf) == _straight(steps)
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
        and _straight(leaf) == _straight(steps)
    )

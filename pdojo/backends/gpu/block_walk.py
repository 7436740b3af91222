"""The walk over the code of a block that lets all threads reach every barrier.

A scope *holds* a barrier of the block if one stands between its nodes, or deeper, or if its threads add up in shared
memory. Every thread of the block runs such a scope equally often: bounds of loops and branches around the barrier do
not depend on the thread. Conditions on the thread are checked by each piece of code between two barriers.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Iterable, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Generic, TypeVar

from pdojo.backends.common.walk import LoopBounds, NestWalk
from pdojo.backends.gpu.barriers import Synchronisation
from pdojo.backends.gpu.launches import Launch
from pdojo.dialect.affine import Expr
from pdojo.dialect.rules.block_threads import threads_of
from pdojo.dialect.view.nest import Node, Scope

ConditionT = TypeVar("ConditionT")


def chain_around(node: Node) -> Sequence[Scope]:
    """The scopes around a node, outermost first."""
    return node.chain[:-1] if isinstance(node, Scope) else node.chain


def holding(barriers: Iterable[Node], roots: Iterable[Scope]) -> frozenset[Node]:
    """The scopes that hold a barrier before a node of `barriers`, or inside a node of `roots`."""
    around = [chain_around(node) for node in barriers]
    return frozenset(scope for chain in (*around, *(root.chain for root in roots)) for scope in chain)


class BlockWalk(NestWalk, Generic[ConditionT]):
    """Visits the nodes of a block; subclasses define the synchronisation before a node, and spell conditions."""

    skips = False  # Waits count the groups of copies that are committed in a scope.
    launch: Launch
    sync: Synchronisation
    wide: frozenset[Node]
    """The nodes after a barrier of the whole block."""
    held: frozenset[Node]
    """The scopes that hold a barrier of the whole block."""
    conditions: tuple[ConditionT, ...] = ()
    """The conditions on the thread that are not yet checked at this place."""
    opened: Node | None = None
    """The scope of `held` that is being opened; None inside a piece."""

    # Methods that a target implements

    @abstractmethod
    def synchronise(self, node: Node) -> None:
        """Append the barrier and the waits before a node, if any."""

    @abstractmethod
    def condition(self, constraints: Sequence[Expr]) -> ConditionT:
        """The condition that all constraints `e >= 0` hold."""

    @abstractmethod
    def where(self, conditions: Sequence[ConditionT]) -> AbstractContextManager[object]:
        """A context in which appended code runs only in threads that meet all conditions; there is at least one."""

    # The walk

    def bounds(self, scope: Scope) -> LoopBounds:
        """The guard of a scope; around a barrier, constraints on the thread do not bound the loop."""
        found = super().bounds(scope)
        if scope not in self.held:
            return found
        outer, lows, highs, inner, own = (
            tuple(e for e in part if not _on_thread(e, scope))
            for part in (found.outer, found.lows, found.highs, found.inner, found.own)
        )
        apart = tuple(g for g in scope.guard if _on_thread(g, scope))
        return LoopBounds(outer, lows, highs, inner=inner + apart, own=own + apart)

    def nodes(self, nodes: Sequence[Node]) -> None:
        """Append nodes, with the synchronisation before each."""
        before, piece = self.opened, list[Node]()
        for node in nodes:
            if node in self.wide or node in self.held:
                self._append(piece)
                piece = []
            if node in self.wide:
                self.synchronise(node)
            elif node in self.held and self.sync.is_before(node):
                with self.checked():
                    self.synchronise(node)
            if node in self.held:
                self.opened = node
                self.node(node)
                self.opened = before
            else:
                piece.append(node)
        self._append(piece)

    def node(self, node: Node) -> None:
        """Append a node without synchronisation."""
        super().nodes([node])

    def _append(self, piece: Sequence[Node]) -> None:
        """Append a piece: nodes without a barrier of the block between them."""
        if not piece:
            return
        before, self.opened = self.opened, None
        with self.checked():
            for node in piece:
                if node not in self.wide:
                    self.synchronise(node)
                self.node(node)
        self.opened = before

    # Conditions

    @contextmanager
    def restricted(self, constraints: Sequence[Expr]) -> Generator[None]:
        """A context in which appended code runs only if all constraints hold; its pieces check the thread."""
        opened = self.opened
        apart = [c for c in constraints if isinstance(opened, Scope) and _on_thread(c, opened)]
        rest = [c for c in constraints if c not in apart]
        with (
            super().restricted(rest) if rest else nullcontext(),
            self.later(self.condition(apart)) if apart else nullcontext(),
        ):
            yield

    @contextmanager
    def later(self, condition: ConditionT) -> Generator[None]:
        """A context in which appended pieces check a condition."""
        before, self.conditions = self.conditions, (*self.conditions, condition)
        yield
        self.conditions = before

    @contextmanager
    def checked(self) -> Generator[None]:
        """A context in which appended code runs only in threads that meet the pending conditions."""
        before, self.conditions = self.conditions, ()
        with self.where(before) if before else nullcontext():
            yield
        self.conditions = before

    def only(self, scope: Scope, condition: ConditionT) -> AbstractContextManager[object]:
        """A context, for the inside of a scope, in which appended code runs only in threads that meet the condition."""
        return self.later(condition) if scope in self.held else self.where([condition])


def _on_thread(expression: Expr, scope: Scope) -> bool:
    """Whether an expression depends on the thread that runs the inside of a scope."""
    return any(expression.uses(s.depth) for s in threads_of(scope.chain))

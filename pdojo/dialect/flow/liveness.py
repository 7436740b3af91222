"""Live ranges of buffers: the first and last statement, and the scope, that need a buffer's values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pdojo.dialect.affine import var
from pdojo.dialect.attributes import Intent
from pdojo.dialect.flow.coverage import common_depth
from pdojo.dialect.view.nest import Buffer, Leaf, Nest, Scope
from pdojo.dialect.view.storage import accesses_of


@dataclass(frozen=True, slots=True)
class LiveRange:
    """The uses of a buffer, in textual order of statements."""

    buffer: Buffer
    first: Leaf
    """The first statement that uses it."""
    last: Leaf
    """The last one."""
    scope: Scope | None
    """The innermost scope around all uses; None for the whole kernel."""
    is_private: bool
    """Whether each iteration of the scope has elements of its own, so that no value is left for the next one."""

    @property
    def carried(self) -> bool:
        """Whether the values outlive the scope: the buffer is an output of the kernel."""
        return self.buffer.intent in (Intent.OUT, Intent.INOUT)

    @property
    def span(self) -> tuple[int, int]:
        """The orders of the first and the last statement between which other buffers cannot use the memory.

        All statements of the scope around the uses are between them if its next iteration may need the values.
        """
        if self.scope is None:
            return self.first.order, self.last.order
        if self.is_private:
            depth = self.scope.depth + 1
            return _within(self.first, depth)[0].order, _within(self.last, depth)[-1].order
        leaves = self.scope.leaves
        return leaves[0].order, leaves[-1].order

    def overlaps(self, other: LiveRange) -> bool:
        """Whether some statement lies in both ranges; buffers that do not overlap could share memory."""
        return self.first.order <= other.last.order and other.first.order <= self.last.order


def live_ranges(nest: Nest) -> dict[Buffer, LiveRange]:
    """The live range of every buffer that is used; a buffer without an entry is dead."""
    found = (
        (buffer, nest.about_uses(buffer, "live range", lambda b=buffer: _live_range(nest, b)))
        for buffer in nest.buffers
    )
    return {buffer: live for buffer, live in found if live is not None}


def _live_range(nest: Nest, buffer: Buffer) -> LiveRange | None:
    leaves = list(dict.fromkeys(leaf for leaf, _ in accesses_of(nest, buffer)))
    if not leaves:
        return None
    depth = common_depth(leaves)
    scope = leaves[0].chain[depth - 1] if depth else None
    return LiveRange(buffer, leaves[0], leaves[-1], scope, scope is not None and _is_private(nest, buffer, scope))


def _is_private(nest: Nest, buffer: Buffer, scope: Scope) -> bool:
    """Whether one dimension of all accesses is the iteration of a scope around them."""
    first, *others = ([e == var(scope.depth) for e in access.index] for _, access in accesses_of(nest, buffer))
    return any(map(all, zip(first, *others, strict=False)))


def _within(leaf: Leaf, depth: int) -> Sequence[Leaf]:
    """The statements of the scope at a depth around a statement; the statement if there is none."""
    return leaf.chain[depth].leaves if depth < len(leaf.chain) else (leaf,)

"""Removal of redundant copies from library kernels.

The library's texts serve all element types and paddings. With a wide enough type or no padding, some statements copy an
array to another one of the same type and shape, element by element. Such a copy and its temporary are removed.
"""

from __future__ import annotations

from dataclasses import dataclass

from pdojo.dialect.affine import var
from pdojo.dialect.attributes import Intent
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.build import nest_of
from pdojo.dialect.view.nest import Access, Array, Leaf, Nest, Node, Scope
from pdojo.dialect.view.nodes import extent_of, is_plain


def without_copies(kernel: KernelOp) -> None:
    """Remove every identity copy between a temporary and another array.

    A copy `w = x` of a whole input is removed, and `w` renamed to `x`, iff nothing reads `w` before it and nothing
    writes `w` after it; earlier writes to `w` are overwritten, and removed as well. A copy `y = n` to a whole output is
    removed, and `n` renamed to `y`, iff it is the only access to `y` and nothing accesses `n` after it. A copy `v = u`
    of whole temporaries is removed, and `v` renamed to `u`, iff nothing else writes `v` and nothing writes `u` after
    it.
    """
    while (copy := _first(nest_of(kernel))) is not None:
        for node in copy.dead:
            node.op.detach()
            node.op.erase()
        buffer = copy.temporary.buffer.op
        assert buffer is not None
        copy.temporary.value.replace_all_uses_with(copy.stays.value)
        buffer.detach()
        buffer.erase()


@dataclass(frozen=True)
class _Copy:
    temporary: Array
    stays: Array
    dead: list[Node]
    """Top-level nests to remove."""


def _first(nest: Nest) -> _Copy | None:
    for leaf in nest.leaves:
        found = _copy(nest, leaf)
        if found is not None:
            return found
    return None


def _copy(nest: Nest, leaf: Leaf) -> _Copy | None:
    if not _is_identity(leaf):
        return None
    target, source = leaf.output.array, leaf.reads[0].array
    if source.intent is Intent.IN and _is_temporary(target):
        writers = nest.writers[target.name]
        readers = nest.readers[target.name]
        last = all(w.order <= leaf.order for w in writers) and all(r.order > leaf.order for r in readers)
        dead = [w.chain[0] if w.chain else w for w in writers]
        if last and all(len(node.leaves) == 1 for node in dead if isinstance(node, Scope)):
            return _Copy(target, source, list(dead))
    if _is_temporary(source) and _is_temporary(target):
        others = [o for o in nest.writers[source.name] if o.order > leaf.order]
        if nest.writers[target.name] == [leaf] and not others:
            return _Copy(target, source, [leaf.chain[0] if leaf.chain else leaf])
    if target.intent is Intent.OUT and _is_temporary(source):
        alone = nest.writers[target.name] == [leaf] and not nest.readers[target.name]
        others = [*nest.writers[source.name], *nest.readers[source.name]]
        if alone and all(other is leaf or other.order < leaf.order for other in others):
            return _Copy(source, target, [leaf.chain[0] if leaf.chain else leaf])
    return None


def _is_temporary(array: Array) -> bool:
    """True for the only array of a buffer without reused dimensions."""
    return array.buffer.op is not None and len(array.buffer.names) == 1 and not any(array.buffer.reuse)


def _is_identity(leaf: Leaf) -> bool:
    """True for `y[{0},{1}] = x[{0},{1}]` over all elements, in its own nest."""
    if leaf.function is not None or leaf.accumulate is not None or len(leaf.inputs) != 1:
        return False
    (value,) = leaf.inputs
    index = tuple(var(depth) for depth in range(len(leaf.chain)))
    extents = tuple(map(extent_of, leaf.chain))
    return (
        isinstance(value, Access)
        and all(len(scope.children) == 1 and is_plain(scope) for scope in leaf.chain)
        and all(a.index == index and a.array.buffer.extents == extents for a in leaf.accesses)
    )

"""Copies of arrays whose rows have an odd number of f32, for sums that read each number several times.

Every second row of such an array begins in the middle of a word, so that no stream delivers its pairs. Rows of the copy
are words. The last column of an odd number is computed by itself.
"""

from __future__ import annotations

from math import prod

from pdojo.dialect.attributes import Mapping
from pdojo.dialect.rules.lanes import base_alignment, linear_address
from pdojo.dialect.rules.streams import WORD
from pdojo.dialect.view.nest import Access, Leaf, Scope
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.common.loops import isolate
from pdojo.passes.snitch.packing import JOINED
from pdojo.passes.snitch.turning import AGAIN
from pdojo.passes.snitch.windows import has_room

LANES = 2
"""Numbers of a word."""
WHY = "rows of an odd length have pairs that are no words: rows of a copy are words"


def copy_odd_rows(builder: PassBuilder) -> None:
    """Let sums with a result for each column read and write copies in place of arrays with odd rows."""
    for identifier in [leaf.id for leaf in builder.nest.leaves if leaf.accumulate is not None]:
        leaf = builder.nest.by_id.get(identifier)
        if not isinstance(leaf, Leaf):
            continue
        columns = _columns(leaf)
        if columns is not None:
            odd = _odd(leaf, columns)
            builder.transact(lambda columns=columns, odd=odd: _copied(builder, columns, odd))


def _columns(leaf: Leaf) -> Scope | None:
    """The loop over the columns of a sum's results, if arrays with odd rows are used often enough; else None."""
    own = {v for e in leaf.output.index for v in e.variables()}
    if any(a.array.dtype != JOINED for a in leaf.accesses) or len(own) not in range(1, len(leaf.chain)):
        return None
    if own != set(range(len(own))) or any(s.mapping is not Mapping.SEQUENTIAL or s.guard for s in leaf.chain):
        return None
    columns = leaf.chain[len(own) - 1]
    if not _is_along(leaf.output, columns) or columns.extent < 2 * LANES:
        return None
    moved = [a for a in leaf.reads if any(e.uses(columns.depth) for e in a.index)]
    if not moved or not all(_is_along(a, columns) for a in moved):
        return None
    odd = _odd(leaf, columns)
    is_often = all(prod(leaf.extents) >= AGAIN * _elements(a, leaf) for a in leaf.accesses if a.array.name in odd)
    return columns if odd and is_often else None


def _is_along(access: Access, columns: Scope) -> bool:
    """True if an access moves along contiguous memory from column to column, and by no other loop (a window)."""
    address = linear_address(access.index, access.array.shape)
    return address.is_linear and [v for v in address.variables() if address.coefficient(v) == 1] == [columns.depth]


def _odd(leaf: Leaf, columns: Scope) -> list[str]:
    """The arrays of which not all rows begin with a word."""
    found: list[str] = []
    for access in leaf.accesses:
        buffer, address = access.array.buffer, linear_address(access.index, access.array.shape)
        if buffer.op is not None or base_alignment(buffer) % WORD or not _is_along(access, columns):
            continue
        if any(address.coefficient(v) % LANES for v in address.variables() if v != columns.depth):
            found.append(access.array.name)
    return list(dict.fromkeys(found))


def _elements(access: Access, leaf: Leaf) -> int:
    """Number of elements of the smallest box around what an access uses."""
    bounds = [e.bounds(leaf.extents) for e in access.index]
    return prod(high - low + 1 for low, high in bounds)


def _copied(builder: PassBuilder, columns: Scope, names: list[str]) -> bool:
    """Make the moves; False if there is no room for the copies."""
    statement, rest = columns.leaves[0].id, columns.extent % LANES
    if rest:
        builder.make("peel_scope", columns, WHY, after=columns.extent - rest)
    isolate(builder, statement, WHY, depth=columns.depth)
    identifier = builder.loop(statement, 0).id
    written = {leaf.output.array.name for leaf in builder.scope(identifier).leaves}
    for name in names:
        known = builder.nest.arrays.keys()
        move = "stage_out" if name in written else "stage_in"
        builder.make(move, f"%{identifier}", WHY, array=name, location="heap", form="box")
        (copy,) = builder.nest.arrays.keys() - known
        last = len(builder.nest.arrays[copy].shape) - 1
        if builder.nest.arrays[copy].shape[last] % LANES:
            builder.make("pad_dim", f"{copy}:{last}", WHY, to=builder.nest.arrays[copy].shape[last] + 1)
    behind = builder.nest.next_sibling(builder.scope(identifier))
    builder.sealed |= {identifier, *([] if behind is None else [behind.id])}
    return has_room(builder)

"""Elementwise nests behind a contraction, computed on a block of results while it is in registers."""

from __future__ import annotations

from collections.abc import Sequence

from pdojo.dialect.rules.lanes import linear_address
from pdojo.dialect.view.nest import Access, Leaf, Scope
from pdojo.dialect.view.nodes import is_plain
from pdojo.math.functions import FUNCTIONS
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.common.contraction import spatial_loops

MOST_STATEMENTS = 24
"""Greatest number of statements that join a contraction: each is repeated for every vector of a block."""
INSTRUCTIONS = frozenset({"arith.divf", "math.sqrt"})
"""Functions that are one slow instruction, which takes no registers from the block."""


def absorb_epilogue(builder: PassBuilder, identifier: str) -> None:
    """Fuse the loops over results of a contraction with the elementwise nests that follow it, one statement each."""
    why = "computed while the block of results is in registers"
    depth = len(spatial_loops(builder.leaf(identifier)))
    for _ in range(_length(builder, builder.leaf(identifier), depth)):
        if not builder.transact(lambda: _absorb(builder, identifier, depth, why)):
            return


def split_epilogue(builder: PassBuilder, identifier: str, depth: int, why: str) -> None:
    """Split the loop at `depth` around the sum from the statements after the sum; each gets its own vector loop."""
    loop = builder.loop(identifier, depth)
    while len(loop.children) > 1:
        builder.make("split_scopes", loop, why, after=1)
        first = builder.scope(loop.id)
        rest = builder.nest.next_sibling(first)
        assert isinstance(rest, Scope)
        if not isinstance(rest.children[0], Leaf):
            return
        loop = rest


def results_behind(builder: PassBuilder, sums: Sequence[str], depth: int, first: str, back: str) -> list[str]:
    """The statements behind sums in the loop at `depth`: the copy `back` of the results, unless only others read them.

    `first` initialises the sums. Deletes the copy if nothing reads it.
    """
    inside = builder.leaf(sums[0]).parent
    leaves = builder.loop(sums[0], depth).leaves
    behind = [leaf.id for leaf in leaves if leaf.id not in (first, *sums, back) and leaf.parent is not inside]
    is_unread = behind and builder.attempt("delete_op", builder.leaf(back), "nothing else reads the sums")
    return [*([] if is_unread else [back]), *behind]


def _length(builder: PassBuilder, leaf: Leaf, depth: int) -> int:
    """The number of nests to fuse, at most all: the number after which the fewest arrays are read."""
    written = {w.output.array for w in leaf.chain[0].leaves}
    order = builder.nest.leaves
    follower, best, least = builder.nest.next_sibling(leaf.chain[0]), 0, 1
    for count in range(1, MOST_STATEMENTS + 1):
        statement = _statement(leaf, follower, depth) if isinstance(follower, Scope) else None
        if statement is None:
            break
        written.add(statement.output.array)
        behind = next(place for place, each in enumerate(order) if each.id == statement.id) + 1
        read = {access.array.name for each in order[behind:] for access in each.reads}
        live = sum(array.name in read or array.intent is not None for array in written)
        if live <= least:
            best, least = count, live
        follower = builder.nest.next_sibling(statement.chain[0])
    return best


def _absorb(builder: PassBuilder, identifier: str, depth: int, why: str) -> bool:
    """Fuse the loops over results with the next nest; False if it is no elementwise one."""
    _part(builder, builder.leaf(identifier))
    follower = builder.nest.next_sibling(builder.loop(identifier, 0))
    if not isinstance(follower, Scope) or _elementwise(builder.leaf(identifier), follower, depth) is None:
        return False
    _join(builder, identifier, depth, why)
    return True


def _part(builder: PassBuilder, leaf: Leaf) -> None:
    """If the next nest updates the results in place, give the values before or after it an array of their own."""
    follower = builder.nest.next_sibling(leaf.chain[0])
    updates = follower.leaves if isinstance(follower, Scope) else ()
    if len(updates) != 1:
        return
    name = updates[0].output.array.name
    before = [w for w in leaf.chain[0].leaves if w.output.array.name == name and w.accumulate is None]
    if before:
        why = "values before an update may stay in registers"
        if not builder.attempt("rename_array", updates[0], why):
            builder.attempt("rename_array", before[-1], why)


def _join(builder: PassBuilder, identifier: str, depth: int, why: str) -> None:
    for level in range(depth):
        builder.make("join_scopes", builder.loop(identifier, level), why)


def _statement(leaf: Leaf, nest: Scope, depth: int) -> Leaf | None:
    """The only statement of `nest` if it is cheap and runs over the results of the contraction `leaf`; else None."""
    inner: Leaf | Scope = nest
    loops: list[Scope] = []
    while isinstance(inner, Scope):
        if len(inner.children) > 1 or not is_plain(inner):
            return None
        loops.append(inner)
        inner = inner.children[0]
    alike = [s.extent for s in loops] == [s.extent for s in leaf.chain[:depth]]
    return inner if alike and _is_cheap(inner) and inner.accumulate is None else None


def _is_cheap(leaf: Leaf) -> bool:
    """True if a statement is one instruction, or few."""
    return leaf.function is None or FUNCTIONS[leaf.function].cycles <= 1 or leaf.function in INSTRUCTIONS


def _elementwise(leaf: Leaf, nest: Scope, depth: int) -> Leaf | None:
    """The only statement of `nest` if it is cheap and continues the results of the contraction `leaf`; else None."""
    inner = _statement(leaf, nest, depth)
    if inner is None:
        return None
    results = {w.output.array.name: w.output.index for w in leaf.chain[0].leaves}
    reads = [access for access in inner.inputs if isinstance(access, Access)]
    continues = [access for access in reads if access.array.name in results]
    operands = {access.array.name for access in leaf.reads}
    fits = (
        continues
        and all(access.index == results[access.array.name] for access in continues)
        and _lie_alike(inner.output, leaf.output)
        and inner.output.array.name not in results
        and not operands & {access.array.name for access in (inner.output, *reads)}
    )
    return inner if fits else None


def _lie_alike(one: Access, other: Access) -> bool:
    """True if the loops index two arrays of results alike, or their memory: one may be flat."""
    varying, others = ([index for index in access.index if index.terms] for access in (one, other))
    addresses = (linear_address(access.index, access.array.shape) for access in (one, other))
    return varying == others or len({*addresses}) == 1

"""Storage of values that live within one iteration of the scopes around them, or of arrays that take turns."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import TypeVar

from pdojo.dialect.affine import var
from pdojo.dialect.flow.collision import EQUAL, Query
from pdojo.dialect.flow.coverage import common_depth, cover_together, covers
from pdojo.dialect.flow.flows import Caller
from pdojo.dialect.flow.shortcut import Answer
from pdojo.dialect.flow.storage_check import StorageQuestion
from pdojo.dialect.flow.uses import Use
from pdojo.dialect.reason import Reason
from pdojo.dialect.shortcuts.digits import share_iterations
from pdojo.dialect.view.paths import node_path

ItemT = TypeVar("ItemT")


def kept(question: StorageQuestion) -> Answer[Reason | None] | None:
    """No violation, if one write covers each read."""
    return _kept(question, together=False)


def kept_together(question: StorageQuestion) -> Answer[Reason | None] | None:
    """No violation, if the writes of a single iteration together cover each of its reads (integer sets)."""
    return _kept(question, together=True)


def _kept(question: StorageQuestion, *, together: bool) -> Answer[Reason | None] | None:
    uses, reuse, caller = question.uses, question.reuse, question.caller
    if question.is_alone and within_iteration(uses, reuse, together=together):
        return Answer(None)
    return Answer(None) if in_turn(uses, reuse, caller, together=together) else None


def within_iteration(uses: Sequence[Use], reuse: Sequence[int], *, together: bool = False) -> bool:
    """Fast path: every value lives within one iteration of the scopes that distinguish a cell's elements.

    Then it lives within one iteration of each scope that all uses share, such as the owner of their copies.

    If every reused index equals f + slot, with one f over the scopes common to all uses, two elements of a cell differ
    in f only, so they belong to different iterations of the common scopes. If every read is covered by writes of its
    own iteration, no write of another iteration comes between. With `together`, several writes may cover a read, such
    as the parts of a peeled loop; integer sets of single iterations tell.
    """
    if len({u.access.array.name for u in uses}) != 1:
        return False
    depth = common_depth([u.leaf for u in uses])
    for dimension, reused in enumerate(reuse):
        if not reused:
            continue
        parts = {u.access.index[dimension] - u.cell[dimension] for u in uses}
        if len(parts) != 1 or any(v >= depth for v in next(iter(parts)).variables()):
            return False
    writes = [(u.leaf, u.access) for u in uses if u.writes]
    reads = [u for u in uses if u.reads]
    left = [r for r in reads if not any(covers(*write, r.leaf, r.access) for write in writes)]
    return not left or (together and all(cover_together(writes, r.leaf, r.access) for r in left))


def in_turn(uses: Sequence[Use], reuse: Sequence[int], caller: Caller | None, *, together: bool = False) -> bool:
    """Fast path for consecutive parts of an iteration of the common scopes, each of which is valid by itself.

    No part gets values from another, and no part comes between the writes and reads of another. Parts are subtrees, or
    all uses of an array. Two arrays may meet in a subtree if in each cell, one is done before the other begins. The
    caller reads last, in memory of its own for each iteration of the common scopes. With `together`, several writes may
    cover a read.
    """
    if caller is not None:
        depth = common_depth([u.leaf for u in uses])
        places = [node_path(u.leaf)[depth] for u in uses]
        own = [place for use, place in zip(uses, places, strict=True) if use.access.array.name == caller.name]
        others = [place for use, place in zip(uses, places, strict=True) if use.access.array.name != caller.name]
        if caller.writes or not own or not _apart(uses, depth):
            return False
        if others and not _before(max(others), min(own), uses, places, depth, caller.name):
            return False
    return _take_turns(uses, reuse, together=together, everything=True)


def _take_turns(uses: Sequence[Use], reuse: Sequence[int], *, together: bool, everything: bool = False) -> bool:
    """`in_turn` for some uses of a buffer, or for all of them (`everything`), without the caller."""
    depth = common_depth([u.leaf for u in uses])
    places = [node_path(u.leaf)[depth] for u in uses]

    def is_fine(part: Sequence[Use]) -> bool:
        return within_iteration(part, reuse, together=together) or _take_turns(part, reuse, together=together)

    if len(parts := _parts(uses, places)) > 1 and all(map(is_fine, parts)):
        return True
    if len(parts := _consecutive(uses, places, depth)) < 2:
        return False
    # The first array of a kernel finds unused memory, and loses nothing to arrays that begin when it is done.
    is_first = everything and depth == 0 and not any(reuse)
    return all(map(is_fine, parts[1:] if is_first else parts))


def _parts(items: Sequence[ItemT], keys: Sequence[Hashable]) -> list[list[ItemT]]:
    """The items in groups of equal keys."""
    parts: dict[Hashable, list[ItemT]] = {}
    for item, key in zip(items, keys, strict=True):
        parts.setdefault(key, []).append(item)
    return list(parts.values())


def _consecutive(uses: Sequence[Use], places: Sequence[int], depth: int) -> list[list[Use]]:
    """The uses of each array if the arrays are used one after another; else all uses as one group."""
    names = [u.access.array.name for u in uses]
    spans = _parts(list(zip(names, places, strict=True)), names)
    ends = sorted((min(p for _, p in span), max(p for _, p in span), span[0][0]) for span in spans)
    apart = all(_before(one[1], two[0], uses, places, depth, two[2]) for one, two in pairwise(ends))
    return [[u for u in uses if u.access.array.name == name] for _, _, name in ends] if apart else [list(uses)]


def _before(last: int, first: int, uses: Sequence[Use], places: Sequence[int], depth: int, later: str) -> bool:
    """Whether the other arrays, last used at place `last`, are done before `later` is first used at `first`.

    Places are subtrees of the first `depth` scopes. In a place with both, each cell is checked: its uses must be in one
    iteration of the scopes around both, and in that order there.
    """
    if last != first:
        return last < first
    meeting = [use for use, place in zip(uses, places, strict=True) if place == first]
    theirs = [use for use in meeting if use.access.array.name == later]
    return all(_in_order(one, other, depth) for one in meeting if one not in theirs for other in theirs)


def _in_order(one: Use, other: Use, shared: int) -> bool:
    """Whether a use of a cell is certainly before another, in one iteration of the first `shared` scopes.

    A statement reads before it writes.
    """
    ordered = one.writes < other.writes if one.leaf is other.leaf else one.leaf.order < other.leaf.order
    around = common_depth([one.leaf, other.leaf])
    cells = tuple(zip(one.cell, other.cell, strict=True))
    return ordered and share_iterations(Query(one.domain, other.domain, cells, (EQUAL,) * shared), around)


def _apart(uses: Sequence[Use], depth: int) -> bool:
    """Whether iterations of the first `depth` scopes use different cells: each variable is an index by itself."""
    extents = uses[0].leaf.extents
    indices = zip(*(u.cell for u in uses), strict=False)
    fixed = {index[0] for index in indices if len(set(index)) == 1}
    return all(extents[d] == 1 or var(d) in fixed for d in range(depth))

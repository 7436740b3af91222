"""Do reuse flags, shared buffers and private copies keep every value until its last read?

For every flow from the last write w of an element to a read r, no other instance may write r's cell in between: the
flow over cells must be the flow over elements. And a value in a private copy must be written and read in the same
iteration of the threaded scope that owns the copy. A fast path recognises the usual case (everything happens within
one iteration of the scopes that index the reused dimensions); otherwise all instances are run through, if they are few
(`enumeration.py`), or islpy computes both flows and compares them. If that takes long, it follows single reads first
(`single_reads.py`).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from pdojo.dialect.affine import Expr, var
from pdojo.dialect.flow import integer_sets
from pdojo.dialect.flow.collision import EQUAL, Query, share_iterations
from pdojo.dialect.flow.coverage import common_depth, cover_together, covers
from pdojo.dialect.flow.flows import Caller, Instance, flow, sampled
from pdojo.dialect.flow.integer_sets import Answers, bounded, context, variables
from pdojo.dialect.flow.uses import Use, describe_use
from pdojo.dialect.reason import Reason
from pdojo.dialect.shortcuts.clobber import lost_value
from pdojo.dialect.shortcuts.representatives import representatives
from pdojo.dialect.shortcuts.rings import in_ring
from pdojo.dialect.shortcuts.single_reads import wrong_source
from pdojo.dialect.view.messages import describe_access
from pdojo.dialect.view.paths import node_path, relative_paths
from pdojo.errors import Undecided

if TYPE_CHECKING:
    import islpy as isl
    import numpy as np
    from numpy.typing import NDArray

    from pdojo.dialect.flow.points import Ints
    from pdojo.dialect.shortcuts.enumeration import Events


USUAL = 10
"""Divisor of the operations budget: most questions about flows are settled by the n-th part."""

ItemT = TypeVar("ItemT")

UseKey: TypeAlias = tuple[object, ...]


class StorageChecks:
    """Memo of storage questions and their answers by content; shared by all states of a game."""

    def __init__(self) -> None:
        self._answers = Answers[UseKey, Reason | None]()
        self.exact_queries = 0
        """Number of questions that needed integer sets."""
        self.enumerated = 0
        """Number of questions that enumeration settled."""

    def violation(
        self, uses: Sequence[Use], reuse: Sequence[int], within: int | None = None, caller: Caller | None = None
    ) -> Reason | None:
        """The violation if these uses of one buffer have slots `reuse` per dimension; None if there is none.

        `within` also forbids values to cross iterations of the scopes down to that depth, which all uses share.
        `caller` is None unless the memory is an interface array's.
        """
        plain = within is None and not any(reuse) and len(_names(uses, caller)) <= 1
        if not uses or plain:
            return None
        misplaced = _misplaced(uses, reuse)
        if misplaced is not None:
            return misplaced
        owner = max((d for d in (owner_depth(uses, reuse), within) if d is not None), default=None)
        alone = len(_names(uses, caller)) == 1
        if (alone and within_iteration(uses, reuse)) or in_turn(uses, reuse, caller):
            return None
        key = (tuple(reuse), owner, caller, *content_of(uses))
        return self._answers.of(key, lambda: self._decide(uses, reuse, owner, caller, alone=alone))

    def _decide(
        self, uses: Sequence[Use], reuse: Sequence[int], owner: int | None, caller: Caller | None, *, alone: bool
    ) -> Reason | None:
        if (alone and within_iteration(uses, reuse, together=True)) or in_turn(uses, reuse, caller, together=True):
            return None
        if alone and caller is None and in_ring(uses, reuse, owner):
            return None
        lost = lost_value(uses)
        if lost is not None:
            read, overwriting = lost
            return _overwritten(
                uses[0].access.array.name,
                f"{describe_use(read.use, read.iteration)} needs a value that "
                f"{describe_use(overwriting.use, overwriting.iteration)} overwrites",
            )
        from pdojo.dialect.shortcuts.enumeration import Outside, events_of  # NumPy takes long to start

        outside = None if caller is None else Outside(caller.shape, caller.writes)
        events = events_of(uses, outside)
        if events is None:
            few = representatives(uses, None if caller is None else caller.shape)
            events = None if few is None else events_of(uses, outside, few)
        if events is not None:
            found = compare_events(events, uses, owner, caller)
            if found is not None:
                self.enumerated += 1
                return found.fault
        self.exact_queries += 1
        with suppress(Undecided), bounded(integer_sets.OPERATIONS // USUAL):
            return compare_flows(uses, owner, caller)
        with suppress(Undecided):
            if (fault := wrong_read(uses, caller)) is not None:
                return fault
        return compare_flows(uses, owner, caller)


def _names(uses: Sequence[Use], caller: Caller | None) -> list[str]:
    """The arrays in the question."""
    names = {u.access.array.name for u in uses}
    if caller is not None:
        names.add(caller.name)
    return sorted(names)


def _overwritten(name: str, detail: str) -> Reason:
    return Reason(f"'{name}' would be overwritten before its last read", detail)


def owner_depth(uses: Sequence[Use], reuse: Sequence[int]) -> int | None:
    """Depth of the innermost threaded scope whose iterations have copies; None if they share the buffer."""
    found = _owner(uses, reuse)
    return None if found is None else found[1]


def _owner(uses: Sequence[Use], reuse: Sequence[int]) -> tuple[Use, int] | None:
    """The innermost threaded scope that indexes a reused dimension, as a use inside it and its depth; or None."""
    found: tuple[Use, int] | None = None
    for use in uses:
        for expression, reused in zip(use.access.index, reuse, strict=True):
            for depth in expression.variables() if reused else ():
                if use.chain[depth].mapping.is_threaded and (found is None or depth > found[1]):
                    found = use, depth
    return found


def _misplaced(uses: Sequence[Use], reuse: Sequence[int]) -> Reason | None:
    """The reason why a private copy is used outside the scope that owns it; None if it is not."""
    found = _owner(uses, reuse)
    if found is None:
        return None
    inside, depth = found
    owner = inside.leaf.chain[depth]
    outside = next((u for u in uses if depth >= u.leaf.depth or u.leaf.chain[depth] is not owner), None)
    if outside is None:
        return None
    return Reason(
        f"'{inside.access.array.name}' would be private to each iteration of a concurrent scope, "
        "but is used outside it",
        f"threaded scope {{{depth}}} of extent {owner.extent} owns the copies, "
        f"{describe_access(outside.access)} in the op that writes {describe_access(outside.leaf.output)} is outside it",
    )


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
    """Fast path for consecutive parts of an iteration of the common scopes, each of which is valid alone.

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


def content_of(uses: Sequence[Use]) -> UseKey:
    """All data that the answers about uses in sequential order depend on, as a comparable value."""
    return tuple(
        (
            path,
            tuple((s.extent, s.guard) for s in u.chain),
            u.access.array.name,
            u.access.index,
            u.cell,
            u.writes,
            u.reads,
        )
        for u, path in zip(uses, relative_paths([u.leaf for u in uses]), strict=True)
    )


def wrong_read(uses: Sequence[Use], caller: Caller | None = None) -> Reason | None:
    """A difference between the two flows that a few reads show; None proves nothing. Raises Undecided."""
    found = wrong_source(uses, *_elements(uses, caller), caller)
    if found is None:
        return None
    pair, is_lost = found
    return (_lost if is_lost else _stale)(uses[0].access.array.name, _point(pair, uses, caller))


def _elements(uses: Sequence[Use], caller: Caller | None) -> tuple[list[tuple[int | Expr, ...]], int]:
    """The element that each use touches, and the number at the start of the places of the caller's elements."""
    arrays = _names(uses, caller)
    elements = [(arrays.index(u.access.array.name), *u.access.index) for u in uses]
    return elements, arrays.index(caller.name) if caller is not None else 0


@bounded()
def compare_flows(uses: Sequence[Use], owner: int | None, caller: Caller | None = None) -> Reason | None:
    """The difference between the flow of values over elements and that over cells; exact. None if they are equal."""
    elements, number = _elements(uses, caller)
    by_element = flow(uses, elements, caller, number)
    by_cell = flow(uses, [(0, *u.cell) for u in uses], caller)
    name = uses[0].access.array.name
    lost = by_element.subtract(by_cell)
    if not lost.is_empty():
        return _lost(name, _point(sampled(lost), uses, caller))
    wrong = by_cell.subtract(by_element)
    if not wrong.is_empty():
        return _stale(name, _point(sampled(wrong), uses, caller))
    if owner is not None:
        within = by_cell if caller is None else flow(uses, [(0, *u.cell) for u in uses])
        crossing = within.subtract(_same_iteration(uses, owner))
        if not crossing.is_empty():
            return _crossing(name, _point(sampled(crossing), uses, caller))
    return None


@dataclass(frozen=True, slots=True)
class Compared:
    """The answer of `compare_events`."""

    fault: Reason | None


def compare_events(events: Events, uses: Sequence[Use], owner: int | None, caller: Caller | None) -> Compared | None:
    """`compare_flows` by enumeration of all events; None if their places cannot be numbered."""
    arrays = _names(uses, caller)
    elements = [(arrays.index(u.access.array.name), *u.access.index) for u in uses]
    given = [var(d) for d in range(len(caller.shape))] if caller is not None else []
    number = arrays.index(caller.name) if caller is not None else 0
    in_elements = events.places(elements, (number, *given))
    in_cells = events.places([(0, *u.cell) for u in uses], (0, *given))
    if in_elements is None or in_cells is None:
        return None
    by_element, by_cell = events.sources(in_elements), events.sources(in_cells)
    name = uses[0].access.array.name

    def pair(sources: Ints, which: NDArray[np.bool_]) -> str:
        read = int(which.nonzero()[0][events.time[which].argmin()])
        return _point((events.iteration(int(sources[read])), events.iteration(read)), uses, caller)

    lost = (by_element >= 0) & (by_element != by_cell)
    if lost.any():
        return Compared(_lost(name, pair(by_element, lost)))
    wrong = (by_cell >= 0) & (by_element != by_cell)
    if wrong.any():
        return Compared(_stale(name, pair(by_cell, wrong)))
    if owner is not None:
        around = events.iterations[: owner + 1]
        inside = (by_cell >= 0) & (events.use < len(uses)) & (events.use[by_cell] < len(uses))
        crossing = inside & (around != around[:, by_cell]).any(axis=0)
        if crossing.any():
            return Compared(_crossing(name, pair(by_cell, crossing)))
    return Compared(None)


def _lost(name: str, pair: str) -> Reason:
    return _overwritten(name, f"value lost between write and read {pair}")


def _stale(name: str, pair: str) -> Reason:
    return Reason(f"'{name}' would be read before it is written", f"stale value {pair}")


def _crossing(name: str, pair: str) -> Reason:
    text = f"a value in the private copy of '{name}' would cross iterations of a concurrent scope"
    return Reason(text, f"write and read {pair}")


def _same_iteration(uses: Sequence[Use], owner: int) -> isl.UnionMap:
    """All pairs of instances in one iteration of the scopes down to depth `owner`."""
    import islpy as isl

    pieces: list[str] = []
    for w, writer in enumerate(uses):
        for r, reader in enumerate(uses):
            if writer.writes and reader.reads:
                left = variables("a", writer.leaf.depth)
                right = variables("b", reader.leaf.depth)
                equal = " and ".join(f"a{d} = b{d}" for d in range(owner + 1))
                pieces.append(f"W{w}[{', '.join(left)}] -> R{r}[{', '.join(right)}] : {equal}")
    return isl.UnionMap.read_from_str(context(), f"{{ {'; '.join(pieces)} }}")


def _point(pair: tuple[Instance, Instance], uses: Sequence[Use], caller: Caller | None) -> str:
    """A pair of instances in words."""
    texts: list[str] = []
    for (number, values), when in zip(pair, _WHEN, strict=True):
        if number < len(uses):
            texts.append(describe_use(uses[number], values))
        else:
            assert caller is not None
            texts.append(f"{caller.name}[{','.join(map(str, values))}] {when}")
    return " and ".join(texts)


_WHEN = "as the caller gives it", "as the caller gets it"

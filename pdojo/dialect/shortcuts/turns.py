"""Fast path for two groups of arrays in one memory: in every cell, one group is done before the other begins.

Then neither overwrites a value of the other. The question is asked per pair of accesses, so that only a move's changes
are asked again; integer sets are needed only if the digits of the indices do not settle a pair.
"""

from __future__ import annotations

from collections.abc import Sequence

from pdojo.dialect.attributes import Intent
from pdojo.dialect.flow.collision import BEFORE, EQUAL, Collisions, Query, Relation
from pdojo.dialect.flow.coverage import common_depth
from pdojo.dialect.flow.program import SharingQuestion
from pdojo.dialect.flow.shortcut import Answer
from pdojo.dialect.flow.uses import Use
from pdojo.dialect.reason import Reason


def apart(question: SharingQuestion) -> Answer[Reason | None] | None:
    """No violation, if one array is done with each cell before the other begins, and the caller needs neither."""
    guest, host = question.guest, question.host
    if any(host.reuse) or host.intent is Intent.INOUT:
        return None
    guests, hosts = ([u for u in question.uses if u.access.array.buffer is b] for b in (guest, host))
    # The caller reads the last writes; each element has one, and each read has a value (`validate`).
    if done_before(guests, hosts, question.collisions):
        return Answer(None)
    is_own = host.intent is None and done_before(hosts, guests, question.collisions)
    return Answer(None) if is_own else None


def done_before(first: Sequence[Use], second: Sequence[Use], collisions: Collisions) -> bool:
    """Whether in every cell no access of `first` comes after one of `second`, except for reads after reads.

    Within one instance of a statement the reads come before the write.
    """
    return not any(
        _comes_after(one, other, collisions) for one in first for other in second if one.writes or other.writes
    )


def _comes_after(one: Use, other: Use, collisions: Collisions) -> bool:
    """Whether some instance of `one` accesses a cell that an instance of `other` accessed before it."""
    depth = common_depth((one.leaf, other.leaf))
    relations: list[Relation] = [(*(EQUAL,) * k, BEFORE) for k in range(depth)]
    follows = other.leaf.order < one.leaf.order or (other.leaf is one.leaf and one.writes)
    if follows:
        relations.append((EQUAL,) * depth)
    equal = tuple(zip(other.cell, one.cell, strict=True))
    return any(collisions.find(Query(other.domain, one.domain, equal, relation)) is not None for relation in relations)

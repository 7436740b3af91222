"""Fast path for two groups of arrays in one memory: in every cell, one group is done before the other begins.

Then neither overwrites a value of the other. The question is asked per pair of accesses, so that only a move's changes
are asked again; integer sets are needed only if the digits of the indices do not settle a pair.
"""

from __future__ import annotations

from collections.abc import Sequence

from pdojo.dialect.flow.collision import BEFORE, EQUAL, Collisions, Query, Relation
from pdojo.dialect.flow.coverage import common_depth
from pdojo.dialect.flow.uses import Use


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

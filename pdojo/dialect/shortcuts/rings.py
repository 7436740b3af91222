"""A quick proof that a circular buffer keeps its values: each is read a few iterations of one scope after its write.

In a dimension of k slots, let every index be i + c, with a constant c per use and an iteration number i: the variable
of a scope around all uses, or the variables of several nested scopes as digits of i. A read with constant r gets the
element e = i + r from a write with constant w >= r, which wrote it w - r iterations before. Another write, with
constant v, takes the slot of e in between only if it writes an element e + m k with m != 0, in an iteration from e - w
to e - r, that is, only if

    exists m != 0: v - w <= m k <= v - r

Elements that differ in another reused dimension belong to other iterations of the scopes around, which do not come in
between.
"""

from __future__ import annotations

from collections.abc import Sequence

from pdojo.dialect.affine import var
from pdojo.dialect.attributes import Mapping
from pdojo.dialect.flow.coverage import common_depth, covers
from pdojo.dialect.flow.integer_sets import bounded, unreached
from pdojo.dialect.flow.shortcut import Answer
from pdojo.dialect.flow.storage_check import StorageQuestion
from pdojo.dialect.flow.uses import Use
from pdojo.dialect.reason import Reason
from pdojo.errors import Undecided

OPERATIONS = 20_000
"""isl's operation budget for the check that all reads are of written elements; harder questions go to full flows."""


def kept(question: StorageQuestion) -> Answer[Reason | None] | None:
    """No violation, if all values of an array are found in a circular buffer."""
    is_own = question.is_alone and question.caller is None
    return Answer(None) if is_own and in_ring(question.uses, question.reuse, question.owner) else None


def in_ring(uses: Sequence[Use], reuse: Sequence[int], owner: int | None) -> bool:
    """Whether uses of one array certainly find their values in a circular buffer (not complete).

    `reuse` are the slots of each dimension; no value may leave an iteration of the scope at depth `owner`.
    """
    folded = [dimension for dimension, slots in enumerate(reuse) if slots > 1]
    if len(folded) != 1:
        return False
    depth = _scope_of(uses, folded[0])
    if depth is None or (owner is not None and owner >= depth) or not _apart(uses, reuse, folded[0], depth):
        return False
    constants = {use: use.access.index[folded[0]].constant for use in uses}
    writes = [use for use in uses if use.writes]

    def is_kept(read: Use) -> bool:
        written = _written(read, [use for use in writes if use.leaf.accumulate is None], constants, depth)
        if written is None:
            return False
        spans = ((constants[use] - written, constants[use] - constants[read]) for use in writes)
        return not any(_has_multiple(low, high, reuse[folded[0]]) for low, high in spans)

    return all(is_kept(use) for use in uses if use.reads)


def _scope_of(uses: Sequence[Use], dimension: int) -> int | None:
    """Depth of the outermost scope whose iterations equal the indices, up to constants; None if there is none."""
    indices, chain = [use.access.index[dimension] for use in uses], uses[0].chain
    terms = dict(indices[0].terms)
    depths = sorted(atom for atom in terms if isinstance(atom, int))
    alike = all(index.terms == indices[0].terms for index in indices)
    if not depths or len(depths) < len(terms) or not alike or depths[-1] >= common_depth([use.leaf for use in uses]):
        return None
    weight = 1
    for depth in range(depths[-1], depths[0] - 1, -1):
        scope = chain[depth]
        if scope.mapping not in (Mapping.SEQUENTIAL, Mapping.UNROLL):
            return None
        if terms.get(depth, 0) != (weight if scope.extent > 1 else 0):
            return None
        weight *= scope.extent
    return depths[0]


def _apart(uses: Sequence[Use], reuse: Sequence[int], folded: int, depth: int) -> bool:
    """Whether elements of a cell that differ in another reused dimension belong to other iterations of outer scopes."""
    for dimension, slots in enumerate(reuse):
        if slots and dimension != folded:
            parts = {use.access.index[dimension] - use.cell[dimension] for use in uses}
            if len(parts) != 1 or any(v >= depth for v in next(iter(parts)).variables()):
                return False
    return True


def _written(read: Use, writes: Sequence[Use], constants: dict[Use, int], depth: int) -> int | None:
    """The constant of the writes that certainly write every read element before the read; None if none is known."""
    mine = constants[read]
    if any(constants[w] == mine and covers(w.leaf, w.access, read.leaf, read.access) for w in writes):
        return mine
    nearest = min((constants[w] for w in writes if constants[w] > mine), default=None)
    if nearest is None:
        return None
    around = tuple(var(d) for d in range(depth))
    before = [w for w in writes if constants[w] == nearest]
    reached = [(w.leaf.extents, w.leaf.guards, (*around, *w.access.index)) for w in before]
    try:
        with bounded(OPERATIONS):
            left = unreached([(read.leaf.extents, read.leaf.guards, (*around, *read.access.index))], reached)
    except Undecided:
        return None
    return nearest if left is None else None


def _has_multiple(low: int, high: int, factor: int) -> bool:
    """Whether a non-zero multiple of a number is in an interval."""
    return any(m != 0 for m in range(-(-low // factor), high // factor + 1))

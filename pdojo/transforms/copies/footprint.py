"""The part of an array that a scope accesses, as a copy nest: its elements, their order, and indices into the copy.

A copy is made for one iteration of the scopes around a scope S, at depth D. The copy nest has variables of its own at
depths D, D + 1 ...; it accesses the source at `index` and the copy at these variables. Inside S the copy is accessed at
`uses`. Substituting the indices of a use for the variables of the copy nest gives the index of the access to the
source. This makes a copy correct, and allows to take it back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations
from typing import TypeAlias

from pdojo.transforms.api import (
    Access,
    Array,
    Expr,
    Leaf,
    Reason,
    Scope,
    atom_variables,
    const,
    describe_access,
    fills_box,
    var,
)

Placed: TypeAlias = tuple[Leaf, Access]
"""An access and its statement."""

MOST_VARIABLES = 5
"""Most variables of an access for which orders other than their scopes' are tried."""


@dataclass(frozen=True, eq=False)
class Copy:
    """A copy of a part of an array for a scope; each iteration of the scopes around has its own."""

    source: Array
    outside: tuple[int, ...]
    """Extents of the scopes around the scope."""
    extents: tuple[int, ...]
    """Extents of the copy nest, and of the copy's own dimensions."""
    guards: tuple[Expr, ...]
    """Guards of the copy nest."""
    index: tuple[Expr, ...]
    """Index of the source in the copy nest."""
    uses: dict[Access, tuple[Expr, ...]]
    """Per access to the source, its index into the copy."""
    whole: frozenset[Access] = frozenset()
    """Accesses that certainly run through the whole copy, in each iteration of the scopes around."""

    @property
    def around(self) -> tuple[int, ...]:
        """Extents of the scopes around a statement of the copy nest."""
        return (*self.outside, *self.extents)

    @property
    def slot(self) -> tuple[Expr, ...]:
        """Index of the copy in the copy nest: the iteration outside, then its own variables."""
        return (*leading(self.outside), *(var(len(self.outside) + k) for k in range(len(self.extents))))


def leading(outside: Sequence[int]) -> tuple[Expr, ...]:
    """The indices into the copy's first dimensions: the iteration of the scopes around the scope."""
    return tuple(var(d) if extent != 1 else const(0) for d, extent in enumerate(outside))


def iteration_copy(site: Scope, accesses: Sequence[Placed]) -> Copy | Reason:
    """A copy in the order of access, with a dimension for each inner scope's variable that the accesses use."""
    depth, outside = site.depth, tuple(s.extent for s in site.chain[:-1])
    first, access = accesses[0]
    own = _inner_variables(access.index, depth)
    extents = tuple(first.extents[v] for v in own)
    pattern = _renamed(access.index, own, depth, (*outside, *extents))
    uses: dict[Access, tuple[Expr, ...]] = {}
    guarded: dict[Access, set[Expr]] = {}
    for leaf, other in accesses:
        order = _order(other.index, leaf.extents, depth, extents, pattern)
        if order is None:
            return Reason(
                f"{describe_access(access)} and {describe_access(other)} go through '{access.array.name}' in different "
                "orders; form=box makes one copy of all that is accessed"
            )
        uses[other] = (*leading(outside), *(var(v) for v in order))
        guarded[other] = _guards(leaf, order, depth, (*outside, *extents))
    guards = set[Expr].intersection(*guarded.values()) if own else set[Expr]()
    whole = frozenset(a for leaf, a in accesses if guarded[a] == guards and _decided(leaf, guarded[a], depth))
    kept = tuple(sorted(guards, key=lambda g: g.key))
    return Copy(access.array, outside, extents, kept, pattern, uses, whole)


def _inner_variables(index: tuple[Expr, ...], depth: int) -> list[int]:
    return sorted({v for e in index for v in e.variables() if v >= depth})


def _renamed(index: Iterable[Expr], order: Sequence[int], depth: int, extents: Sequence[int]) -> tuple[Expr, ...]:
    names = {v: var(depth + k) for k, v in enumerate(order)}
    return tuple(e.substitute(names, extents) for e in index)


@lru_cache(maxsize=1 << 14)
def _order(
    index: tuple[Expr, ...], around: tuple[int, ...], depth: int, extents: tuple[int, ...], pattern: tuple[Expr, ...]
) -> tuple[int, ...] | None:
    """The variables of an index, in the order that makes it equal to the pattern; None if no order does.

    `around` are the extents of the scopes around the statement. Cached, because every move asks it again.
    """
    own = _inner_variables(index, depth)
    if len(own) != len(extents):
        return None
    for order in permutations(own) if len(own) <= MOST_VARIABLES else (tuple(own),):
        fits = tuple(around[v] for v in order) == extents
        if fits and _renamed(index, order, depth, (*around[:depth], *extents)) == pattern:
            # Substitution must also restore the indices inside from the indices of the copy nest in normal form.
            back = {depth + k: var(v) for k, v in enumerate(order)}
            if tuple(e.substitute(back, around) for e in pattern) == index:
                return order
    return None


def _guards(leaf: Leaf, order: Sequence[int], depth: int, extents: Sequence[int]) -> set[Expr]:
    """The inner scopes' guards in the variables of the access, rewritten to the variables of the copy nest."""
    inside = [g for s in leaf.chain[depth:] for g in s.guard]
    decided = [g for g in inside if all(v < depth or v in order for v in g.variables())]
    return set(_renamed(decided, order, depth, extents))


def _decided(leaf: Leaf, known: set[Expr], depth: int) -> bool:
    """Whether no other guard inside restricts the statement."""
    return sum(len(s.guard) for s in leaf.chain[depth:]) == len(known)


def box_copy(site: Scope, accesses: Sequence[Placed]) -> Copy | Reason:
    """A copy of the bounding box of all accesses, with the array's dimensions in which the box has several indices.

    In each dimension, the box moves with the scopes around `site` if all accesses move with them in the same way.
    """
    depth, outside = site.depth, tuple(s.extent for s in site.chain[:-1])
    array = accesses[0][1].array
    bases, extents, index, guards = list[Expr](), list[int](), list[Expr](), list[Expr]()
    for dimension, whole in enumerate(array.shape):
        base, extent = _interval(accesses, dimension, whole, depth)
        bases.append(base)
        index.append(base)
        if extent > 1:
            index[-1] = base + var(depth + len(extents))
            extents.append(extent)
    around = (*outside, *extents)
    for e, whole in zip(index, array.buffer.extents, strict=True):
        guards += [g for g in (e, whole - 1 - e) if g.bounds(around)[0] < 0]
    wide = [d for d, (e, base) in enumerate(zip(index, bases, strict=True)) if e != base]
    for _, access in accesses:
        if any(access.index[d] != base for d, base in enumerate(bases) if d not in wide):
            # Guards leave one element of the dimension, so the copy would not tell how its index was written.
            return Reason(f"{describe_access(access)} always has one index of a dimension, which is written otherwise")
    uses = {a: (*leading(outside), *(a.index[d] - bases[d] for d in wide)) for _, a in accesses}
    kept = tuple(sorted(guards, key=lambda g: g.key)) if extents else ()
    filling = () if kept else (a for leaf, a in accesses if _fills(leaf, uses[a], extents, depth))
    return Copy(array, outside, tuple(extents), kept, tuple(index), uses, frozenset(filling))


def _fills(leaf: Leaf, place: Sequence[Expr], extents: Sequence[int], depth: int) -> bool:
    """Whether an access, at `place` of the copy, certainly reaches all places."""
    return not any(s.guard for s in leaf.chain[depth:]) and fills_box(place[depth:], extents, leaf.extents, depth)


def _interval(accesses: Sequence[Placed], dimension: int, whole: int, depth: int) -> tuple[Expr, int]:
    """The first index of the box in a dimension, and the number of its indices."""
    moving = {_moving(a.index[dimension], depth) for _, a in accesses}
    base = moving.pop() if len(moving) == 1 else const(0)
    ranges = [(a.index[dimension] - base).bounds(leaf.extents) for leaf, a in accesses]
    low, high = min(r[0] for r in ranges), max(r[1] for r in ranges)
    if base.is_constant:
        low, high = max(low, 0), min(high, whole - 1)
    extent = high - low + 1
    return (const(0), whole) if extent >= whole else (base + low, extent)


def _moving(expression: Expr, depth: int) -> Expr:
    """The part of an index in the variables of the scopes around."""
    outer = ((atom, c) for atom, c in expression.terms if all(v < depth for v in atom_variables(atom)))
    return Expr(0, tuple(outer))

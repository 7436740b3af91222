"""Sure coverage: is every value that a read needs written before it in the same iteration?"""

from __future__ import annotations

from collections.abc import Sequence

from pdojo.dialect.affine import Atom, Expr, atom_variables, const, floordiv, var
from pdojo.dialect.flow.enclosure import enclosed
from pdojo.dialect.flow.integer_sets import Reach, unreached
from pdojo.dialect.lookups import unknown_places
from pdojo.dialect.view.nest import Access, Leaf
from pdojo.errors import Undecided


def common_depth(leaves: Sequence[Leaf]) -> int:
    """Number of scopes that contain all statements."""
    first = leaves[0].chain
    depth = len(first)
    for leaf in leaves[1:]:
        chain, shared = leaf.chain, 0
        while shared < depth and shared < len(chain) and chain[shared] is first[shared]:
            shared += 1
        depth = shared
    return depth


def covers(writer: Leaf, write: Access, reader: Leaf, read: Access) -> bool:
    """Whether an earlier write covers every element that a read reads in an iteration of the common scopes.

    Sound, not complete. Per dimension, the parts over the inner variables must be the same digits of equal scopes, or
    the write's part must run through an interval that contains the read's.
    """
    if writer.order >= reader.order or writer.accumulate is not None:
        return False
    return reaches(writer, write, reader, read)


def reaches(writer: Leaf, write: Access, reader: Leaf, read: Access) -> bool:
    """Whether a write touches every element that a read touches, in each iteration of the common scopes (sound)."""
    depth = common_depth((writer, reader))
    if _are_aligned(writer, write, reader, read, depth):
        return True
    if any(s.guard for s in writer.chain[depth:]):
        return _is_placed(writer, write, reader, read, depth)
    used: set[int] = set()
    for mine, other in zip(write.index, read.index, strict=True):
        inner = {v for v in mine.variables() if v >= depth}
        if inner & used or not _dimension_covers(mine, other, writer, reader, depth):
            return False
        used |= inner
    return True


def cover_together(writes: Sequence[tuple[Leaf, Access]], reader: Leaf, read: Access) -> bool:
    """Whether several writes together cover a read (`covers`), by integer sets; False if these do not settle it.

    A place is an iteration of the scopes that the reader shares with some write, and an element. A write that shares
    fewer of them serves every iteration of the others.
    """
    earlier = [
        (leaf, access, common_depth((leaf, reader)))
        for leaf, access in writes
        if leaf.order < reader.order and leaf.accumulate is None and not unknown_places(access.index)
    ]
    if not earlier:
        return False
    depth = max(shared for _, _, shared in earlier)
    around = tuple(var(d) for d in range(depth))
    reached = [_from_within(leaf, access, shared, reader.extents[:depth]) for leaf, access, shared in earlier]
    try:
        return unreached([(reader.extents, reader.guards, (*around, *read.index))], reached) is None
    except Undecided:
        return False


def _from_within(leaf: Leaf, access: Access, shared: int, around: tuple[int, ...]) -> Reach:
    """The reach of a write, with the reader's scopes in `around` placed around the scopes of the write alone."""
    depth = len(around)
    extents = (*around, *leaf.extents[shared:])
    moved = {d: var(d - shared + depth) for d in range(shared, leaf.depth)}
    guards = tuple(guard.substitute(moved, extents) for guard in leaf.guards)
    index = (expression.substitute(moved, extents) for expression in access.index)
    return extents, guards, (*(var(d) for d in range(depth)), *index)


def _are_aligned(writer: Leaf, write: Access, reader: Leaf, read: Access, depth: int) -> bool:
    """Whether the write, in the reader's iteration of the innermost scopes, is to the element that is read.

    It does for `m n t[i,j] = 0` and `k m n t[i,j] += x[...]`. The iteration exists if the write's scopes are at
    least as long as the reader's and its guards are among the reader's.
    """
    mine, further = writer.chain[depth:], reader.depth - writer.depth
    if further < 0 or any(s.extent < reader.extents[s.depth + further] for s in mine):
        return False
    if not further and not any(s.guard for s in mine):
        return write.index == read.index
    moved = {s.depth: var(s.depth + further) for s in mine}
    if any(g.substitute(moved, reader.extents) not in reader.guards for s in mine for g in s.guard):
        return False
    index = (e.substitute(moved, reader.extents) for e in write.index)
    return all(one == other for one, other in zip(index, read.index, strict=True))


def _is_placed(writer: Leaf, write: Access, reader: Leaf, read: Access, depth: int) -> bool:
    """Whether an iteration of guarded scopes writes the element that is read, with variables as digits of its indices.

    It exists if its variables are within their scopes and its guards hold wherever the reader runs. A guard of the
    reader that is at most as great says so for all sizes.
    """
    around = reader.extents
    at = {d: var(d) for d in range(depth)}
    for mine, other in zip(write.index, read.index, strict=True):
        (outer, inner), (theirs, rest) = _split(mine, depth), _split(other, depth)
        if outer is None or outer != theirs:
            return False
        rest = rest - inner.constant
        for atom, factor in sorted(inner.terms, key=lambda term: -term[1]):
            assert isinstance(atom, int)
            if factor < 1 or atom in at:
                return False
            at[atom] = floordiv(rest, factor, around)
            rest = rest - at[atom] * factor
        if rest != const(0):
            return False
    own = writer.chain[depth:]
    values = [at.setdefault(s.depth, const(0)) for s in own]
    ends = [end for s, value in zip(own, values, strict=True) for end in (value, -value + (s.extent - 1))]
    needed = [*ends, *(g.substitute(at, around) for s in own for g in s.guard)]
    return all(any(enclosed(e - g, around)[0] >= 0 for g in (const(0), *reader.guards)) for e in needed)


def _dimension_covers(mine: Expr, other: Expr, writer: Leaf, reader: Leaf, depth: int) -> bool:
    outer_mine, inner_mine = _split(mine, depth)
    outer_other, inner_other = _split(other, depth)
    if outer_mine is None or outer_mine != outer_other:
        return False
    reached = interval(inner_mine, writer.extents)
    if reached is None:
        return False
    low, high = inner_other.bounds(reader.extents)
    return reached[0] <= low and high <= reached[1]


def _split(expression: Expr, depth: int) -> tuple[Expr | None, Expr]:
    """The terms over the common scopes, and the other terms with the constant; None if a division mixes them."""
    outer: list[tuple[Atom, int]] = []
    inner: list[tuple[Atom, int]] = []
    for atom, coefficient in expression.terms:
        variables = atom_variables(atom)
        if all(v < depth for v in variables):
            outer.append((atom, coefficient))
        elif isinstance(atom, int):
            inner.append((atom, coefficient))
        else:
            return None, expression
    return Expr(0, tuple(outer)), Expr(expression.constant, tuple(inner))


def interval(expression: Expr, extents: Sequence[int]) -> tuple[int, int] | None:
    """The interval of all values if the expression takes every integer in it; else None."""
    reach = 1
    for atom, coefficient in sorted(expression.terms, key=lambda term: term[1]):
        assert isinstance(atom, int)
        if not 0 < coefficient <= reach:
            return None
        reach += coefficient * (extents[atom] - 1)
    return expression.constant, expression.constant + reach - 1


def fills(writer: Leaf, write: Access) -> bool:
    """Whether an unguarded write certainly covers its array: each dimension is an interval of its own variables."""
    return not writer.guards and fills_box(write.index, write.array.shape, writer.extents)


def fills_box(place: Sequence[Expr], box: Sequence[int], extents: Sequence[int], depth: int = 0) -> bool:
    """Whether the scopes from `depth` on run through all places of a box.

    That is certain if each dimension is an interval of variables of its own. `extents` belong to all scopes.
    """
    used: set[int] = set()
    for expression, extent in zip(place, box, strict=True):
        own = expression.variables()
        if not expression.is_linear or own & used or any(v < depth for v in own):
            return False
        if interval(expression, extents) != (0, extent - 1):
            return False
        used |= own
    return True

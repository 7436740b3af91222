"""A scope and its only child as the digits of one scope: extents, guards and index expressions, there and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pdojo.dialect.affine import Div, Expr, const, floordiv, modulo, var
from pdojo.dialect.nest import Index, Leaf, Scope
from pdojo.transforms.base import Reason


def only_scope(site: Scope) -> Scope | None:
    """The only child, where it is a scope."""
    child = site.children[0]
    return child if len(site.children) == 1 and isinstance(child, Scope) else None


def misplaced_guard(inner: Scope) -> Reason | None:
    """Refuse to move an only child's guard to the scope outside, from where undoing the move would not take it back.

    Splitting scopes leaves such guards; the canonical form, from which the game starts, has none.
    """
    if all(max(g.variables(), default=inner.depth) == inner.depth for g in inner.guard):
        return None
    return Reason("a guard of the inner scope does not use its variable; undoing the move would not take it back")


def collapsed_extent(site: Scope, inner: Scope) -> int:
    """Iterations of the two scopes together, less those that a guard cuts off at the end."""
    total = site.extent * inner.extent
    guards = collapsed_guards(site, inner, (*(s.extent for s in site.chain[:-1]), total))
    cut = min((g.constant + 1 for g in guards if g.terms == ((site.depth, -1),)), default=total)
    # A scope shorter than a tile could not be tiled again.
    return cut if -(-cut // inner.extent) == site.extent and cut >= inner.extent else total


def collapsed_guards(site: Scope, inner: Scope, extents: tuple[int, ...]) -> list[Expr]:
    """The guards of the two scopes over the variable of the collapsed one."""
    digits = digits_of(site.depth, inner.extent, extents)
    return [g.substitute(digits, extents) for g in (*site.guard, *inner.guard)]


def only_linear(leaves: Iterable[Leaf]) -> bool:
    """Whether no index expression of the statements has a division."""
    return all(e.is_linear for leaf in leaves for e in expressions_of(leaf))


def undivided(leaves: Iterable[Leaf], depth: int) -> bool:
    """Whether the variable of the scope at `depth` is in no division of an index expression of the statements."""
    return not any(
        isinstance(atom, Div) and atom.numerator.uses(depth)
        for leaf in leaves
        for e in expressions_of(leaf)
        for atom, _ in e.terms
    )


def irreversible_tiling(site: Scope, leaves: Sequence[Leaf], size: int) -> Reason | None:
    """Refuse a tiling that collapsing would not take back to the letter: for a guard or divisions."""
    if any(g.terms == ((site.depth, -1),) for g in site.guard):
        return _CUT
    if undivided(leaves, site.depth):
        return None
    depth = site.depth
    for leaf in leaves:
        before = leaf.extents
        after = (*before[:depth], -(-site.extent // size), size, *before[depth + 1 :])
        there = {depth: var(depth) * size + var(depth + 1), **{k: var(k + 1) for k in range(depth + 1, leaf.depth)}}
        back = {**digits_of(depth, size, before), **{k + 1: var(k) for k in range(depth + 1, leaf.depth)}}
        if not _comes_back(leaf, there, after, back, before):
            return _IRREVERSIBLE
    return None


def irreversible_collapse(site: Scope, inner: Scope) -> Reason | None:
    """Refuse a collapse that tiling would not take back to the letter: for a guard or divisions."""
    depth, size, total = site.depth, inner.extent, collapsed_extent(site, inner)
    guards = collapsed_guards(site, inner, (*(s.extent for s in site.chain[:-1]), total))
    if any(g.terms == ((depth, -1),) and g.constant + 1 < total for g in guards):
        return _CUT
    # What cuts off the last tile is the collapsed scope's extent; tiling makes it again.
    tail = const(total - 1) - (var(depth) * size + var(depth + 1))
    lasting = ((s, g) for s in (site, inner, *_scopes_inside(inner)) for g in s.guard if s is not inner or g != tail)
    if any(_vanishes(guard, scope, depth, size, total) for scope, guard in lasting):
        return _VANISHING
    if only_linear(inner.leaves):
        return None
    for leaf in inner.leaves:
        before = leaf.extents
        after = (*before[:depth], total, *before[depth + 2 :])
        there = {**digits_of(depth, size, after), **{k: var(k - 1) for k in range(depth + 2, leaf.depth)}}
        back = {depth: var(depth) * size + var(depth + 1), **{k: var(k + 1) for k in range(depth + 1, leaf.depth)}}
        if not _comes_back(leaf, there, after, back, before):
            return _IRREVERSIBLE
    return None


def _scopes_inside(scope: Scope) -> Iterator[Scope]:
    for child in scope.children:
        if isinstance(child, Scope):
            yield child
            yield from _scopes_inside(child)


def _vanishes(guard: Expr, scope: Scope, depth: int, size: int, total: int) -> bool:
    """Whether a guard of a scope always holds in the collapsed one, so that tiling would not restore it."""
    before = [s.extent for s in scope.chain]
    after = (*before[:depth], total, *before[depth + 2 :])
    there = {**digits_of(depth, size, after), **{k: var(k - 1) for k in range(depth + 2, len(before))}}
    return guard.substitute(there, after).bounds(after)[0] >= 0


_VANISHING = Reason("a guard always holds in the collapsed scope; undoing the move would not restore it")
_CUT = Reason("a guard of the scope only cuts off its last iterations; undoing the move would make the scope shorter")
"""The canonical form has no such guards, peeling an outer scope can leave one."""

_IRREVERSIBLE = Reason("an index expression with divisions would not come back in normal form when the move is undone")


def _comes_back(
    leaf: Leaf, there: dict[int, Expr], after: tuple[int, ...], back: dict[int, Expr], before: tuple[int, ...]
) -> bool:
    return all(e.substitute(there, after).substitute(back, before) == e for e in expressions_of(leaf))


def expressions_of(leaf: Leaf) -> list[Expr]:
    """All index expressions of a statement: accesses, index values and the guards around it."""
    found = [e for a in leaf.accesses for e in a.index]
    found += [i.expression for i in leaf.inputs if isinstance(i, Index)]
    return [*found, *leaf.guards]


def digits_of(depth: int, size: int, extents: Sequence[int]) -> dict[int, Expr]:
    """The variables of a tiled scope in terms of the one at `depth` of the collapsed scope."""
    return {depth: floordiv(var(depth), size, extents), depth + 1: modulo(var(depth), size, extents)}

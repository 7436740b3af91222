"""Collisions without integer sets: excluded digit by digit, or guessed and checked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product
from math import gcd

from pdojo.dialect.affine import Div, Expr, Lookup, atom_variables, var
from pdojo.dialect.flow.collision import AFTER, ANY, BEFORE, EQUAL, Domain, Query, Witness, holds
from pdojo.dialect.flow.enclosure import guarded_bounds
from pdojo.dialect.flow.shortcut import Answer
from pdojo.dialect.table import Table

MOST_GUESSES = 3**6
"""Most guesses at a place."""


def apart(query: Query) -> Answer[Witness | None] | None:
    """No collision, if boxes and index expressions exclude one."""
    return Answer(None) if impossible(query) else None


def guessed(query: Query) -> Answer[Witness | None] | None:
    """The first of a few guesses that is a collision."""
    witness = next((guess for guess in guesses(query) if holds(query, guess)), None)
    return None if witness is None else Answer(witness, "guess")


def excluded(query: Query) -> Answer[Witness | None] | None:
    """No collision, if guards keep indices apart: `{0} + N // 16 * 16` and `16 * {0} + {1}` with `{0} < N // 16`."""
    count = len(query.first.extents)
    same = [d for d, order in enumerate(query.relation) if order is EQUAL]
    extents = *query.first.extents, *query.second.extents
    other = {d: var(d if d in same else count + d) for d in range(len(query.second.extents))}
    guards = [*query.first.guards, *(guard.substitute(other, extents) for guard in query.second.guards)]
    for mine, theirs in query.equal if guards else ():
        low, high = guarded_bounds(mine - theirs.substitute(other, extents), extents, guards, 1, -1)
        if low > 0 or high < 0:
            return Answer(None)
    return None


def impossible(query: Query) -> bool:
    """Whether boxes and index expressions alone exclude a collision (sound, not complete)."""
    first, second = query.first.extents, query.second.extents
    for depth, order in enumerate(query.relation):
        last_first, last_second = first[depth] - 1, second[depth] - 1
        if (order is BEFORE and last_second < 1) or (order is AFTER and last_first < 1):
            return True
    forced = _forced_equal(query)
    if forced is None:
        return True
    related = any(order in (BEFORE, AFTER) and depth in forced for depth, order in enumerate(query.relation))
    if related:
        return True
    known = {*query.equal, *_derived(query.equal)} if query.differs else set[tuple[Expr, Expr]]()
    return bool(query.differs) and all((a, b) in known or _same(a, b, forced) for a, b in query.differs)


def share_iterations(query: Query, depth: int) -> bool:
    """Whether colliding instances certainly have the same iteration of the first `depth` scopes (not complete)."""
    forced = _forced_equal(query)
    return forced is None or forced >= frozenset(range(depth))


def _same(first: Expr, second: Expr, forced: frozenset[int]) -> bool:
    """Whether two expressions have equal values when the variables in `forced` are equal."""
    return first == second and first.variables() <= forced


def _forced_equal(query: Query) -> frozenset[int] | None:
    """Depths whose variables must be equal in both instances; None if the equations have no solution.

    Digit by digit: in `sum(c * (a - b)) + rest = 0`, a = b if |c| is greater than the largest sum of the other terms.
    """
    forced = {d for d, order in enumerate(query.relation) if order is EQUAL}
    pending = [*query.equal, *_derived(query.equal), *_same_entries(query)]
    progress = True
    while progress and pending:
        progress = False
        for pair in tuple(pending):
            new = _digits(pair[0], pair[1], query, forced)
            if new is None:
                return None
            if new - forced:
                forced |= new
                progress = True
                pending.remove(pair)
    return frozenset(forced)


def _derived(equal: Sequence[tuple[Expr, Expr]]) -> Iterator[tuple[Expr, Expr]]:
    """Sums of equations that eliminate a division: `a // k = b // k` and `a % k = b % k` give `a = b`."""
    for quotient, other in equal:
        match quotient.terms:
            case ((Div() as atom, 1),):
                for mine, theirs in equal:
                    factor = dict(mine.terms).get(atom, 0)
                    if factor and mine is not quotient:
                        yield mine - quotient * factor, theirs - other * factor
            case _:
                pass


def _same_entries(query: Query) -> Iterator[tuple[Expr, Expr]]:
    """The places of equal entries in tables whose entries differ: `t[a] = t[b]` gives `a = b`."""
    for first, second in query.equal:
        match first, second:
            case Expr(one, ((Lookup(table, places), factor),)), Expr(other, ((Lookup() as atom, scale),)):
                same = (one, factor, table) == (other, scale, atom.table)
                if same and isinstance(table, Table) and table.is_injective:
                    (mine,), (theirs,) = places, atom.operands
                    ranges = mine.bounds(query.first.extents), theirs.bounds(query.second.extents)
                    if all(low >= 0 and high < len(table.entries) for low, high in ranges):
                        yield mine, theirs
            case _:
                pass


def _digits(first: Expr, second: Expr, query: Query, forced: set[int]) -> set[int] | None:
    """Depths forced equal by the equation `first = second`; None if it has no solution."""
    constant = first.constant - second.constant
    free: list[tuple[int, int, int, int]] = []  # magnitude, depth or -1, least, greatest contribution
    mine, other = dict(first.terms), dict(second.terms)
    for atom in mine.keys() | other.keys():
        a, b = mine.get(atom, 0), other.get(atom, 0)
        if not isinstance(atom, int):
            if a == b and atom_variables(atom) <= forced:
                continue
            _add_enclosure(free, atom.bounds(query.first.extents) if a else (0, 0), a)
            _add_enclosure(free, atom.bounds(query.second.extents) if b else (0, 0), -b)
        elif atom in forced:
            if a != b:
                _add_interval(free, query.first.extents[atom] - 1, a - b)
        elif a == b:
            span = query.first.extents[atom] - 1, query.second.extents[atom] - 1
            ends = -a * span[1], a * span[0]
            free.append((abs(a), atom, min(ends), max(ends)))
        else:
            _add_interval(free, query.first.extents[atom] - 1 if a else 0, a)
            _add_interval(free, query.second.extents[atom] - 1 if b else 0, -b)
    low = constant + sum(item[2] for item in free)
    high = constant + sum(item[3] for item in free)
    if low > 0 or high < 0:
        return None
    return None if constant % (gcd(*(item[0] for item in free)) or 1) else _largest_digits(free, low, high, constant)


def _largest_digits(free: list[tuple[int, int, int, int]], low: int, high: int, constant: int) -> set[int] | None:
    """Depths of equal variables, from the largest factor down, while the other terms cannot add up to it."""
    equal: set[int] = set()
    free.sort(reverse=True)
    for magnitude, depth, least, greatest in free:
        low, high = low - least, high - greatest
        if depth < 0 or low <= -magnitude or high >= magnitude:
            return equal
        equal.add(depth)
    return None if constant else equal


def _add_interval(free: list[tuple[int, int, int, int]], last: int, factor: int) -> None:
    if factor and last:
        free.append((abs(factor), -1, min(0, factor * last), max(0, factor * last)))


def _add_enclosure(free: list[tuple[int, int, int, int]], bounds: tuple[int, int], factor: int) -> None:
    if factor:
        ends = sorted((factor * bounds[0], factor * bounds[1]))
        free.append((abs(factor), -1, ends[0], ends[1]))


def guesses(query: Query) -> Iterator[Witness]:
    """A few likely collisions: neighbours at the related depths, at zero or where guards begin."""
    choices = {EQUAL: ((0, 0),), BEFORE: ((0, 1),), AFTER: ((1, 0),), ANY: ((0, 0), (0, 1), (1, 0))}
    pairs = [choices[order] for order in query.relation]
    zeros = (0,) * len(query.first.extents), (0,) * len(query.second.extents)
    starts = _start(query.first), _start(query.second)
    inner = all(len(zero) > len(pairs) for zero in zeros)
    for one, other in (zeros,) if starts == zeros else (zeros, starts):
        outer = [max(a, b) for a, b, _ in zip(one, other, pairs, strict=False)]
        for head in islice(product(*pairs), MOST_GUESSES):
            first = (*(k + a for k, (a, _) in zip(outer, head, strict=True)), *one[len(pairs) :])
            second = (*(k + b for k, (_, b) in zip(outer, head, strict=True)), *other[len(pairs) :])
            yield Witness(first, second)
            if query.differs and inner:
                yield Witness(first, (*second[:-1], second[-1] + 1))


def _start(domain: Domain) -> tuple[int, ...]:
    """The first iteration of each scope that guards of one variable allow."""
    start = [0] * len(domain.extents)
    for guard in domain.guards:
        match guard.terms:
            case ((int() as depth, factor),) if factor > 0:
                start[depth] = max(start[depth], -(guard.constant // factor))
            case _:
                pass
    return tuple(start)

"""Long sums in levels: first the sums of parts of the terms, then the sum of the parts.

The rounding error of a sum one by one grows with its terms, up to the number of terms times half a unit in the last
place. So the meaning of a long sum is a sum of sums, whatever moves are made. (The error of a product does not depend
on the order of its factors.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import gcd, prod
from typing import NamedTuple

from pdojo.build.graph import Computed, Definition, Read, Write
from pdojo.build.sizes import Open, expression_of, greatest
from pdojo.dialect.affine import var
from pdojo.dialect.functions import identity_value
from pdojo.dialect.view.nest import Constant

WHOLE, WHOLE_OF_PRODUCTS = 4096, 16384
"""Most terms of a sum that is not in parts; blocks of results compute sums of products faster whole than in few parts.
"""
PART = 2048
"""Most terms of a part; vectors of partial results are added up once for all of them."""
VECTORS = 64
"""Parts of a multiple of so many terms are whole vectors of all machines."""
MOST_RESULTS = 1 << 22
"""The number of partial results of a sum of products from which parts are longer than `PART`."""


class _Cut(NamedTuple):
    """The parts of a sum: one for each iteration of the scopes before one that is cut, and for each of its pieces."""

    scope: int
    """The scope that is cut; each part has all iterations of the later scopes."""
    size: int
    """Its iterations in a part; the last part may have less."""


def in_levels(
    writes: Mapping[Definition, tuple[Write, ...]],
) -> tuple[dict[Definition, tuple[Write, ...]], set[Definition]]:
    """The nests with every long sum of floating-point numbers in parts, and the arrays of the results of parts."""
    found: dict[Definition, tuple[Write, ...]] = {}
    parts: set[Definition] = set()
    for definition, nests in writes.items():
        made: list[Write] = []
        for nest in nests:
            rest = nest
            while (cut := _cut_of(rest)) is not None:
                of_parts, rest = _of_parts(rest, definition.dtype, cut)
                found[of_parts] = of_parts.writes
                parts.add(of_parts)
            made.append(rest)
        found[definition] = tuple(made)
    return found, parts


def _cut_of(write: Write) -> _Cut | None:
    """Where a sum is cut; None if it is short, running or of integers."""
    reduction = write.reduction
    if reduction is None or reduction.running or reduction.accumulate != "arith.addf":
        return None
    extents, is_of_products = greatest(write.extents), isinstance(write.value, Computed)
    whole = WHOLE_OF_PRODUCTS if is_of_products else WHOLE
    if prod(extents[write.outer :]) <= whole:
        return None
    part = min(whole, max(PART, prod(extents) // MOST_RESULTS)) if is_of_products else PART
    scope, terms = len(extents) - 1, 1
    while terms * extents[scope] <= part:
        terms *= extents[scope]
        scope -= 1
    return _Cut(scope, _size(write.extents[scope], part // terms))


def _size(extent: int, most: int) -> int:
    """The iterations of a piece: of equal pieces at least half as long as allowed, if there are any for all sizes."""
    equal = [size for size in range(most, most // 2, -1) if extent % size == 0]
    return max(equal, key=lambda size: (gcd(size, VECTORS), size), default=most)


def _of_parts(write: Write, dtype: str, cut: _Cut) -> tuple[Definition, Write]:
    """The array of the results of the parts, and the sum of these."""
    assert write.reduction is not None
    scopes = _arranged(write, cut.scope)
    extent = write.extents[cut.scope]
    count, left = divmod(extent, cut.size)
    start = Constant(identity_value(write.reduction.accumulate, dtype), dtype)
    begun = replace(write, reduction=replace(write.reduction, initial=start))
    nests = [_pieces(begun, cut, scopes, 0, count, cut.size)]
    # A rest that depends on sizes may have no terms, and then adds nothing.
    has_rest = isinstance(left, Open) or left > 0
    if has_rest:
        nests.append(_pieces(begun, cut, scopes, count, 1, left))
    extents = (*write.extents[: cut.scope], count + has_rest)
    of_parts = Definition(dtype, tuple(extents[d] for d in scopes), tuple(nests))
    index = tuple(var(d).substitute({}, greatest(extents)) for d in scopes)
    guard = tuple(e for e in write.guard if all(d < write.outer for d in e.variables()))
    reduction = replace(write.reduction, rank=len(extents) - write.outer)
    return of_parts, Write(extents, write.target, Read(of_parts, index), guard, reduction, write.loop)


def _pieces(write: Write, cut: _Cut, scopes: Sequence[int], start: int, count: int, size: int) -> Write:
    """The nest of `count` parts from `start` on, whose pieces of the scope that is cut have `size` iterations."""
    place = scopes.index(cut.scope)
    former = [var(scopes.index(d)) for d in range(cut.scope)]
    former += [(var(place) + expression_of(start)) * cut.size + var(len(scopes))]
    former += [var(d + 1) for d in range(cut.scope + 1, len(write.extents))]
    outer = [count if d == cut.scope else write.extents[d] for d in scopes]
    extents = (*outer, size, *write.extents[cut.scope + 1 :])
    made = write.reindexed(extents, former, len(extents) - len(outer))
    target = [var(k) + (expression_of(start) if k == place else 0) for k in range(len(outer))]
    box = greatest(extents)
    return replace(made, target=tuple(e.substitute({}, box) for e in target))


def _arranged(write: Write, last: int) -> list[int]:
    """The scopes up to `last`, in the order of dimensions of the array with the partial results.

    It is the order of the terms in memory. Products have no such order: the results of a part lie together.
    """
    first = [] if write.loop is None else [0]
    if not isinstance(write.value, Read):
        return list(dict.fromkeys([*first, *range(write.outer, last + 1), *range(write.outer)]))
    dimensions = {d: k for k, e in reversed([*enumerate(write.value.index)]) for d in e.variables()}
    return list(dict.fromkeys([*first, *sorted(range(last + 1), key=lambda d: dimensions.get(d, 0))]))

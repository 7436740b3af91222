"""Nests in their shortest form: affine indices where splitting scopes makes them so, no scopes of one iteration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pdojo.build.graph import Read, Write, expressions
from pdojo.build.sizes import Open, greatest
from pdojo.dialect.affine import Div, Expr, const, floordiv, modulo, var


def straight(nest: Write) -> Write:
    """The nest with affine indices where splitting its scopes makes them so, and without scopes of one iteration.

    A copy runs over the elements of its source, in their order.
    """
    nest = _split(_without_units(nest))
    copy = by_source(nest) if nest.is_copy and nest.loop is None else None
    return nest if copy is None else _split(_without_units(copy))


def by_source(copy: Write) -> Write | None:
    """The copy over the elements of its source; None if it does not read each of them once."""
    assert isinstance(copy.value, Read)
    shape = copy.value.definition.shape
    box = greatest(shape)
    replacements: dict[int, Expr] = {}
    for axis, (expression, extent) in enumerate(zip(copy.value.index, shape, strict=True)):
        # The digits of the index: every scope counts blocks, which the scopes with smaller factors run over.
        stride = 1
        if not expression.is_linear:
            return None
        for depth, factor in sorted(expression.terms, key=lambda term: term[1]):
            if factor != stride or not isinstance(depth, int) or depth in replacements:
                return None
            digit, count = floordiv(var(axis), stride, box), copy.extents[depth]
            # An extent that depends on sizes has the last digit: no index has a factor that depends on them.
            replacements[depth] = digit if isinstance(count, Open) else modulo(digit, count, box)
            stride *= count
        if stride != extent:
            return None
    if len(replacements) < len(copy.extents):
        return None
    return copy.reindexed(shape, [replacements[depth] for depth in range(len(copy.extents))], 0)


def split_at(nest: Write, depth: int, inner: int) -> Write:
    """The nest with one scope as two, of which the inner one has `inner` iterations."""
    count = len(nest.extents)
    extents = (*nest.extents[:depth], nest.extents[depth] // inner, inner, *nest.extents[depth + 1 :])
    parts = [var(d + (d > depth)) for d in range(count)]
    parts[depth] = var(depth) * inner + var(depth + 1)
    return nest.reindexed(extents, parts, count - nest.outer + (depth >= nest.outer))


def divisions_of(nest: Write) -> int:
    """The number of divisions in the index expressions of a nest."""
    return sum(_divisions(expression) for expression in expressions(nest))


def _without_units(nest: Write) -> Write:
    """The nest without scopes of one iteration; a reduction of no elements is its initial value."""
    if nest.reduction is not None and 0 in nest.extents:
        target = nest.target
        return _without_units(Write(nest.extents[: nest.outer], target, nest.reduction.initial, nest.guard))
    kept = [d for d, extent in enumerate(nest.extents) if extent != 1]
    replacements = [var(kept.index(d)) if d in kept else const(0) for d in range(len(nest.extents))]
    return nest.reindexed([nest.extents[d] for d in kept], replacements, sum(d >= nest.outer for d in kept))


def _split(nest: Write) -> Write:
    """The nest with scopes split in two as long as this removes divisions from its index expressions."""
    while True:
        divisions = divisions_of(nest)
        for candidate in _splits(nest) if divisions else ():
            if divisions_of(candidate) < divisions:
                nest = candidate
                break
        else:
            return nest


def _divisions(expression: Expr) -> int:
    atoms = (atom for atom, _ in expression.terms if not isinstance(atom, int))
    return sum(isinstance(atom, Div) + sum(map(_divisions, atom.operands)) for atom in atoms)


def _splits(nest: Write) -> Iterator[Write]:
    """The nest with one scope split at a divisor of an index expression."""
    found = [place for expression in expressions(nest) for place in _places(expression, nest.extents)]
    places = dict.fromkeys(place for place in found if place[0] or nest.loop is None)
    for depth, inner in places:
        yield split_at(nest, depth, inner)


def _places(expression: Expr, extents: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Scopes, and numbers of iterations of their inner parts, at which a division may become exact."""
    for atom, _ in expression.terms:
        if isinstance(atom, int):
            continue
        for variable, factor in atom.numerator.terms if isinstance(atom, Div) else ():
            if isinstance(atom, Div) and isinstance(variable, int) and factor > 0 and atom.divisor % factor == 0:
                inner = atom.divisor // factor
                if 1 < inner < greatest(extents)[variable] and extents[variable] % inner == 0:
                    yield variable, inner
        for operand in atom.operands:
            yield from _places(operand, extents)

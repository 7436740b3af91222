"""Axes of temporaries and scopes over them, in the parts and the order in which other nests run over them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from pdojo.build.graph import Computed, Definition, Operand, Read, Write, reads
from pdojo.build.sizes import greatest
from pdojo.build.straight import divisions_of, split_at
from pdojo.dialect.affine import Expr, floordiv, modulo, var

_Axes: TypeAlias = dict[tuple[Definition, int], int]
"""Axes of arrays, and the iterations of the inner one of two scopes that run over them."""


def split_alike(
    writes: dict[Definition, tuple[Write, ...]], outputs: Collection[Definition], of_parts: Collection[Definition]
) -> dict[Definition, tuple[Write, ...]]:
    """Split scopes and axes of temporaries where nests write an axis in two scopes: moves can join nests then.

    Innermost scopes stay whole. If a sum is in parts, the nests of its terms are split like the nests of the arrays
    `of_parts`, including innermost scopes, and their axes stay whole.
    """
    axes, parts = _Axes(), _Axes()
    changed = True
    while changed:
        for each, nests in writes.items():
            for nest in nests:
                found = _axes_in_parts(nest, each, parts, of_parts)
                parts |= {place: size for place, size in found.items() if place[0] in writes}
                axes |= _split_axes(nest, each)
        before = dict(writes)
        for each, nests in before.items():
            writes[each] = tuple(_split_at_axes(nest, each, axes | parts, parts) for nest in nests)
        changed = writes != before
    for definition in dict.fromkeys(definition for definition, _ in axes):
        split = {place[1]: size for place, size in axes.items() if place[0] is definition and place not in parts}
        if definition not in outputs:
            writes = _with_split_axes(writes, definition, split)
    return writes


def in_order_of_readers(
    writes: dict[Definition, tuple[Write, ...]], outputs: Collection[Definition]
) -> dict[Definition, tuple[Write, ...]]:
    """Temporaries that every reader runs over in another order get this order in memory, and their nests too.

    The order of a sum's scopes, results before terms, counts for windows only: if each axis has a scope of the results.
    Nests that compute an array whose axes keep their order run in this order.
    """
    for definition in reversed(tuple(writes)):
        nests = writes[definition]
        if definition.keeps_order:
            writes[definition] = tuple(nest if nest.is_copy else _in_order_of_target(nest) for nest in nests)
            continue
        found = [
            (read.index, nest)
            for others in writes.values()
            for nest in others
            for read in nest.reads()
            if read.definition is definition and nest.is_windowed(read.index)
        ]
        orders = {_order_of(index, nest) for index, nest in found}
        order = orders.pop() if len(orders) == 1 else None
        sums = any(nest.reduction for nest in nests)
        if (
            definition in outputs
            or order is None
            or order == tuple(sorted(order))
            or any(_is_running(nest) or nest.loop is not None or nest.is_scatter for nest in nests)
            or (sums and (_is_same(order, definition) or any(_is_part(index, definition) for index, _ in found)))
        ):
            continue
        shape = [definition.shape[axis] for axis in order]
        writes, renamed = _relaid(writes, definition, shape, lambda index, _, order=order: [index[d] for d in order])
        writes[renamed] = tuple(map(_in_order_of_target, writes[renamed]))
    return writes


def _with_split_axes(
    writes: dict[Definition, tuple[Write, ...]], definition: Definition, sizes: Mapping[int, int]
) -> dict[Definition, tuple[Write, ...]]:
    """The nests with axes of a temporary as two each; the nests as they are if this takes divisions."""
    shape = [
        part
        for axis, extent in enumerate(definition.shape)
        for part in ((extent // sizes[axis], sizes[axis]) if axis in sizes else (extent,))
    ]

    def place(index: Sequence[Expr], extents: Sequence[int]) -> Iterator[Expr]:
        for axis, each in enumerate(index):
            if axis in sizes:
                yield floordiv(each, sizes[axis], greatest(extents))
                yield modulo(each, sizes[axis], greatest(extents))
            else:
                yield each

    found, _ = _relaid(writes, definition, shape, place)
    before, after = (sum(divisions_of(nest) for nests in each.values() for nest in nests) for each in (writes, found))
    return found if after <= before else writes


def _relaid(
    writes: dict[Definition, tuple[Write, ...]],
    definition: Definition,
    shape: Sequence[int],
    place: Callable[[Sequence[Expr], Sequence[int]], Iterable[Expr]],
) -> tuple[dict[Definition, tuple[Write, ...]], Definition]:
    """The nests with a new temporary in the place of one, and the new one; `place` gives its index for the former."""
    renamed = Definition(definition.dtype, tuple(shape), keeps_order=definition.keeps_order)

    def operand(given: Operand, extents: Sequence[int]) -> Operand:
        match given:
            case Read(source, index) if source is definition:
                return Read(renamed, tuple(place(index, extents)))
            case Computed(function, operands, dtype):
                return Computed(function, tuple(operand(each, extents) for each in operands), dtype)
            case _:
                return given

    found: dict[Definition, tuple[Write, ...]] = {}
    for each, nests in writes.items():
        made = [replace(nest, value=operand(nest.value, nest.extents)) for nest in nests]
        if each is definition:
            made = [replace(nest, target=tuple(place(nest.target, nest.extents))) for nest in made]
        found[renamed if each is definition else each] = tuple(made)
    return found, renamed


def _is_part(index: Sequence[Expr], definition: Definition) -> bool:
    """Whether a nest reads one element along an axis that has several."""
    return any(not e.terms and extent != 1 for e, extent in zip(index, definition.shape, strict=True))


def _is_same(order: Sequence[int], definition: Definition) -> bool:
    """Whether an order of axes moves no elements: axes of one element do not count."""
    return (several := [axis for axis in order if definition.shape[axis] != 1]) == sorted(several)


def _order_of(index: Sequence[Expr], nest: Write) -> tuple[int, ...] | None:
    """The axes of an array in the order of the scopes of results that run over them.

    None if such a scope is not the index of one axis, but for windows.
    """
    places: dict[int, int] = {}
    units: list[int] = []
    for axis, expression in enumerate(index):
        match [(atom, factor) for atom, factor in expression.terms if atom not in range(nest.outer, len(nest.extents))]:
            case [(int(depth), factor)] if depth not in places and (factor == 1 or nest.reduction is not None):
                places[depth] = axis
            case []:
                units.append(axis)
            case _:
                return None
    return (*units, *(places[depth] for depth in sorted(places))) if len(places) == nest.outer else None


def _in_order_of_target(nest: Write) -> Write:
    """The nest with its scopes in the order of the axes that they run over; those of a sum's terms stay last."""
    order = [atom for expression in nest.target for atom, _ in sorted(expression.terms, key=lambda term: -term[1])]
    scopes = [atom for atom in order if isinstance(atom, int)]
    if sorted(scopes) != list(range(nest.outer)) or _is_running(nest) or nest.loop is not None:
        return nest
    scopes += range(nest.outer, len(nest.extents))
    parts = [var(scopes.index(depth)) for depth in range(len(nest.extents))]
    return nest.reindexed([nest.extents[depth] for depth in scopes], parts, len(nest.extents) - nest.outer)


def _accesses(nest: Write, written: Definition) -> Iterator[tuple[Definition, tuple[Expr, ...]]]:
    yield written, nest.target
    for read in nest.reads():
        yield read.definition, read.index


def _split_axes(nest: Write, written: Definition) -> _Axes:
    """The axes of the array written that the nest runs over in two scopes."""
    return {(written, axis): nest.extents[inner] for axis, (_, inner) in _in_two(nest, written, nest.target)}


def _axes_in_parts(nest: Write, written: Definition, known: _Axes, of_parts: Collection[Definition]) -> _Axes:
    """The axes that the scopes of a part of a sum run over: the nest's own axes, or the axes `known`."""
    found = [
        ((definition, axis), scopes)
        for definition, index in _accesses(nest, written)
        for axis, scopes in _in_two(nest, definition, index)
    ]
    pairs = {scopes for place, scopes in found if place in known}
    if written in of_parts:
        whole = {read.definition for read in reads(nest.value) if _is_of_all(read, nest)}
        pairs |= {(o, i) for (definition, _), (o, i) in found if definition in whole and o < nest.outer <= i}
    return {place: nest.extents[scopes[1]] for place, scopes in found if scopes in pairs}


def _is_of_all(read: Read, nest: Write) -> bool:
    """Whether all scopes of a nest index what it reads."""
    return {depth for expression in read.index for depth in expression.variables()} == set(range(len(nest.extents)))


def _in_two(nest: Write, definition: Definition, index: Sequence[Expr]) -> Iterator[tuple[int, tuple[int, int]]]:
    """The axes of an array that the nest runs over in two scopes, with the outer and the inner one."""
    for axis, expression in enumerate(index):
        match sorted(expression.terms, key=lambda term: term[1]):
            case [(int(inner), 1), (int(outer), size)] if (
                not expression.constant
                and nest.extents[inner] == size
                and nest.extents[outer] * size == definition.shape[axis]
            ):
                yield axis, (outer, inner)
            case _:
                pass


def _split_at_axes(nest: Write, written: Definition, inner: _Axes, parts: _Axes) -> Write:
    """The nest; a scope over an axis that two scopes of other nests run over is split."""
    for definition, index in _accesses(nest, written):
        for axis, expression in enumerate(index):
            size = inner.get((definition, axis), 0)
            match expression.terms:
                case ((int(depth), 1),) if size and not expression.constant:
                    extent = nest.extents[depth]
                    if (
                        (depth < len(nest.extents) - 1 or (definition, axis) in parts)
                        and extent == definition.shape[axis]
                        and not (nest.loop and not depth)
                    ):
                        return split_at(nest, depth, size)
                case _:
                    pass
    return nest


def _is_running(nest: Write) -> bool:
    return nest.reduction is not None and nest.reduction.running

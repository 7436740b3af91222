"""The nests of a kernel: which definitions become arrays, which nests write them, and in which order.

Every definition that an output needs becomes an array, with these exceptions. A product that only a sum takes, element
by element, is computed in the nest of the sum, where a move can contract both. An array that is only copied somewhere
is written there. An array whose last use is an update of every element is updated in place. Long sums are in levels
(`levels.py`), and the nests of their terms run over the parts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from pdojo.build.graph import (
    Computed,
    Definition,
    Indices,
    Operand,
    Read,
    Write,
    entries_in,
    expressions,
    identity,
    reads,
    within,
)
from pdojo.build.levels import in_levels
from pdojo.build.sizes import Open, greatest
from pdojo.dialect.affine import Div, Expr, const, floordiv, modulo, var
from pdojo.math.functions import FUNCTIONS, Signature

_Axes: TypeAlias = dict[tuple[Definition, int], int]
"""Axes of arrays, and the iterations of the inner one of two scopes that run over them."""


@dataclass(frozen=True)
class Plan:
    """The nests of a kernel."""

    writes: dict[Definition, tuple[Write, ...]]
    """Nests, keyed by the array that they write, in the order of execution."""
    hosts: dict[Definition, Definition]
    """Arrays updated in place, and the earlier arrays in whose memory they live."""


def plan(outputs: Collection[Definition]) -> Plan:
    """The nests that write the outputs, and the arrays that these need."""
    order = _constants_first(needed(outputs))
    writes = {each: each.writes for each in order if not each.is_input}
    _take_products_inside(writes, outputs)
    for each, nests in writes.items():
        writes[each] = tuple(straight(nest) for nest in nests if 0 not in nest.extents[: nest.outer])
    writes, of_parts = in_levels(writes)
    for each in of_parts:
        writes[each] = tuple(map(straight, writes[each]))
    _write_where_copied(writes, outputs)
    writes = _in_order_of_readers(_split_alike(writes, outputs, of_parts), outputs)
    return Plan(writes, _hosts(writes, outputs))


def needed(outputs: Iterable[Definition]) -> list[Definition]:
    """The outputs and all definitions that they need, in the order of creation."""
    found: set[Definition] = set()
    waiting = list(outputs)
    while waiting:
        if (each := waiting.pop()) not in found:
            found.add(each)
            waiting += [read.definition for write in each.writes if 0 not in write.extents for read in write.reads()]
    return sorted(found, key=lambda each: each.serial)


def index_ranges(outputs: Sequence[Operand]) -> dict[Definition, list[Indices]]:
    """The inputs whose elements are indices in what outputs need, each with its ranges in the order of their use."""
    made = needed(read.definition for output in outputs for read in reads(output))
    nests = [write for each in made for write in each.writes if 0 not in write.extents]
    shown = [*(e for nest in nests for e in expressions(nest)), *(e for output in outputs for e in within(output))]
    found: dict[Definition, list[Indices]] = {}
    for table in dict.fromkeys(table for table, _ in entries_in(shown)):
        found.setdefault(table.definition, []).append(table)
    return found


def _constants_first(order: Sequence[Definition]) -> list[Definition]:
    """The definitions that depend on constant inputs or numbers only, then the others: nests to join are neighbours."""
    constant: set[Definition] = set()
    for each in order:
        read = [read.definition for write in each.writes for read in write.reads()]
        is_known = not each.is_input and constant.issuperset(read) and (read or each.shape == ())
        if each.constant or is_known:
            constant.add(each)
    return sorted(order, key=lambda each: each not in constant)


def _uses(writes: dict[Definition, tuple[Write, ...]]) -> Counter[Definition]:
    """The number of reads of each definition."""
    return Counter(read.definition for nests in writes.values() for nest in nests for read in nest.reads())


def _take_products_inside(writes: dict[Definition, tuple[Write, ...]], outputs: Collection[Definition]) -> None:
    """Compute `x * y` in the nest of its only use, the first operand of a sum of the same shape."""
    uses = _uses(writes)
    for each, nests in tuple(writes.items()):
        match nests:
            case (Write(extents, _, Computed("arith.addf", (Read(product, index), other), dtype), (), None) as write,):
                match writes.get(product):
                    case (Write(_, _, Computed("arith.mulf") as value, (), None),) if (
                        uses[product] == 1 and product not in outputs and index == identity(extents) == write.target
                    ):
                        writes[each] = (replace(write, value=Computed("arith.addf", (value, other), dtype)),)
                        del writes[product]
                    case _:
                        pass
            case _:
                pass


def _write_where_copied(writes: dict[Definition, tuple[Write, ...]], outputs: Collection[Definition]) -> None:
    """Write an array to the destination of its copy, if a copy of all elements is its only use."""
    uses = _uses(writes)
    for each in tuple(writes):
        nests: list[Write] = []
        for copy in writes[each]:
            source = copy.value.definition if copy.is_copy and isinstance(copy.value, Read) else None
            if (
                source not in writes
                or source in outputs
                or uses[source] > 1
                or any(nest.loop is not copy.loop or _reads(nest, each) for nest in writes[source])
            ):
                nests.append(copy)
                continue
            whole = by_source(copy)
            if whole is None:
                nests.append(copy)
                continue
            nests += [straight(_redirected(nest, whole)) for nest in writes.pop(source)]
        writes[each] = tuple(nests)


def _reads(nest: Write, definition: Definition) -> bool:
    return any(read.definition is definition for read in nest.reads())


def _redirected(nest: Write, copy: Write) -> Write:
    """A nest that writes where `copy`, whose iterations are the elements of the nest's array, copies to."""
    replacements = dict(enumerate(nest.target))
    box = greatest(nest.extents)
    return replace(nest, target=tuple(e.substitute(replacements, box) for e in copy.target))


def _hosts(
    writes: dict[Definition, tuple[Write, ...]], outputs: Collection[Definition]
) -> dict[Definition, Definition]:
    """The arrays that live in the memory of others: `e = exp(e)`.

    The results of casts are kept as they are. An output is finished in place if it begins as a reduction.
    """
    uses, hosts = _uses(writes), dict[Definition, Definition]()
    for each, nests in writes.items():
        match nests:
            case (Write(_, target, Computed(_, (Read(first, index), *_)) as value, _, None),):
                own = [read for read in reads(value) if read.definition is first]
                if (
                    first in writes
                    and first not in outputs
                    and not any(_is_cast(nest.value) for nest in writes[first])
                    and (first.shape, first.dtype) == (each.shape, each.dtype)
                    and len(own) == uses[first]
                    and all(read.index == target == index for read in own)
                ):
                    if each not in outputs:
                        hosts[each] = hosts.get(first, first)
                    elif any(nest.reduction is not None for nest in writes[first]):
                        hosts[first] = each
            case _:
                pass
    return hosts


def _is_cast(value: Operand) -> bool:
    return isinstance(value, Computed) and FUNCTIONS[value.function].signature is Signature.CAST


def straight(nest: Write) -> Write:
    """The nest with affine indices where splitting its scopes makes them so, and without scopes of one iteration.

    A copy runs over the elements of its source, in their order.
    """
    nest = _split(_without_units(nest))
    copy = by_source(nest) if nest.is_copy and nest.loop is None else None
    return nest if copy is None else _split(_without_units(copy))


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
        divisions = _divisions_of(nest)
        for candidate in _splits(nest) if divisions else ():
            if _divisions_of(candidate) < divisions:
                nest = candidate
                break
        else:
            return nest


def _divisions_of(nest: Write) -> int:
    return sum(_divisions(expression) for expression in expressions(nest))


def _divisions(expression: Expr) -> int:
    atoms = (atom for atom, _ in expression.terms if not isinstance(atom, int))
    return sum(isinstance(atom, Div) + sum(map(_divisions, atom.operands)) for atom in atoms)


def _splits(nest: Write) -> Iterator[Write]:
    """The nest with one scope split at a divisor of an index expression."""
    found = [place for expression in expressions(nest) for place in _places(expression, nest.extents)]
    places = dict.fromkeys(place for place in found if place[0] or nest.loop is None)
    for depth, inner in places:
        yield _split_at(nest, depth, inner)


def _split_at(nest: Write, depth: int, inner: int) -> Write:
    """The nest with one scope as two, of which the inner one has `inner` iterations."""
    count = len(nest.extents)
    extents = (*nest.extents[:depth], nest.extents[depth] // inner, inner, *nest.extents[depth + 1 :])
    parts = [var(d + (d > depth)) for d in range(count)]
    parts[depth] = var(depth) * inner + var(depth + 1)
    return nest.reindexed(extents, parts, count - nest.outer + (depth >= nest.outer))


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


def _split_alike(
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
    before, after = (sum(_divisions_of(nest) for nests in each.values() for nest in nests) for each in (writes, found))
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


def _in_order_of_readers(
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


def _is_part(index: Sequence[Expr], definition: Definition) -> bool:
    """Whether a nest reads one element along an axis that has several."""
    return any(not e.terms and extent != 1 for e, extent in zip(index, definition.shape, strict=True))


def _is_same(order: Sequence[int], definition: Definition) -> bool:
    """Whether an order of axes moves no elements: axes of one element do not count."""
    return (several := [axis for axis in order if definition.shape[axis] != 1]) == sorted(several)


def _is_running(nest: Write) -> bool:
    return nest.reduction is not None and nest.reduction.running


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
                        return _split_at(nest, depth, size)
                case _:
                    pass
    return nest


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

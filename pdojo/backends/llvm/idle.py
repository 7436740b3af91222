"""Elements in the frame that only idle lanes access: a masked store may overwrite them instead of keeping them.

Keeping them would cost a blend per masked store, and make the vectors of an iteration depend on the previous one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import TypeAlias

from pdojo.backends.common.addresses import bind
from pdojo.dialect.affine import Expr
from pdojo.dialect.attributes import Mapping as ScopeMapping
from pdojo.dialect.lookups import lookups_in, sizes_in
from pdojo.dialect.table import Table
from pdojo.dialect.view.nest import Access, Buffer, Leaf, Nest
from pdojo.dialect.view.storage import accesses_of, physical_index, physical_shape

MOST_INSTANCES = 4096
"""Most instances of an access that are enumerated; elements of a buffer with more instances are kept."""

_Constants: TypeAlias = Mapping[int, int]
_Condition: TypeAlias = tuple[tuple[int, ...], Expr]
"""A factor for each dimension, and an expression of sizes: the products with a place, and it, add up to 0 or more."""
_STATIC = (ScopeMapping.UNROLL, ScopeMapping.VECTOR)


@dataclass(frozen=True)
class _Touched:
    """Positions that active lanes may access, in those dimensions that only unrolled scopes and lanes index."""

    shape: tuple[int, ...]
    """The extents of all dimensions in memory."""
    dimensions: tuple[int, ...]
    places: frozenset[tuple[int, ...]]


@dataclass(eq=False)
class IdleLanes:
    """Knowledge about the idle lanes of a program."""

    nest: Nest
    _masked: dict[Buffer, bool] = field(default_factory=dict[Buffer, bool])
    _touched: dict[Buffer, _Touched | None] = field(default_factory=dict[Buffer, "_Touched | None"])
    _required: dict[Buffer, frozenset[_Condition | None] | None] = field(
        default_factory=dict[Buffer, "frozenset[_Condition | None] | None"]
    )
    """The conditions of places that all reads of a buffer have; None if there are no reads."""

    def touch(self, buffer: Buffer) -> bool:
        """Whether guards mask lanes of any access to a buffer."""
        if buffer not in self._masked:
            self._masked[buffer] = any(_is_masked(*use) for use in accesses_of(self.nest, buffer))
        return self._masked[buffer]

    def may_be_written(self, access: Access, leaf: Leaf, known: _Constants) -> bool:
        """Whether each lane of a store is active, or stores to an element that no active lane of any access uses.

        `known` has the values of the unrolled scopes' variables. A lane of the store is active.
        """
        if self._is_unread(access, leaf):
            return True
        buffer, lanes = access.array.buffer, leaf.chain[-1]
        if buffer not in self._touched:
            self._touched[buffer] = self._find(buffer)
        touched = self._touched[buffer]
        if touched is None:
            return False
        index, shape = physical_index(access, leaf.chain), touched.shape
        extents = leaf.extents
        for dimension, expression in enumerate(index):
            low, high = expression.bounds(extents)
            if dimension not in touched.dimensions and (low < 0 or high >= shape[dimension]):
                return False
        for lane in range(lanes.extent):
            constants = {**known, lanes.depth: lane}
            if all(low >= 0 for low, _ in _guards(leaf, constants)):
                continue
            place = _values([index[d] for d in touched.dimensions], constants, extents)
            if place is None:
                return False  # an unrolled scope whose loop would be too long to unroll
            within = all(0 <= value < shape[d] for d, value in zip(touched.dimensions, place, strict=True))
            if not within or place in touched.places:
                return False
        return True

    def _is_unread(self, access: Access, leaf: Leaf) -> bool:
        """Whether all reads have the guards that make lanes of a store idle, and so read no element of an idle lane.

        The guards are compared as conditions of an element's place, whatever sizes they depend on.
        """
        buffer, lanes = access.array.buffer, leaf.chain[-1]
        index, shape = physical_index(access, leaf.chain), physical_shape(self.nest, buffer)
        ends = [(*each.bounds(leaf.extents), n) for each, n in zip(index, shape, strict=True) if each.uses(lanes.depth)]
        if any(low < 0 or high >= extent for low, high, extent in ends):
            return False
        if buffer not in self._required:
            # An accumulation brings nothing of an element to another one.
            users = dict.fromkeys(user for user, _ in accesses_of(self.nest, buffer))
            reads = [(user, read) for user in users for read in user.reads if read.array.buffer is buffer]
            found = [{_of_place(g, physical_index(read, u.chain)) for g in u.guards} - {None} for u, read in reads]
            self._required[buffer] = frozenset.intersection(*map(frozenset, found)) if found else None
        required = self._required[buffer]
        masks = [_of_place(guard, index) for guard in leaf.guards if guard.uses(lanes.depth)]
        return required is None or required.issuperset(masks)

    def _find(self, buffer: Buffer) -> _Touched | None:
        accesses = [(leaf, physical_index(access, leaf.chain)) for leaf, access in accesses_of(self.nest, buffer)]
        dimensions = tuple(
            d for d in range(len(buffer.shape)) if all(_is_static(index[d], leaf) for leaf, index in accesses)
        )
        places: set[tuple[int, ...]] = set()
        for leaf, index in accesses:
            used = sorted({v for d in dimensions for v in index[d].variables()} | _guarding(leaf))
            if prod(leaf.chain[v].extent for v in used) > MOST_INSTANCES:
                return None
            for constants in _instances(leaf, used):
                if all(high >= 0 for _, high in _guards(leaf, constants)):
                    place = _values([index[d] for d in dimensions], constants, leaf.extents)
                    assert place is not None, "all variables are known"
                    places.add(place)
        return _Touched(physical_shape(self.nest, buffer), dimensions, frozenset(places))


def _of_place(guard: Expr, index: Sequence[Expr]) -> _Condition | None:
    """A guard as a condition of the place that is accessed; None if the place does not determine it."""
    factors: list[int] = []
    for place in index:
        variable, step = next(((atom, c) for atom, c in place.terms if isinstance(atom, int)), (-1, 1))
        factors.append(dict(guard.terms).get(variable, 0) // step)
        guard -= place * factors[-1]
    return None if guard.variables() else (tuple(factors), guard)


def _is_masked(leaf: Leaf, access: Access) -> bool:
    lanes = leaf.parent
    if lanes is None or lanes.mapping is not ScopeMapping.VECTOR:
        return False
    return any(e.uses(lanes.depth) for e in access.index) and any(g.uses(lanes.depth) for g in leaf.guards)


def _is_static(expression: Expr, leaf: Leaf) -> bool:
    """Whether unrolled and vector scopes alone determine an expression: no sizes, no indices of callers."""
    is_known = not sizes_in([expression]) and all(isinstance(f.table, Table) for f in lookups_in([expression]))
    return is_known and all(leaf.chain[v].mapping in _STATIC for v in expression.variables())


def _guarding(leaf: Leaf) -> set[int]:
    """The unrolled scopes and vector scopes that the guards around a statement use."""
    used = {v for guard in leaf.guards for v in guard.variables()}
    return {v for v in used if leaf.chain[v].mapping in _STATIC}


def _instances(leaf: Leaf, variables: Sequence[int]) -> Iterator[dict[int, int]]:
    for values in product(*(range(leaf.chain[v].extent) for v in variables)):
        yield dict(zip(variables, values, strict=True))


def _guards(leaf: Leaf, constants: _Constants) -> Iterator[tuple[int, int]]:
    """The bounds of each guard around a statement; a guard holds if it is at least 0."""
    for guard in leaf.guards:
        yield bind(guard, constants, leaf.extents).bounds(leaf.extents)


def _values(index: Sequence[Expr], constants: _Constants, extents: Sequence[int]) -> tuple[int, ...] | None:
    """The values of the expressions for these constants; None if a value depends on other variables."""
    values = [bind(expression, constants, extents) for expression in index]
    return tuple(value.constant for value in values) if all(value.is_constant for value in values) else None

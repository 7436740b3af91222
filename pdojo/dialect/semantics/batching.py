"""The interpreter's test for scopes that can be distributed over their statements and vectorised (conservative)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import gcd
from typing import NamedTuple

from pdojo.dialect.affine import Atom, Expr, atom_variables, const, linear
from pdojo.dialect.semantics.slicing import Slices, slices_of
from pdojo.dialect.view.nest import Access, Array, Buffer, Leaf, Nest, Scope
from pdojo.dialect.view.storage import accesses_of, cell_of, copy_depths


@dataclass(frozen=True, eq=False)
class Home:
    """The memory of an array: its own memory (elements), or its buffer's (cells)."""

    dtype: str
    shape: tuple[int, ...]
    low: tuple[int, ...]
    """Per dimension, the index at place 0."""


class Layout:
    """The interpreter's memory: the homes of arrays, and the places of accesses as expressions."""

    def __init__(self, nest: Nest, *, cells: bool) -> None:
        self.cells = cells
        self.slices: Mapping[Array, Slices] = {} if cells else slices_of(nest)
        """Temporaries of which one slice is stored, as the semantics, which concerns elements, permits."""
        self.loops = [scope for each in self.slices.values() for scope in each.scopes]
        """The scopes whose iterations share slices."""
        self.copies: dict[Buffer, tuple[int, ...]] = {}
        """Per buffer, the depths of the threaded scopes whose iterations each have their own copy."""
        self.homes: dict[Array | Buffer, Home] = {}
        for array in nest.arrays.values():
            if self.key(array) not in self.homes:
                self.homes[self.key(array)] = self._home(nest, array)

    def key(self, array: Array) -> Array | Buffer:
        """The key of an array's memory: the array for elements, its buffer for cells."""
        return array.buffer if self.cells else array

    def home(self, array: Array) -> Home:
        """The memory of an array."""
        return self.homes[self.key(array)]

    def _home(self, nest: Nest, array: Array) -> Home:
        buffer = array.buffer
        if not self.cells or not any(buffer.reuse):
            sliced = self._sliced(array)
            shape = tuple(1 if d in sliced else extent for d, extent in enumerate(array.shape))
            return Home(array.dtype, shape, (0,) * len(shape))
        accesses = accesses_of(nest, buffer)
        self.copies[buffer] = copies = copy_depths([(a, leaf.chain) for leaf, a in accesses], buffer.reuse)
        low = [0] * len(buffer.shape) + [-1] * len(copies)
        high = [slots or n for n, slots in zip(buffer.shape, buffer.reuse, strict=True)] + [0] * len(copies)
        for leaf, access in accesses:
            for dimension, place in enumerate(cell_of(access, leaf.chain, buffer.reuse, copies)):
                if dimension >= len(buffer.shape) or buffer.reuse[dimension] == 1:
                    first, last = place.bounds(leaf.extents)
                    low[dimension], high[dimension] = min(low[dimension], first), max(high[dimension], last + 1)
        return Home(array.dtype, tuple(b - a for a, b in zip(low, high, strict=True)), tuple(low))

    def index(self, access: Access, leaf: Leaf) -> tuple[Expr, ...]:
        """The index of an access in its home; with cells, the indices of the buffer's private copy follow."""
        index, buffer = access.index, access.array.buffer
        if self.cells and any(buffer.reuse):
            index = cell_of(access, leaf.chain, buffer.reuse, self.copies[buffer])
        elif sliced := self._sliced(access.array):
            index = tuple(const(0) if d in sliced else e for d, e in enumerate(index))
        return tuple(e - low for e, low in zip(index, self.home(access.array).low, strict=True))

    def _sliced(self, array: Array) -> frozenset[int]:
        """The dimensions of which only one index is stored."""
        return self.slices[array].dimensions if array in self.slices else frozenset()

    def address(self, access: Access, leaf: Leaf) -> Expr:
        """The row-major place of an access in its home."""
        place = const(0)
        for expression, extent in zip(self.index(access, leaf), self.home(access.array).shape, strict=True):
            place = place * extent + expression
        return place


def is_batchable(scope: Scope, layout: Layout) -> bool:
    """True if no two iterations touch one element, one of them writing, except for accumulations of one statement.

    The iterations of the enclosing scopes are the same for both. Such a scope can be distributed over its statements,
    and each statement computed for all iterations at once.
    """
    touched: dict[Array | Buffer, list[tuple[Leaf, Access]]] = {}
    for leaf in scope.leaves:
        for access in leaf.accesses:
            touched.setdefault(layout.key(access.array), []).append((leaf, access))
    return all(_is_separate(scope, accesses, layout) for accesses in touched.values())


def _is_separate(scope: Scope, accesses: Sequence[tuple[Leaf, Access]], layout: Layout) -> bool:
    if all(access is not leaf.output for leaf, access in accesses):
        return True
    if len(accesses) == 1 and accesses[0][0].accumulate is not None:
        return True
    indices = [(*layout.index(access, leaf), layout.address(access, leaf)) for leaf, access in accesses]
    extents = [leaf.extents for leaf, _ in accesses]
    return any(separates(scope, column, extents) for column in zip(*indices, strict=True))


def separates(scope: Scope, expressions: Sequence[Expr], extents: Sequence[Sequence[int]]) -> bool:
    """True if certainly no expression in one iteration of `scope` equals one in another iteration.

    Each expression is `outer + c * iv + big + small` with the same outer part and the same c. All coefficients of `big`
    are multiples of some g, and `small` takes less than |c| values, so iv is a digit of the value, of weight c. With
    w = max(small) - min(small), this holds if w < |c| and |c| * (extent - 1) + w < g.
    """
    if scope.extent == 1:
        return True
    depth = scope.depth
    factor = expressions[0].coefficient(depth)
    reach = abs(factor) * (scope.extent - 1)
    parts = [_split(expression, depth, reach) for expression in expressions]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or any(e.coefficient(depth) != factor for e in expressions):
        return False
    if any(part.outer != known[0].outer for part in known):
        return False
    bounds = [part.small.bounds(box) for part, box in zip(known, extents, strict=True)]
    width = max(high for _, high in bounds) - min(low for low, _ in bounds)
    step = gcd(*(c for part in known for _, c in part.big.terms))
    return width < abs(factor) and (step == 0 or reach + width < step)


class _Parts(NamedTuple):
    outer: Expr
    big: Expr
    small: Expr


def _split(expression: Expr, depth: int, reach: int) -> _Parts | None:
    """The parts of an expression for `separates`; None if the variable at `depth` is inside a division."""
    outer: list[tuple[Atom, int]] = []
    big: list[tuple[Atom, int]] = []
    small: list[tuple[Atom, int]] = []
    for atom, coefficient in expression.terms:
        if atom == depth:
            continue
        used = atom_variables(atom)
        if depth in used:
            return None
        part = outer if all(d < depth for d in used) else big if abs(coefficient) > reach else small
        part.append((atom, coefficient))
    return _Parts(linear(0, outer), linear(0, big), linear(expression.constant, small))

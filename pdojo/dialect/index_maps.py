"""The maps of a statement: its index expressions as affine maps over one list of dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from xdsl.dialects.builtin import AffineMapAttr, StringAttr
from xdsl.ir.affine import AffineMap

from pdojo.dialect.affine import Atom, Expr, Lookup, lookups_in, to_affine
from pdojo.dialect.attributes import LookupAttr


class IndexMaps:
    """Maps over the dimensions that some expressions need: their variables, then their lookups."""

    def __init__(self, expressions: Sequence[Expr]) -> None:
        self.used, found = _used(tuple(expressions))
        """The depths of the variables, outermost first."""
        self._dims: tuple[Atom, ...] = (*self.used, *found)
        self.lookups = [LookupAttr(StringAttr(each.table.name), self.of([each.operand])) for each in found]
        """The lookups, inner ones first."""

    def of(self, index: Sequence[Expr]) -> AffineMapAttr:
        """The map to the values of some of the expressions."""
        return _map(tuple(index), self._dims)


@lru_cache(maxsize=1 << 14)
def _used(expressions: tuple[Expr, ...]) -> tuple[tuple[int, ...], tuple[Lookup, ...]]:
    """The depths of the variables, and the lookups; most statements that a move makes have known expressions."""
    variables = frozenset[int]().union(*(e.variables() for e in expressions))
    return tuple(sorted(variables)), tuple(lookups_in(expressions))


@lru_cache(maxsize=1 << 14)
def _map(index: tuple[Expr, ...], dims: tuple[Atom, ...]) -> AffineMapAttr:
    """A map as an attribute; equal maps are mostly one object, which makes comparing operations fast."""
    positions = {atom: position for position, atom in enumerate(dims)}
    return AffineMapAttr(AffineMap(len(dims), 0, tuple(to_affine(e, positions) for e in index)))

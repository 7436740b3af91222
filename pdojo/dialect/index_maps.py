"""The maps of a statement: its index expressions as affine maps over one list of dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import AffineMapAttr, StringAttr
from xdsl.ir.affine import AffineMap

from pdojo.dialect.affine import Atom, Expr, lookups_in, to_affine
from pdojo.dialect.attributes import LookupAttr


class IndexMaps:
    """Maps over the dimensions that some expressions need: their variables, then their lookups."""

    def __init__(self, expressions: Sequence[Expr]) -> None:
        self.used = sorted(frozenset[int]().union(*(e.variables() for e in expressions)))
        """The depths of the variables, outermost first."""
        found = lookups_in(expressions)
        self._dims: dict[Atom, int] = {atom: position for position, atom in enumerate((*self.used, *found))}
        self.lookups = [LookupAttr(StringAttr(each.table.name), self.of([each.operand])) for each in found]
        """The lookups, inner ones first."""

    def of(self, index: Sequence[Expr]) -> AffineMapAttr:
        """The map to the values of some of the expressions."""
        return AffineMapAttr(AffineMap(len(self._dims), 0, tuple(to_affine(e, self._dims) for e in index)))

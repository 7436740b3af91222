"""The maps of a statement: its index expressions as affine maps over one list of dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from xdsl.dialects.builtin import DYNAMIC_INDEX, AffineMapAttr, MemRefType, NoneAttr, StridedLayoutAttr, StringAttr
from xdsl.ir import Attribute
from xdsl.ir.affine import AffineExpr, AffineMap

from pdojo.dialect.affine import Atom, Expr, Lookup, Size
from pdojo.dialect.affine_maps import to_affine
from pdojo.dialect.attributes import LookupAttr
from pdojo.dialect.functions import DTYPES
from pdojo.dialect.lookups import lookups_in, sizes_in
from pdojo.dialect.narrowing import is_memref
from pdojo.dialect.strides import Strides


class IndexMaps:
    """Maps over the dimensions that some expressions need: their variables, then their lookups; sizes are symbols."""

    def __init__(self, expressions: Sequence[Expr]) -> None:
        self.used, found, sizes = _used(tuple(expressions))
        """The depths of the variables, outermost first."""
        self._dims: tuple[Atom, ...] = (*self.used, *found)
        self._symbols = sizes
        self.lookups = [LookupAttr(StringAttr(each.table.name), self.of(each.operands)) for each in found]
        """The lookups, inner ones first."""
        self.sizes = [StringAttr(size.name) for size in sizes]
        """The names of the sizes that the symbols stand for."""

    def of(self, index: Sequence[Expr]) -> AffineMapAttr:
        """The map to the values of some of the expressions."""
        return _map(tuple(index), self._dims, self._symbols)


@lru_cache(maxsize=1 << 14)
def _used(expressions: tuple[Expr, ...]) -> tuple[tuple[int, ...], tuple[Lookup, ...], tuple[Size, ...]]:
    """The depths of the variables, the lookups, and the sizes; most statements that a move makes have known ones."""
    variables = frozenset[int]().union(*(e.variables() for e in expressions))
    return tuple(sorted(variables)), tuple(lookups_in(expressions)), tuple(sizes_in(expressions))


@lru_cache(maxsize=1 << 14)
def _map(index: tuple[Expr, ...], dims: tuple[Atom, ...], symbols: tuple[Size, ...]) -> AffineMapAttr:
    """A map as an attribute; equal maps are mostly one object, which makes comparing operations fast."""
    positions: dict[Atom, int] = {atom: position for position, atom in enumerate(dims)}
    positions |= {atom: position for position, atom in enumerate(symbols)}
    return AffineMapAttr(AffineMap(len(dims), len(symbols), tuple(to_affine(e, positions) for e in index)))


def shape_map(extents: Sequence[Expr], sizes: Sequence[Size]) -> AffineMapAttr:
    """The map from sizes to the extents of an array."""
    return _map(tuple(extents), (), tuple(sizes))


def memref_of(dtype: str, extents: Sequence[Expr], strides: Strides = ()) -> MemRefType[Attribute]:
    """The type of an array; extents that are no constants are `?`."""
    shape = [extent.constant if extent.is_constant else DYNAMIC_INDEX for extent in extents]
    layout = StridedLayoutAttr([*strides, 1], None) if strides else NoneAttr()
    return MemRefType(DTYPES[dtype], shape, layout)


def dense(kind: Attribute) -> Attribute:
    """The type of an array without its strides."""
    return MemRefType(kind.element_type, kind.shape) if is_memref(kind) else kind


def is_strided(layout: Attribute) -> bool:
    """Whether a layout is that of an array whose last dimension is contiguous, and which begins anywhere."""
    return isinstance(layout, StridedLayoutAttr) and layout.get_offset() is None and layout.get_strides()[-1:] == (1,)


def strides_of(kind: MemRefType[Attribute]) -> Strides:
    """The strides of an array by its type; () if it is dense."""
    layout = kind.layout
    return tuple(layout.get_strides()[:-1]) if isinstance(layout, StridedLayoutAttr) else ()


class GuardMaps(NamedTuple):
    """The guard `e >= 0` of a scope over dimensions: outer variables, its own one, lookups; sizes are symbols."""

    constraints: list[AffineExpr]
    used: list[int]
    """The depths of the outer variables."""
    lookups: list[LookupAttr]
    """The lookups, inner ones first."""
    sizes: list[StringAttr]
    """The names of the sizes that the symbols stand for."""

    @classmethod
    def of(cls, guard: Sequence[Expr], own: int) -> GuardMaps:
        """The maps of the guard of a scope at depth `own`."""
        variables, found, sizes = _used(tuple(guard))
        used = [depth for depth in variables if depth != own]
        dims = (*used, own, *found)
        positions: dict[Atom, int] = {atom: position for position, atom in enumerate(dims)}
        positions |= {size: position for position, size in enumerate(sizes)}
        lookups = [LookupAttr(StringAttr(each.table.name), _map(each.operands, dims, sizes)) for each in found]
        names = [StringAttr(size.name) for size in sizes]
        return cls([to_affine(e, positions) for e in guard], used, lookups, names)

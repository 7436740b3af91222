"""Properties of kernels for tables, sizes and arrays of indices, and what they say."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    IntegerAttr,
    StringAttr,
    i64,
)
from xdsl.ir import Attribute

from pdojo.dialect.affine import IndexArray, Size, const
from pdojo.dialect.affine_maps import from_affine
from pdojo.dialect.functions import dtype_name, is_element_type
from pdojo.dialect.index_maps import shape_map
from pdojo.dialect.narrowing import is_index_range, is_memref, is_table
from pdojo.dialect.table import Outside, Table


def tables_attr(tables: Sequence[Table]) -> DictionaryAttr | None:
    """The property for the tables of a kernel; None if there are none."""
    if not tables:
        return None
    return DictionaryAttr({table.name: DenseArrayBase.from_list(i64, table.entries) for table in tables})


def sizes_attr(sizes: Sequence[Size]) -> DictionaryAttr | None:
    """The property for the sizes of a kernel; None if there are none."""
    if not sizes:
        return None
    return DictionaryAttr({s.name: DenseArrayBase.from_list(i64, [s.low, s.high, s.step]) for s in sizes})


def indices_attr(indices: Sequence[IndexArray], sizes: Sequence[Size]) -> DictionaryAttr | None:
    """The property for the arrays of indices of a kernel; None if there are none."""
    if not indices:
        return None
    return DictionaryAttr(
        {
            each.name: ArrayAttr[Attribute](
                [IntegerAttr(each.low, i64), shape_map([each.last], sizes), StringAttr(each.outside.value)]
            )
            for each in indices
        }
    )


@lru_cache(maxsize=256)
def index_array_of(
    name: str, kind: Attribute, extents: AffineMapAttr | None, said: Attribute, sizes: tuple[Size, ...]
) -> IndexArray:
    """The array of indices of a property, whose form verification has checked. Raises ValueError for a wrong bound."""
    assert is_memref(kind)
    assert is_index_range(said)
    assert is_element_type(kind.element_type)
    low, last, outside = said.data
    known = [size.expression for size in sizes]
    shape = [const(n) for n in kind.get_shape()]
    if extents is not None:
        shape = [from_affine(each, (), (), known) for each in extents.data.results]
    greatest = from_affine(last.data.results[0], (), (), known)
    return IndexArray(
        name, dtype_name(kind.element_type), tuple(shape), low.value.data, greatest, Outside(outside.data)
    )


@lru_cache(maxsize=256)
def size_of(name: str, numbers: Attribute) -> Size:
    """The size of a property; verification has checked its type."""
    assert is_table(numbers)
    return Size(name, *(int(number) for number in numbers.get_values()))


@lru_cache(maxsize=256)
def table_of(name: str, entries: Attribute) -> Table:
    """The table of a property; verification has checked its type."""
    assert is_table(entries)
    return Table(name, tuple(int(entry) for entry in entries.get_values()))

"""Indices that callers give: the values that kernels use, and kernels for given ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.pattern_rewriter import PatternRewriter

from pdojo.dialect.affine import Expr, IndexArray, Lookup, const, lookup
from pdojo.dialect.lookups import replaced
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.ops.facts import tables_attr
from pdojo.dialect.rewriting import fresh_id, rebuilt, set_guard
from pdojo.dialect.sizes import with_sizes
from pdojo.dialect.table import Outside, Table
from pdojo.dialect.view.build import nest_of
from pdojo.dialect.view.nest import Access, Index, Input, Nest
from pdojo.errors import IndexOutOfRange


def check_indices(kernel: str, array: IndexArray, given: NDArray[Any], sizes: Mapping[str, int] | None = None) -> None:
    """Raise IndexOutOfRange for an index that a kernel refuses."""
    if array.outside.is_checked:
        least, last = accepted(array, sizes)
        # Numbers of Python are compared in a tenth of the time of NumPy's.
        if not least <= int(given.min()) <= int(given.max()) <= last:
            used_indices(kernel, array, given, sizes)


def accepted(array: IndexArray, sizes: Mapping[str, int] | None = None) -> tuple[int, int]:
    """The least and the greatest index that a kernel accepts, with those from the end if all of these count."""
    last = with_sizes(array.last, sizes or {}).constant
    return (-last - 1 if array.outside is Outside.WRAP and not array.low else array.low), last


def used_indices(
    kernel: str, array: IndexArray, given: NDArray[Any], sizes: Mapping[str, int] | None = None
) -> NDArray[np.int64]:
    """The indices that a kernel uses for given ones. Raises IndexOutOfRange for one that it refuses."""
    last = with_sizes(array.last, sizes or {}).constant
    values = np.asarray(given).astype(np.int64, copy=False)
    if array.outside is Outside.CLAMP:
        return np.clip(values, array.low, last)
    if array.outside is Outside.WRAP:
        values = np.where(values < 0, values + (last + 1), values)
    if values.size and not array.low <= values.min() <= values.max() <= last:
        at = tuple(int(place) for place in np.argwhere((values < array.low) | (values > last))[0])
        raise IndexOutOfRange(
            f"kernel '{kernel}': '{array.name}' has the index {int(np.asarray(given)[at])} at "
            f"[{', '.join(map(str, at))}]; its indices run from {accepted(array, sizes)[0]} to {last}"
        )
    return values


def with_indices(kernel: KernelOp, given: Mapping[str, NDArray[Any]]) -> KernelOp:
    """The kernel, which has no sizes, for given indices; tables, of any number of entries, stand for them.

    Statements and scopes keep their identifiers. Raises IndexOutOfRange for an index that the kernel refuses.
    """
    arrays = kernel.index_arrays()
    if not arrays:
        return kernel
    found = kernel.clone()
    nest = nest_of(found)
    tables = {name: _table(nest, array, given[name]) for name, array in arrays.items()}
    rewriter = PatternRewriter(next(iter(found.body.block.ops)))
    found.properties.pop("indices")
    if (entries := tables_attr([*nest.tables.values(), *tables.values()])) is not None:
        found.properties["tables"] = entries

    def known(expression: Expr, extents: Sequence[int]) -> Expr:
        def entry(atom: Lookup, place: Sequence[Expr]) -> Expr:
            if not isinstance(atom.table, IndexArray):
                return lookup(atom.table, place, extents)
            position = const(0)
            for each, extent in zip(place, atom.table.extents, strict=True):
                position = position * extent.constant + each
            return lookup(tables[atom.table.name], [position], extents)

        return replaced(expression, entry, extents)

    for scope in nest.scopes:
        guard = [known(constraint, scope.extents) for constraint in scope.guard]
        if guard != list(scope.guard):
            set_guard(scope.op, guard, [s.op for s in scope.chain], rewriter)
    for leaf in nest.leaves:
        output = [known(e, leaf.extents) for e in leaf.output.index]
        inputs = [_mapped(value, lambda e, leaf=leaf: known(e, leaf.extents)) for value in leaf.inputs]
        rewriter.replace(leaf.op, rebuilt(leaf, [s.op for s in leaf.chain], output, inputs))
    return found


def _table(nest: Nest, array: IndexArray, given: NDArray[Any]) -> Table:
    """The table of the indices that are used for given ones."""
    values = used_indices(nest.name, array, given)
    name = fresh_id({**nest.arrays, **nest.tables}, f"{array.name}_").replace("'", "_")
    return Table(name, tuple(map(int, values.reshape(-1))))


def _mapped(value: Input, change: Callable[[Expr], Expr]) -> Input:
    """An input with other index expressions."""
    match value:
        case Access(array, index, hints):
            return Access(array, tuple(map(change, index)), hints)
        case Index(expression, dtype):
            return Index(change(expression), dtype)
        case _:
            return value

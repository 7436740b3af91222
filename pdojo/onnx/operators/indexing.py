"""Gathers and scatters at indices that are known, and choices by comparisons.

The notation looks up places only in tables of constants: known indices become copies of evenly spaced parts, or tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdojo import build
from pdojo.build import Array
from pdojo.build.reductions import neutral_of
from pdojo.dialect.table import MOST_ENTRIES
from pdojo.onnx.operators.arguments import FLOATS, axis_of, integers, number_of
from pdojo.onnx.operators.registry import Node, operator

_Places: TypeAlias = NDArray[np.int64]


def _axis(node: Node, x: Array) -> int:
    if not x.rank:
        node.contradicts("the array has no axes")
    return axis_of(node, node.attribute("axis", 0), x.rank)


def _indices(node: Node, operand: int, extent: int) -> _Places:
    """Known indices, counted from the start of an axis."""
    found = node.static(operand).astype(np.int64)
    if found.size and not (-extent <= found.min() and found.max() < extent):
        node.refuse(f"an index is out of bounds for {extent} elements")
    return np.where(found < 0, found + extent, found)


@operator("Gather")
def gather(node: Node) -> Array:
    """The slices at known indices of an axis."""
    x = node.array(0)
    axis = _axis(node, x)
    places = _indices(node, 1, x.shape[axis])
    found = build.take(x, [int(place) for place in places.reshape(-1)], axis)
    return build.reshape(found, (*x.shape[:axis], *places.shape, *x.shape[axis + 1 :]))


_COMPARED = 64
"""The longest axis whose elements are compared with many indices, one by one."""


def _compared(x: Array, indices: Array, axis: int) -> Array:
    """The elements at indices of an axis, an index for each, found by comparison with all places of the axis."""
    extent = x.shape[axis]
    places = build.expand_dims(build.where(indices < 0, indices + extent, indices), -1)
    part = x[tuple(slice(0, extent if d == axis else indices.shape[d]) for d in range(x.rank))]
    rows = build.transpose(part, [*(d for d in range(x.rank) if d != axis), axis])
    found = places == build.iota((extent,), indices.dtype)
    return build.max(build.where(found, build.expand_dims(rows, axis), neutral_of("max", x)), -1)


def _check_rank(node: Node, operand: int, rank: int) -> None:
    if len(node.value(operand).shape) != rank:
        node.refuse(f"operand {operand} has {len(node.value(operand).shape)} dimensions, the array has {rank}")


@operator("GatherElements")
def gather_elements(node: Node) -> Array:
    """The elements at known indices of an axis, an index for each."""
    x = node.array(0)
    axis = _axis(node, x)
    _check_rank(node, 1, x.rank)
    if prod(node.value(1).shape) > MOST_ENTRIES and x.shape[axis] <= _COMPARED:
        return _compared(x, node.array(1), axis)
    places = _indices(node, 1, x.shape[axis])
    if places.size <= MOST_ENTRIES:
        own = [build.iota(places.shape, "i64", d) for d in range(x.rank)]
        return build.gather(x, [build.table(places.tolist()) if d == axis else own[d] for d in range(x.rank)])
    flat = _flat_places(node, places, x.shape, axis)
    found = build.take(build.reshape(x, (-1,)), [int(place) for place in flat.reshape(-1)], 0)
    return build.reshape(found, flat.shape)


def _flat_places(node: Node, places: _Places, shape: Sequence[int], axis: int) -> _Places:
    """Flat indices in an array of `shape` of the elements at `places` of an axis, and at their own on the others."""
    if any(d != axis and count > extent for d, (count, extent) in enumerate(zip(places.shape, shape, strict=True))):
        node.contradicts(f"indices of shape {list(places.shape)} do not fit an array of shape {list(shape)}")
    own = np.indices(places.shape)
    grid = [places if d == axis else own[d] for d in range(places.ndim)]
    return np.asarray(np.ravel_multi_index(grid, tuple(shape)) if places.size else places, np.int64)


@operator("GatherND")
def gather_nd(node: Node) -> Array:
    """The slices at known indices of several axes."""
    x, batch = node.array(0), node.attribute("batch_dims", 0)
    rows, rest = _rows(node, 1, x.shape, batch)
    found = build.take(build.reshape(x, (-1, *rest)), [int(row) for row in rows.reshape(-1)], 0)
    return build.reshape(found, (*rows.shape, *rest))


def _rows(node: Node, operand: int, shape: Sequence[int], batch: int) -> tuple[_Places, tuple[int, ...]]:
    """Flat indices over the axes that index tuples select, and the extents of the other axes."""
    indices = node.static(operand).astype(np.int64)
    depth = indices.shape[-1] if indices.ndim else 0
    if not indices.ndim or not 0 <= batch < indices.ndim or batch + depth > len(shape):
        node.contradicts(f"indices of shape {list(indices.shape)} do not fit an array of {len(shape)} dimensions")
    axes = tuple(shape[batch : batch + depth])
    columns: list[NDArray[Any]] = list(np.indices(indices.shape[:-1])[:batch])
    for k, extent in enumerate(axes):
        column = indices[..., k]
        if column.size and not (-extent <= column.min() and column.max() < extent):
            node.refuse(f"an index is out of bounds for {extent} elements")
        columns.append(np.where(column < 0, column + extent, column))
    lead = (*shape[:batch], *axes)
    flat = np.ravel_multi_index(columns, lead) if lead else np.zeros(indices.shape[:-1], np.int64)
    return np.asarray(flat, np.int64), tuple(shape[batch + depth :])


_ACCUMULATIONS: dict[str, Literal["+", "*", "max", "min"] | None] = {
    "none": None,
    "add": "+",
    "mul": "*",
    "max": "max",
    "min": "min",
}


def _scattered(node: Node, x: Array, updates: Array, places: Sequence[int], axis: int = 0) -> Array:
    """The array with updates at known places of an axis; `reduction` says how they join the elements there."""
    kind = node.attribute("reduction", "none")
    if kind not in _ACCUMULATIONS:
        node.refuse(f"'{kind}' is no reduction")
    return build.put(x, places, updates, axis, accumulation=_ACCUMULATIONS[kind])


@operator("Scatter", "ScatterElements")
def scatter_elements(node: Node) -> Array:
    """The array with single elements at known indices replaced or joined."""
    x, updates = node.array(0), node.array(2)
    axis = _axis(node, x)
    _check_rank(node, 1, x.rank)
    flat = _flat_places(node, _indices(node, 1, x.shape[axis]), x.shape, axis)
    if updates.shape != flat.shape:
        node.contradicts(f"updates of shape {list(updates.shape)} do not fit indices of shape {list(flat.shape)}")
    places = [int(place) for place in flat.reshape(-1)]
    found = _scattered(node, build.reshape(x, (-1,)), build.reshape(updates, (-1,)), places)
    return build.reshape(found, x.shape)


@operator("ScatterND")
def scatter_nd(node: Node) -> Array:
    """The array with slices at known indices replaced or joined."""
    x, updates = node.array(0), node.array(2)
    rows, rest = _rows(node, 1, x.shape, 0)
    places = [int(row) for row in rows.reshape(-1)]
    parts = build.reshape(updates, (len(places), *rest))
    return build.reshape(_scattered(node, build.reshape(x, (-1, *rest)), parts, places), x.shape)


@operator("TensorScatter")
def tensor_scatter(node: Node) -> Array:
    """A cache with the newest elements of each sequence written into it."""
    x, updates = node.array(0), node.array(1)
    axis = axis_of(node, node.attribute("axis", -2), x.rank)
    starts = integers(node, 2) if node.given(2) else [0] * x.shape[0]
    rows: list[Array] = []
    for k, start in enumerate(starts):
        places = [start + i for i in range(updates.shape[axis])]
        if node.choice("mode", ("linear", "circular")) == "circular":
            places = [place % x.shape[axis] for place in places]
        elif places and places[-1] >= x.shape[axis]:
            node.refuse(f"sequence {k} ends behind the cache of {x.shape[axis]} elements")
        rows.append(_scattered(node, x[k : k + 1], updates[k : k + 1], places, axis))
    return build.concatenate(rows, 0)


@operator("Compress")
def compress(node: Node) -> Array:
    """The slices for which a known condition holds."""
    x, axis = node.array(0), node.attribute("axis")
    condition = node.static(1)
    if condition.ndim != 1:
        node.contradicts(f"the condition has {condition.ndim} dimensions, not one")
    places = [int(place) for place in np.flatnonzero(condition)]
    if axis is None:
        return build.take(build.reshape(x, (-1,)), places, 0)
    return build.take(x, places, axis_of(node, axis, x.rank))


@operator("OneHot")
def one_hot(node: Node) -> Array:
    """`values[1]` at the index along a new axis, and `values[0]` elsewhere."""
    indices, depth, values = node.array(0), int(number_of(node, 1)), node.array(2)
    axis = axis_of(node, node.attribute("axis", -1), indices.rank + 1)
    kind = indices.dtype if indices.dtype in FLOATS else "i64"
    places = build.cast(indices, kind)
    places = build.expand_dims(build.where(places < 0, places + depth, places), axis)
    shape = (*indices.shape[:axis], depth, *indices.shape[axis:])
    return build.where(places == build.iota(shape, kind, axis), values[1], values[0])

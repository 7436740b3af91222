"""Gathers, scatters at indices that are known, and choices by comparisons.

Known indices become copies of evenly spaced parts, or tables; others are arrays of indices of a kernel, of which
negative ones count from the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdojo import build
from pdojo.build import Array, indexing
from pdojo.build.pieces import MOST_PIECES
from pdojo.build.placing import Accumulation
from pdojo.build.sizes import is_open
from pdojo.dialect.table import MOST_ENTRIES
from pdojo.onnx.operators.arguments import axis_of, integers, number_of
from pdojo.onnx.operators.registry import NeedsParts, Node, operator


def _axis(node: Node, x: Array) -> int:
    if not x.rank:
        node.contradicts("the array has no axes")
    return axis_of(node, node.attribute("axis", 0), x.rank)


def _indices(node: Node, operand: int) -> build.Array | NDArray[np.int64]:
    """Indices; the values of known ones that kernels have as a table or as evenly spaced parts."""
    value = node.value(operand)
    if isinstance(value, build.Array):
        return value
    known = value.astype(np.int64)
    is_large = known.size > MOST_ENTRIES and np.count_nonzero(np.diff(known.reshape(-1), 2)) > MOST_PIECES
    return node.array(operand) if is_large else known


@operator("Gather")
def gather(node: Node) -> Array:
    """The slices at indices of an axis."""
    x, axis, indices = node.array(0), 0, _indices(node, 1)
    axis = _axis(node, x)
    if isinstance(indices, np.ndarray) and indices.size == 1 and is_open([x.shape[axis]]):
        # An index of the other end depends on sizes, which lists of indices do not.
        part = x[(*[slice(None)] * axis, indices.item())]
        return build.expand_dims(part, [axis + k for k in range(indices.ndim)]) if indices.ndim else part
    return indexing.take_at(x, [*[None] * axis, indices])


def _check_rank(node: Node, operand: int, rank: int) -> None:
    if len(node.value(operand).shape) != rank:
        node.refuse(f"operand {operand} has {len(node.value(operand).shape)} dimensions, the array has {rank}")


@operator("GatherElements")
def gather_elements(node: Node) -> Array:
    """The elements at indices of an axis, an index for each."""
    x = node.array(0)
    axis = _axis(node, x)
    _check_rank(node, 1, x.rank)
    indices = _indices(node, 1)
    places = indices if isinstance(indices, build.Array) else indexing.places_of(indices, x.shape[axis])
    return indexing.take_along(x, places, axis)


@operator("GatherND")
def gather_nd(node: Node) -> Array:
    """The slices at indices of several axes."""
    x, batch = node.array(0), node.attribute("batch_dims", 0)
    indices = _indices(node, 1)
    if not isinstance(indices, build.Array):
        return indexing.take_at(*_columns(node, x, indices, batch))
    columns = [node.array(k) for k in range(1, len(node.inputs))]
    if len(columns) == 1:
        depth = _depth(node, x, indices.shape, batch)
        columns = [indices[..., k] for k in range(depth)]
        if len({*x.shape[batch : batch + depth]}) > 1:
            # All elements of an array of indices are in one range.
            raise NeedsParts(1, lambda whole: [whole[..., k] for k in range(depth)])
        if not depth:
            return build.broadcast_to(x, (*indices.shape[:-1], *x.shape))
    return indexing.take_at(x, [*(build.iota(columns[0].shape, "i64", d) for d in range(batch)), *columns])


def _depth(node: Node, x: Array, shape: Sequence[int], batch: int) -> int:
    """The number of axes that tuples of indices of this shape have indices of."""
    depth = shape[-1] if shape else 0
    if not shape or not 0 <= batch < len(shape) or batch + depth > x.rank:
        node.contradicts(f"indices of shape {list(shape)} do not fit an array of {x.rank} dimensions")
    return depth


def _columns(node: Node, x: Array, indices: NDArray[np.int64], batch: int) -> tuple[Array, list[NDArray[Any]]]:
    """The array, and the indices of its first axes: the places in a batch, and the columns of index tuples."""
    depth = _depth(node, x, indices.shape, batch)
    columns: list[NDArray[Any]] = list(np.indices(indices.shape[:-1])[:batch])
    columns += [indices[..., k] for k in range(depth)]
    # An empty tuple is the whole array.
    return (x, columns) if columns else (build.expand_dims(x, 0), [np.zeros(indices.shape[:-1], np.int64)])


_ACCUMULATIONS: dict[str, Accumulation | None] = {"none": None, "add": "+", "mul": "*", "max": "max", "min": "min"}


def _accumulation(node: Node) -> Accumulation | None:
    """How updates join the elements at their places."""
    return _ACCUMULATIONS[node.choice("reduction", list(_ACCUMULATIONS))]


@operator("Scatter", "ScatterElements")
def scatter_elements(node: Node) -> Array:
    """The array with single elements at known indices replaced or joined."""
    x, updates = node.array(0), node.array(2)
    axis = _axis(node, x)
    _check_rank(node, 1, x.rank)
    places = indexing.places_of(node.static(1), x.shape[axis])
    if updates.shape != places.shape:
        node.contradicts(f"updates of shape {list(updates.shape)} do not fit indices of shape {list(places.shape)}")
    return indexing.put_along(x, places, updates, axis, _accumulation(node))


@operator("ScatterND")
def scatter_nd(node: Node) -> Array:
    """The array with slices at known indices replaced or joined."""
    x, updates = node.array(0), node.array(2)
    whole, columns = _columns(node, x, node.static(1).astype(np.int64), 0)
    found = indexing.put_at(whole, columns, build.reshape(updates, (*columns[0].shape, *whole.shape[len(columns) :])),
                            _accumulation(node))  # fmt: skip
    return build.reshape(found, x.shape)


@operator("TensorScatter")
def tensor_scatter(node: Node) -> Array:
    """A cache with the newest elements of each sequence written into it."""
    x, updates = node.array(0), node.array(1)
    axis = axis_of(node, node.attribute("axis", -2), x.rank)
    starts = integers(node, 2) if node.given(2) else [0] * x.shape[0]
    is_circular = node.choice("mode", ("linear", "circular")) == "circular"
    return indexing.write_sequences(x, updates, starts, axis, circular=is_circular)


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
    return indexing.one_hot(indices, depth, axis, values[1], values[0])

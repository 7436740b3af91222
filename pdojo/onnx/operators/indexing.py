"""Gathers, scatters, and choices by comparisons.

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
from pdojo.build.scatters import Accumulation
from pdojo.build.sizes import is_open
from pdojo.onnx.operators.arguments import axis_of, number_of
from pdojo.onnx.operators.registry import NeedsParts, Node, operator


def _axis(node: Node, x: Array) -> int:
    if not x.rank:
        node.contradicts("the array has no axes")
    return axis_of(node, node.attribute("axis", 0), x.rank)


@operator("Gather")
def gather(node: Node) -> Array:
    """The slices at indices of an axis."""
    x, indices = node.array(0), node.indices(1)
    axis = _axis(node, x)
    if isinstance(indices, np.ndarray) and indices.size == 1 and is_open([x.shape[axis]]):
        # An index of the other end depends on sizes, which lists of indices do not.
        part = x[(*[slice(None)] * axis, indices.item())]
        return build.expand_dims(part, [axis + k for k in range(indices.ndim)]) if indices.ndim else part
    return indexing.take_at(x, [*[None] * axis, indices])


def _along(node: Node, x: Array, axis: int) -> Array | NDArray[np.int64]:
    """The second operand as indices of an axis, an index for each element."""
    indices = node.indices(1)
    if len(indices.shape) != x.rank:
        node.refuse(f"operand 1 has {len(indices.shape)} dimensions, the array has {x.rank}")
    return indices if isinstance(indices, build.Array) else indexing.places_of(indices, x.shape[axis])


@operator("GatherElements")
def gather_elements(node: Node) -> Array:
    """The elements at indices of an axis, an index for each."""
    x = node.array(0)
    axis = _axis(node, x)
    return indexing.take_along(x, _along(node, x, axis), axis)


@operator("GatherND")
def gather_nd(node: Node) -> Array:
    """The slices at indices of several axes."""
    return indexing.take_at(*_columns(node, node.attribute("batch_dims", 0), 1))


def _columns(node: Node, batch: int, others: int) -> tuple[Array, list[Array] | list[NDArray[Any]]]:
    """The array, and the indices of its first axes: the places in a batch, and the columns of index tuples.

    `others` is the number of operands that are no indices.
    """
    x, indices = node.array(0), node.indices(1)
    if len(node.inputs) > others + 1:
        columns = [node.array(1 + k) for k in range(len(node.inputs) - others)]
    else:
        depth = _depth(node, x, indices.shape, batch)
        if not depth:
            # An empty tuple is the whole array.
            return build.expand_dims(x, 0), [np.zeros(indices.shape[:-1], np.int64)]
        if not isinstance(indices, build.Array):
            return x, [*np.indices(indices.shape[:-1])[:batch], *(indices[..., k] for k in range(depth))]
        if len({*x.shape[batch : batch + depth]}) > 1:
            # All elements of an array of indices are in one range.
            raise NeedsParts(1, lambda whole: [whole[..., k] for k in range(depth)])
        columns = [indices[..., k] for k in range(depth)]
    return x, [*(build.iota(columns[0].shape, "i64", d) for d in range(batch)), *columns]


def _depth(node: Node, x: Array, shape: Sequence[int], batch: int) -> int:
    """The number of axes that tuples of indices of this shape have indices of."""
    depth = shape[-1] if shape else 0
    if not shape or not 0 <= batch < len(shape) or batch + depth > x.rank:
        node.contradicts(f"indices of shape {list(shape)} do not fit an array of {x.rank} dimensions")
    return depth


_ACCUMULATIONS: dict[str, Accumulation | None] = {"none": None, "add": "+", "mul": "*", "max": "max", "min": "min"}


def _accumulation(node: Node) -> Accumulation | None:
    """How updates join the elements at their places."""
    return _ACCUMULATIONS[node.choice("reduction", list(_ACCUMULATIONS))]


@operator("Scatter", "ScatterElements")
def scatter_elements(node: Node) -> Array:
    """The array with single elements at indices replaced or joined."""
    x, updates = node.array(0), node.array(2)
    axis = _axis(node, x)
    places = _along(node, x, axis)
    if updates.shape != places.shape:
        node.contradicts(f"updates of shape {list(updates.shape)} do not fit indices of shape {list(places.shape)}")
    return indexing.put_along(x, places, updates, axis, _accumulation(node))


@operator("ScatterND")
def scatter_nd(node: Node) -> Array:
    """The array with slices at indices replaced or joined."""
    whole, columns = _columns(node, 0, 2)
    updates = build.reshape(node.array(len(node.inputs) - 1), (*columns[0].shape, *whole.shape[len(columns) :]))
    found = indexing.put_at(whole, columns, updates, _accumulation(node))
    return build.reshape(found, node.array(0).shape)


@operator("TensorScatter")
def tensor_scatter(node: Node) -> Array:
    """A cache with the newest elements of each sequence written into it."""
    x, updates = node.array(0), node.array(1)
    axis = axis_of(node, node.attribute("axis", -2), x.rank)
    first = node.value(2) if node.given(2) else [0] * x.shape[0]
    starts = first if isinstance(first, build.Array) else [int(each) for each in first]
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

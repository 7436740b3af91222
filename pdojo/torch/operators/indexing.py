"""Elements at other places: known indices become views that look up tables; few others are compared.

Kernels have no other indirection: PyTorch runs all other calls with indices that are computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan, prod
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from pdojo import build
from pdojo.build import Array
from pdojo.dialect.element_types import is_float
from pdojo.torch.operators.registry import Call, aten

Places = NDArray[np.int64]
Joined = Literal["+", "*", "max", "min"]

MOST_COMPARED = 64
"""Most elements of an axis that are compared with each index that is computed."""


def _places(call: Call, index: torch.Tensor, extent: int, least: int = 0) -> Places:
    """Known indices, at least `least`, counted from the start of an axis."""
    if index.dtype in (torch.bool, torch.uint8):
        call.refuse("an index is a mask")
    found = index.detach().numpy().astype(np.int64)
    if found.size and not (least <= found.min() and found.max() < extent):
        call.refuse(f"an index is out of bounds for {extent} elements")
    return np.where(found < 0, found + extent, found)


def _list(places: Places) -> list[int]:
    return [int(place) for place in places.reshape(-1)]


class _Indices:
    """The indices of several axes of an array: `x[:, i, j]`."""

    def __init__(self, call: Call, shape: Sequence[int], indices: Sequence[torch.Tensor | None]) -> None:
        given = {axis: index for axis, index in enumerate(indices) if index is not None}
        self.shape = tuple(shape)
        self.axes = tuple(given)
        self.places = {axis: _places(call, index, shape[axis], -shape[axis]) for axis, index in given.items()}
        self.common = np.broadcast_shapes(*(each.shape for each in self.places.values()))
        self.first = 0 if len(self.axes) != self.axes[-1] - self.axes[0] + 1 else self.axes[0]
        """The axis of the result at which the common axes of the indices begin."""
        self.rest = [axis for axis in range(len(shape)) if axis not in given]

    def is_grid(self) -> bool:
        """Whether each index varies along an axis of its own, in order, so that axes may be taken one by one."""
        own: list[int] = []
        for axis in self.axes:
            shape = (*[1] * (len(self.common) - self.places[axis].ndim), *self.places[axis].shape)
            wide = [d for d, extent in enumerate(shape) if extent != 1]
            own += wide if len(wide) == 1 else [-1]
        neighbours = self.axes == tuple(range(self.axes[0], self.axes[0] + len(self.axes)))
        return neighbours and own == list(range(len(self.common)))

    def flat(self) -> Places:
        """The flat indices over the given axes, which are moved to the front."""
        columns = [np.broadcast_to(self.places[axis], self.common) for axis in self.axes]
        return np.asarray(np.ravel_multi_index(columns, [self.shape[axis] for axis in self.axes]), np.int64)

    def rows(self, x: Array) -> Array:
        """The array [given axes, other axes]."""
        moved = build.transpose(x, (*self.axes, *self.rest))
        return build.reshape(moved, (-1, *[self.shape[axis] for axis in self.rest]))

    def unmoved(self, rows: Array) -> Array:
        """The array of the shape of `x` from `rows`."""
        order = (*self.axes, *self.rest)
        whole = build.reshape(rows, [self.shape[axis] for axis in order])
        return build.transpose(whole, [order.index(axis) for axis in range(len(order))])


@aten("index.Tensor", "_unsafe_index.Tensor", static=[1])
def index(call: Call, x: Array, indices: Sequence[torch.Tensor | None]) -> Array:
    """The elements at known indices of one axis or several."""
    at = _Indices(call, x.shape, indices)
    if len(at.axes) == 1 or at.is_grid():
        found = x
        for axis in at.axes:
            found = build.take(found, _list(at.places[axis]), axis)
        return build.reshape(found, call.shape)
    found = build.take(at.rows(x), _list(at.flat()), 0)
    found = build.reshape(found, (*at.common, *found.shape[1:]))
    count = len(at.common)
    order = [*range(count, count + at.first), *range(count), *range(count + at.first, found.rank)]
    return build.transpose(found, order)


@aten("index_select.default", static=[2])
def index_select(call: Call, x: Array, dim: int, index: torch.Tensor) -> Array:
    """The slices at known indices of an axis."""
    if not x.rank:
        return x
    axis = dim % x.rank
    return build.take(x, _list(_places(call, index, x.shape[axis])), axis)


@aten("embedding.default", static=[1])
def embedding(
    call: Call,
    weights: Array,
    indices: torch.Tensor,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Array:
    """The rows at known indices."""
    return build.reshape(build.take(weights, _list(_places(call, indices, weights.shape[0])), 0), call.shape)


@aten("gather.default", known=[2])
def gather(call: Call, x: Array, dim: int, index: torch.Tensor | Array, *, sparse_grad: bool = False) -> Array:
    """The elements at indices of an axis, an index for each; short axes are compared with computed indices."""
    if not x.rank:
        return x
    axis = dim % x.rank
    if isinstance(index, Array):
        return _compared(call, x, axis, index)
    if not index.dim():
        return build.reshape(build.take(x, _list(_places(call, index, x.shape[0])), 0), ())
    flat = _flat(call, index, x.shape, axis)
    return build.reshape(build.take(build.reshape(x, (-1,)), _list(flat), 0), call.shape)


def _compared(call: Call, x: Array, axis: int, index: Array) -> Array:
    """The numbers at computed indices of a short axis; NaN where an index is out of bounds."""
    extent = x.shape[axis]
    if not index.rank or extent > MOST_COMPARED or not is_float(x.dtype):
        call.refuse(f"indices of {extent} elements of type {x.dtype} are computed")
    part = x[tuple(slice(0, extent if d == axis else index.shape[d]) for d in range(x.rank))]
    rows = build.transpose(part, [*(d for d in range(x.rank) if d != axis), axis])
    chosen = build.expand_dims(index, -1) == build.iota((extent,), index.dtype)
    found = build.max(build.where(chosen, build.expand_dims(rows, axis), -inf), -1)
    return build.where((index >= 0) & (index < extent), found, nan)


def _flat(call: Call, index: torch.Tensor, shape: Sequence[int], axis: int) -> Places:
    """Flat indices in an array of `shape` of the elements at indices of an axis, and at their own on the others."""
    places = _places(call, index, shape[axis])
    own = np.indices(places.shape)
    return np.asarray(np.ravel_multi_index([places if d == axis else own[d] for d in range(places.ndim)], tuple(shape)))


@aten("index_put.default", "_unsafe_index_put.default", static=[1])
def index_put(
    call: Call, x: Array, indices: Sequence[torch.Tensor | None], values: Array, accumulate: bool = False
) -> Array:
    """The array with values at known indices, which replace the elements there or are added to them."""
    at = _Indices(call, x.shape, indices)
    rest = [x.shape[axis] for axis in at.rest]
    whole = build.broadcast_to(values, (*rest[: at.first], *at.common, *rest[at.first :]))
    count = len(at.common)
    places = [*range(at.first, at.first + count)]
    moved = build.transpose(whole, [*places, *(d for d in range(whole.rank) if d not in places)])
    updates = build.reshape(moved, (prod(at.common), *rest))
    accumulation: Joined | None = "+" if accumulate else None
    return at.unmoved(build.put(at.rows(x), _list(at.flat()), updates, accumulation=accumulation))


@aten("scatter.src", known=[2])
def scatter(call: Call, x: Array, dim: int, index: torch.Tensor | Array, src: Array) -> Array:
    """The array with elements at indices of an axis replaced; one for each row if indices are computed."""
    return _put(call, x, dim, index, src, None)


@aten("scatter.value", known=[2])
def scatter_value(call: Call, x: Array, dim: int, index: torch.Tensor | Array, value: float) -> Array:
    """The array with a number at indices of an axis; at one of each row if indices are computed."""
    src = build.constant(value, x.dtype, tuple(index.shape))
    return _put(call, x, dim, index, src, None)


@aten("scatter_add.default", known=[2])
def scatter_add(call: Call, x: Array, dim: int, index: torch.Tensor | Array, src: Array) -> Array:
    """The array with elements added at indices of an axis; one for each row if indices are computed."""
    return _put(call, x, dim, index, src, "+")


def _put(
    call: Call, x: Array, dim: int, index: torch.Tensor | Array, updates: Array, accumulation: Joined | None
) -> Array:
    if isinstance(index, Array):
        return _marked(call, x, dim, index, updates, accumulation)
    return _scattered(call, x, dim, index, updates, accumulation)


def _marked(call: Call, x: Array, dim: int, index: Array, updates: Array, accumulation: Joined | None) -> Array:
    """The array with an element at one computed index of each row replaced or added; NaN where there is no such one."""
    axis = dim % max(x.rank, 1)
    row = tuple(1 if d == axis else extent for d, extent in enumerate(x.shape))
    if not x.rank or index.shape != row or not is_float(x.dtype):
        call.refuse(f"indices of shape {list(index.shape)} of an array {list(x.shape)} of type {x.dtype} are computed")
    part = updates[tuple(slice(0, extent) for extent in row)]
    new = x + part if accumulation else build.broadcast_to(part, x.shape)
    found = build.where(build.iota(x.shape, index.dtype, axis) == index, new, x)
    return build.where((index >= 0) & (index < x.shape[axis]), found, nan)


_REDUCTIONS: dict[str, Joined] = {"sum": "+", "prod": "*", "amax": "max", "amin": "min"}


@aten("scatter_reduce.two", static=[2])
def scatter_reduce(
    call: Call, x: Array, dim: int, index: torch.Tensor, src: Array, reduce: str, *, include_self: bool = True
) -> Array:
    """The array with elements at known indices of an axis joined."""
    if reduce not in _REDUCTIONS or not include_self:
        call.refuse(f"reduction '{reduce}'{' without the elements of the array' * (not include_self)}")
    return _scattered(call, x, dim, index, src, _REDUCTIONS[reduce])


def _scattered(
    call: Call, x: Array, dim: int, index: torch.Tensor, updates: Array, accumulation: Joined | None
) -> Array:
    if not x.rank or not index.dim():
        call.refuse("an array without dimensions")
    flat = _flat(call, index, x.shape, dim % x.rank)
    part = updates[tuple(slice(0, extent) for extent in index.shape)]
    found = build.put(build.reshape(x, (-1,)), _list(flat), build.reshape(part, (-1,)), accumulation=accumulation)
    return build.reshape(found, x.shape)

"""Elements at other places: known indices become views that look up tables; few others are compared.

Kernels have no other indirection: PyTorch runs all other calls with indices that are computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import nan

import numpy as np
import torch
from numpy.typing import NDArray

from pdojo import build
from pdojo.build import Array, indexing
from pdojo.build.indexing import Places, places_of
from pdojo.build.placing import Accumulation
from pdojo.dialect.element_types import is_float
from pdojo.torch.operators.registry import Call, aten

MOST_COMPARED = 64
"""Most elements of an axis that are compared with each index that is computed."""


def _numbers(call: Call, index: torch.Tensor) -> NDArray[np.integer]:
    """The values of indices."""
    if index.dtype in (torch.bool, torch.uint8):
        call.refuse("an index is a mask")
    return index.detach().numpy()


def _places(call: Call, index: torch.Tensor, extent: int) -> Places:
    """Known indices from 0 in an axis."""
    return places_of(_numbers(call, index), extent, 0)


@aten("index.Tensor", "_unsafe_index.Tensor", static=[1])
def index(call: Call, x: Array, indices: Sequence[torch.Tensor | None]) -> Array:
    """The elements at known indices of one axis or several."""
    return indexing.take_at(x, [None if each is None else _numbers(call, each) for each in indices])


@aten("index_select.default", static=[2])
def index_select(call: Call, x: Array, dim: int, index: torch.Tensor) -> Array:
    """The slices at known indices of an axis."""
    if not x.rank:
        return x
    axis = dim % x.rank
    return build.take(x, indexing.listed(_places(call, index, x.shape[axis])), axis)


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
    return indexing.take_at(weights, [_places(call, indices, weights.shape[0])])


@aten("gather.default", known=[2])
def gather(call: Call, x: Array, dim: int, index: torch.Tensor | Array, *, sparse_grad: bool = False) -> Array:
    """The elements at indices of an axis, an index for each; short axes are compared with computed indices."""
    if not x.rank:
        return x
    axis = dim % x.rank
    if isinstance(index, Array):
        return _compared(call, x, axis, index)
    places = _places(call, index, x.shape[axis])
    return indexing.take_along(x, places, axis) if places.ndim else indexing.take_at(x, [places])


def _compared(call: Call, x: Array, axis: int, index: Array) -> Array:
    """The numbers at computed indices of a short axis; NaN where an index is out of bounds."""
    extent = x.shape[axis]
    if not index.rank or extent > MOST_COMPARED or not is_float(x.dtype):
        call.refuse(f"indices of {extent} elements of type {x.dtype} are computed")
    return indexing.pick_along(x, index, axis, nan)


@aten("index_put.default", "_unsafe_index_put.default", static=[1])
def index_put(
    call: Call, x: Array, indices: Sequence[torch.Tensor | None], values: Array, accumulate: bool = False
) -> Array:
    """The array with values at known indices, which replace the elements there or are added to them."""
    known = [None if each is None else _numbers(call, each) for each in indices]
    return indexing.put_at(x, known, values, "+" if accumulate else None)


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
    call: Call, x: Array, dim: int, index: torch.Tensor | Array, updates: Array, accumulation: Accumulation | None
) -> Array:
    if not x.rank or not index.shape:
        call.refuse("an array without dimensions")
    axis = dim % x.rank
    part = updates[tuple(slice(0, extent) for extent in index.shape)]
    if isinstance(index, Array):
        return indexing.put_one_along(x, index, part, axis, accumulation)
    return indexing.put_along(x, _places(call, index, x.shape[axis]), part, axis, accumulation)


_REDUCTIONS: dict[str, Accumulation] = {"sum": "+", "prod": "*", "amax": "max", "amin": "min"}


@aten("scatter_reduce.two", static=[2])
def scatter_reduce(
    call: Call, x: Array, dim: int, index: torch.Tensor, src: Array, reduce: str, *, include_self: bool = True
) -> Array:
    """The array with elements at known indices of an axis joined."""
    if reduce not in _REDUCTIONS or not include_self:
        call.refuse(f"reduction '{reduce}'{' without the elements of the array' * (not include_self)}")
    return _put(call, x, dim, index, src, _REDUCTIONS[reduce])

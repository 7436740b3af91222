"""Elements at other places: reads at indices that are known or operands, writes at indices that are known.

Known indices become slices and tables; others are arrays of indices of a kernel, which calls check. Writes at computed
indices are made by comparisons where there is one for each row; PyTorch runs all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from pdojo import build
from pdojo.build import Array, indexing
from pdojo.build.indexing import Places, places_of
from pdojo.build.placing import Accumulation
from pdojo.torch.operators.registry import Call, aten

Given: TypeAlias = "torch.Tensor | Array"
"""Indices: a tensor if their values are known."""


def _numbers(call: Call, index: torch.Tensor) -> NDArray[np.integer]:
    """The values of indices."""
    if index.dtype in (torch.bool, torch.uint8):
        call.refuse("an index is a mask")
    return index.detach().numpy()


def _places(call: Call, index: torch.Tensor, extent: int) -> Places:
    """Known indices from 0 in an axis."""
    return places_of(_numbers(call, index), extent, 0)


@aten("index.Tensor", "_unsafe_index.Tensor", known=[1])
def index(call: Call, x: Array, indices: Sequence[Given | None]) -> Array:
    """The elements at indices of one axis or several."""
    if any(isinstance(each, Array) and each.dtype in ("i1", "u8") for each in indices):
        call.refuse("an index is a mask")
    return indexing.take_at(x, [_numbers(call, each) if isinstance(each, torch.Tensor) else each for each in indices])


@aten("index_select.default", known=[2])
def index_select(call: Call, x: Array, dim: int, index: Given) -> Array:
    """The slices at indices of an axis."""
    if not x.rank:
        return x
    axis = dim % x.rank
    if isinstance(index, Array):
        return build.take(x, build.reshape(index, (-1,)), axis, outside="refuse")
    return build.take(x, indexing.listed(_places(call, index, x.shape[axis])), axis)


@aten("embedding.default", known=[1])
def embedding(
    call: Call,
    weights: Array,
    indices: Given,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Array:
    """The rows at indices."""
    if isinstance(indices, Array):
        return build.take(weights, indices, outside="refuse")
    return indexing.take_at(weights, [_places(call, indices, weights.shape[0])])


@aten("take.default", known=[1])
def take(call: Call, x: Array, index: Given) -> Array:
    """The elements at indices of the array as a row."""
    row = build.reshape(x, (-1,))
    return indexing.take_at(row, [index if isinstance(index, Array) else _numbers(call, index)])


@aten("gather.default", known=[2])
def gather(call: Call, x: Array, dim: int, index: Given, *, sparse_grad: bool = False) -> Array:
    """The elements at indices of an axis, an index for each."""
    if not x.rank:
        return x
    axis = dim % x.rank
    places = index if isinstance(index, Array) else _places(call, index, x.shape[axis])
    if not places.shape:
        return build.take(x, places, outside="refuse") if isinstance(places, Array) else indexing.take_at(x, [places])
    return indexing.take_along(x, places, axis, outside="refuse")


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

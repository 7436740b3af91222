"""Elements at other places: reads and writes at indices that are known or operands.

Known indices become slices and tables; others are arrays of indices of a kernel, which calls check.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from pdojo import build
from pdojo.build import Array, indexing
from pdojo.build.array import wide
from pdojo.build.indexing import Places, places_of
from pdojo.build.reductions import neutral_of
from pdojo.build.scatters import Accumulation
from pdojo.dialect.element_types import is_float
from pdojo.torch.operators.registry import Call, aten

Given: TypeAlias = "torch.Tensor | Array"
"""Indices: a tensor if their values are known."""


def _of_axes(call: Call, indices: Sequence[Given | None]) -> list[NDArray[np.integer] | Array | None]:
    """Indices of the first axes."""
    if any(isinstance(each, Array) and each.dtype in ("i1", "u8") for each in indices):
        call.refuse("an index is a mask")
    return [_numbers(call, each) if isinstance(each, torch.Tensor) else each for each in indices]


def _numbers(call: Call, index: torch.Tensor) -> NDArray[np.integer]:
    """The values of indices."""
    if index.dtype in (torch.bool, torch.uint8):
        call.refuse("an index is a mask")
    return index.detach().numpy()


def _places(call: Call, index: torch.Tensor, extent: int) -> Places:
    """Known indices from 0 in an axis."""
    return places_of(_numbers(call, index), extent, 0)


def _row(call: Call, index: Given, extent: int) -> Sequence[int] | Array:
    """Indices from 0 of an axis in a row."""
    return build.reshape(index, (-1,)) if isinstance(index, Array) else indexing.listed(_places(call, index, extent))


@aten("index.Tensor", "_unsafe_index.Tensor", known=[1])
def index(call: Call, x: Array, indices: Sequence[Given | None]) -> Array:
    """The elements at indices of one axis or several."""
    return indexing.take_at(x, _of_axes(call, indices))


@aten("index_select.default", known=[2])
def index_select(call: Call, x: Array, dim: int, index: Given) -> Array:
    """The slices at indices of an axis."""
    if not x.rank:
        return x
    axis = dim % x.rank
    return build.take(x, _row(call, index, x.shape[axis]), axis, outside="refuse")


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
    return _rows(call, weights, indices)


def _rows(call: Call, weights: Array, indices: Given) -> Array:
    if isinstance(indices, Array):
        return build.take(weights, indices, outside="refuse")
    return indexing.take_at(weights, [_places(call, indices, weights.shape[0])])


@aten("_embedding_bag.default", "_embedding_bag_forward_only.default", known=[1, 2])
def embedding_bag(
    call: Call,
    weights: Array,
    indices: Given,
    offsets: Given,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Array | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> tuple[Array, None, None, None]:
    """The sums, means or greatest elements of the rows in bags of one length; `mode` is 0, 1 or 2.

    Row `padding_idx` is in no bag. The greatest element is the first one if that is NaN, and no later NaN.
    """
    count = offsets.shape[0] - include_last_offset
    if call.read != (0,):
        call.refuse("gradients need the bags of all rows")
    if not indices.shape[0] or not count or indices.shape[0] % count:
        call.refuse(_OTHER_BAGS)
    length = indices.shape[0] // count
    if not _is_in_steps(offsets, length):
        call.refuse(_OTHER_BAGS)
    is_padded = 0 <= padding_idx < weights.shape[0]
    if is_padded and mode == 2:
        call.refuse("which row of a bag is the first one, depends on indices")
    bags = build.reshape(indices, (count, length)) if isinstance(indices, Array) else indices.reshape(count, length)
    rows = _rows(call, weights, bags)
    if mode == 2:
        is_number = build.map("==", rows, rows)
        first = rows[:, 0]
        greatest = build.max(build.where(is_number, rows, neutral_of("max", rows)), 1)
        return build.where(build.map("==", first, first), greatest, first), None, None, None
    if per_sample_weights is not None:
        rows = wide(rows) * wide(build.reshape(per_sample_weights, (count, length, 1)))
    if not is_padded:
        return (build.mean if mode else build.sum)(rows, 1), None, None, None
    given = bags if isinstance(bags, Array) else build.table(bags.tolist())
    counts = build.expand_dims(build.map("!=", given, padding_idx), -1)
    total = build.sum(build.where(counts, wide(rows), 0), 1)
    if mode:
        total = total / build.map("max", build.sum(build.cast(counts, total.dtype), 1), 1)
    return total, None, None, None


_OTHER_BAGS = "bags have several lengths, or lengths that are data: PyTorch keeps the sum of a bag in registers"


def _is_in_steps(offsets: Given, step: int) -> bool:
    """Whether offsets are known to be 0, `step`, 2 `step` ..."""
    if isinstance(offsets, torch.Tensor):
        return bool((offsets == torch.arange(offsets.shape[0]) * step).all())
    return offsets.operand == build.iota(offsets.shape, offsets.dtype, step=step).operand


@aten("take.default", known=[1])
def take(call: Call, x: Array, index: Given) -> Array:
    """The elements at indices of the array as a row."""
    return indexing.take_at(build.reshape(x, (-1,)), _of_axes(call, [index]))


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


@aten("index_put.default", "_unsafe_index_put.default", known=[1])
def index_put(call: Call, x: Array, indices: Sequence[Given | None], values: Array, accumulate: bool = False) -> Array:
    """The array with values at indices of one axis or several, which replace the elements or are added to them.

    At a mask, they are the same for all elements that it chooses.
    """
    (mask,) = (each for each in indices if each is not None) if len(indices) == 1 else (None,)
    if isinstance(mask, Array) and mask.dtype == "i1" and values.rank <= x.rank - mask.rank:
        chosen = build.reshape(mask, (*mask.shape, *[1] * (x.rank - mask.rank)))
        return build.where(chosen, x + values if accumulate else values, x)
    return indexing.put_at(x, _of_axes(call, indices), values, "+" if accumulate else None)


@aten("put.default", known=[1])
def put(call: Call, x: Array, index: Given, source: Array, accumulate: bool = False) -> Array:
    """The array with elements at indices of the array as a row replaced, or added to them."""
    places = _of_axes(call, [index])
    values = build.reshape(source, tuple(index.shape))
    row = indexing.put_at(build.reshape(x, (-1,)), places, values, "+" if accumulate else None)
    return build.reshape(row, x.shape)


@aten("index_add.default", known=[2])
def index_add(call: Call, x: Array, dim: int, index: Given, source: Array, *, alpha: float = 1) -> Array:
    """The array with slices added at indices of an axis."""
    return _put_slices(call, x, dim, index, source if alpha == 1 else source * alpha, "+")


@aten("index_copy.default", known=[2])
def index_copy(call: Call, x: Array, dim: int, index: Given, source: Array) -> Array:
    """The array with slices at indices of an axis replaced."""
    return _put_slices(call, x, dim, index, source, None)


def _put_slices(
    call: Call, x: Array, dim: int, index: Given, source: Array, accumulation: Accumulation | None
) -> Array:
    if not x.rank:
        call.refuse("an array without dimensions")
    axis = dim % x.rank
    shape = (*x.shape[:axis], prod(index.shape), *x.shape[axis + 1 :])
    source = build.reshape(source, shape)
    return build.put(x, _row(call, index, x.shape[axis]), source, axis, accumulation=accumulation, outside="refuse")


@aten("scatter.src", known=[2])
def scatter(call: Call, x: Array, dim: int, index: Given, src: Array) -> Array:
    """The array with elements at indices of an axis replaced."""
    return _put(call, x, dim, index, src, None)


@aten("scatter.value", known=[2])
def scatter_value(call: Call, x: Array, dim: int, index: Given, value: float) -> Array:
    """The array with a number at indices of an axis."""
    return _put(call, x, dim, index, build.constant(value, x.dtype, tuple(index.shape)), None)


@aten("scatter_add.default", known=[2])
def scatter_add(call: Call, x: Array, dim: int, index: Given, src: Array) -> Array:
    """The array with elements added at indices of an axis."""
    return _put(call, x, dim, index, src, "+")


def _put(call: Call, x: Array, dim: int, index: Given, updates: Array, accumulation: Accumulation | None) -> Array:
    if not x.rank or not index.shape:
        call.refuse("an array without dimensions")
    axis = dim % x.rank
    part = updates[tuple(slice(0, extent) for extent in index.shape)]
    places = index if isinstance(index, Array) else _places(call, index, x.shape[axis])
    return indexing.put_along(x, places, part, axis, accumulation, outside="refuse")


_REDUCTIONS: dict[str, Accumulation] = {"sum": "+", "mean": "+", "prod": "*", "amax": "max", "amin": "min"}


@aten("scatter_reduce.two", known=[2])
def scatter_reduce(
    call: Call, x: Array, dim: int, index: Given, src: Array, reduce: str, *, include_self: bool = True
) -> Array:
    """The array with elements at indices of an axis joined: with them, or in their place."""
    accumulation = _REDUCTIONS[reduce]

    def filled(like: Array, value: float) -> Array:
        return _put(call, like, dim, index, build.constant(value, x.dtype, tuple(index.shape)), None)

    first = x if include_self else filled(x, neutral_of(accumulation, x))
    found = _put(call, first, dim, index, src, accumulation)
    if reduce != "mean":
        return found
    ones = build.constant(1, x.dtype, tuple(index.shape))
    before = build.constant(1, x.dtype, x.shape)
    count = _put(call, before if include_self else filled(before, 0), dim, index, ones, "+")
    return build.map("/" if is_float(x.dtype) else "//", found, count)


@aten("embedding_dense_backward.default", known=[1])
def embedding_dense_backward(
    call: Call, gradient: Array, indices: Given, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Array:
    """The gradients of rows, summed up over the places that took them; those of the row `padding_idx` are 0."""
    rows = build.reshape(gradient, (-1, gradient.shape[-1]))
    places = _row(call, indices, num_weights)
    if scale_grad_by_freq:
        count = build.put(
            build.constant(0, "f32", (num_weights,)), places, build.constant(1, "f32", rows.shape[:1]),
            accumulation="+", outside="refuse",
        )  # fmt: skip
        rows = rows / build.cast(build.expand_dims(build.take(count, places, outside="refuse"), -1), rows.dtype)
    zeros = build.constant(0, gradient.dtype, (num_weights, rows.shape[1]))
    found = build.put(zeros, places, rows, accumulation="+", outside="refuse")
    if not 0 <= padding_idx < num_weights:
        return found
    return build.where(build.iota((num_weights, 1)) == padding_idx, 0, found)

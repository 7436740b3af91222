"""Calls of ATen for indices and losses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qa.operators.peers import AbsentError, Call, ElementType, Operand, peer
from qa.operators.torch_calls import CALLS

Places = NDArray[Any]
_REDUCTIONS = ("none", "mean", "sum")


@peer(CALLS, "take")
def _embedding(x: Operand, indices: Operand, axis: int = 0, *, outside: str = "wrap") -> Call:
    if axis or x.rank != 2 or not isinstance(indices, Operand):
        raise AbsentError("it takes rows at indices that are computed")
    _check_from_start(indices, outside)
    return Call("embedding.default", [x, indices])


@peer(CALLS, "take")
def _index_select(x: Operand, indices: Sequence[int] | Operand, axis: int = 0, *, outside: str = "wrap") -> Call:
    known = indices if isinstance(indices, Operand) else np.array(indices, np.int64)
    _check_from_start(known, outside)
    if len(known.shape) != 1:
        raise AbsentError("indices have one axis")
    return Call("index_select.default", [x, axis, known])


def _check_from_start(indices: Places | Operand, outside: str) -> None:
    values = indices.values if isinstance(indices, Operand) else indices
    if outside == "clamp" or values.min(initial=0) < 0:
        raise AbsentError("indices count from the start, and are those of elements")


@peer(CALLS, "take_along")
def _take_along(x: Operand, places: Places | Operand, axis: int, *, outside: str = "wrap") -> Call:
    _check_from_start(places, outside)
    return Call("gather.default", [x, axis, places])


@peer(CALLS, "put_along")
def _put_along(
    x: Operand, places: Places | Operand, updates: Operand, axis: int, accumulation: str | None = None, *,
    outside: str = "wrap",
) -> Call:  # fmt: skip
    _check_from_start(places, outside)
    if isinstance(places, Operand) and places.dtype != "i64":
        raise AbsentError("indices are of i64")
    if accumulation is None:
        return Call("scatter.src", [x, axis, places, updates])
    if accumulation == "+":
        return Call("scatter_add.default", [x, axis, places, updates])
    return Call("scatter_reduce.two", [x, axis, places, updates, {"*": "prod"}.get(accumulation, f"a{accumulation}")])


@peer(CALLS, "take_at")
def _take_at(x: Operand, indices: list[Places | Operand | None], *, outside: str = "wrap") -> Call:
    return Call("index.Tensor", [x, indices])


@peer(CALLS, "put_at")
def _put_at(
    x: Operand, indices: list[Places | Operand | None], values: Operand, accumulation: str | None = None, *,
    outside: str = "wrap",
) -> Call:  # fmt: skip
    if accumulation not in (None, "+"):
        raise AbsentError("it adds only")
    return Call("index_put.default", [x, indices, values, accumulation == "+"])


@peer(CALLS, "triangle")
def _triangle(x: Operand, diagonal: int | Operand = 0, *, upper: bool) -> Call:
    if isinstance(diagonal, Operand):
        raise AbsentError("its diagonal is a number")
    return Call("triu.default" if upper else "tril.default", [x, diagonal])


@peer(CALLS, "mse_loss")
def _mse_loss(x: Operand, y: Operand, *, reduction: str = "mean") -> Call:
    return Call("mse_loss.default", [x, y, _REDUCTIONS.index(reduction)])


@peer(CALLS, "huber_loss")
def _huber_loss(x: Operand, y: Operand, delta: float = 1.0, *, reduction: str = "mean") -> Call:
    return Call("huber_loss.default", [x, y, _REDUCTIONS.index(reduction), delta])


@peer(CALLS, "binary_cross_entropy")
def _binary_cross_entropy(x: Operand, y: Operand, *, reduction: str = "mean") -> Call:
    if x.shape != y.shape:
        raise AbsentError("targets do not broadcast")
    return Call("binary_cross_entropy_with_logits.default", [x, y, None, None, _REDUCTIONS.index(reduction)])


@peer(CALLS, "cross_entropy")
def _cross_entropy(x: Operand, classes: Operand, axis: int = -1, *, reduction: str = "mean") -> Call:
    if axis % x.rank != 1 or classes.dtype != "i64":
        raise AbsentError("classes are of i64, along axis 1")
    return Call("cross_entropy_loss.default", [x, classes, None, _REDUCTIONS.index(reduction)])


def _check_classes(x: Operand, classes: Operand, axis: int, ignored: int | None) -> None:
    known = classes.values[classes.values != ignored]
    if ((known < 0) | (known >= x.shape[axis])).any():
        raise AbsentError("a class is out of range")


@peer(CALLS, "negative_likelihood")
def _negative_likelihood(
    x: Operand, classes: Operand, weights: Operand | None = None, axis: int = 1, *, ignored: int | None = None,
    reduction: str = "mean",
) -> Call:  # fmt: skip
    _check_classes(x, classes, axis, ignored)
    if x.rank not in (1, 2, 4):
        raise AbsentError("images have two dimensions")
    name = "nll_loss2d_forward" if x.rank == 4 else "nll_loss_forward"
    number = _REDUCTIONS.index(reduction)
    read = (0, 1) if number else (0,)
    return Call(f"{name}.default", [x, classes, weights, number, -100 if ignored is None else ignored], read=read)


@peer(CALLS, "negative_likelihood_gradient")
def _negative_likelihood_gradient(
    gradient: Operand, x: Operand, classes: Operand, total: Operand, weights: Operand | None = None, axis: int = 1, *,
    ignored: int | None = None, reduction: str = "mean",
) -> Call:  # fmt: skip
    if x.rank not in (1, 2, 4):
        raise AbsentError("images have two dimensions")
    name = "nll_loss2d_backward" if x.rank == 4 else "nll_loss_backward"
    last = [_REDUCTIONS.index(reduction), -100 if ignored is None else ignored]
    return Call(f"{name}.default", [gradient, x, classes, weights, *last, total])


@peer(CALLS, "pad")
def _pad(x: Operand, widths: Sequence[Sequence[int]], value: float = 0) -> Call:
    return Call("constant_pad_nd.default", [x, [int(width) for pair in reversed(widths) for width in pair], value])


@peer(CALLS, "flip")
def _flip(x: Operand, axis: int | Sequence[int] | None = None) -> Call:
    axes = range(x.rank) if axis is None else [axis] if isinstance(axis, int) else axis
    return Call("flip.default", [x, list(axes)])


@peer(CALLS, "concatenate")
def _concatenate(arrays: Sequence[Operand], axis: int = 0) -> Call:
    return Call("cat.default", [list(arrays), axis])


@peer(CALLS, "soft_margin_gradient")
def _soft_margin_gradient(x: Operand, y: Operand, gradient: Operand, *, reduction: str = "mean") -> Call:
    return Call("soft_margin_loss_backward.default", [gradient, x, y, _REDUCTIONS.index(reduction)])


@peer(CALLS, "put")
def _index_copy(
    x: Operand, indices: Operand, updates: Operand, axis: int = 0, *, accumulation: str | None = None,
    outside: str = "wrap",
) -> Call:  # fmt: skip
    if not isinstance(indices, Operand) or len(indices.shape) != 1 or accumulation not in (None, "+"):
        raise AbsentError("it copies or adds, at indices that are computed")
    _check_from_start(indices, outside)
    if accumulation is None and indices.dtype != "i64":
        raise AbsentError("indices of copies are of i64")
    return Call("index_add.default" if accumulation else "index_copy.default", [x, axis, indices, updates])


@peer(CALLS, "put")
def _put(x: Operand, indices: Sequence[int], updates: Operand, axis: int = 0) -> Call:
    if isinstance(indices, Operand):
        raise AbsentError("places are evenly spaced")
    start, step = indices[0], indices[1] - indices[0] if len(indices) > 1 else 1
    if list(indices) != list(range(start, start + step * len(indices), step)) or start < 0 or step < 0:
        raise AbsentError("places are evenly spaced")
    if updates.shape != tuple(len(indices) if d == axis % x.rank else extent for d, extent in enumerate(x.shape)):
        raise AbsentError("updates do not broadcast")
    return Call("slice_scatter.default", [x, updates, axis, start, indices[-1] + 1, step])


def _shuffled(name: str) -> Callable[..., Call]:
    def call(x: Operand, size: int, *, depth_first: bool) -> Call:
        if depth_first:
            raise AbsentError("depth is the first part of the number of a channel")
        return Call(name, [x, size])

    return call


peer(CALLS, "depth_to_space")(_shuffled("pixel_shuffle.default"))
peer(CALLS, "space_to_depth")(_shuffled("pixel_unshuffle.default"))


@peer(CALLS, "bitcast")
def _bitcast(x: Operand, dtype: str) -> Call:
    return Call("view.dtype", [x, ElementType(dtype)])


@peer(CALLS, "strided")
def _strided(x: Operand, shape: Sequence[int], strides: Sequence[int], first: int = 0) -> Call:
    if min(strides) < 0:
        raise AbsentError("strides are not negative")
    return Call("as_strided_copy.default", [x, list(shape), list(strides), first])


@peer(CALLS, "transpose")
def _transpose(x: Operand, axes: Sequence[int] | None = None) -> Call:
    return Call("permute.default", [x, list(range(x.rank))[::-1] if axes is None else list(axes)])


@peer(CALLS, "expand_dims")
def _expand_dims(x: Operand, axis: int | Sequence[int]) -> Call:
    if not isinstance(axis, int):
        raise AbsentError("it adds one axis")
    return Call("unsqueeze.default", [x, axis])


@peer(CALLS, "squeeze")
def _squeeze(x: Operand, axis: int | Sequence[int] | None = None) -> Call:
    if axis is None:
        return Call("squeeze.default", [x])
    return Call("squeeze.dim" if isinstance(axis, int) else "squeeze.dims", [x, axis])


@peer(CALLS, "split")
def _split(x: Operand, sizes: int | Sequence[int], axis: int = 0) -> Call:
    parts = [x.shape[axis] // sizes] * sizes if isinstance(sizes, int) else list(sizes)
    return Call("split_with_sizes.default", [x, parts, axis])


def _same(name: str) -> Callable[..., Call]:
    """The peer with the same arguments in the same order."""
    return lambda *arguments: Call(name, arguments)


for _name, _operator in {
    "broadcast_to": "expand.default",
    "diagonal": "diagonal_copy.default",
    "frexp": "frexp.Tensor",
    "next_after": "nextafter.default",
    "put_diagonal": "diagonal_scatter.default",
    "reshape": "view.default",
    "tile": "repeat.default",
    "unfold": "unfold_copy.default",
}.items():
    peer(CALLS, _name)(_same(_operator))

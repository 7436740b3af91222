"""Arrays in other shapes, and arrays of parts of others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdojo import build
from pdojo.build import shapes, tables
from pdojo.build.operator import Sample, array, call, operator
from pdojo.build.records.indexing import ANY

Values = NDArray[Any]
_MODES = ("edge", "reflect", "wrap")


@operator(
    build.pad,
    call(array("3 5"), ((1, 2), (0, 3)), 7),
    call(array("3 5"), ((-1, 2), (3, -2))),
    call(array("2 1 4"), ((0, 0), (2, 1), (-1, -2)), 3),
    call(array("7"), ((-7, 1),), 1),
    *(call(array("3 5"), ((2, 1), (0, 2)), 0, mode) for mode in _MODES),
    *(call(array("4 5"), ((-1, 1), (2, -1)), 0, mode) for mode in _MODES),
    call(array("1 3"), ((2, 3), (0, 1)), 0, "edge"),
    types=ANY,
)
def pad(x: Values, widths: Sequence[Sequence[int]], value: float = 0, mode: str = "constant") -> Values:
    """The array with elements around it, or without its ends."""
    cut = [slice(max(0, -before), extent + min(0, after)) for (before, after), extent in
           zip(widths, x.shape, strict=True)]  # fmt: skip
    added = [(max(before, 0), max(after, 0)) for before, after in widths]
    numpy: Any = np
    facts = {"constant_values": value} if mode == "constant" else {}
    return numpy.pad(x[tuple(cut)], added, mode, **facts)


def _as_numpy(function: Callable[..., Any], reference: Callable[..., Any], *samples: Sample, **more: Any) -> None:
    """A function whose reference is one of NumPy."""
    operator(function, *samples, types=ANY, **more)(reference)


_as_numpy(build.flip, np.flip, call(array("3 5"), -1), call(array("2 3 4"), (0, 2)), call(array("3 1"), 1),
          call(array("5")))  # fmt: skip
_as_numpy(build.repeat, np.repeat, call(array("3 5"), 3, -1), call(array("2 1 3"), 2, 1), call(array("4"), 1, 0))
_as_numpy(build.tile, np.tile, call(array("3 5"), (2, 3)), call(array("1 4 1"), (3, 1, 2)), call(array("4"), (1,)))
_as_numpy(build.transpose, np.transpose, call(array("2 3 4")), call(array("2 3 4"), (1, -1, 0)), call(array("1 5")))
_as_numpy(build.reshape, np.reshape, call(array("2 3 4"), (2, 12)), call(array("6 4"), (2, -1, 4)),
          call(array("2 9"), (3, 6)), call(array("0 3"), (3, 0)), call(array("1"), ()))  # fmt: skip
_as_numpy(build.broadcast_to, np.broadcast_to, call(array("3 1"), (2, 3, 5)), call(array(""), (2,)),
          call(array("1"), (0,)))  # fmt: skip
_as_numpy(build.expand_dims, np.expand_dims, call(array("3"), (0, -1)), call(array("2 3"), 1), call(array(""), -1))
_as_numpy(build.squeeze, np.squeeze, call(array("1 3 1"), -1), call(array("1 3 1")), call(array("1 1 2"), (0, 1)))
_as_numpy(build.stack, np.stack, call([array("3"), array("3")], -1), call([array("2 1")] * 3))
_PARTS = ("first", "second", "third")


@operator(build.split, call(array("6 2"), 3), call(array("2 7"), [2, 0, 5], -1), call(array("4"), [4]), types=ANY,
          results=_PARTS)  # fmt: skip
def split(x: Values, sizes: Any, axis: int = 0) -> list[Values]:
    """Neighbouring parts."""
    return np.split(x, sizes if isinstance(sizes, int) else np.cumsum(sizes)[:-1], axis)


@operator(
    build.concatenate,
    call([array("3 5"), array("3 1"), array("3 2")], -1),
    call([array("2 1 3"), array("4 1 3")]),
    call([array("2 0 3"), array("2 2 3"), array("2 1 3")], 1),
    call([array("4")]),
    types=ANY,
)
def concatenate(arrays: Sequence[Values], axis: int = 0) -> Values:
    """The arrays one after the other."""
    return np.concatenate(list(arrays), axis)


@operator(
    build.windows,
    call(array("2 3 9"), (3,), 2),
    call(array("2 7 8"), (3, 2), (2, 1), (1, 3)),
    call(array("4 1"), (1,)),
    types=ANY,
)
def windows(x: Values, size: Sequence[int], stride: Any = 1, dilation: Any = 1) -> Values:
    """Windows over the last axes."""
    rank = len(size)
    strides, dilations = ([each] * rank if isinstance(each, int) else each for each in (stride, dilation))
    reach = [(k - 1) * d + 1 for k, d in zip(size, dilations, strict=True)]
    seen = np.lib.stride_tricks.sliding_window_view(x, reach, tuple(range(x.ndim - rank, x.ndim)))
    return seen[(..., *[slice(None, None, s) for s in strides], *[slice(None, None, d) for d in dilations])]


@operator(
    shapes.unfold,
    call(array("3 7"), -1, 3, 2),
    call(array("5 2 3"), 0, 2, 1),
    call(array("2 4 1"), 1, 4, 3),
    call(array("6"), -1, 1, 4),
    types=ANY,
)
def unfold(x: Values, axis: int, size: int, step: int) -> Values:
    """The windows of an axis along a new last axis."""
    seen = np.lib.stride_tricks.sliding_window_view(x, size, axis)
    return seen[(*[slice(None)] * (axis % x.ndim), slice(None, None, step))]


@operator(
    shapes.strided,
    call(array("4 6"), (3, 2), (6, 2), 1),
    call(array("24"), (2, 3, 4), (0, 4, 1)),
    call(array("2 5"), (5, 1), (1, 9), 5),
    call(array("2 5"), (0, 3), (1, 1)),
    call(array("2 5"), (2, 4), (5, -1), 4),
    types=ANY,
)
def strided(x: Values, shape: Sequence[int], strides: Sequence[int], first: int = 0) -> Values:
    """Elements at strides in row-major order."""
    places = np.indices(tuple(shape))
    return x.reshape(-1)[first + sum(np.multiply(step, place) for step, place in zip(strides, places, strict=True))]


_DIAGONALS = ((0, 0, 1), (1, 0, -1), (-1, 2, 0), (2, -1, 1))


@operator(
    tables.diagonal,
    *(call(array("3 4 5"), *each) for each in _DIAGONALS),
    call(array("4 1"), -2),
    call(array("1 1")),
    call(array("3 3"), 5),
    types=ANY,
)
def diagonal(x: Values, offset: int = 0, axis: int = 0, other: int = 1) -> Values:
    """A diagonal of two axes."""
    return np.diagonal(x, offset, axis, other)


@operator(
    tables.put_diagonal,
    *(call(array("3 4 5"), array(shape), *each)
      for shape, each in zip(("5 3", "4 3", "4 3", "3 2"), _DIAGONALS, strict=True)),
    call(array("4 1"), array("1"), -2),
    types=ANY,
)  # fmt: skip
def put_diagonal(x: Values, values: Values, offset: int = 0, axis: int = 0, other: int = 1) -> Values:
    """A copy with a diagonal replaced."""
    found = x.copy().reshape(-1)
    found[np.diagonal(np.arange(x.size).reshape(x.shape), offset, axis, other)] = values
    return found.reshape(x.shape)


_BLOCKS = ((array("2 8 2 3"), 2), (array("1 9 1 2"), 3), (array("2 3 2 1"), 1))


def _blocks(x: Values, size: int, *, depth_first: bool) -> Values:
    """Channels [N, row, column, depth, H, W]."""
    split = (size, size, -1) if depth_first else (-1, size, size)
    parts = x.reshape(len(x), *split, *x.shape[2:])
    return parts if depth_first else np.moveaxis(parts, 1, 3)


@operator(
    shapes.depth_to_space, *(call(*each) for each in _BLOCKS), *(call(*each, depth_first=False) for each in _BLOCKS),
    types=ANY,
)  # fmt: skip
def depth_to_space(x: Values, size: int, *, depth_first: bool = True) -> Values:
    """Channels moved into blocks of the image."""
    parts = _blocks(x, size, depth_first=depth_first)
    height, width = x.shape[2] * size, x.shape[3] * size
    found = np.zeros((len(x), parts.shape[3], height, width), x.dtype)
    for row, column in np.ndindex(size, size):
        found[:, :, row::size, column::size] = parts[:, row, column]
    return found


_IMAGES = ((array("2 2 4 6"), 2), (array("1 1 3 6"), 3), (array("2 3 2 1"), 1))


@operator(
    shapes.space_to_depth, *(call(*each) for each in _IMAGES), *(call(*each, depth_first=False) for each in _IMAGES),
    types=ANY,
)  # fmt: skip
def space_to_depth(x: Values, size: int, *, depth_first: bool = True) -> Values:
    """Blocks of the image moved into channels."""
    found = np.zeros((len(x), x.shape[1] * size * size, x.shape[2] // size, x.shape[3] // size), x.dtype)
    for row, column in np.ndindex(size, size):
        _blocks(found, size, depth_first=depth_first)[:, row, column] = x[:, :, row::size, column::size]
    return found


@operator(
    build.bitcast,
    call(array("3 5"), "i32", types=["f32"]),
    call(array("2 1 3"), "u32", types=["f32", "i32"]),
    call(array("4", given=[0, 1, -1, 2**31 - 1]), "f32", types=["i32"]),
    call(array("4"), "i64", types=["f64", "u64"]),
    call(array("0 2"), "f64", types=["i64"]),
    types=("f32", "f64"),
)
def bitcast(x: Values, dtype: str, *, element: str) -> Values:
    """The same bits as another type."""
    names = {"f": "float", "i": "int", "u": "uint"}
    own, other = (np.dtype(f"{names[each[0]]}{each[1:]}") for each in (element, dtype))
    found = x.astype(own).view(other)
    return found.astype(np.float64) if dtype[0] == "f" else found

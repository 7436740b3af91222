"""Arrays in other shapes, and arrays of parts of others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdojo import build
from pdojo.build.operator import array, call, operator
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


@operator(
    build.flip, call(array("3 5"), -1), call(array("2 3 4"), (0, 2)), call(array("3 1"), 1), call(array("5")), types=ANY
)
def flip(x: Values, axis: Any = None) -> Values:
    """The elements in reverse order along axes."""
    return np.flip(x, axis)


@operator(build.repeat, call(array("3 5"), 3, -1), call(array("2 1 3"), 2, 1), call(array("4"), 1, 0), types=ANY)
def repeat(x: Values, count: int, axis: int) -> Values:
    """Every element several times."""
    return np.repeat(x, count, axis)


@operator(build.tile, call(array("3 5"), (2, 3)), call(array("1 4 1"), (3, 1, 2)), call(array("4"), (1,)), types=ANY)
def tile(x: Values, counts: Sequence[int]) -> Values:
    """The array several times along each axis."""
    return np.tile(x, tuple(counts))


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

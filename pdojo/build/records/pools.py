"""Pools and their gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from pdojo import build
from pdojo.build import pools, tabled_windows
from pdojo.build.operator import array, call, operator

Values = NDArray[Any]
Spans = list[list[list[int]]]
"""The elements of each window, keyed by axis and place; elements outside of the image too."""


def ends_of(padding: Any, rank: int) -> list[tuple[int, int]]:
    """Elements before and after each spatial axis."""
    rows = [padding] * rank if isinstance(padding, int) else padding
    return [(row, row) if isinstance(row, int) else (row[0], row[1]) for row in rows]


def _each(value: Any, rank: int) -> Sequence[int]:
    return [value] * rank if isinstance(value, int) else value


def spans(
    extents: Sequence[int], size: Sequence[int], stride: Any, padding: Any, dilation: Any, *, ceil: bool = False
) -> Spans:
    """The windows of images."""
    rank = len(extents)
    found: Spans = []
    rows = zip(extents, size, _each(size if stride is None else stride, rank), _each(dilation, rank), strict=True)
    for (extent, k, s, d), (before, after) in zip(rows, ends_of(padding, rank), strict=True):
        rest = extent + before + after - d * (k - 1) - 1
        starts = [n * s for n in range((-(-rest // s) if ceil else rest // s) + 1)]
        found.append([[start - before + d * t for t in range(k)] for start in starts if start < extent + before])
    return found


def _inside(windows: Spans, place: Sequence[int], extents: Sequence[int]) -> list[list[int]]:
    """The elements of a window that are in the image, keyed by axis."""
    spanned: list[list[int]] = [axis[p] for axis, p in zip(windows, place, strict=True)]
    return [[e for e in each if 0 <= e < extent] for each, extent in zip(spanned, extents, strict=True)]


def by_window(x: Values, windows: Spans, function: Callable[[Values, Sequence[int]], Values]) -> Values:
    """A function of the elements [..., *window] of every window, and of the number of the window."""
    rank = len(windows)
    found: dict[Sequence[int], Values] = {}
    for place in np.ndindex(*map(len, windows)):
        rows = _inside(windows, place, x.shape[-rank:])
        found[place] = function(x[(..., *np.ix_(*rows))], place)
    first = next(iter(found.values()))
    return np.stack(list(found.values()), -1).reshape(*first.shape, *map(len, windows))


def added(shape: Sequence[int], windows: Spans, of: Callable[[Sequence[int]], Values]) -> Values:
    """Zeros of a shape with `of(place)` added to the elements of every window."""
    found, rank = np.zeros(shape), len(windows)
    for place in np.ndindex(*map(len, windows)):
        rows = _inside(windows, place, shape[-rank:])
        found[(..., *np.ix_(*rows))] += of(place)[(..., *[None] * rank)]
    return found


_FUNCTIONS: dict[str, Callable[..., Any]] = {"max": np.max, "min": np.min, "+": np.sum, "*": np.prod}
_WINDOWS = (
    call("max", array("2 3 7 6"), (3, 2), stride=2, padding=[(1, 1), (1, 0)]),
    call("max", array("1 2 9 8"), (3, 2), stride=(2, 1), padding=1, dilation=(1, 2), ceil=True),
    call("max", array("1 2 7"), (3,), stride=3, ceil=True),
    call("max", array("1 1 4 5 6"), (2, 3, 2), stride=(1, 2, 2), padding=(1, 1, 0), dilation=(1, 1, 2)),
    call("max", array("1 1 3 3", given=[np.nan, 1, 1, -np.inf, -np.inf, 1, np.inf, -1, np.nan]), (2, 2), stride=1),
    call("max", array("2 1 1 1"), (1, 1)),
    call("max", array("1 2 5 5"), (2, 2), ceil=True, types=("i8", "u8", "i64")),
    call("+", array("1 2 6 5"), (2, 2), stride=(2, 1), padding=[(0, 1), (1, 1)]),
    call("*", array("1 1 4 5"), (3, 2), dilation=(1, 2)),
    call("min", array("1 2 5"), (2,), padding=1),
    call("max", array("2 3 3 8"), (2, 4), stride=(3, 4), padding=[(1, 1), (2, 2)], ceil=True),
    call("+", array("2 3 6 7"), (3, 2), stride=(2, 3), padding=[(1, 0), (0, 1)], ceil=True),
    call("max", array("1 2 6"), (3,), stride=1, padding=1, dilation=2, types=("u8", "f32")),
    call("max", array("2 3 4 5"), (6, 7), stride=(4, 3), ceil=True),
)


@operator(build.pool, *_WINDOWS)
def pool(
    accumulation: str, x: Values, size: Sequence[int], *, stride: Any = None, padding: Any = 0, dilation: Any = 1,
    ceil: bool = False,
) -> Values:  # fmt: skip
    """The accumulation of the elements of every window."""
    function, axes = _FUNCTIONS[accumulation], tuple(range(-len(size), 0))
    windows = spans(x.shape[2:], size, stride, padding, dilation, ceil=ceil)
    return by_window(x, windows, lambda part, _: function(part, axes)).astype(x.dtype)


_MEANS = (
    call(array("2 3 7 6"), (3, 2), stride=2, padding=(1, 1)),
    call(array("2 3 7 6"), (3, 2), stride=2, padding=(1, 1), count_padding=False),
    call(array("1 2 9 8"), (3, 3), stride=2, padding=1, ceil=True),
    call(array("1 2 9 8"), (3, 3), stride=2, padding=1, ceil=True, count_padding=False),
    call(array("1 2 6 7"), (2, 3), padding=(1, 0), divisor=5),
    call(array("1 2 7"), (3,), stride=2, ceil=True),
    call(array("1 1 4 5 6"), (2, 3, 2), stride=(1, 2, 2), padding=(1, 1, 0), count_padding=False),
    call(array("1 2 9 8"), (3, 2), padding=[(0, 2), (1, 0)], dilation=(2, 3), ceil=True),
    call(array("1 2 9 8"), (3, 2), padding=[(0, 2), (1, 0)], dilation=(2, 3), count_padding=False),
    call(array("2 1 1 1"), (1, 1)),
    call(array("2 3 3 8"), (2, 4), stride=(3, 4), padding=[(1, 1), (2, 2)], ceil=True),
    call(array("2 3 3 8"), (2, 4), stride=(3, 4), padding=[(1, 1), (2, 2)], ceil=True, count_padding=False),
    call(array("2 3 4 5"), (6, 7), stride=(4, 3), ceil=True),
    call(array("2 3 4 5"), (7, 8), stride=4, padding=(1, 1), ceil=True, count_padding=False),
)


@operator(build.avg_pool, *_MEANS)
def avg_pool(
    x: Values, size: Sequence[int], *, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil: bool = False,
    count_padding: bool = True, divisor: float | None = None,
) -> Values:  # fmt: skip
    """The mean of the elements of every window."""
    windows = spans(x.shape[2:], size, stride, padding, dilation, ceil=ceil)
    divisors = _counts(windows, x.shape[2:], padding, count_padding=count_padding, divisor=divisor)
    sums = pool("+", x, size, stride=stride, padding=padding, dilation=dilation, ceil=ceil)
    return sums / divisors


def _counts(
    windows: Spans, extents: Sequence[int], padding: Any, *, count_padding: bool, divisor: float | None
) -> Values:
    """The numbers that sums of windows are divided by."""
    if divisor is not None:
        return np.full(list(map(len, windows)), divisor)
    found = np.ones(())
    for axis, extent, (before, after) in zip(windows, extents, ends_of(padding, len(extents)), strict=True):
        low, high = (-before, extent + after) if count_padding else (0, extent)
        found = np.multiply.outer(found, [sum(low <= e < high for e in window) for window in axis])
    return found


@operator(
    pools.lp_pool,
    call(array("2 3 7 6"), (3, 2), 2, stride=2, padding=1),
    call(array("1 2 9 8"), (3, 2), 3, stride=(2, 1), dilation=(1, 2), ceil=True),
    call(array("1 2 7"), (3,), 1),
    call(array("2 1 1"), (1,), 2),
    ulps=16,
)
def lp_pool(
    x: Values, size: Sequence[int], order: float, *, stride: Any = None, padding: Any = 0, dilation: Any = 1,
    ceil: bool = False,
) -> Values:  # fmt: skip
    """The norm of every window."""
    powers: Values = np.abs(x) ** order
    sums = pool("+", powers, size, stride=stride, padding=padding, dilation=dilation, ceil=ceil)
    return np.power(sums, 1 / order)


def _numbered(text: str) -> Any:
    """The flat index of each element in its image."""
    n, c, *extents = map(int, text.split())
    plane = int(np.prod(extents))
    return array(text, "i64", given=[*range(plane)] * n * c)


@operator(
    pools.max_pool_with_places,
    call(array("2 3 7 6"), (3, 2), _numbered("2 3 7 6"), stride=2, padding=1),
    call(array("1 2 9 8", low=0, high=3, whole=True), (3, 2), _numbered("1 2 9 8"), stride=(2, 1), padding=1,
         dilation=(1, 2), ceil=True),
    call(array("1 1 3 3", given=[np.nan, 1, 1, -np.inf, np.nan, 1, np.inf, -1, np.nan]), (2, 2), _numbered("1 1 3 3"),
         stride=1),
    call(array("1 1 3 3", given=[-np.inf] * 9), (2, 2), _numbered("1 1 3 3"), stride=1),
    call(array("1 1 4 5 6"), (2, 3, 2), _numbered("1 1 4 5 6"), stride=(1, 2, 2), padding=(1, 1, 0)),
    call(array("1 2 5 5"), (2, 2), _numbered("1 2 5 5"), stride=2, ceil=True, types=("i8", "u8", "i64")),
    results=("result", "place"),
)  # fmt: skip
def max_pool_with_places(
    x: Values, size: Sequence[int], places: Values, *, stride: Any, padding: Any = 0, dilation: Any = 1,
    ceil: bool = False,
) -> list[Values]:  # fmt: skip
    """The greatest elements, and the first places of them; of NaN the last ones."""
    windows, rank = spans(x.shape[2:], size, stride, padding, dilation, ceil=ceil), len(size)
    most = pool("max", x, size, stride=stride, padding=padding, dilation=dilation, ceil=ceil)
    joined = np.stack([x.astype(np.float64), places.astype(np.float64)])

    def place(part: Values, at: Sequence[int]) -> Values:
        elements: Values = part[0].reshape(*part.shape[1:-rank], -1)
        numbers: Values = part[1].reshape(elements.shape)
        greatest = most[(..., *at, None)]
        first = np.where(elements == greatest, numbers, x.size).min(-1)
        last = np.where(np.isnan(elements), numbers, -1).max(-1)
        return cast("Values", np.where(last >= 0, last, first))

    return [most, by_window(joined, windows, place).astype(places.dtype)]


@operator(
    pools.by_columns,
    call(array("2 5", low=0, high=48), (1, 2, 4, 6)),
    call(array("9", low=0, high=120), (2, 1, 3, 4, 5)),
    call(array("2 1 1", low=0, high=6), (1, 1, 6)),
    types=("i64", "i32"),
)
def by_columns(index: Values, shape: Sequence[int]) -> Values:
    """Flat indices as if the spatial axes were stored in the reverse order."""
    n, c, *places = np.unravel_index(index, tuple(shape))
    order = (*shape[:2], *reversed(shape[2:]))
    return np.asarray(np.ravel_multi_index((n, c, *reversed(places)), order), index.dtype)


@operator(
    pools.max_unpool,
    call(array("1 1 2 2"), array("1 1 2 2", "i64", given=[4, 4, 4, 4]), (1, 1, 3, 3)),
    call(array("1 1 2 2"), array("1 1 2 2", "i64", given=[5, 5, 5, 1]), (1, 1, 4, 4)),
    call(array("1 1 2 2", given=[-np.inf, np.nan, -0.0, 3]), array("1 1 2 2", "i64", given=[0, 5, 9, 9]), (1, 1, 4, 4)),
    call(array("2 3 2 2"), array("2 3 2 2", "i64", given=[int(n) for n in np.arange(24) * 4 + np.arange(24) % 3]),
         (2, 3, 4, 4)),
    call(array("1 2 3"), array("1 2 3", "i64", given=[0, 3, 5, 6, 6, 11]), (1, 2, 6)),
)  # fmt: skip
def max_unpool(x: Values, indices: Values, shape: Sequence[int]) -> Values:
    """Zeros with the elements at flat indices."""
    found = np.zeros(int(np.prod(shape)))
    for place, element in zip(indices.reshape(-1), x.reshape(-1), strict=True):
        found[place] = element
    return found.reshape(shape)


def _parts(extent: int, places: int) -> list[list[int]]:
    """The windows of an adaptive pool."""
    return [[*range(n * extent // places, -(-(n + 1) * extent // places))] for n in range(places)]


_ADAPTIVE = (
    call(array("2 3 7 8"), (3, 4)),
    call(array("3 7 8"), (7, 9)),
    call(array("2 1 6 4"), (1, 2)),
    call(array("1 2 5 4 3"), (2, 4, 2)),
)


@operator(
    tabled_windows.adaptive_pool,
    call("max", array("2 3 7 8"), (3, 4)),
    call("max", array("1 3 7 8"), (2, 9)),
    call("max", array("1 2 5 4 3"), (2, 4, 2)),
    call("+", array("2 6 4"), (3, 2)),
    call("max", array("1 1 3 4", given=[np.nan, 1, 2, -np.inf, -np.inf, -np.inf, np.inf, 0, 1, np.nan, 0, 0]), (2, 3)),
)
def adaptive_pool(accumulation: str, x: Values, places: Sequence[int]) -> Values:
    """The accumulation of windows that divide the last axes."""
    rank = len(places)
    windows = [_parts(extent, count) for extent, count in zip(x.shape[-rank:], places, strict=True)]
    return by_window(x, windows, lambda part, _: _FUNCTIONS[accumulation](part, tuple(range(-rank, 0))))


@operator(tabled_windows.adaptive_avg_pool, *_ADAPTIVE)
def adaptive_avg_pool(x: Values, places: Sequence[int]) -> Values:
    """The means of windows that divide the last axes."""
    return adaptive_pool("+", x, places) / adaptive_pool("+", np.ones_like(x), places)


@operator(
    tabled_windows.adaptive_avg_pool_gradient,
    call(array("2 3 3 4"), (7, 8)),
    call(array("3 7 9"), (7, 8)),
    call(array("2 1 1 2"), (6, 4)),
    call(array("1 2 2 4 2"), (5, 4, 3)),
)
def adaptive_avg_pool_gradient(gradient: Values, extents: Sequence[int]) -> Values:
    """The gradient of the images."""
    rank = len(extents)
    windows = [_parts(extent, count) for extent, count in zip(extents, gradient.shape[-rank:], strict=True)]
    sizes = [[len(window) for window in axis] for axis in windows]

    def of(place: Sequence[int]) -> Values:
        return gradient[(..., *place)] / np.prod([sizes[a][p] for a, p in enumerate(place)])

    return added((*gradient.shape[:-rank], *extents), windows, of)


@operator(
    tabled_windows.avg_pool_gradient,
    call(array("2 3 4 4"), (7, 6), (3, 2), stride=(2, 2), padding=(1, 1)),
    call(array("2 3 4 4"), (7, 6), (3, 2), stride=(2, 2), padding=(1, 1), count_padding=False),
    call(array("1 2 5 5"), (9, 8), (3, 3), stride=(2, 2), padding=(1, 1)),
    call(array("2 4 2"), (7, 6), (2, 3), stride=(2, 2), padding=(1, 0), divisor=5),
    call(array("1 1 5 2 3"), (4, 5, 6), (2, 3, 2), stride=(1, 2, 2), padding=(1, 0, 0), count_padding=False),
)
def avg_pool_gradient(
    gradient: Values, extents: Sequence[int], size: Sequence[int], *, stride: Any, padding: Any,
    count_padding: bool = True, divisor: float | None = None,
) -> Values:  # fmt: skip
    """The gradient of the images."""
    rank = len(extents)
    # As many windows as the gradient has: all of them in ceil mode.
    windows = _as_many(gradient, size, stride, padding, [1] * rank)
    divisors = _counts(windows, extents, padding, count_padding=count_padding, divisor=divisor)
    shape = (*gradient.shape[:-rank], *extents)
    return added(shape, windows, lambda place: gradient[(..., *place)] / divisors[tuple(place)])


def _as_many(gradient: Values, size: Sequence[int], stride: Any, padding: Any, dilation: Any) -> Spans:
    rows = zip(gradient.shape[-len(size) :], size, stride, padding, dilation, strict=True)
    return [[[n * s - p + t * d for t in range(k)] for n in range(count)] for count, k, s, p, d in rows]


@operator(
    tabled_windows.max_pool_gradient,
    call(array("1 2 2 2"), array("1 2 2 2", "i64", given=[4, 4, 4, 4, 0, 1, 3, 4]), (3, 3), (2, 2), stride=(1, 1),
         padding=(0, 0), dilation=(1, 1)),
    call(array("1 1 3 2"), array("1 1 3 2", "i64", given=[1, 2, 9, 10, 13, 14]), (5, 4), (3, 2), stride=(2, 2),
         padding=(1, 0), dilation=(1, 1)),
    call(array("2 2 3"), array("2 2 3", "i64", given=[1, 13, 4, 10, 13, 24, 0, 2, 13, 21, 21, 13]), (5, 5), (2, 3),
         stride=(2, 2), padding=(0, 1), dilation=(2, 1)),
)  # fmt: skip
def max_pool_gradient(
    gradient: Values, indices: Values, extents: Sequence[int], size: Sequence[int], **windows: Any
) -> Values:
    """The gradient of the images: the gradient of each window goes to its index, if the window has it."""
    rank, plane = len(extents), int(np.prod(extents))
    spanned = _as_many(gradient, size, windows["stride"], windows["padding"], windows["dilation"])
    found = np.zeros((int(np.prod(gradient.shape[:-rank])), plane))
    for image, (rows, numbers) in enumerate(
        zip(gradient.reshape(len(found), *gradient.shape[-rank:]), indices.reshape(len(found), *gradient.shape[-rank:]),
            strict=True)
    ):  # fmt: skip
        for place in np.ndindex(*rows.shape):
            at = [int(each) for each in np.unravel_index(int(numbers[place]), tuple(extents))]
            if all(e in spanned[a][p] for a, (e, p) in enumerate(zip(at, place, strict=True))):
                found[image, numbers[place]] += rows[place]
    return found.reshape(*gradient.shape[:-rank], *extents)

"""Convolutions, their transposes and their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdojo import build
from pdojo.build import conv_gradients
from pdojo.build.operator import array, call, operator
from pdojo.build.records.pools import ends_of

Values = NDArray[Any]


def _each(value: Any, rank: int) -> Sequence[int]:
    return [value] * rank if isinstance(value, int) else value


def taps(
    x: Values, window: Sequence[int], stride: Any, padding: Any, dilation: Any
) -> list[tuple[Sequence[int], Values]]:
    """The elements [N, C, *places] of padded images at each tap of all windows."""
    rank = len(window)
    strides, dilations = _each(stride, rank), _each(dilation, rank)
    padded = np.pad(x, [(0, 0), (0, 0), *ends_of(padding, rank)])
    rows = zip(padded.shape[2:], window, strides, dilations, strict=True)
    counts = [(extent - (k - 1) * d - 1) // s + 1 for extent, k, s, d in rows]
    return [
        (tap, padded[(..., *[slice(t * d, t * d + (n - 1) * s + 1, s)
                             for t, n, s, d in zip(tap, counts, strides, dilations, strict=True)])])
        for tap in np.ndindex(*window)
    ]  # fmt: skip


def _by_channel(bias: Values | None, x: Values) -> Values:
    return x if bias is None else x + bias.reshape(-1, *[1] * (x.ndim - 2))


@operator(
    build.conv,
    call(array("2 4 7 6"), array("6 2 3 2"), array("6"), stride=(2, 1), padding=[(1, 0), (0, 2)], groups=2),
    call(array("1 3 9 8"), array("2 3 3 3"), padding=1, dilation=(1, 2)),
    call(array("1 3 9 8"), array("2 3 3 3"), array("2"), stride=2, padding=(1, 0)),
    call(array("2 3 7"), array("3 1 3"), stride=2, groups=3),
    call(
        array("1 2 4 5 6"), array("3 2 2 1 3"), stride=(1, 2, 1), padding=[(0, 0), (1, 1), (0, 1)], dilation=(1, 1, 2)
    ),
    call(array("1 1 1 1"), array("1 1 1 1"), array("1")),
    call(array("1 2 5 5"), array("2 2 5 5")),
)
def conv(
    x: Values, weights: Values, bias: Values | None = None, *, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1,
) -> Values:  # fmt: skip
    """The sums of products of windows and weights."""
    n, outputs, rest = len(x), weights.shape[0] // groups, weights.shape[1]
    found: Any = 0
    for tap, seen in taps(x, weights.shape[2:], stride, padding, dilation):
        filters = weights[(..., *tap)].reshape(groups, outputs, rest)
        parts = seen.reshape(n, groups, rest, *seen.shape[2:])
        found = found + np.einsum("goc,ngc...->ngo...", filters, parts)
    return _by_channel(bias, found.reshape(n, groups * outputs, *found.shape[3:]))


@operator(
    build.conv_winograd,
    call(array("2 3 7 6"), array("4 3 3 3"), array("4"), padding=1),
    call(array("3 2 4 9"), array("2 2 3 3"), padding=[(1, 0), (0, 2)], block=(2, 2)),
    call(array("1 1 3 3"), array("1 1 3 3")),
)
def conv_winograd(
    x: Values, weights: Values, bias: Values | None = None, *, padding: Any = 0, block: Any = None
) -> Values:
    """The sums of products of windows and weights."""
    return conv(x, weights, bias, padding=padding)


@operator(
    build.conv_transpose,
    call(array("2 4 5 4"), array("4 3 3 2"), array("6"), stride=(2, 1), padding=[(1, 0), (0, 1)], groups=2),
    call(array("1 3 4 5"), array("3 2 3 3"), stride=2, padding=1, output_padding=(1, 0)),
    call(array("1 3 4 5"), array("3 2 3 2"), array("2"), stride=(3, 2), dilation=(2, 3), output_padding=1),
    call(array("1 2 5"), array("2 1 4"), stride=3),
    call(array("2 16 4 3"), array("16 2 3 5"), array("2"), stride=2, padding=[(1, 0), (0, 1)], output_padding=1),
    call(array("1 16 3"), array("16 2 1"), stride=2, output_padding=1),
    call(array("1 2 2 3 2"), array("2 2 2 1 3"), stride=(2, 1, 2)),
    call(array("1 1 1 1"), array("1 1 1 1")),
)
def conv_transpose(
    x: Values, weights: Values, bias: Values | None = None, *, stride: Any = 1, padding: Any = 0,
    output_padding: Any = 0, dilation: Any = 1, groups: int = 1,
) -> Values:  # fmt: skip
    """The sums of weights times elements, without the padding."""
    rank, n = x.ndim - 2, len(x)
    strides, dilations, behind = (_each(each, rank) for each in (stride, dilation, output_padding))
    ends = ends_of(padding, rank)
    rows = zip(x.shape[2:], weights.shape[2:], strides, dilations, behind, strict=True)
    whole = [(extent - 1) * s + (k - 1) * d + 1 + more for extent, k, s, d, more in rows]
    outputs, rest = weights.shape[1], x.shape[1] // groups
    found = np.zeros((n, groups * outputs, *whole))
    parts = x.reshape(n, groups, rest, *x.shape[2:])
    for tap in np.ndindex(*weights.shape[2:]):
        filters = weights[(..., *tap)].reshape(groups, rest, outputs)
        product = np.einsum("gco,ngc...->ngo...", filters, parts).reshape(n, -1, *x.shape[2:])
        places = [slice(t * d, t * d + (extent - 1) * s + 1, s)
                  for t, d, extent, s in zip(tap, dilations, x.shape[2:], strides, strict=True)]  # fmt: skip
        found[(..., *places)] += product
    cut = [slice(before, extent - after) for (before, after), extent in zip(ends, whole, strict=True)]
    return _by_channel(bias, found[(..., *cut)])


@operator(
    conv_gradients.of_images,
    call(array("2 6 4 3"), array("6 2 3 2"), (7, 6), stride=(2, 2), padding=(1, 0), dilation=(1, 1), groups=2),
    call(array("1 2 7 5"), array("2 3 3 2"), (9, 8), stride=(1, 1), padding=(1, 0), dilation=(2, 3)),
    call(array("1 2 3"), array("2 1 3"), (8,), stride=(2,), padding=(0,), dilation=(1,)),
    call(array("1 4 9 7"), array("3 4 3 3"), (5, 4), stride=(2, 2), padding=(1, 1), dilation=(1, 1), transposed=True),
    call(array("1 4 9 8"), array("6 2 3 3"), (4, 3), stride=(2, 2), padding=(0, 0), dilation=(1, 1), groups=2,
         transposed=True),
    call(array("1 24 5 6"), array("24 25 3 3"), (7, 6), stride=(1, 1), padding=(0, 1), dilation=(1, 1), winograd=True),
)  # fmt: skip
def of_images(
    gradient: Values, weights: Values, extents: Sequence[int], *, stride: Any, padding: Any, dilation: Any,
    groups: int = 1, transposed: bool = False, winograd: bool = False,
) -> Values:  # fmt: skip
    """The gradient of the images; `winograd` changes no value."""
    if transposed:
        found = conv(gradient, weights, stride=stride, padding=padding, dilation=dilation, groups=groups)
        return found[(..., *[slice(extent) for extent in extents])]
    whole = conv_transpose(gradient, weights, stride=stride, dilation=dilation, groups=groups)
    padded = np.zeros((*whole.shape[:2], *[e + 2 * p for e, p in zip(extents, padding, strict=True)]))
    padded[(..., *map(slice, whole.shape[2:]))] = whole
    return padded[(..., *[slice(p, p + e) for e, p in zip(extents, padding, strict=True)])]


@operator(
    conv_gradients.of_weights,
    call(array("2 6 4 3"), array("2 4 7 6"), (3, 2), stride=(2, 2), padding=(1, 0), dilation=(1, 1), groups=2),
    call(array("1 2 7 5"), array("1 3 9 8"), (3, 2), stride=(1, 1), padding=(1, 0), dilation=(2, 3)),
    call(array("1 2 3"), array("1 2 8"), (3,), stride=(2,), padding=(0,), dilation=(1,)),
    call(array("1 1 1 1"), array("1 1 2 2"), (2, 2), stride=(1, 1), padding=(0, 0), dilation=(1, 1)),
)
def of_weights(
    few: Values, many: Values, window: Sequence[int], *, stride: Any, padding: Any, dilation: Any, groups: int = 1
) -> Values:
    """The gradient of the weights."""
    n, outputs, rest = len(few), few.shape[1] // groups, many.shape[1] // groups
    rows = few.reshape(n, groups, outputs, -1)
    found = np.zeros((few.shape[1], rest, *window))
    for tap, seen in taps(many, window, stride, padding, dilation):
        part = seen[(..., *map(slice, few.shape[2:]))].reshape(n, groups, rest, -1)
        found[(..., *tap)] = np.einsum("ngop,ngcp->goc", rows, part).reshape(-1, rest)
    return found


@operator(
    conv_gradients.folded,
    call(array("2 12 12"), (5, 4), (2, 3), stride=(1, 1), padding=[(0, 0), (1, 0)], dilation=(1, 1)),
    call(array("1 8 9"), (6, 7), (2, 2), stride=(2, 3), padding=[(0, 1), (1, 1)], dilation=(2, 1)),
    call(array("1 4 1"), (2, 2), (2, 2), stride=(1, 1), padding=[(0, 0), (0, 0)], dilation=(1, 1)),
    call(array("1 3 4"), (9,), (3,), stride=(2,), padding=[(0, 0)], dilation=(1,)),
    types=("f64", "f32"),
)
def folded(
    x: Values, image: Sequence[int], block: Sequence[int], *, stride: Any, padding: Any, dilation: Any
) -> Values:
    """The sums of the blocks that overlap at each element."""
    n, channels = len(x), x.shape[1] // int(np.prod(block))
    whole = [extent + before + after for extent, (before, after) in zip(image, padding, strict=True)]
    found = np.zeros((n, channels, *whole))
    rows = zip(whole, block, stride, dilation, strict=True)
    places = [(extent - (k - 1) * d - 1) // s + 1 for extent, k, s, d in rows]
    parts = x.reshape(n, channels, *block, *places)
    for place in np.ndindex(*places):
        at = zip(place, stride, block, dilation, strict=True)
        found[(..., *[slice(p * s, p * s + (k - 1) * d + 1, d) for p, s, k, d in at])] += parts[(..., *place)]
    return found[(..., *[slice(b, b + e) for e, (b, _) in zip(image, padding, strict=True)])]

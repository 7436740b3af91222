"""Images with channels last in memory, as instructions read them that multiply groups of narrow numbers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

from pdojo.build.array import Array, constant
from pdojo.build.contractions import conv, ends_of
from pdojo.build.pieces import assemble, keep_order, pad
from pdojo.build.shapes import transpose

PAIR = 2
"""Numbers of 16 bits that an instruction of the processors multiplies and adds up together."""


def channels_last(x: Array, border: Array, ends: Sequence[Sequence[int]], more: int = 0) -> Array:
    """A copy of images [N, C, ...] with `more` channels and a border of one value; channels are last in memory."""
    rank = x.rank - 2
    inner = [extent + start + end for extent, (start, end) in zip(x.shape[2:], ends, strict=True)]
    place = tuple(slice(start, start + n) for (start, _), n in zip(ends, x.shape[2:], strict=True))
    shape = (x.shape[0], *inner, x.shape[1] + more)
    fill = border if more or {*chain(*ends)} != {0} else None
    made = assemble(
        shape, [((slice(None), *place, slice(0, x.shape[1])), transpose(x, (0, *range(2, rank + 2), 1)))], fill
    )
    return transpose(keep_order(made), (0, rank + 1, *range(1, rank + 1)))


def conv_of_pairs(x: Array, weights: Array, bias: Array | None = None, **places: Any) -> Array:
    """`conv` of numbers of 16 bits, by pairs of channels."""
    rank = x.rank - 2
    more = -x.shape[1] % PAIR
    ends = ends_of(places.pop("padding", 0), rank)
    images = channels_last(x, constant(0, x.dtype), ends, more)
    return conv(images, pad(weights, [(0, 0), (0, more), *[(0, 0)] * rank]), bias, **places)

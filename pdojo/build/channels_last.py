"""Images with channels last in memory, as instructions read them that multiply groups of narrow numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from pdojo.build.array import Array, constant, is_whole
from pdojo.build.contractions import conv, ends_of
from pdojo.build.pieces import Piece, assemble, keep_order, pad
from pdojo.build.shapes import transpose

PAIR = 2
"""Numbers of 16 bits that an instruction of the processors multiplies and adds up together."""


def channels_last(x: Array, border: Array, ends: Sequence[Sequence[int]], more: int = 0) -> Array:
    """Images [N, C, ...] with `more` channels and a border of one value; channels are last in memory.

    A copy, unless they are as they should be.
    """
    last = _last(x)
    if not more and not any(chain(*ends)) and is_whole(last):
        return x
    inner = [extent + start + end for extent, (start, end) in zip(x.shape[2:], ends, strict=True)]
    place = [slice(start, start + n) for (start, _), n in zip(ends, x.shape[2:], strict=True)]
    shape = (x.shape[0], *inner, x.shape[1] + more)
    pieces: list[Piece] = [((slice(None), *part), border) for part in _borders(inner, place)]
    if more:
        pieces.append(((slice(None), *place, slice(x.shape[1], None)), border))
    pieces.append(((slice(None), *place, slice(0, x.shape[1])), last))
    return with_channels_first(keep_order(assemble(shape, pieces, None)))


def _last(x: Array) -> Array:
    """Images [N, C, ...] as [N, ..., C]; a view."""
    return transpose(x, (0, *range(2, x.rank), 1))


def _borders(extents: Sequence[int], place: Sequence[slice]) -> Iterator[tuple[slice, ...]]:
    """The parts of an array around a place: before and behind it along each axis."""
    for axis, (extent, inside) in enumerate(zip(extents, place, strict=True)):
        for part in (slice(0, inside.start), slice(inside.stop, extent)):
            if part.start < part.stop:
                yield (*place[:axis], part)


def with_channels_last(x: Array) -> Array:
    """A copy [N, ..., C] of images [N, C, ...]."""
    last = _last(x)
    return keep_order(assemble(last.shape, [((), last)], None))


def with_channels_first(x: Array) -> Array:
    """The images [N, C, ...] in an array [N, ..., C]; a view."""
    return transpose(x, (0, x.rank - 1, *range(1, x.rank - 1)))


def conv_of_pairs(x: Array, weights: Array, bias: Array | None = None, **places: Any) -> Array:
    """`conv` of numbers of 16 bits, by pairs of channels."""
    rank = x.rank - 2
    more = -x.shape[1] % PAIR
    ends = ends_of(places.pop("padding", 0), rank)
    images = channels_last(x, constant(0, x.dtype), ends, more)
    return conv(images, pad(weights, [(0, 0), (0, more), *[(0, 0)] * rank]), bias, **places)

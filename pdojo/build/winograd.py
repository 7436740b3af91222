"""Convolutions with fewer products: Winograd's minimal filtering F(2x2, 3x3) (Lavin and Gray, CVPR 2016)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from pdojo.build.array import Array
from pdojo.build.channels_last import conv_of_pairs
from pdojo.build.contractions import contract, conv, ends_of, with_bias
from pdojo.build.extents import shown
from pdojo.build.pieces import Widths, assemble, keep_order, pad
from pdojo.build.shapes import per_axis, reshape, transpose
from pdojo.build.sizes import is_open
from pdojo.errors import UsageError

FEWEST_CHANNELS = 24
"""Fewest channels, and outputs, for which the transforms take less time than the products they save."""
NEAR_TAPS = 1 << 20
"""Most bytes of transformed weights that a core's cache keeps from block to block, roughly."""
FEWEST_TILES = 32
"""Fewest tiles that repay reading more transformed weights than that."""
TILES = 64
"""Tiles of a block that read such weights once."""


def pays(x: Array, weights: Array, bias: Array | None, places: Mapping[str, Any]) -> bool:
    """True if `conv_winograd` is faster than `conv`, of which `places` are the named arguments, by a rule of thumb.

    Of f32 only: its errors are no larger than those of `conv`.
    """
    arrays = [each for each in (x, weights, bias) if each is not None]
    if x.rank != 4 or weights.shape[2:] != (3, 3) or any(each.dtype != "f32" or is_open(each.shape) for each in arrays):
        return False
    stride, dilation = (per_axis(name, places.get(name, 1), 2) for name in ("stride", "dilation"))
    if {*stride, *dilation, places.get("groups", 1)} != {1}:
        return False
    outputs, channels = weights.shape[:2]
    tiles = _tiles(x, ends_of(places.get("padding", 0), 2))
    few = 64 * channels * outputs > NEAR_TAPS and prod(tiles) < FEWEST_TILES
    return min(channels, outputs) >= FEWEST_CHANNELS and min(tiles) > 0 and not few


def _tiles(x: Array, ends: Sequence[Sequence[int]]) -> tuple[int, int, int]:
    """Images, rows of tiles, and tiles of a row."""
    high, wide = (extent + sum(end) - 2 for extent, end in zip(x.shape[2:], ends, strict=True))
    return x.shape[0], -(-high // 2), -(-wide // 2)


def block_of(x: Array, weights: Array, padding: Widths) -> tuple[int, int]:
    """The images and the rows of tiles of a block: one row if the weights stay in the cache, else whole images."""
    outputs, channels = weights.shape[:2]
    images, rows, wide = _tiles(x, ends_of(padding, 2))
    return (1, 1) if 64 * channels * outputs <= NEAR_TAPS else (min(images, -(-TILES // (rows * wide))), rows)


def conv_winograd(
    x: Array,
    weights: Array,
    bias: Array | None = None,
    *,
    padding: Widths = 0,
    block: tuple[int, int] | None = None,
) -> Array:
    """The convolution of `conv` with 3 x 3 taps and stride 1, with 16 products for 2 x 2 results instead of 36.

    Results are equal in exact arithmetic; their rounding differs (docs/decisions/2026-11-27-winograd.md). `block`
    is the number of images and of rows of tiles whose products are computed together: each block reads all transformed
    weights. None is a number that suits the caches of most processors.

    Shapes: `x` [N, C, H, W], `weights` [O, C, 3, 3], `bias` [O]; the result is [N, O, *places].

    >>> from pdojo import build
    >>> x, k = build.input("x", "f32", (2, 4, 9, 9)), build.input("k", "f32", (6, 4, 3, 3))
    >>> build.conv_winograd(x, k, padding=1)
    <Array f32 [2, 6, 9, 9]>
    """
    if x.rank != 4 or weights.shape[1:] != (x.shape[1], 3, 3):
        raise UsageError(
            f"conv_winograd takes x [N, C, H, W] and weights [O, C, 3, 3], not {shown(x.shape)}, {shown(weights.shape)}"
        )
    if block is not None and min(block) < 1:
        raise UsageError(f"a block has at least one image and one row of tiles, not {block}")
    images, rows = block or block_of(x, weights, padding)
    n, channels, *sides = x.shape
    outputs = weights.shape[0]
    (top, bottom), (left, right) = ends_of(padding, 2)
    high, wide = sides[0] + top + bottom - 2, sides[1] + left + right - 2
    image_blocks, row_blocks, tiles = -(-n // images), -(-high // (2 * rows)), -(-wide // 2)
    tile_rows, all_images = row_blocks * rows, image_blocks * images
    ends = (
        (0, all_images - n),
        (top, 2 * tile_rows + 2 - sides[0] - top),
        (left, 2 * tiles + 2 - sides[1] - left),
        (0, 0),
    )
    last = pad(transpose(x, (0, 2, 3, 1)), ends)
    by_rows = _transformed(last, 1, tile_rows)
    parts = reshape(by_rows, (image_blocks, images, row_blocks, rows, 4, 2 * tiles + 2, channels))
    parts = transpose(parts, (0, 2, 4, 1, 3, 5, 6))
    inside = _transformed(parts, 5, tiles, at=3)
    taps = _taps(_taps(transpose(weights, (2, 3, 1, 0)), 0), 1)
    products = contract("abijnrtc,ijco->abijnrto", inside, taps)
    products = reshape(transpose(products, (0, 4, 1, 5, 2, 3, 6, 7)), (all_images, tile_rows, 4, 4, tiles, outputs))
    back = _stacked(_results(products, 2), 2)
    places = ((row, column) for row in range(2) for column in range(2))
    found = [_results(back[:, :, row], 2) for row in range(2)]
    whole = keep_order(
        assemble(
            (all_images, 2 * tile_rows, 2 * tiles, outputs),
            [((slice(None), slice(i, None, 2), slice(j, None, 2)), found[i][j]) for i, j in places],
            None,
        )
    )
    result = transpose(whole[:n, :high, :wide], (0, 3, 1, 2))
    return with_bias(result, bias)


def quick_conv(x: Array, weights: Array, bias: Array | None = None, **places: Any) -> Array:
    """`conv`, by `conv_winograd` if it pays, and of bf16 by pairs of channels."""
    if pays(x, weights, bias, places):
        return conv_winograd(x, weights, bias, padding=places.get("padding", 0))
    if x.dtype == weights.dtype == "bf16" and places.get("groups", 1) == 1 and not is_open(x.shape):
        return conv_of_pairs(x, weights, bias, **places)
    return conv(x, weights, bias, **places)


def _at(axis: int, item: int | slice) -> tuple[int | slice, ...]:
    return (*[slice(None)] * axis, item)


def _stacked(pieces: Sequence[Array], axis: int) -> Array:
    """The arrays along a new axis, each written by a statement of its own."""
    shape = (*pieces[0].shape[:axis], len(pieces), *pieces[0].shape[axis:])
    return keep_order(assemble(shape, [(_at(axis, k), each) for k, each in enumerate(pieces)], None))


def _transformed(x: Array, axis: int, tiles: int, at: int | None = None) -> Array:
    """The four values of each tile along `axis`, on a new axis `at`, or behind the axis of tiles."""
    first, second, third, fourth = (x[_at(axis, slice(k, k + 2 * tiles - 1, 2))] for k in range(4))
    values = [first - third, second + third, third - second, second - fourth]
    return _stacked(values, axis + 1 if at is None else at)


def _taps(taps: Array, axis: int) -> Array:
    """The four transformed taps of the three along `axis`."""
    first, second, third = (taps[_at(axis, k)] for k in range(3))
    ends = first + third
    return _stacked([first, (ends + second) * 0.5, (ends - second) * 0.5, third], axis)


def _results(products: Array, axis: int) -> list[Array]:
    """The two results of each tile of the four values along `axis`."""
    first, second, third, fourth = (products[_at(axis, k)] for k in range(4))
    return [first + (second + third), (second - third) - fourth]

"""Fourier transforms, as products with matrices of cosines and sines."""

from __future__ import annotations

import numpy as np

from pdojo.build.array import Array
from pdojo.build.contractions import contract
from pdojo.build.pieces import pad, stack
from pdojo.build.policy import of_one_type, rounded_once
from pdojo.build.shapes import expand_dims, transpose, windows
from pdojo.build.tables import Constants
from pdojo.errors import UsageError


@rounded_once
def fourier(
    x: Array,
    axis: int,
    length: int | None = None,
    *,
    constants: Constants,
    inverse: bool = False,
    onesided: bool = False,
) -> Array:
    """The discrete Fourier transform along `axis` of [..., 1 or 2]: real numbers, or real and imaginary parts.

    `length` elements take part: others are cut off, or zeros are added; None is all. A one-sided transform has the
    first `length // 2 + 1` frequencies; the inverse of one is real, and by default of even length.
    """
    if x.shape[-1] not in (1, 2):
        raise UsageError(f"the last axis has {x.shape[-1]} elements, not a real number or a complex one")
    extent = x.shape[axis]
    if inverse and onesided:
        length = 2 * (extent - 1) if length is None else length
        return _real_inverse(x, axis, length, constants)
    length = extent if length is None else length
    bins = length // 2 + 1 if onesided else length
    angles = np.outer(np.arange(length), np.arange(bins)) % length * (2 * np.pi / length)
    scale = 1 / length if inverse else 1
    cosines = constants(np.cos(angles) * scale, x.dtype)
    sines = constants(np.sin(angles) * (scale if inverse else -scale), x.dtype)
    parts, word = _of_length(x, axis, length), _word(x, axis)
    found = [contract(word, parts[..., 0], cosines), contract(word, parts[..., 0], sines)]
    if parts.shape[-1] == 2:
        found[0] = found[0] - contract(word, parts[..., 1], sines)
        found[1] = found[1] + contract(word, parts[..., 1], cosines)
    return stack(found, -1)


@rounded_once
@of_one_type
def short_time_fourier(
    x: Array, size: int, step: int, window: Array | None = None, *, constants: Constants, onesided: bool = True
) -> Array:
    """The transforms [batch, frames, frequencies, 2] of frames of a signal [batch, length, 1 or 2].

    Frames of `size` elements begin every `step` elements, and are multiplied by `window`.
    """
    frames = windows(transpose(x, (0, 2, 1)), (size,), step)
    frames = frames if window is None else frames * window
    return fourier(transpose(frames, (0, 2, 3, 1)), 2, size, constants=constants, onesided=onesided)


def _of_length(x: Array, axis: int, length: int) -> Array:
    """The array with elements cut off or zeros added at the end of an axis."""
    return pad(x, [(0, length - e) if d == axis else (0, 0) for d, e in enumerate(x.shape)])


def _word(x: Array, axis: int) -> str:
    """The subscripts of the product of a matrix with parts of `x` along an axis."""
    letters = "abcdefgh"[: x.rank - 1]
    return f"{letters},{letters[axis]}z->{letters.replace(letters[axis], 'z')}"


def _real_inverse(x: Array, axis: int, length: int, constants: Constants) -> Array:
    """The real signal of a half spectrum; the other half is its conjugate."""
    bins = length // 2 + 1
    angles = np.outer(np.arange(bins), np.arange(length)) % length * (2 * np.pi / length)
    counted = np.full((bins, 1), 2.0)
    counted[0] = 1
    if length % 2 == 0:
        counted[-1] = 1
    cosines = constants(np.cos(angles) * counted / length, x.dtype)
    sines = constants(np.sin(angles) * counted / length, x.dtype)
    parts, word = _of_length(x, axis, bins), _word(x, axis)
    found = contract(word, parts[..., 0], cosines)
    if x.shape[-1] == 2:
        found = found - contract(word, parts[..., 1], sines)
    return expand_dims(found, -1)

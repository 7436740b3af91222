"""Fourier transforms, as products with matrices of cosines and sines."""

from __future__ import annotations

import numpy as np

from pdojo import build
from pdojo.build import Array
from pdojo.model.element_types import numpy_type
from pdojo.onnx.operators.arguments import axis_of, number_of, wide_type
from pdojo.onnx.operators.registry import Node, operator


def _number(node: Node, operand: int) -> int:
    return int(number_of(node, operand))


def _turned(node: Node, parts: Array, axis: int, length: int, bins: int, *, inverse: bool) -> list[Array]:
    """Real and imaginary part of the transform along `axis` of [..., 1 or 2], with `bins` frequencies."""
    angles = np.outer(np.arange(length), np.arange(bins)) % length * (2 * np.pi / length)
    scale = 1 / length if inverse else 1
    kind = numpy_type(parts.dtype)
    cosines = node.constant((np.cos(angles) * scale).astype(kind))
    sines = node.constant((np.sin(angles) * (scale if inverse else -scale)).astype(kind))
    letters = "abcdefgh"[: parts.rank - 1]
    word = f"{letters},{letters[axis]}z->{letters.replace(letters[axis], 'z')}"
    real = parts[..., 0]
    found = [build.contract(word, real, cosines), build.contract(word, real, sines)]
    if parts.shape[-1] == 2:
        imaginary = parts[..., 1]
        found[0] = found[0] - build.contract(word, imaginary, sines)
        found[1] = found[1] + build.contract(word, imaginary, cosines)
    return found


def _of_length(x: Array, axis: int, length: int) -> Array:
    """The array with elements cut off or zeros added at the end of an axis."""
    return build.pad(x, [(0, length - e) if d == axis else (0, 0) for d, e in enumerate(x.shape)])


def _transformed(node: Node, x: Array, axis: int, length: int | None, *, inverse: bool, onesided: bool) -> Array:
    if x.shape[-1] not in (1, 2):
        node.contradicts(f"the last axis has {x.shape[-1]} elements, not a real number or a complex one")
    extent = x.shape[axis]
    wide = build.cast(x, wide_type(x.dtype))
    if inverse and onesided:
        length = 2 * (extent - 1) if length is None else length
        return build.cast(_real_inverse(node, wide, axis, length), x.dtype)
    length = extent if length is None else length
    bins = length // 2 + 1 if onesided else length
    found = _turned(node, _of_length(wide, axis, length), axis, length, bins, inverse=inverse)
    return build.cast(build.stack(found, -1), x.dtype)


def _real_inverse(node: Node, x: Array, axis: int, length: int) -> Array:
    """The real signal of a half spectrum; the other half is its conjugate."""
    bins = length // 2 + 1
    angles = np.outer(np.arange(bins), np.arange(length)) % length * (2 * np.pi / length)
    counted = np.full((bins, 1), 2.0)
    counted[0] = 1
    if length % 2 == 0:
        counted[-1] = 1
    kind = numpy_type(x.dtype)
    cosines = node.constant((np.cos(angles) * counted / length).astype(kind))
    sines = node.constant((np.sin(angles) * counted / length).astype(kind))
    parts = _of_length(x, axis, bins)
    letters = "abcdefgh"[: x.rank - 1]
    word = f"{letters},{letters[axis]}z->{letters.replace(letters[axis], 'z')}"
    found = build.contract(word, parts[..., 0], cosines)
    if x.shape[-1] == 2:
        found = found - build.contract(word, parts[..., 1], sines)
    return build.expand_dims(found, -1)


@operator("DFT")
def dft(node: Node) -> Array:
    """The discrete Fourier transform along an axis."""
    x = node.array(0)
    length = _number(node, 1) if node.given(1) else None
    given = _number(node, 2) if node.given(2) else -2
    axis = node.attribute("axis", 1) if node.opset < 20 else given
    inverse, onesided = bool(node.attribute("inverse", 0)), bool(node.attribute("onesided", 0))
    return _transformed(node, x, axis_of(node, axis, x.rank), length, inverse=inverse, onesided=onesided)


@operator("STFT")
def stft(node: Node) -> Array:
    """The Fourier transforms of windows of a signal [batch, length, 1 or 2]."""
    x, step = node.array(0), _number(node, 1)
    window = node.array(2) if node.given(2) else None
    size = _number(node, 3) if node.given(3) else x.shape[1] if window is None else window.size
    frames = build.windows(build.transpose(x, (0, 2, 1)), (size,), step)
    frames = frames if window is None else frames * window
    signal = build.transpose(frames, (0, 2, 3, 1))
    onesided = bool(node.attribute("onesided", 1))
    return _transformed(node, signal, 2, size, inverse=False, onesided=onesided)

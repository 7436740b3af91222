"""Fourier transforms."""

from __future__ import annotations

from pdojo.build import Array, expand_dims
from pdojo.build.extents import shown
from pdojo.build.fourier import fourier, short_time_fourier
from pdojo.onnx.operators.arguments import axis_of, number_of, optional
from pdojo.onnx.operators.registry import Node, operator


@operator("DFT")
def dft(node: Node) -> Array:
    """The discrete Fourier transform along an axis."""
    x = node.array(0)
    length = int(number_of(node, 1)) if node.given(1) else None
    given = int(number_of(node, 2)) if node.given(2) else -2
    axis = axis_of(node, node.attribute("axis", 1) if node.opset < 20 else given, x.rank)
    inverse, onesided = bool(node.attribute("inverse", 0)), bool(node.attribute("onesided", 0))
    return fourier(x, axis, length, constants=node.constant, inverse=inverse, onesided=onesided)


@operator("STFT")
def stft(node: Node) -> Array:
    """The Fourier transforms of windows of a signal [batch, length, 1 or 2], or [batch, length] as in ONNX Runtime."""
    x, step, window = node.array(0), int(number_of(node, 1)), optional(node, 2)
    if x.rank == 2:
        x = expand_dims(x, -1)
    if x.rank != 3 or x.shape[2] not in (1, 2):
        node.contradicts(f"a signal has shape [batch, length, 1 or 2], not {shown(x.shape)}")
    default = x.shape[1] if window is None else window.size
    size = int(number_of(node, 3)) if node.given(3) else default
    onesided = bool(node.attribute("onesided", 1))
    return short_time_fourier(x, size, step, window, constants=node.constant, onesided=onesided)

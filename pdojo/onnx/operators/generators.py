"""Arrays that need no elements of others: known when the model is imported."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from pdojo import build
from pdojo.build import Array
from pdojo.build.sizes import is_open
from pdojo.model.element_types import element_type, numpy_type
from pdojo.onnx.operators.arguments import element_of, integers, number_of
from pdojo.onnx.operators.registry import Known, Node, Value, check_room, operator


@operator("ConstantOfShape")
def constant_of_shape(node: Node) -> Value:
    """An array of one number."""
    value = node.attribute("value")
    number = np.zeros((), np.float32) if value is None else np.asarray(value).reshape(())
    extents = integers(node, 0)
    for extent in extents:
        if extent < 0:
            node.contradicts(f"extent {extent} of its result is negative")
    if is_open(extents):
        return build.constant(number.item(), element_type(number.dtype), extents)
    check_room(prod(extents) * number.itemsize)
    return np.full(extents, number, number.dtype)


@operator("Range")
def number_range(node: Node) -> Value:
    """Numbers from a start to a limit, with a step."""
    start, limit, delta = (number_of(node, k) for k in range(3))
    if is_open((start, limit, delta)):
        return _open_range(node, *(integers(node, k)[0] for k in range(3)))
    if not delta:
        node.contradicts("its step is 0")
    if not all(map(np.isfinite, (start, limit, delta))):
        node.contradicts(f"its start, limit and step are {start}, {limit} and {delta}")
    if start.dtype.kind in "iu":
        count = -((int(start) - int(limit)) // int(delta))
    else:
        count = np.ceil((float(limit) - float(start)) / float(delta))
    count = int(max(0, min(count, 1 << 62)))
    check_room(count * 8)
    return (np.arange(count).astype(start.dtype) * delta + start).astype(start.dtype)


def _open_range(node: Node, start: int, limit: int, delta: int) -> Array:
    """The numbers of int64 of a range that depends on sizes. Raises OpenExtent unless they are from its start on."""
    if delta < 1 or limit < start:
        node.refuse("its step, or the number of its elements, is negative")
    return build.iota(((limit - start + delta - 1) // delta,), "i64", step=int(delta)) + start


@operator("EyeLike")
def eye_like(node: Node) -> Known:
    """A matrix of zeros with a diagonal of ones."""
    value, kind = node.value(0), node.attribute("dtype")
    own = value.dtype if isinstance(value, Array) else element_type(value.dtype)
    element = own if kind is None else element_of(node, kind)
    rows, columns = value.shape
    check_room(rows * columns * 8)
    return np.eye(rows, columns, k=node.attribute("k", 0)).astype(numpy_type(element))


def _window(*coefficients: float) -> Callable[[Node], Known]:
    """A window of cosines: the sum of `coefficients[k] * cos(2 pi k i / N)` with alternating signs."""

    def lower(node: Node) -> Known:
        count = int(number_of(node, 0))
        check_room(count * 8)
        period = count if node.attribute("periodic", 1) else count - 1
        angles = np.arange(count) * 2 * np.pi / max(period, 1)
        values = sum((-1) ** k * c * np.cos(k * angles) for k, c in enumerate(coefficients))
        return np.asarray(values).astype(numpy_type(element_of(node, node.attribute("output_datatype", 1))))

    return lower


operator("HannWindow")(_window(0.5, 0.5))
operator("HammingWindow")(_window(25 / 46, 21 / 46))
operator("BlackmanWindow")(_window(0.42, 0.5, 0.08))


@operator("MelWeightMatrix")
def mel_weight_matrix(node: Node) -> Known:
    """The weights of frequencies in the bands of the mel scale."""
    bands, length, rate = (int(number_of(node, k)) for k in range(3))
    low, high = (2595 * np.log10(1 + float(number_of(node, k)) / 700) for k in (3, 4))
    check_room((length // 2 + 1) * bands * 8)
    mels = np.arange(bands + 2) * ((high - low) / (bands + 2)) + low
    bins = (((length + 1) * (700 * (10 ** (mels / 2595) - 1))) // rate).astype(int)
    weights = np.zeros((length // 2 + 1, bands))
    numbers = np.arange(length // 2 + 1)
    for band in range(bands):
        left, middle, right = (int(place) for place in bins[band : band + 3])
        rising = (numbers - left) / max(middle - left, 1) if middle > left else numbers == middle
        falling = (right - numbers) / max(right - middle, 1)
        up, down = (numbers >= left) & (numbers <= middle), (numbers >= middle) & (numbers < right)
        weights[:, band] = np.where(down, falling, np.where(up, rising, 0))
    return weights.astype(numpy_type(element_of(node, node.attribute("output_datatype", 1))))

"""Reductions of windows, and of whole images [N, C, *spatial]."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from pdojo import build
from pdojo.build import Array
from pdojo.build.pools import places_of_max
from pdojo.build.reductions import neutral_of
from pdojo.onnx.operators.arguments import integers
from pdojo.onnx.operators.elementwise import in_f32
from pdojo.onnx.operators.registry import Node, operator
from pdojo.onnx.operators.windows import padding, per_axis


def _sizes(node: Node, rank: int) -> list[int]:
    """The extents of windows."""
    if not node.attribute("kernel_shape"):
        node.contradicts("it has no attribute 'kernel_shape'")
    return per_axis(node, "kernel_shape", rank)


def _windows(node: Node, x: Array) -> dict[str, Any]:
    """The arguments of `build.pool`."""
    rank = x.rank - 2
    sizes = _sizes(node, rank)
    strides, dilations = per_axis(node, "strides", rank), per_axis(node, "dilations", rank)
    window = [(k - 1) * d + 1 for k, d in zip(sizes, dilations, strict=True)]
    ceil = bool(node.attribute("ceil_mode", 0))
    ends = padding(node, x.shape[2:], window, strides)
    return {"size": sizes, "stride": strides, "padding": ends, "dilation": dilations, "ceil": ceil}


@operator("MaxPool")
def max_pool(node: Node) -> Array | tuple[Array, Array]:
    """The greatest element of every window, and its flat index if it is wanted."""
    x = node.array(0)
    arguments = _windows(node, x)
    found = build.pool("max", x, **arguments)
    if not any(node.outputs[1:]):
        return found
    places = build.reshape(build.iota((x.size,), "i64"), x.shape)
    del arguments["ceil"]
    index = places_of_max(x, places, found, **arguments)
    if node.attribute("storage_order", 0):
        index = _in_columns(index, x.shape)
    return found, index


def _in_columns(index: Array, shape: Sequence[int]) -> Array:
    """Flat indices as if the spatial axes were stored in the reverse order."""
    total, stride, rest = build.constant(0, "i64", index.shape), 1, index
    inner = 1
    for extent in shape[2:]:
        inner *= extent
    places: list[Array] = []
    for extent in reversed(shape[2:]):
        places.append(rest % extent)
        rest = rest // extent
    for extent, place in zip(shape[2:], reversed(places), strict=True):
        total = total + place * stride
        stride *= extent
    return rest * inner + total


@operator("AveragePool")
def average_pool(node: Node) -> Array:
    """The mean of every window."""
    x = node.array(0)
    return build.avg_pool(x, count_padding=bool(node.attribute("count_include_pad", 0)), **_windows(node, x))


@operator("LpPool")
def lp_pool(node: Node) -> Array:
    """The norm of every window."""
    x, order = node.array(0), node.attribute("p", 2)
    arguments = _windows(node, x)
    return in_f32(lambda u: _root(build.pool("+", _powers(u, order), **arguments), order))(x)


def _powers(x: Array, order: float) -> Array:
    return x * x if order == 2 else build.power(abs(x), order)


def _root(x: Array, order: float) -> Array:
    return build.sqrt(x) if order == 2 else build.power(x, 1 / order)


def _whole(function: Callable[[Array, Sequence[int]], Array]) -> Callable[[Node], Array]:
    def lower(node: Node) -> Array:
        x = node.array(0)
        return function(x, list(range(2, x.rank)))

    return lower


operator("GlobalAveragePool")(_whole(lambda x, axes: build.mean(x, axes, keepdims=True)))
operator("GlobalMaxPool")(_whole(lambda x, axes: build.max(x, axes, keepdims=True)))


@operator("GlobalLpPool")
def global_lp_pool(node: Node) -> Array:
    """The norm of every channel."""
    x, order = node.array(0), node.attribute("p", 2)
    axes = list(range(2, x.rank))
    return in_f32(lambda u: _root(build.sum(_powers(u, order), axes, keepdims=True), order))(x)


_MOST_COMPARISONS = 1 << 26
"""Most comparisons of an index with a place in `MaxUnpool`: each index is compared with all places of its channel."""


@operator("MaxUnpool")
def max_unpool(node: Node) -> Array:
    """The elements at their flat indices in a larger array of zeros; each place looks for its element."""
    x, indices = node.array(0), node.array(1)
    rank = x.rank - 2
    sizes, strides = _sizes(node, rank), per_axis(node, "strides", rank)
    ends = padding(node, x.shape[2:], sizes, strides)
    rows = zip(x.shape[2:], strides, ends, sizes, strict=True)
    least = [(extent - 1) * s - before - after + k for extent, s, (before, after), k in rows]
    if x.size * prod(least) > _MOST_COMPARISONS:
        node.refuse(
            f"each of its {x.size} indices would be compared with the {prod(least)} places of a channel; "
            f"{_MOST_COMPARISONS} comparisons are made"
        )
    shape = (*x.shape[:2], *least)
    found = _placed(x, indices, shape)
    if not node.given(2):
        return found
    wanted = integers(node, 2)
    # Indices are those in the array of the least size that the windows make; the rest are zeros.
    return build.pad(found, [(0, more - extent) for more, extent in zip(wanted, shape, strict=True)])


def _placed(x: Array, indices: Array, shape: Sequence[int]) -> Array:
    """An array of zeros with the elements of each channel at flat indices, of which the last one at a place counts.

    Windows that overlap give one index several times.
    """
    elements = build.reshape(x, (*shape[:2], 1, -1))
    places = build.reshape(build.iota((prod(shape),), "i64"), (*shape[:2], -1, 1))
    own = build.iota((elements.shape[-1],), "i64")
    chosen = build.reshape(indices, elements.shape) == places
    last = build.max(build.where(chosen, own, -1), -1, keepdims=True)
    found = build.max(build.where(own == last, elements, neutral_of("max", x)), -1, keepdims=True)
    return build.reshape(build.where(last < 0, 0, found), shape)

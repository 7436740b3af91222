"""Reductions of windows, and of whole images [N, C, *spatial]."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pdojo import build
from pdojo.build import Array, pools
from pdojo.onnx.operators.arguments import integers
from pdojo.onnx.operators.registry import Node, operator
from pdojo.onnx.operators.windows import padding, per_axis


def _sizes(node: Node, rank: int) -> list[int]:
    """The extents of windows."""
    if not node.attribute("kernel_shape"):
        node.contradicts("it has no attribute 'kernel_shape'")
    return per_axis(node, "kernel_shape", rank)


def pool_windows(node: Node, x: Array) -> dict[str, Any]:
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
    arguments = pool_windows(node, x)
    if not any(node.outputs[1:]):
        return build.pool("max", x, **arguments)
    places = build.reshape(build.iota((x.size,), "i64"), x.shape)
    found, index = pools.max_pool_with_places(x, places=places, **arguments)
    return found, pools.by_columns(index, x.shape) if node.attribute("storage_order", 0) else index


@operator("AveragePool")
def average_pool(node: Node) -> Array:
    """The mean of every window."""
    x = node.array(0)
    return build.avg_pool(x, count_padding=bool(node.attribute("count_include_pad", 0)), **pool_windows(node, x))


@operator("LpPool")
def lp_pool(node: Node) -> Array:
    """The norm of every window."""
    x = node.array(0)
    return pools.lp_pool(x, order=node.attribute("p", 2), **pool_windows(node, x))


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
    x = node.array(0)
    return pools.lp_pool(x, x.shape[2:], node.attribute("p", 2))


@operator("MaxUnpool")
def max_unpool(node: Node) -> Array:
    """The elements at their flat indices in a larger array of zeros."""
    x, indices = node.array(0), node.array(1)
    rank = x.rank - 2
    sizes, strides = _sizes(node, rank), per_axis(node, "strides", rank)
    ends = padding(node, x.shape[2:], sizes, strides)
    rows = zip(x.shape[2:], strides, ends, sizes, strict=True)
    least = [(extent - 1) * s - before - after + k for extent, s, (before, after), k in rows]
    shape = (*x.shape[:2], *least)
    found = pools.max_unpool(x, indices, shape)
    if not node.given(2):
        return found
    wanted = integers(node, 2)
    # Indices are those in the array of the least size that the windows make; the rest are zeros.
    return build.pad(found, [(0, more - extent) for more, extent in zip(wanted, shape, strict=True)])

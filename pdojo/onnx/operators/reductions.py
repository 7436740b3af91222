"""Reductions along axes, running ones, and indices of extremes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from pdojo import build
from pdojo.build import Array
from pdojo.build.reductions import neutral_of
from pdojo.onnx.operators.arguments import FLOATS, axis_of, integers_of, number_of
from pdojo.onnx.operators.registry import Node, operator

_Reduction = Callable[[Array, Sequence[int]], Array]
"""A reduction along axes, which it keeps with one element."""


def _in_float(function: _Reduction) -> _Reduction:
    """The reduction of integers in f64."""

    def reduced(x: Array, axes: Sequence[int]) -> Array:
        return function(x, axes) if x.dtype in FLOATS else build.cast(function(build.cast(x, "f64"), axes), x.dtype)

    return reduced


def _sum(x: Array, axes: Sequence[int]) -> Array:
    return build.sum(x, axes, keepdims=True)


def _extreme(accumulation: str) -> _Reduction:
    def reduced(x: Array, axes: Sequence[int]) -> Array:
        initial = None if prod(x.shape[a] for a in axes) else neutral_of(accumulation, x)
        return build.reduce(accumulation, x, axes, keepdims=True, initial=initial)

    return reduced


def _mean(x: Array, axes: Sequence[int]) -> Array:
    if x.dtype in FLOATS:
        return build.mean(x, axes, keepdims=True)
    return build.map("/", _sum(x, axes), prod(x.shape[a] for a in axes))


_REDUCTIONS: dict[str, _Reduction] = {
    "ReduceSum": _sum,
    "ReduceProd": lambda x, axes: build.prod(x, axes, keepdims=True),
    "ReduceMax": _extreme("max"),
    "ReduceMin": _extreme("min"),
    "ReduceMean": _mean,
    "ReduceSumSquare": lambda x, axes: build.sum_squares(x, axes, keepdims=True),
    "ReduceL1": lambda x, axes: _sum(abs(x), axes),
    "ReduceL2": _in_float(lambda x, axes: build.norm(x, 2, axes, keepdims=True)),
    "ReduceLogSum": _in_float(lambda x, axes: build.log_sum(x, axes, keepdims=True)),
    "ReduceLogSumExp": _in_float(lambda x, axes: build.logsumexp(x, axes, keepdims=True)),
}


def _reducing(function: _Reduction) -> Callable[[Node], Array]:
    def lower(node: Node) -> Array:
        x = node.array(0)
        given = integers_of(node, "axes", 1)
        if not given and node.attribute("noop_with_empty_axes", 0):
            given = []
        elif not given:
            given = range(x.rank)
        axes = sorted(axis_of(node, axis, x.rank) for axis in given)
        found = function(x, axes)
        return found if node.attribute("keepdims", 1) == 1 else build.squeeze(found, axes)

    return lower


for _name, _function in _REDUCTIONS.items():
    operator(_name)(_reducing(_function))


def _index(function: Callable[..., Array]) -> Callable[[Node], Array]:
    def lower(node: Node) -> Array:
        x = node.array(0)
        axis = axis_of(node, node.attribute("axis", 0), x.rank)
        last = bool(node.attribute("select_last_index", 0))
        return function(x, axis, keepdims=node.attribute("keepdims", 1) == 1, last=last)

    return lower


operator("ArgMax")(_index(build.argmax))
operator("ArgMin")(_index(build.argmin))


def _running(accumulation: str) -> Callable[[Node], Array]:
    def lower(node: Node) -> Array:
        x = node.array(0)
        axis = axis_of(node, int(number_of(node, 1)), x.rank)
        exclusive, backwards = bool(node.attribute("exclusive", 0)), bool(node.attribute("reverse", 0))
        return build.cumulative(accumulation, x, axis, exclusive=exclusive, reverse=backwards)

    return lower


operator("CumSum")(_running("+"))
operator("CumProd")(_running("*"))


@operator("TopK")
def top_k(node: Node) -> list[Array]:
    """The greatest or least elements along an axis, and their indices."""
    x = node.array(0)
    axis = axis_of(node, node.attribute("axis", -1), x.rank)
    count = node.attribute("k") if node.attribute("k") is not None else int(number_of(node, 1))
    if count > x.shape[axis]:
        node.refuse(f"{count} elements of {x.shape[axis]}")
    return build.topk(x, count, axis, largest=bool(node.attribute("largest", 1)))

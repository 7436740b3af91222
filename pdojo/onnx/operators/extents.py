"""Arithmetic of shapes that depend on sizes: nodes whose operands are known but for sizes, computed on import.

Each function computes one integer result for all values of the sizes, or raises OpenExtent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdojo.build.sizes import OpenExtent, lesser
from pdojo.model.extents import extents_of, is_extents
from pdojo.onnx.operators.arguments import axis_of, integers_of
from pdojo.onnx.operators.registry import Known, Node

Extents: TypeAlias = NDArray[Any]
"""Integers, and polynomials of sizes as objects."""
_INT64 = 7
"""The number of int64 among the element types."""
_BROADCASTING = 7
"""The version since which shapes of operands broadcast as NumPy's."""


def extents_result(node: Node) -> Sequence[Known] | None:
    """The results of a node with a shape among its operands, all known; None if no rule computes them as such."""
    rule = _RULES.get(node.op_type)
    if rule is None or node.domain not in ("", "ai.onnx") or node.opset < _BROADCASTING:
        return None
    if node.op_type in _OF_FIRST and not is_extents(node.inputs[0]):
        return None
    found = rule(node)
    if found is None:
        return None
    results = [np.asarray(each) for each in (found if isinstance(found, list) else [found])]
    return [each if each.dtype == np.dtype(bool) else extents_of(each) for each in results]


def _comparison(function: Callable[[Any, Any], bool]) -> Callable[[Node], Extents]:
    def computed(node: Node) -> Extents:
        return np.asarray(_elementwise(function)(node)).astype(bool)

    return computed


def _elementwise(function: Callable[[Any, Any], Any]) -> Callable[[Node], Extents]:
    def computed(node: Node) -> Extents:
        return reduce(np.frompyfunc(function, 2, 1), [_objects(k, node) for k in range(len(node.inputs))])

    return computed


def _objects(operand: int, node: Node) -> Extents:
    return np.asarray(node.static(operand)).astype(object)


def _quotient(left: int, right: int) -> int:
    """The quotient of numbers from 0, which no rounding of negative ones concerns."""
    if left < 0 or right < 1:
        raise OpenExtent(f"({left}) / ({right}) is rounded towards 0, which is no expression of sizes")
    return left // right


def _rest(left: int, right: int) -> int:
    return left - _quotient(left, right) * right


def _equal(left: int, right: int) -> bool:
    """Whether two extents are equal. Raises OpenExtent if that depends on sizes."""
    return not left - right


def _gather(node: Node) -> Extents:
    axis = axis_of(node, node.attribute("axis", 0), _objects(0, node).ndim)
    return np.take(_objects(0, node), node.static(1).astype(np.int64), axis)


def _concat(node: Node) -> Extents:
    return np.concatenate([_objects(k, node) for k in range(len(node.inputs))], node.attribute("axis", 0))


def _slice(node: Node) -> Extents:
    x = _objects(0, node)
    starts, ends, axes, steps = (
        integers_of(node, name, operand) for operand, name in enumerate(("starts", "ends", "axes", "steps"), 1)
    )
    items = [slice(None)] * x.ndim
    for number, (start, end) in enumerate(zip(starts or (), ends or (), strict=True)):
        step = 1 if steps is None else steps[number]
        axis = axis_of(node, number if axes is None else axes[number], x.ndim)
        items[axis] = slice(start, None if step < 0 and end < -x.shape[axis] else end, step)
    return x[tuple(items)]


def _squeeze(node: Node) -> Extents:
    axes = integers_of(node, "axes", 1)
    return np.squeeze(_objects(0, node), None if axes is None else tuple(axes))


def _unsqueeze(node: Node) -> Extents:
    return np.expand_dims(_objects(0, node), tuple(integers_of(node, "axes", 1) or ()))


def _split(node: Node) -> list[Extents] | None:
    x, sizes = _objects(0, node), integers_of(node, "split", 1)
    if sizes is None:
        return None
    return np.split(x, np.cumsum(sizes)[:-1], axis_of(node, node.attribute("axis", 0), x.ndim))


def _cast(node: Node) -> Extents | None:
    return _objects(0, node) if node.attribute("to") == _INT64 else None


def _reduced(function: Callable[[Any, Any], Any]) -> Callable[[Node], Extents | None]:
    def computed(node: Node) -> Extents | None:
        x, axes = _objects(0, node), integers_of(node, "axes", 1)
        if x.ndim != 1 or (axes is not None and len(axes) != 1):
            return None
        return np.array(reduce(function, x), object).reshape((1,) if node.attribute("keepdims", 1) else ())

    return computed


_OF_FIRST = frozenset(("Identity", "Cast", "Gather", "Slice", "Squeeze", "Unsqueeze", "Split", "Reshape", "Neg"))
"""Operators whose result has the elements of the first operand; others may be shapes of a lowering."""
_RULES: dict[str, Callable[[Node], Extents | list[Extents] | None]] = {
    "Identity": lambda node: _objects(0, node),
    "Cast": _cast,
    "Gather": _gather,
    "Concat": _concat,
    "Slice": _slice,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Split": _split,
    "Reshape": lambda node: _objects(0, node).reshape(integers_of(node, "shape", 1)),
    "Where": lambda node: np.where(node.static(0).astype(bool), _objects(1, node), _objects(2, node)),
    "Neg": lambda node: -_objects(0, node),
    "Add": _elementwise(lambda left, right: left + right),
    "Sub": _elementwise(lambda left, right: left - right),
    "Mul": _elementwise(lambda left, right: left * right),
    "Div": _elementwise(_quotient),
    "Mod": _elementwise(_rest),
    "Min": _elementwise(lesser),
    "Max": _elementwise(lambda left, right: -lesser(-left, -right)),
    "Equal": _comparison(_equal),
    "Less": _comparison(lambda left, right: left < right),
    "LessOrEqual": _comparison(lambda left, right: left <= right),
    "Greater": _comparison(lambda left, right: left > right),
    "GreaterOrEqual": _comparison(lambda left, right: left >= right),
    "ReduceProd": _reduced(lambda left, right: left * right),
    "ReduceSum": _reduced(lambda left, right: left + right),
}
"""Operators that compute integers, and comparisons of these."""

"""Calls of a graph as operations: the operands as a rule sees them, and the kernel that the rule makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import torch
from torch.fx import Node

from pdojo import build
from pdojo.build import Array
from pdojo.build.extents import shown
from pdojo.build.sizes import OpenExtent, is_open
from pdojo.model.element_types import element_type, uniform
from pdojo.model.graph import Known, Lower, Lowered, Operand, Value
from pdojo.torch.devices import device_of
from pdojo.torch.element_types import HANDLES
from pdojo.torch.keys import check_tensor, key_of, tensor_of
from pdojo.torch.operators.registry import RULES, Call, Rule, UnsupportedCall
from pdojo.torch.symbols import is_example

Step: TypeAlias = Callable[[Array], Array]
"""A function from the handle of an array to the handle of a view."""


@dataclass(frozen=True)
class Slot:
    """The place of a tensor in the arguments of a call."""

    number: int


@dataclass(frozen=True)
class Expanded:
    """The place of a tensor that is computed from others in the kernel."""

    apply: Callable[[Sequence[Array]], Array]
    slots: tuple[Slot, ...]


@dataclass(frozen=True)
class Seen:
    """An operand of a region, and the views through which an operation reads it."""

    operand: Operand
    steps: tuple[Step, ...] = ()

    def of(self, handle: Array) -> Array:
        """The view of a handle of the operand."""
        for step in self.steps:
            handle = step(handle)
        return handle


def view_step(node: Node, number: int) -> Step:
    """Result `number` of a view as a function of the handle of its operand."""
    call = call_of(node)

    def step(handle: Array) -> Array:
        arguments, keywords = torch.fx.node.map_arg((node.args, node.kwargs), lambda each: _argument(each, handle))
        made: Any = RULES[call.operator].function(call, *arguments, **keywords)
        found: Array = made if isinstance(made, Array) else made[number]
        _check_shape(call, found, call.results[number][1])
        return found

    return step


def _argument(node: Node, handle: Array) -> Any:
    """An argument of a view: its operand, or a number."""
    value = node.meta["val"]
    return handle if is_example(value) or isinstance(value, tuple | list) else value


def call_of(node: Node) -> Call:
    """A call as its rule sees it. Raises UsageError for results that are read and that no kernel computes."""
    value = node.meta["val"]
    examples: Sequence[Any] = value if isinstance(value, tuple | list) else [value]
    read = tuple(
        number for number in range(len(examples)) if not isinstance(value, tuple | list) or _is_read(node, number)
    )
    for number in read:
        if not is_example(examples[number]):
            raise UnsupportedCall(f"{node.target}: a result is no tensor")
        check_tensor(examples[number], device_of(node))
    results = [(HANDLES.get(each.dtype, ""), tuple(each.shape)) if is_example(each) else ("", ()) for each in examples]
    first = node.args[0] if node.args else None
    operand = tensor_of(key_of(first)) if isinstance(first, Node) else None
    winograd = node.meta.get("winograd", True)
    return Call(str(node.target), tuple(results), read, operand if is_example(operand) else None, winograd)


def unread_operands(node: Node) -> set[Node]:
    """The operands of a call of which it reads no element."""
    rule = RULES.get(str(node.target))
    positions = () if rule is None else rule.unread
    found = {each for k, each in enumerate(node.args) if k in positions and isinstance(each, Node)}
    return found - {each for k, other in enumerate(node.args) if k not in positions for each in nodes_in(other)}


def nodes_in(argument: Any) -> list[Node]:
    """The nodes in an argument."""
    found: list[Node] = []
    torch.fx.node.map_arg(argument, found.append)
    return found


def _is_read(node: Node, number: int) -> bool:
    """Whether a result of a call with several results is read."""
    return any(key_of(user) == (node, number) for user in node.users)


def lowering(
    rule: Rule, call: Call, template: tuple[Any, Any], seen: tuple[Seen, ...], orders: Sequence[tuple[int, ...]]
) -> Lower:
    """The lowering of a call: its operands come as they are in memory, and so go its results.

    Elementwise functions are applied to elements in the order of memory, so that their statements run along it.
    """
    permuted = rule.pointwise and orders[0] != tuple(range(len(orders[0])))
    order = orders[0]
    results = call.results
    if permuted:
        results = tuple((dtype, tuple(shape[d] for d in order)) for dtype, shape in call.results)
    asked = replace(call, results=results)

    def lower(given: tuple[Value | None, ...], prefix: str) -> Lowered:
        constants: dict[Array, Known] = {}
        handles: list[Array] = []
        for number, (value, each) in enumerate(zip(given, seen, strict=True)):
            assert value is not None
            handle = each.of(_handle(value, f"{prefix}{number}", constants))
            handles.append(_permuted(handle, order) if permuted else handle)
        arguments, keywords = _filled(template, handles)
        made: Any = rule.function(asked, *arguments, **keywords)
        values: list[Value] = []
        found: Sequence[Array] = (made,) if isinstance(made, Array) else made
        assert len(found) == len(results), (call.operator, len(found))
        for number, place in zip(call.read, orders, strict=True):
            (dtype, shape), value = results[number], found[number]
            whole = build.cast(build.broadcast_to(value, shape) if not value.rank else value, dtype)
            _check_shape(call, whole, shape)
            values.append(whole if permuted else build.transpose(whole, place))
        return Lowered(tuple(values), tuple(constants.items()))

    return lower


def _handle(value: Value, name: str, constants: dict[Array, Known]) -> Array:
    """The handle of an operand: of a known one, a constant input of the kernel, or a number."""
    if isinstance(value, Array):
        return value
    if value.size <= 1 or not any(value.strides):
        return uniform(value)
    handle = build.input(name, element_type(value.dtype), value.shape, const=True)
    constants[handle] = value
    return handle


def _filled(template: Any, handles: Sequence[Array]) -> Any:
    """A template with handles in its slots."""
    match template:
        case Slot(number):
            return handles[number]
        case Expanded(apply, slots):
            return apply([handles[slot.number] for slot in slots])
        case list() | tuple():
            return [_filled(each, handles) for each in template]
        case dict():
            return {name: _filled(each, handles) for name, each in template.items()}
        case _:
            return template


def _permuted(handle: Array, order: Sequence[int]) -> Array:
    """A handle that broadcasts to a result, with the axes of the result in the order `order`."""
    whole = build.reshape(handle, (*(1,) * (len(order) - handle.rank), *handle.shape)) if handle.rank else handle
    return build.transpose(whole, order) if handle.rank else whole


def transposition(axes: Sequence[int]) -> tuple[Step, ...]:
    """The view with axes in another order; none if the order is their own."""
    if list(axes) == list(range(len(axes))):
        return ()
    return (lambda handle: build.transpose(handle, axes),)


def _check_shape(call: Call, handle: Array, shape: Sequence[int]) -> None:
    if handle.shape != tuple(shape) and is_open((*handle.shape, *shape)):
        raise OpenExtent(
            f"{call.operator}: shapes {shown(handle.shape)} and {shown(shape)} are not equal for all sizes"
        )
    assert handle.shape == tuple(shape), (call.operator, handle, shape)

"""Known factors of products that are computed from much narrower known tensors, such as quantised weights.

The kernel of the product gets the narrow tensors, and the functions that expand them; passes decide where it does.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Node

from pdojo import build
from pdojo.build import Array
from pdojo.errors import UsageError
from pdojo.torch.element_types import handle_type
from pdojo.torch.keys import Key, key_of
from pdojo.torch.lowering import call_of, view_step
from pdojo.torch.operators.registry import RULES

PRODUCTS = {f"aten.{name}.default" for name in ("mm", "addmm", "bmm", "baddbmm")}
NARROW = 2
"""Least size of an expanded tensor, as a multiple of the tensors that it is computed from."""
LARGE = 1 << 18
"""Least size in bytes of a tensor that is expanded in kernels."""
_LONGEST = 24
"""Most calls of an expansion."""


@dataclass(frozen=True)
class Expansion:
    """A tensor as a function of narrower ones."""

    sources: tuple[Key, ...]
    calls: frozenset[Node]
    """The calls that are computed in kernels."""
    apply: Callable[[Sequence[Array]], Array]
    """The handle of the tensor for those of the sources."""


def expansion(node: Node, static: Mapping[Key, torch.Tensor], numbers: Mapping[Node, Any]) -> Expansion | None:
    """The known factor of a product as a function of narrower known tensors, of f32; None if it is no such one."""
    whole = static[key_of(node)]
    if whole.dtype is not torch.float32 or whole.nbytes < LARGE:
        return None
    calls: set[Node] = set()
    sources: dict[Key, None] = {}
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if len(calls) < _LONGEST and _is_computed(each, static):
            calls.add(each)
            waiting += [other for other in each.all_input_nodes if other not in calls and other not in numbers]
        else:
            sources[key_of(each)] = None
    if NARROW * sum(static[key].nbytes for key in sources) > whole.nbytes:
        return None
    order = tuple(sources)

    def apply(handles: Sequence[Array]) -> Array:
        return _handle(node, dict(zip(order, handles, strict=True)), numbers)

    try:
        given = [(handle_type(static[key].dtype), tuple(static[key].shape)) for key in order]
        apply([build.input(f"x{n}", kind, shape, const=True) for n, (kind, shape) in enumerate(given)])
    except UsageError:
        return None
    return Expansion(order, frozenset(calls), apply)


def _is_computed(node: Node, static: Container[Key]) -> bool:
    """Whether a node is a view or an elementwise function of known tensors."""
    if node.op != "call_function" or key_of(node) != (node, 0) or isinstance(node.meta["val"], tuple | list):
        return False
    rule = RULES.get(str(node.target))
    is_view = getattr(node.target, "is_view", False) and len(node.all_input_nodes) == 1
    return rule is not None and (rule.pointwise or is_view) and (node, 0) in static


def _handle(node: Node, known: Mapping[Key, Array], numbers: Mapping[Node, Any]) -> Array:
    """The handle of a tensor for those of the sources."""
    if key_of(node) in known:
        return known[key_of(node)]
    if getattr(node.target, "is_view", False):
        return view_step(node, 0)(_handle(node.all_input_nodes[0], known, numbers))

    def argument(each: Node) -> Any:
        return numbers[each] if each in numbers else _handle(each, known, numbers)

    call = call_of(node)
    arguments, keywords = torch.fx.node.map_arg((node.args, node.kwargs), argument)
    made: Any = RULES[call.operator].function(call, *arguments, **keywords)
    return build.broadcast_to(build.cast(made, call.dtype), call.shape)

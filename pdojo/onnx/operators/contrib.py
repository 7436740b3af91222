"""Operators of ONNX Runtime's domain: their operands and attributes, which the package onnx does not check."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from pdojo.build import Array
from pdojo.errors import did_you_mean
from pdojo.model.element_types import element_type
from pdojo.onnx.operators.registry import Known, Node, Value, operator

DOMAIN = "com.microsoft"
_TYPES: Mapping[str, tuple[str, ...]] = {
    "T": ("f32", "f16", "bf16", "f64"),
    "F": ("f32", "f16", "bf16"),
    "S": ("f32",),
    "Q": ("u8", "i8"),
    "W": ("u8", "i8"),
    "Z": ("u8", "i8"),
    "B": ("u8",),
    "N": ("i32",),
    "L": ("i64",),
    "*": (),
}
"""Element types of operands by letters of signatures; operands with one letter have one type, but for `*`."""
_L = TypeVar("_L", bound="Callable[[Node], Array | Sequence[Value]]")
Results: TypeAlias = "Array | Sequence[Value]"


@dataclass(frozen=True)
class _Operand:
    name: str
    letter: str
    optional: bool


def contrib(
    operator_name: str, operands: str, attributes: str = "", *, domain: str = DOMAIN, variadic: bool = False
) -> Callable[[_L], _L]:
    """A decorator that registers the lowering of an operator, which sees nodes with its operands and attributes only.

    `operands` are words `name:letter`, with `?` behind optional ones; `attributes` are names, with `!` behind those
    that a node must have, and `~` behind those that are 0 or 1. A `variadic` operator takes further operands.
    """
    words = [(word.rstrip("?").partition(":"), word.endswith("?")) for word in operands.split()]
    wanted = [_Operand(name, letter, optional) for (name, _, letter), optional in words]
    known = {word.rstrip("!~"): word[-1] for word in attributes.split()}

    def register(lowering: _L) -> _L:
        def lower(node: Node) -> Results:
            _check_attributes(node, known)
            _check_operands(node, wanted, variadic=variadic)
            return lowering(node)

        operator(operator_name, domain=domain)(lower)
        return lowering

    return register


def _check_attributes(node: Node, known: Mapping[str, str]) -> None:
    for each, value in node.attributes.items():
        if each not in known:
            node.contradicts(f"'{each}' is no attribute of it; {did_you_mean(each, known)}")
        if known[each] == "~" and value not in (0, 1):
            node.contradicts(f"attribute '{each}' is {value}, not 0 or 1")
    for each, mark in known.items():
        if mark == "!" and each not in node.attributes:
            node.contradicts(f"attribute '{each}' is absent")


def _check_operands(node: Node, wanted: Sequence[_Operand], *, variadic: bool) -> None:
    if len(node.inputs) > len(wanted) and not variadic:
        node.contradicts(f"it has {len(node.inputs)} operands, not at most {len(wanted)}")
    types: dict[str, tuple[str, str]] = {}
    for place, each in enumerate(wanted):
        if not node.given(place):
            if not each.optional:
                node.contradicts(f"operand '{each.name}' is absent")
            continue
        value = node.value(place)
        found, allowed = _type(value), _TYPES[each.letter]
        if allowed and found not in allowed:
            node.contradicts(f"operand '{each.name}' is of type {found}, not {' or '.join(allowed)}")
        if allowed:
            other, kind = types.setdefault(each.letter, (each.name, found))
            if kind != found:
                node.contradicts(f"operand '{each.name}' is of type {found}, '{other}' of type {kind}")


def _type(value: Value) -> str:
    return value.dtype if isinstance(value, Array) else element_type(value.dtype)


def check_shape(node: Node, name: str, value: Value | Known, *shapes: Sequence[int]) -> None:
    """Raise InvalidNode for an operand that has none of the shapes."""
    if tuple(value.shape) not in [tuple(each) for each in shapes]:
        wanted = " or ".join(str(list(each)) for each in shapes)
        node.contradicts(f"operand '{name}' has shape {list(value.shape)}, not {wanted}")


def check_rank(node: Node, name: str, value: Value | Known, *ranks: int) -> None:
    """Raise InvalidNode for an operand with another number of dimensions."""
    if len(value.shape) not in ranks:
        node.contradicts(f"operand '{name}' has {len(value.shape)} dimensions, not {' or '.join(map(str, ranks))}")

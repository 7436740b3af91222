"""The values that nodes see, and requests for what only the running model knows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from onnx import AttributeProto, NodeProto

from pdojo.errors import UsageError
from pdojo.model.graph import Operand, Tensor
from pdojo.onnx.protos import names_used

Item: TypeAlias = "Operand | list[Operand] | None"
"""A value of ONNX: a tensor, a sequence of tensors, or an absent optional value."""


class NeedsInputs(Exception):
    """A node needs the value of an input of the model, which is a parameter of the node."""

    def __init__(self, name: str, node: str) -> None:
        super().__init__(name, node)
        self.name, self.node = name, node


class Staged(Exception):
    """A node cannot be imported before the model runs: it needs the value, or the shape, of what a step computes."""

    def __init__(self, node: str, reason: str, value: Tensor | None = None) -> None:
        super().__init__(node, reason)
        self.node, self.reason = node, reason
        self.value = value
        """The operand whose value is needed; None if a shape is."""


@dataclass
class Scope:
    """The values that nodes of a graph see, keyed by name."""

    opsets: Mapping[str, int]
    values: dict[str, Item] = field(default_factory=dict[str, Item])
    parent: Scope | None = None
    attributes: Mapping[str, AttributeProto] = field(default_factory=dict[str, AttributeProto])
    """Attributes with which the nodes' function is called."""
    depth: int = 0

    def find(self, name: str) -> Item:
        """The value of a name; None for an absent one. Raises UsageError for a name without value."""
        if not name:
            return None
        scope: Scope | None = self
        while scope is not None:
            if name in scope.values:
                return scope.values[name]
            scope = scope.parent
        raise UsageError(f"value '{name}' is used before it is computed")

    def inner(self, values: dict[str, Item]) -> Scope:
        """The scope of a subgraph."""
        return Scope(self.opsets, values, self, self.attributes, self.depth + 1)

    def copy(self) -> Scope:
        """A scope with the same values, to which others may be added."""
        return Scope(self.opsets, dict(self.values), self.parent, self.attributes, self.depth)

    def tensors(self, names: Iterable[str]) -> Iterator[tuple[str, Tensor]]:
        """The tensors that some names stand for, also those of sequences, with the names; others may have no value."""
        for name in names:
            try:
                value = self.find(name)
            except UsageError:
                continue
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, Tensor):
                    yield name, each


def captured(nodes: Sequence[NodeProto], outputs: Sequence[str], scope: Scope) -> tuple[Tensor, ...]:
    """The tensors of a scope that the nodes or outputs of a graph inside it read."""
    names = dict.fromkeys([*outputs, *(name for node in nodes for name in sorted(names_used(node)))])
    return tuple(dict.fromkeys(tensor for _, tensor in scope.tensors(names)))

"""Plans of graphs of ATen: regions of kernels, and the calls that PyTorch runs between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import torch
from torch.fx import GraphModule, Node

from pdojo.build import Array
from pdojo.build.sizes import Open, OpenExtent
from pdojo.model.graph import Graph, GraphBuilder, Known, Operation, Tensor
from pdojo.model.kernels import step_of
from pdojo.model.model import folded
from pdojo.model.present import Present
from pdojo.torch.keys import Key
from pdojo.torch.lowering import Seen
from pdojo.torch.symbols import OpenTensor


@dataclass(frozen=True)
class Fallback:
    """A call that PyTorch runs, and the reason."""

    node: Node
    reason: str
    """Empty for an element of a result."""


@dataclass
class Region:
    """Operations that become one model."""

    number: int
    builder: GraphBuilder = field(default_factory=lambda: GraphBuilder(_folded))
    seen: dict[Key, Seen] = field(default_factory=dict[Key, Seen])
    inputs: list[Key] = field(default_factory=list[Key])
    calls: list[Node] = field(default_factory=list[Node])
    """The calls of the graph that the operations stand for, in the order of the graph."""
    parts: list[Key] = field(default_factory=list[Key])
    """The views whose elements are indices, and which are therefore arrays of their own."""

    @property
    def made(self) -> dict[Tensor, Key]:
        """Computed tensors of the graph, keyed by the tensors of the model that provide their memory."""
        own = {*self.calls, *(node for node, _ in self.parts)}
        return {
            seen.operand: key
            for key, seen in self.seen.items()
            if key[0] in own and isinstance(seen.operand, Tensor) and seen.operand.base is None
        }

    @property
    def terms(self) -> dict[Node, int]:
        """The largest number of terms of a sum in a call, keyed by node."""
        made = self.made
        rows = [(tensor, operation.row) for operation in self.builder.operations for tensor in operation.made]
        return {made[tensor][0]: row for tensor, row in rows if tensor in made}

    def graph(self, outputs: Sequence[Key]) -> Graph:
        """The operations that some results need."""
        return self.builder.finish(
            f"region{self.number}", [(f"y{n}", self.seen[key].operand) for n, key in enumerate(outputs)]
        )


@dataclass
class Plan:
    """The regions of a graph, the calls of PyTorch, and what they exchange."""

    module: GraphModule
    static: dict[Key, torch.Tensor]
    """Tensors with known values: parameters, buffers, and tensors computed only from them."""
    numbers: dict[Node, Any]
    """Nodes whose values are known and no tensors: numbers, and the graphs of higher-order calls."""
    regions: dict[int, Region]
    calls: dict[int, list[Node]]
    """PyTorch's calls, keyed by the number of the region that they follow."""
    views: dict[Node, Key]
    """Views, with the tensors that they are views of."""
    generated: dict[Node, Array]
    """Calls that read no elements, and whose results depend on sizes."""
    closed: dict[Node, str]
    """Calls that PyTorch runs because kernels need a number where there is a size, with reasons."""
    fallbacks: list[Fallback]
    outputs: tuple[Any, ...]
    exported: dict[int, list[Key]] = field(default_factory=dict[int, list[Key]])
    """The results of regions that others read."""
    present: Present = field(default_factory=lambda: Present({}))
    """The values of sizes; none if they are not known, or if there are none."""

    def is_made_late(self, node: Node) -> bool:
        """Whether PyTorch makes a tensor only for its own calls and for results: a view, or one of no elements read."""
        return node in self.views or node in self.generated

    @property
    def is_open(self) -> bool:
        """Whether a shape or a number of an argument depends on sizes."""
        found = [node.meta["val"] for node in self.module.graph.nodes if node.op == "placeholder"]
        return any(isinstance(each, Open | OpenTensor) for each in found)

    def at(self, present: Present) -> Self:
        """The plan with numbers for these values of sizes."""
        numbers = {node: present.number(each) for node, each in self.numbers.items()}
        return replace(self, numbers=numbers, present=present)

    @property
    def order(self) -> list[int]:
        """The numbers of regions and calls, in the order of execution."""
        return sorted({*self.regions, *self.calls})


def _folded(operation: Operation) -> tuple[Known, ...]:
    """The results of an operation whose operands are known. Raises OpenExtent if they depend on sizes."""
    if step_of([operation], operation.made, {}).kernel.known_sizes():
        raise OpenExtent("its result depends on sizes, and on no tensor")
    return folded(operation)

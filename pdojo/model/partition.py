"""The partition of a graph into groups of operations, each of which becomes one kernel.

An elementwise operation joins the kernel of its latest operand if they have the same shape: chains of them, and what
follows a contraction, are then computed where the data is. A reduction of rows joins the elementwise operations before
it if a row fits a cache. Views join the kernel of their operand. All other operations start a group.

An operation that puts its operands side by side in memory is a group of its own if kernels can compute all of them in
their places. A compiled model then leaves it out.

Groups are executed in the order in which they were started. An operation joins the latest group among those of its
operands only, so that no group depends on a later one.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from math import prod

from pdojo.backends.calling.arrays import ALIGNMENT
from pdojo.model.classify import Kind
from pdojo.model.graph import Graph, Operation, Tensor

MOST = 16
"""Most operations of a group: the time of a pass grows with the kernel."""
ROW = 1 << 14
"""Most elements of a row that is reduced in the kernel that computes it."""


@dataclass(eq=False)
class Group:
    """Operations of one kernel."""

    number: int
    operations: list[Operation] = field(default_factory=list[Operation])
    shape: tuple[int, ...] = ()
    """The shape of its largest tensor."""
    is_in_place: bool = False
    """Whether kernels compute its operands in their places in its result."""

    @property
    def has_statements(self) -> bool:
        """Whether the group computes anything."""
        return any(operation.kind is not Kind.VIEW or _moves(operation) for operation in self.operations)

    def add(self, operation: Operation) -> None:
        """Let an operation join the group."""
        self.operations.append(operation)
        shapes = [self.shape, *[t.shape for t in operation.made]]
        self.shape = max(shapes, key=prod) if len(self.operations) > 1 else shapes[-1]


def partition(graph: Graph) -> list[Group]:
    """The groups, in the order of execution."""
    groups: list[Group] = []
    homes: dict[Tensor, Group] = {}
    in_place = _in_place(graph)
    for operation in graph.operations:
        before = [homes[tensor] for tensor in operation.tensors if tensor in homes]
        home = max(before, key=lambda group: group.number, default=None)
        if (
            home is None
            or operation in in_place
            or not _joins(operation, home, [t for t in operation.tensors if homes.get(t) is home])
        ):
            home = Group(len(groups), is_in_place=operation in in_place)
            groups.append(home)
        home.add(operation)
        homes.update(dict.fromkeys(operation.made, home))
    return [group for group in groups if group.has_statements]


def _in_place(graph: Graph) -> set[Operation]:
    """The operations whose operands can all be computed side by side in the memory of the result.

    An operand is computed there if a kernel makes it, no other operation has it in its result, and it is no output.
    """
    outputs = {value.memory for _, value in graph.outputs if isinstance(value, Tensor)}
    free = {tensor.memory for operation in graph.operations for tensor in operation.made} - outputs
    taken = Counter(tensor.memory for operation in graph.operations for tensor, _ in operation.pieces)
    return {
        operation
        for operation in graph.operations
        if operation.pieces
        and all(
            tensor.memory in free and taken[tensor.memory] == 1 and place % ALIGNMENT == 0
            for tensor, place in operation.pieces
        )
    }


def _joins(operation: Operation, home: Group, operands: list[Tensor]) -> bool:
    """Whether an operation joins a group, from which it takes `operands`."""
    if operation.kind is Kind.VIEW and not _moves(operation):
        return True
    if len(home.operations) >= MOST or home.is_in_place:
        return False
    shapes = {tensor.shape for tensor in operation.made}
    if operation.kind is Kind.ELEMENTWISE:
        return len(shapes) == 1 and (home.shape in shapes or any(tensor.shape in shapes for tensor in operands))
    if operation.kind is Kind.REDUCTION:
        return (
            all(each.kind in (Kind.ELEMENTWISE, Kind.REDUCTION) for each in home.operations)
            and any(tensor.shape == home.shape for tensor in operands)
            and operation.row <= ROW
        )
    return False


def _moves(operation: Operation) -> bool:
    """Whether a view has its elements in another order than its operand."""
    return any(tensor.base is None for tensor in operation.made)

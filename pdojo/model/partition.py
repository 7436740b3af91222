"""The partition of a graph into groups of operations, each of which becomes one kernel.

An elementwise operation joins the kernel of its latest operand if they have the same shape: chains of them, and what
follows a contraction, are then computed where the data is. A reduction of rows joins the elementwise operations before
it if a row fits a cache or nothing else reads it, and elementwise operations on the same rows join the reduction.
Pieces that are put together join the elementwise operations that make them. All other operations start a group.

Views join the kernel of their operand. Copies in another order (transposed, repeated, sliced) are no arrays: each
kernel reads the original through them. A copy that an output needs, or the only use of an array in another order,
belongs to the kernel that computes the array, which writes it in that order.

An operation that puts its operands side by side in memory is a group of its own if kernels can compute all of them in
their places. A compiled model then leaves it out.

An operation that takes elements of an operand for indices starts a group: calls check all elements of an array of
indices before a kernel, so that such an array is in memory, also if it is a part of another one. Only elementwise
operations and reductions that follow, or to which the operation moves, are in its kernel.

Groups are executed in the order in which they were started. An operation may join only the latest group of its
operands, so that no group depends on a later one. In the end, elementwise operations move to the only group that reads
them, if their operands are in memory anyway or move along: their results then never are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import prod

from pdojo.backends.calling.arrays import ALIGNMENT
from pdojo.build.sizes import greatest, is_multiple
from pdojo.model.classify import Kind
from pdojo.model.graph import Graph, Operation, Tensor

MOST = 16
"""Most operations of a group: the time of a pass grows with the kernel."""
ROW = 1 << 14
"""Most elements of a row that is reduced in the kernel that computes it."""
_ALONG = (Kind.ELEMENTWISE, Kind.REDUCTION, Kind.PIECES)
"""Kinds of operations that reductions and pieces may follow in a kernel."""


@dataclass(eq=False)
class Group:
    """Operations of one kernel."""

    number: int
    operations: list[Operation] = field(default_factory=list[Operation])
    shape: tuple[int, ...] = ()
    """The shape of its largest tensor, or of the rows that it reduces."""
    is_in_place: bool = False
    """Whether kernels compute its operands in their places in its result."""

    def add(self, operation: Operation) -> None:
        """Let an operation join the group."""
        self.operations.append(operation)
        shapes = [t.shape for t in operation.made]
        if operation.kind is Kind.REDUCTION and operation.row <= ROW:
            shapes += [t.shape for t in operation.tensors]
        self.shape = max([self.shape, *shapes] if self.shape else shapes, key=lambda shape: prod(greatest(shape)))


def partition(graph: Graph) -> list[Group]:
    """The groups, in the order of execution. Copies that kernels read through are in several groups."""
    return _Partition(graph).groups()


class _Partition:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.outputs = {value.memory for _, value in graph.outputs if isinstance(value, Tensor)}
        self.makers = {tensor: operation for operation in graph.operations for tensor in operation.made}
        self.readers: dict[Tensor, list[Operation]] = {}
        for operation in graph.operations:
            for tensor in dict.fromkeys(operation.tensors):
                self.readers.setdefault(tensor, []).append(operation)
        self.inlined: set[Operation] = set()
        """Views of copies, and the copies, that each kernel reads through."""
        self.homes: dict[Tensor, Group] = {}
        self.others = Group(-1)
        """Views of what no kernel computes, which are no kernel's."""
        self.in_place = _in_place(graph)

    def groups(self) -> list[Group]:
        groups: list[Group] = []
        for operation in self.graph.operations:
            if self._is_inlined(operation):
                self.inlined.add(operation)
                continue
            before = [self.homes[tensor] for tensor in self._operands(operation) if tensor in self.homes]
            home = max((each for each in before if each is not self.others), key=lambda g: g.number, default=None)
            if home is None and operation.kind is Kind.VIEW and not _moves(operation):
                self.homes.update(dict.fromkeys(operation.made, self.others))
                continue
            direct = [tensor for tensor in operation.tensors if home is not None and self.homes.get(tensor) is home]
            in_place = self._is_in_place(operation)
            if home is None or in_place or not self._joins(operation, home, direct):
                home = Group(len(groups), is_in_place=in_place)
                groups.append(home)
            through = dict.fromkeys(self._read_through(operation))
            home.operations += [each for each in through if each not in home.operations]
            home.add(operation)
            self.homes.update(dict.fromkeys(operation.made, home))
        for group in reversed(groups):
            self._sink(group)
        return [group for group in groups if self._has_statements(group)]

    def _has_statements(self, group: Group) -> bool:
        """Whether a group computes anything itself; operations may have moved, and left what they read through."""
        own = [operation for operation in group.operations if operation not in self.inlined]
        return any(operation.kind is not Kind.VIEW or _moves(operation) for operation in own)

    def _is_in_place(self, operation: Operation) -> bool:
        """Whether kernels compute the operands of an operation in their places in its result."""
        makers = [self.makers.get(each) for tensor, _ in operation.pieces for each in (tensor, tensor.memory)]
        return operation in self.in_place and not self.inlined.intersection(each for each in makers if each)

    def _is_inlined(self, operation: Operation) -> bool:
        """Whether kernels read the operand of a copy, or of a view of it, instead."""
        if operation.kind is not Kind.VIEW or operation.is_copy:
            return False
        if any(tensor.memory in self.outputs or self._is_index(tensor) for tensor in operation.made):
            return False
        if _moves(operation):
            return not self._is_only_use(operation)
        return any(self.makers.get(tensor) in self.inlined for tensor in operation.tensors)

    def _is_index(self, tensor: Tensor) -> bool:
        """Whether elements of a tensor, or of a view of it, are indices."""
        readers = self.readers.get(tensor, ())
        views = (view for reader in readers if reader.kind is Kind.VIEW for view in reader.made)
        return any(tensor in reader.indices for reader in readers) or any(map(self._is_index, views))

    def _is_only_use(self, operation: Operation) -> bool:
        """Whether an operation puts all elements of an array that is computed into another order, its only use."""
        (source,) = operation.tensors if len(operation.tensors) == 1 else (None,)
        maker = None if source is None else self.makers.get(source)
        return (
            source is not None
            and maker is not None
            and maker.kind is not Kind.VIEW
            and maker in self._last_of(source)
            and source not in self.outputs
            and self.readers[source] == [operation]
            and [prod(tensor.shape) for tensor in operation.made] == [prod(source.shape)]
        )

    def _last_of(self, source: Tensor) -> Sequence[Operation]:
        """The last operation of the group that makes a tensor."""
        return self.homes[source].operations[-1:] if source in self.homes else ()

    def _sources(self, tensor: Tensor) -> Iterator[Tensor]:
        """The tensors that kernels read for an operand."""
        maker = self.makers.get(tensor)
        if maker in self.inlined:
            assert maker is not None
            for each in maker.tensors:
                yield from self._sources(each)
        else:
            yield tensor

    def _read_through(self, operation: Operation) -> Iterator[Operation]:
        """The copies through which an operation reads, in order."""
        for tensor in operation.tensors:
            maker = self.makers.get(tensor)
            if maker is not None and maker in self.inlined:
                yield from self._read_through(maker)
                yield maker

    def _joins(self, operation: Operation, home: Group, operands: Sequence[Tensor]) -> bool:
        """Whether an operation joins a group, from which it takes `operands`, not through copies."""
        if operation.kind is Kind.VIEW:
            return not _moves(operation) or (not home.is_in_place and self._is_only_use(operation))
        if len(home.operations) >= MOST or home.is_in_place or not operands or operation.indices:
            return False
        shapes = {tensor.shape for tensor in operation.made}
        in_place = [tensor for tensor in operands if tensor not in operation.moved]
        kinds = _kinds(home)
        match operation.kind:
            case Kind.ELEMENTWISE if in_place:
                return len(shapes) == 1 and (home.shape in shapes or any(tensor.shape in shapes for tensor in in_place))
            case Kind.REDUCTION:
                return any(tensor.shape == home.shape for tensor in in_place) and (
                    kinds <= {*_ALONG}
                    if operation.row <= ROW
                    else kinds <= {Kind.ELEMENTWISE} and self._is_last_reader(operation, home)
                )
            case Kind.ELEMENTWISE | Kind.PIECES:
                # Other places of the same elements: kernels compute them in the order in which they are read.
                return kinds <= {Kind.ELEMENTWISE, Kind.PIECES} and all(
                    self.readers[tensor] == [operation] and tensor not in self.outputs for tensor in operands
                )
            case _:
                return False

    def _is_last_reader(self, operation: Operation, group: Group) -> bool:
        """Whether the results of a group are read only by an operation, and by the group's operations before it."""
        made = [tensor for each in group.operations for tensor in each.made if each not in self.inlined]
        readers = {reader for tensor in made for reader in self.readers.get(tensor, ())}
        return readers <= {operation, *group.operations} and not any(tensor.memory in self.outputs for tensor in made)

    def _sink(self, group: Group) -> None:
        """Move elementwise operations to the only group that reads them, with the operations of the group that they
        read.
        """
        for operation in reversed(tuple(group.operations)):
            target = self._only_reader(operation, group) if operation in group.operations else None
            if target is not None and not target.is_in_place:
                moved = self._chain(operation, group, target)
                if len(target.operations) + len(moved) <= MOST:
                    for each in moved:
                        self._move(each, group, target)

    def _chain(self, operation: Operation, group: Group, target: Group) -> list[Operation]:
        """An operation and those of its group whose results it needs and are not in memory, the last one first.

        Empty if they cannot move to the target: they must be elementwise, and read by one another and the target only.
        """
        wanted, found = {operation}, list[Operation]()
        for each in reversed(group.operations):
            if each not in wanted:
                continue
            readers = [reader for tensor in each.made for reader in self.readers.get(tensor, ())]
            along = {*wanted, *(reader for reader in target.operations if reader.kind in _ALONG and not reader.indices)}
            if each.kind is not Kind.ELEMENTWISE or each.is_copy or not along.issuperset(readers):
                return []
            found.append(each)
            inside = [tensor for tensor in self._operands(each) if self.homes.get(tensor) is group]
            wanted.update(self.makers[tensor] for tensor in inside if not self._is_in_memory(tensor))
        is_alone = len(found) == 1 and not operation.indices
        return found if is_alone or _kinds(target) <= {*_ALONG} else []

    def _move(self, operation: Operation, group: Group, target: Group) -> None:
        """Move an operation to another group, before its readers."""
        group.operations.remove(operation)
        readers = {reader for tensor in operation.made for reader in self.readers[tensor]}
        place = min(number for number, each in enumerate(target.operations) if each in readers)
        # Operations before it may read through the same copies: these stay where they are.
        ahead = target.operations[:place]
        through = dict.fromkeys(self._read_through(operation))
        moved = [*(each for each in through if each not in ahead), operation]
        behind = [each for each in target.operations[place:] if each not in moved]
        target.operations = [*ahead, *moved, *behind]
        self.homes.update(dict.fromkeys(operation.made, target))

    def _operands(self, operation: Operation) -> list[Tensor]:
        return [source for tensor in operation.tensors for source in self._sources(tensor)]

    def _only_reader(self, operation: Operation, group: Group) -> Group | None:
        """The only group that reads the results of an operation; None if its own does, or several do."""
        found = {each.number: each for tensor in operation.made for each in self._readers(tensor)}
        if len(found) != 1 or any(tensor.memory in self.outputs for tensor in operation.made):
            return None
        (only,) = found.values()
        return None if only is group else only

    def _readers(self, tensor: Tensor) -> Iterator[Group]:
        """The groups that read a tensor, through views too."""
        for operation in self.readers.get(tensor, ()):
            if operation.kind is Kind.VIEW:
                for each in operation.made:
                    yield from self._readers(each)
            if operation not in self.inlined:
                yield from (self.homes[each] for each in operation.made[:1])

    def _is_in_memory(self, tensor: Tensor) -> bool:
        """Whether a tensor is an output or other groups read it."""
        own = self.homes[tensor]
        return tensor.memory in self.outputs or any(
            each is not own for views in (tensor, tensor.memory) for each in self._readers(views)
        )


def _in_place(graph: Graph) -> set[Operation]:
    """The operations whose operands can all be computed side by side in the memory of the result.

    An operand is computed there if a kernel makes it, no other operation has it in its result, and it is no output.
    """
    outputs = {value.memory for _, value in graph.outputs if isinstance(value, Tensor)}
    inputs = {tensor.memory for tensor in graph.inputs}  # Views of inputs are made by operations, but by no kernel.
    free = {tensor.memory for operation in graph.operations for tensor in operation.made} - outputs - inputs
    taken = Counter(tensor.memory for operation in graph.operations for tensor, _ in operation.pieces)
    return {
        operation
        for operation in graph.operations
        if operation.pieces
        and all(
            tensor.memory in free and taken[tensor.memory] == 1 and is_multiple(place, ALIGNMENT)
            for tensor, place in operation.pieces
        )
    }


def _kinds(group: Group) -> set[Kind]:
    """The kinds of a group's operations that compute something."""
    return {each.kind for each in group.operations} - {Kind.VIEW}


def _moves(operation: Operation) -> bool:
    """Whether a view has its elements in another order than its operand."""
    return any(tensor.base is None for tensor in operation.made)

"""Copies of a kernel with its view, in half the time of `kernel.clone()` and `nest_of`."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TypeVar

from xdsl.ir import Block, Operation, OpResult, Region, SSAValue, SSAValues

from pdojo.dialect.narrowing import operands_of
from pdojo.dialect.ops import BufferOp
from pdojo.dialect.view.nest import Access, Array, Buffer, Leaf, Nest, Node, Scope, inside_of, leaves_of

OperationT = TypeVar("OperationT", bound=Operation)


def copy_nest(
    nest: Nest,
    roots: Sequence[Node] | None = None,
    leaves: Container[Leaf] | None = None,
    buffers: Container[Buffer] | None = None,
) -> Nest:
    """The view of a copy of the kernel (`Nest.kernel`).

    Copies the top-level nodes `roots`, the statements `leaves`, and `buffers` in addition to the interface's (None:
    all); scopes left without statements are dropped.
    """
    return Copier(nest, leaves, buffers).copy(nest.children if roots is None else roots)


class Copier:
    """Copies a kernel and its view in one walk, with the same attributes, numbers and expressions, but new operations.

    xDSL's `clone` walks twice, for values that are used before they are defined; a kernel has none of these.
    """

    def __init__(self, nest: Nest, kept: Container[Leaf] | None, declared: Container[Buffer] | None) -> None:
        self.nest, self.kept = nest, kept
        self.declared = [b for b in nest.buffers if declared is None or b.op is None or b in declared]
        self.values: dict[SSAValue, SSAValue] = {}
        self.buffers: dict[Buffer, Buffer] = {}
        self.arrays: dict[Array, Array] = {}

    def copy(self, roots: Sequence[Node]) -> Nest:
        """The copy of some top-level nodes."""
        original = self.nest.kernel
        block = self._block(original.body.block)
        wanted = {op for buffer in self.declared for op in (buffer.op, buffer.guests)}
        declarations = {op: self._op(op) for op in original.body.block.ops if isinstance(op, BufferOp) and op in wanted}
        for buffer in self.declared:
            op, guests = (None if op is None else declarations[op] for op in (buffer.op, buffer.guests))
            self.buffers[buffer] = _declared_by(buffer, op, guests)
        for array in (array for array in self.nest.arrays.values() if array.buffer in self.buffers):
            self.arrays[array] = Array(array.name, self.buffers[array.buffer], self.values[array.value])
        children = self._children(roots, None)
        block.add_ops([*declarations.values(), *(child.op for child in children)])
        kernel = self._op(original, Region(block))
        arrays = {array.name: array for array in self.arrays.values()}
        sound = {self.buffers[buffer] for buffer in self.declared if buffer in self.nest.sound}
        leaves, scopes = inside_of(children)
        for order, leaf in enumerate(leaves):
            leaf.order = order
        made = [*declarations.values()]
        copy = Nest(kernel, arrays, list(self.buffers.values()), children, leaves, scopes, sound, made)
        copy.is_declared = self.nest.is_declared
        copy.intrinsics = self.nest.intrinsics
        return copy

    def _children(self, nodes: Sequence[Node], parent: Scope | None) -> list[Node]:
        kept = self.kept
        if kept is not None:
            nodes = [node for node in nodes if any(leaf in kept for leaf in leaves_of(node))]
        return [self._node(node, parent, position) for position, node in enumerate(nodes)]

    def _node(self, node: Node, parent: Scope | None, position: int) -> Node:
        if isinstance(node, Leaf):
            return self._leaf(node, parent, position)
        block = self._block(node.op.block)
        op = self._op(node.op, Region(block))
        scope = Scope(op, parent, position, node.depth, node.extent, node.mapping, node.guard)
        scope.source, scope.sound = self._source(node.source, op), node.sound
        scope.take(self._children(node.children, scope))
        scope.settled = node.settled and self.kept is None
        block.add_ops(child.op for child in scope.children)
        return scope

    def _leaf(self, leaf: Leaf, parent: Scope | None, position: int) -> Leaf:
        inputs = tuple(self._access(i) if isinstance(i, Access) else i for i in leaf.inputs)
        output, op = self._access(leaf.output), self._op(leaf.op)
        copy = Leaf(op, parent, position, 0, output, inputs, leaf.function, leaf.accumulate)
        copy.source, copy.sound = self._source(leaf.source, op), leaf.sound
        return copy

    def _source(self, source: tuple[object, ...], op: Operation) -> tuple[object, ...]:
        """`source` with the operands of the copied operation."""
        return (source[0], operands_of(op), *source[2:]) if source else ()

    def _access(self, access: Access) -> Access:
        return Access(self.arrays[access.array], access.index, access.hints)

    def _op(self, op: OperationT, *regions: Region) -> OperationT:
        # `Operation.create` fills in defaults, which the operation has already, and successors, which kernels lack.
        copy = op.__class__.__new__(op.__class__)
        values = self.values
        copy.operands = [values[value] for value in operands_of(op)]
        copy.results = SSAValues([OpResult(result.type, copy, k) for k, result in enumerate(op.results)])
        copy.properties, copy.attributes = op.properties.copy(), op.attributes.copy()
        copy.location = op.location
        for region in regions:
            copy.add_region(region)
        if op.results:
            self._define(op.results, copy.results)
        return copy

    def _block(self, block: Block) -> Block:
        copy = Block(arg_types=[argument.type for argument in block.args])
        self._define(block.args, copy.args)
        return copy

    def _define(self, values: Sequence[SSAValue], copies: Sequence[SSAValue]) -> None:
        for value, copy in zip(values, copies, strict=True):
            self.values[value] = copy
            if (hint := value.name_hint) is not None:
                copy.name_hint = hint


def _declared_by(buffer: Buffer, op: BufferOp | None, guests: BufferOp | None) -> Buffer:
    """The buffer with the declarations of a copied kernel; `dataclasses.replace` takes several times as long."""
    facts = buffer.names, buffer.dtype, buffer.shape, buffer.reuse, buffer.memory, buffer.intent, op, buffer.alignment
    return Buffer(*facts, guests, buffer.swizzles, buffer.source, buffer.constant, buffer.sized, buffer.strides)

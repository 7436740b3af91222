"""The view of a kernel, computed from its operations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from functools import lru_cache
from operator import attrgetter

from xdsl.dialects.builtin import AffineMapAttr, AffineSetAttr, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineSet

from pdojo.dialect.affine import Expr, from_affine, var
from pdojo.dialect.attributes import IndexValueAttr, Mapping, Memory
from pdojo.dialect.functions import byte_width, dtype_name
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.narrowing import is_float_constant, is_integer_constant, is_memref
from pdojo.dialect.ops import BufferOp, KernelOp, OpOp, ScopeOp
from pdojo.dialect.syntax import names_of
from pdojo.dialect.view.nest import (
    NO_HINTS,
    Access,
    Array,
    Buffer,
    Constant,
    Index,
    Input,
    Leaf,
    Nest,
    Node,
    Scope,
    leaves_of,
    nodes_of,
)


def nest_of(kernel: KernelOp, before: Nest | None = None) -> Nest:
    """Compute the view of a kernel; index expressions are in canonical form.

    `before` is the view before the kernel was rewritten in place. Top-level nodes that are as they were, at the same
    place, are those of that view; of others, accesses of statements that are as they were are taken from it, and
    whether verification has accepted them. It is not changed.
    """
    return _Builder(kernel, before).build()


def nest_on(kernel: KernelOp, machine: Machine, before: Nest | None = None) -> Nest:
    """`nest_of`, for a machine, whose instructions say what threads of a warp compute together."""
    nest = nest_of(kernel, before)
    if any(scope.mapping is Mapping.TENSOR for scope in nest.scopes):
        nest.intrinsics = machine.intrinsics
    return nest


class _Builder:
    def __init__(self, kernel: KernelOp, before: Nest | None) -> None:
        self.kernel = kernel
        self.known_scopes: dict[Operation, Scope] = {} if before is None else {s.op: s for s in before.scopes}
        self.known_leaves: dict[Operation, Leaf] = {} if before is None else {leaf.op: leaf for leaf in before.leaves}
        self.known_arrays = {} if before is None else {array.value: array for array in before.arrays.values()}
        self.known_sound = set[Buffer]() if before is None else before.sound
        self.arrays: dict[SSAValue, Array] = {}
        self.buffers: list[Buffer] = []
        self.leaves: list[Leaf] = []
        self.scopes: list[Scope] = []
        self.depths: dict[SSAValue, int] = {}
        """Depths of the scopes met so far, by induction variable."""

    def build(self) -> Nest:
        self._interface()
        children = self._children(self.kernel.body.block.ops, None, (), kept=True)
        arrays = {a.name: a for a in self.arrays.values()}
        sound = self.known_sound.intersection(self.buffers)
        return Nest(self.kernel, arrays, self.buffers, children, self.leaves, self.scopes, sound)

    def _interface(self) -> None:
        kernel = self.kernel
        aligned = kernel.arg_alignments
        guests = {op.host: op for op in kernel.guests()}
        rows = zip(kernel.body.block.args, names_of(kernel.arg_names), kernel.arg_intents.data, strict=True)
        for position, (argument, name, intent) in enumerate(rows):
            dtype, shape = element_and_shape(argument)
            alignment = byte_width(dtype) if aligned is None else aligned.data[position].value.data
            flags = (0,) * len(shape)
            hosted = guests.get(argument)
            names = (name, *(names_of(hosted.array_names) if hosted is not None else ()))
            buffer = Buffer(names, dtype, shape, flags, Memory.HEAP, intent.data, None, alignment, hosted)
            self._add(buffer, [name], [argument])

    def _add(self, buffer: Buffer, names: Sequence[str], values: Sequence[SSAValue]) -> None:
        """Add a buffer and arrays in it; those that are as they were are the same objects."""
        known = self.known_arrays.get(values[0])
        buffer = known.buffer if known is not None and same_buffer(known.buffer, buffer) else buffer
        self.buffers.append(buffer)
        for name, value in zip(names, values, strict=True):
            self._name(name, buffer, value)

    def _keep(self, buffer: Buffer, op: BufferOp) -> None:
        """Add a declared buffer of the view before, with its arrays."""
        self.buffers.append(buffer)
        for value in op.results:
            self.arrays[value] = self.known_arrays[value]

    def _name(self, name: str, buffer: Buffer, value: SSAValue) -> None:
        known = self.known_arrays.get(value)
        is_same = known is not None and known.name == name and known.buffer is buffer
        self.arrays[value] = known if known is not None and is_same else Array(name, buffer, value)

    def _declare(self, op: BufferOp) -> None:
        source = dict(op.properties), tuple(result.type for result in op.results)
        known = self.known_arrays.get(op.results[0])
        if known is not None and known.buffer.op is op and known.buffer.source == source:
            self._keep(known.buffer, op)
            return
        names = names_of(op.array_names)
        if op.host is not None:
            for name, value in zip(names, op.arrays, strict=True):
                self._name(name, self.arrays[op.host].buffer, value)
            return
        dtype, shape = element_and_shape(op.arrays[0])
        width, swizzles = byte_width(dtype), op.swizzles
        buffer = Buffer(
            names, dtype, shape, op.slots, op.memory.data, None, op, width, swizzles=swizzles, source=source
        )
        self._add(buffer, names, op.arrays)

    def _children(
        self, ops: Iterable[Operation], parent: Scope | None, extents: tuple[int, ...], *, kept: bool
    ) -> list[Node]:
        """The nodes of some operations; `kept` if all scopes around them are as they were."""
        children: list[Node] = []
        for op in ops:
            if parent is None and (shared := self._shared(op, len(children))) is not None:
                children.append(shared)
                continue
            match op:
                case OpOp():
                    children.append(self._leaf(op, parent, len(children), extents, kept=kept))
                case ScopeOp():
                    children.append(self._scope(op, parent, len(children), extents, kept=kept))
                case BufferOp():
                    self._declare(op)
                case _:
                    raise ValueError(f"'{op.name}' cannot be part of a pdojo.kernel")
        return children

    def _shared(self, op: Operation, position: int) -> Node | None:
        """The top-level node of the view before, if everything that it says still holds; adds what is inside."""
        known = self.known_scopes.get(op) or self.known_leaves.get(op)
        if known is None or known.parent is not None or known.position != position:
            return None
        leaves = leaves_of(known)
        if not leaves or leaves[0].order != len(self.leaves) or not self._is_as_before(known):
            return None
        self.scopes += (node for node in nodes_of(known) if isinstance(node, Scope))
        self.leaves += leaves
        return known

    def _is_as_before(self, known: Node) -> bool:
        """Whether the operations of a subtree are as they were, and access the same arrays."""
        op, source = known.op, known.source
        if not source or source[0] != op.properties or source[1] != (operands := tuple(op.operands)):
            return False
        if isinstance(known, Leaf):
            return self._has_same_arrays(known, operands)
        inside = list(known.op.regions[0].block.ops)
        return [child.op for child in known.children] == inside and all(map(self._is_as_before, known.children))

    def _scope(self, op: ScopeOp, parent: Scope | None, position: int, outer: tuple[int, ...], *, kept: bool) -> Scope:
        depth, block = len(outer), op.body.block
        own = block.args[0]
        self.depths[own] = depth
        operands = tuple(op.operands)
        known = self.known_scopes.get(op)
        source = _source(op, known, operands, tuple(self.depths[iv] for iv in operands), outer)
        if known is not None and known.source == source:
            scope = Scope(op, parent, position, depth, known.extent, known.mapping, known.guard, source=source)
            kept = kept and _same_parent(known, parent)
            scope.sound = kept and known.sound
        else:
            kept = False
            guard: tuple[Expr, ...] = ()
            if (conjunction := op.guard) is not None:
                depths = tuple(self.depths[iv] for iv in (*op.guard_ivs, own))
                guard = _converted(conjunction, depths, (*outer, op.count))
            scope = Scope(op, parent, position, depth, op.count, op.mapping.data, guard, source=source)
        extents = (*outer, scope.extent)
        self.scopes.append(scope)
        first = len(self.leaves)
        scope.children = self._children(block.ops, scope, extents, kept=kept)
        scope.leaves = self.leaves[first:]
        return scope

    def _leaf(self, op: OpOp, parent: Scope | None, position: int, extents: tuple[int, ...], *, kept: bool) -> Leaf:
        operands = tuple(op.operands)
        depths = tuple(self.depths[value] for value in operands if value in self.depths)
        known = self.known_leaves.get(op)
        source = _source(op, known, operands, depths, extents)
        if known is not None and known.source == source and self._has_same_arrays(known, operands):
            facts = known.output, known.inputs, known.function, known.accumulate
            sound = kept and known.sound and _same_parent(known, parent)
            leaf = Leaf(op, parent, position, len(self.leaves), *facts, source, sound)
            self.leaves.append(leaf)
            return leaf
        written, read, _ = op.operand_groups
        hints = iter((NO_HINTS,) * (1 + len(read)) if op.hints is None else op.hints.data)
        arrays = iter(read)
        output = Access(self.arrays[written], _converted(op.output_map, depths, extents), next(hints))
        inputs: list[Input] = []
        for value in op.inputs.data:
            if isinstance(value, AffineMapAttr):
                array = self.arrays[next(arrays)]
                inputs.append(Access(array, _converted(value, depths, extents), next(hints)))
            elif isinstance(value, IndexValueAttr):
                (expression,) = _converted(value.map, depths, extents)
                inputs.append(Index(expression, dtype_name(value.type)))
            else:
                inputs.append(_constant(value))
        function = None if op.function is None else op.function.data
        accumulate = None if op.accumulate is None else op.accumulate.data
        leaf = Leaf(op, parent, position, len(self.leaves), output, tuple(inputs), function, accumulate, source)
        self.leaves.append(leaf)
        return leaf

    def _has_same_arrays(self, known: Leaf, operands: Sequence[SSAValue]) -> bool:
        return all(self.arrays[v] is a.array for v, a in zip(operands, known.accesses, strict=False))


def _source(op: ScopeOp | OpOp, known: Node | None, *rest: object) -> tuple[object, ...]:
    """What the view of a node is computed from: the properties of the operation, and where it stands.

    The properties are those of the view before if they are equal, because a rewrite may change the operation's own.
    """
    properties = op.properties
    if known is not None and known.source and known.source[0] == properties:
        return (known.source[0], *rest)
    return (dict(properties), *rest)


def _same_parent(known: Node, parent: Scope | None) -> bool:
    """Whether a node of the view before stood in the same scope."""
    return (None if known.parent is None else known.parent.op) is (None if parent is None else parent.op)


@lru_cache(maxsize=1 << 16)
def _converted(
    attribute: AffineMapAttr | AffineSetAttr, depths: tuple[int, ...], extents: tuple[int, ...]
) -> tuple[Expr, ...]:
    """The expressions of a map, or of a set's `e >= 0`, in canonical form; remembered, as moves change few of them."""
    data = attribute.data
    expressions = [c.lhs for c in data.constraints] if isinstance(data, AffineSet) else data.results
    dims = [var(depth) for depth in depths]
    return tuple(from_affine(e, dims, extents) for e in expressions)


def same_buffer(one: Buffer, other: Buffer) -> bool:
    """Whether two views of buffers say the same; declarations are compared by identity."""
    return _facts(one) == _facts(other)


_facts = attrgetter(*(f.name for f in fields(Buffer)))


def _constant(value: Attribute) -> Constant:
    assert is_integer_constant(value) or is_float_constant(value)
    return Constant(value.value.data, dtype_name(value.type))


def element_and_shape(value: SSAValue) -> tuple[str, tuple[int, ...]]:
    """Element type by name, and extents, of a memref value."""
    assert is_memref(value.type)
    return dtype_name(value.type.element_type), tuple(value.type.get_shape())


def assign_ids(kernel: KernelOp, ids: Sequence[str] = ()) -> None:
    """Give every scope and statement that has none an identifier: its number in textual order.

    `ids` are those of `ids_of` for a kernel with the same text; all nodes get them.
    """
    nodes = _nodes(kernel)
    for op, known in zip(nodes, ids, strict=True) if ids else ():
        op.properties["id"] = StringAttr(known)
    used = {op.id.data for op in nodes if op.id is not None}
    fresh = (name for k in range(2 * len(nodes)) if (name := str(k)) not in used)
    for op in nodes:
        if op.id is None:
            op.properties["id"] = StringAttr(next(fresh))


def ids_of(kernel: KernelOp) -> tuple[str, ...]:
    """The identifiers of all scopes and statements, in textual order; '' for those without."""
    return tuple("" if op.id is None else op.id.data for op in _nodes(kernel))


def _nodes(kernel: KernelOp) -> list[ScopeOp | OpOp]:
    return [op for op in kernel.walk() if isinstance(op, ScopeOp | OpOp)]

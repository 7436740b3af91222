"""The view of a kernel, computed from its operations."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import fields
from functools import lru_cache
from operator import attrgetter
from typing import TypeAlias, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, AffineMapAttr, AffineSetAttr, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineSet

from pdojo.dialect.affine import Expr, const, lookup, var
from pdojo.dialect.affine_maps import from_affine
from pdojo.dialect.attributes import IndexValueAttr, Mapping, Memory
from pdojo.dialect.functions import byte_width, dtype_name
from pdojo.dialect.index_maps import strides_of
from pdojo.dialect.intrinsic import Instructions
from pdojo.dialect.narrowing import is_float_constant, is_integer_constant, is_memref, operands_of
from pdojo.dialect.ops import BufferOp, KernelOp, ScopeOp, StatementOp
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
    inside_of,
    subtree,
)


def nest_of(kernel: KernelOp, before: Nest | None = None, touched: Container[Node] | None = None) -> Nest:
    """Compute the view of a kernel; index expressions are in canonical form.

    `before` is the view before the kernel was rewritten in place; it is used up. Nodes whose operation and enclosing
    scopes are unchanged are taken from `before`, with updated children and places; other nodes are new, and their old
    ones stay as they are. `touched` are the nodes that may have changed, with the scopes around them (None: all);
    operations next to them may be new or gone. `before` must not be the view of another kernel, such as the original of
    a copy.
    """
    if (
        before is None
        or before.kernel is not kernel
        or before.tables != kernel.known_tables()
        or before.sizes != kernel.known_sizes()
        or before.index_arrays != kernel.index_arrays()
    ):
        before = touched = None
    elif before.is_used_up:
        # After a rewrite in two steps, the second may have rewritten nodes of the first, which are not in `touched`.
        touched = None
    return _Builder(kernel, before, touched).build()


def nest_on(
    kernel: KernelOp, machine: Instructions, before: Nest | None = None, touched: Container[Node] | None = None
) -> Nest:
    """`nest_of` for a given machine; its instructions say which scopes the threads of a warp compute together."""
    nest = nest_of(kernel, before, touched)
    if Mapping.TENSOR in nest.traits:
        nest.intrinsics = machine.intrinsics
    return nest


Said: TypeAlias = tuple[dict[str, Attribute], Sequence[SSAValue], list[Attribute]]
"""The properties of a declaration, its operands, and the types of its arrays."""


class _Builder:
    def __init__(self, kernel: KernelOp, before: Nest | None, touched: Container[Node] | None) -> None:
        self.kernel = kernel
        self.before = before
        self.touched = touched
        self.tables = {**kernel.known_tables(), **kernel.index_arrays()}
        self.sizes = {name: size.expression for name, size in kernel.known_sizes().items()}
        self.known_arrays: dict[SSAValue, Array] = {}
        self.source: tuple[object, ...] = ()
        self.of_declarations: dict[str, object] = {}
        self.arrays: dict[SSAValue, Array] = {}
        self.stale: set[Array] = set()
        """Arrays of the previous view that are gone or have another declaration."""
        self.buffers: list[Buffer] = []
        self.declarations: list[BufferOp] = []
        self.is_late = False
        """Whether a declaration follows a statement."""
        self.in_order = True
        """Whether the kept nodes are in the order of the previous view."""
        self.made: list[Node] = []
        """New nodes."""
        self.gone: list[Node] = []
        """Nodes of the previous view that are gone, without their descendants."""

    def build(self) -> Nest:
        before = self.before
        first = self._declared()
        children, _ = self._children(first, None, () if before is None else before.children, kept=before is not None)
        leaves, scopes = inside_of(children)
        for order, leaf in enumerate(leaves):
            leaf.order = order
        arrays = {a.name: a for a in self.arrays.values()}
        nest = Nest(self.kernel, arrays, self.buffers, children, leaves, scopes, declarations=self.declarations)
        nest.source, nest.values, nest.of_declarations = self.source, self.arrays, self.of_declarations
        if before is not None:
            self._take_over(nest, before)
        return nest

    def _take_over(self, nest: Nest, before: Nest) -> None:
        """Take over the facts of the previous view that still hold."""
        nest.sound = before.sound.intersection(nest.buffers)
        nest.is_declared = before.is_declared and nest.declarations == before.declarations and not self.is_late
        same_names = [*nest.arrays] == [*before.arrays] and len(nest.arrays) == len(self.arrays)
        nest.is_named = before.is_named and not self.is_late and nest.source[:2] == before.source[:2] and same_names
        if not before.is_used_up:
            gone = [node for root in self.gone for node in subtree(root)]
            if self.in_order:
                leaves = (node for node in (*gone, *self.made) if isinstance(node, Leaf))
                others = {access.array.buffer for leaf in leaves for access in leaf.accesses}
                kept = set(nest.buffers) - others
                nest.of_uses = {buffer: facts for buffer, facts in before.of_uses.items() if buffer in kept}
            nest.take_ids(before, gone, self.made)
        before.is_used_up = True

    def _declared(self) -> Operation | None:
        """Declare arrays; returns the first operation that is no declaration."""
        block, before = self.kernel.body.block, self.before
        op = block.first_op
        while isinstance(op, BufferOp):
            self.declarations.append(op)
            op = op.next_op
        said: list[Said] = [
            (each.properties, operands_of(each), [value.type for value in each.results]) for each in self.declarations
        ]
        source = (self.kernel.properties, [value.type for value in block.args], said)
        if before is not None and before.declarations == self.declarations and before.source[:2] == source[:2]:
            told = cast("list[Said]", before.source[2])
            if told == said:
                self.source, self.arrays, self.buffers = before.source, before.values, before.buffers
                self.of_declarations = before.of_declarations
                return op
            if not any(operands for _, operands, _ in (*told, *said)):
                self._redeclare(before, told, said)
                return op
        properties = [(dict(each), *rest) for each, *rest in said]
        self.source = (dict(source[0]), source[1], properties)
        self.known_arrays = {} if before is None else {array.value: array for array in before.arrays.values()}
        self._interface(said)
        for each, (own, _, types) in zip(self.declarations, properties, strict=True):
            self._declare(each, (own, types))
        self.stale = set(self.known_arrays.values()).difference(self.arrays.values())
        return op

    def _redeclare(self, before: Nest, told: Sequence[Said], said: Sequence[Said]) -> None:
        """Declare the same buffers as in the previous view; the others than those that now say something else stay."""
        self.arrays, self.buffers, now = before.values.copy(), before.buffers.copy(), list(told)
        first = len(self.buffers) - len(said)
        for k, op in enumerate(self.declarations):
            if said[k] != told[k]:
                own, operands, types = said[k]
                now[k] = dict(own), operands, types
                names = names_of(op.array_names)
                buffer = self.buffers[first + k] = _declared_by(op, names, (now[k][0], types), self._symbols(op))
                self.stale.update(self.arrays[value] for value in op.results)
                self.arrays.update((v, Array(name, buffer, v)) for name, v in zip(names, op.results, strict=True))
        self.source = (*before.source[:2], now)

    def _interface(self, said: Sequence[Said]) -> None:
        kernel = self.kernel
        aligned, constants = kernel.arg_alignments, kernel.constant_names
        guests = {op.host: op for op, (_, operands, _) in zip(self.declarations, said, strict=True) if operands}
        rows = zip(kernel.body.block.args, names_of(kernel.arg_names), kernel.arg_intents.data, strict=True)
        for position, (argument, name, intent) in enumerate(rows):
            extents = None if kernel.arg_extents is None else kernel.arg_extents.data[position]
            dtype, shape, sized = _array_type(argument, extents, tuple(self.sizes.values()))
            strides = strides_of(argument.type) if is_memref(argument.type) else ()
            alignment = byte_width(dtype) if aligned is None else aligned.data[position].value.data
            flags = (0,) * len(shape)
            hosted, constant = guests.get(argument), name in constants
            names = (name, *(names_of(hosted.array_names) if hosted is not None else ()))
            facts = (names, dtype, shape, flags, Memory.HEAP, intent.data, None, alignment, hosted)
            buffer = Buffer(*facts, constant=constant, sized=sized, strides=strides)
            self._add(buffer, [name], [argument])

    def _add(self, buffer: Buffer, names: Sequence[str], values: Sequence[SSAValue]) -> None:
        """Add a buffer and its arrays; unchanged ones stay the same objects."""
        known = self.known_arrays.get(values[0])
        buffer = known.buffer if known is not None and same_buffer(known.buffer, buffer) else buffer
        self.buffers.append(buffer)
        for name, value in zip(names, values, strict=True):
            self._name(name, buffer, value)

    def _keep(self, buffer: Buffer, op: BufferOp) -> None:
        """Add a declared buffer of the previous view, with its arrays."""
        self.buffers.append(buffer)
        for value in op.results:
            self.arrays[value] = self.known_arrays[value]

    def _name(self, name: str, buffer: Buffer, value: SSAValue) -> None:
        known = self.known_arrays.get(value)
        is_same = known is not None and known.name == name and known.buffer is buffer
        self.arrays[value] = known if known is not None and is_same else Array(name, buffer, value)

    def _symbols(self, op: BufferOp | ScopeOp | StatementOp) -> tuple[Expr, ...]:
        """The sizes that the symbols of an operation's maps stand for."""
        if "sizes" not in op.properties or op.sizes is None:
            return ()
        return tuple([self.sizes[each.data] for each in op.sizes.data])

    def _declare(self, op: BufferOp, source: tuple[object, ...]) -> None:
        known = self.known_arrays.get(op.results[0])
        if known is not None and known.buffer.op is op and known.buffer.source == source:
            self._keep(known.buffer, op)
            return
        names = names_of(op.array_names)
        if op.host is not None:
            for name, value in zip(names, op.arrays, strict=True):
                self._name(name, self.arrays[op.host].buffer, value)
            return
        self._add(_declared_by(op, names, source, self._symbols(op)), names, op.arrays)

    def _children(
        self, first: Operation | None, parent: Scope | None, known: Sequence[Node], *, kept: bool
    ) -> tuple[list[Node], bool]:
        """The nodes of `first` and the operations after it, and whether they equal the nodes `known`.

        `kept` says whether the scopes around them are unchanged since the previous view.
        """
        children: list[Node] = []
        is_same, latest, position, touched = kept, -1, 0, self.touched if kept else None
        by_op: dict[Operation, Node] = {}
        op, count = first, len(known)
        while op is not None:
            before = known[position] if position < count else None
            if before is None or before.op is not op:
                by_op = by_op or {node.op: node for node in known}
                before = by_op.get(op)
            is_untouched = before is not None and touched is not None and before not in touched
            if before is not None and (is_untouched or (kept and self._says_the_same(before))):
                is_whole = is_untouched or isinstance(before, Leaf) or self._update(before)
                is_same = is_whole and is_same and before.position == position
                self.in_order = self.in_order and latest < before.position
                latest, before.position = before.position, position
                children.append(before)
            elif isinstance(op, BufferOp) and parent is None:
                self._declare_late(op)
                position -= 1
            else:
                is_same = False
                children.append(self._node(op, parent, position, before))
            op, position = op.next_op, position + 1
        is_same = is_same and position == count
        if kept and not is_same:
            present = set(children)
            self.gone += (node for node in known if node not in present)
        return children, is_same

    def _declare_late(self, op: BufferOp) -> None:
        """Declare a buffer after a statement; verification will refuse it."""
        self.is_late = True
        self.arrays, self.buffers, self.source = dict(self.arrays), list(self.buffers), ()
        self.declarations = [*self.declarations, op]
        self._declare(op, ())

    def _says_the_same(self, known: Node) -> bool:
        """Whether a node's operation is unchanged and accesses the same arrays."""
        op, source = known.op, known.source
        if not source or source[0] != op.properties or source[1] != operands_of(op):
            return False
        return not self.stale or isinstance(known, Scope) or self.stale.isdisjoint([a.array for a in known.accesses])

    def _update(self, known: Scope) -> bool:
        """Update the children of a kept scope; returns whether everything inside is unchanged."""
        children, is_same = self._children(known.op.block.first_op, known, known.children, kept=True)
        if not is_same:
            known.take(children)
        return is_same

    def _node(self, op: Operation, parent: Scope | None, position: int, known: Node | None) -> Node:
        match op:
            case StatementOp():
                node = self._leaf(op, parent, position, known if isinstance(known, Leaf) else None)
            case ScopeOp():
                node = self._scope(op, parent, position, known if isinstance(known, Scope) else None)
            case _:
                raise ValueError(f"'{op.name}' cannot be part of a pdojo.kernel")
        self.made.append(node)
        return node

    def _scope(self, op: ScopeOp, parent: Scope | None, position: int, known: Scope | None) -> Scope:
        outer, depths = _around(parent)
        depth, block = len(outer), op.block
        operands = operands_of(op)
        source = _source(op, known, operands, tuple([depths[iv] for iv in operands]), outer)
        if known is not None and known.source == source:
            scope = Scope(op, parent, position, depth, known.extent, known.mapping, known.guard, source=source)
        else:
            guard: tuple[Expr, ...] = ()
            if "guard" in op.properties and (conjunction := op.guard) is not None:
                inner, all_extents = (*(depths[iv] for iv in op.guard_ivs), depth), (*outer, op.count)
                dims = self._lookups(op, inner, all_extents) if "lookups" in op.properties else ()
                guard = _converted(conjunction, inner, all_extents, dims, self._symbols(op))
            scope = Scope(op, parent, position, depth, op.count, op.mapping.data, guard, source=source)
        scope.take(self._children(block.first_op, scope, () if known is None else known.children, kept=False)[0])
        return scope

    def _leaf(self, op: StatementOp, parent: Scope | None, position: int, known: Leaf | None) -> Leaf:
        extents, around = _around(parent)
        operands = operands_of(op)
        depths = tuple([depth for value in operands if (depth := around.get(value)) is not None])
        source = _source(op, known, operands, depths, extents)
        if known is not None and known.source == source and self._has_same_arrays(known, operands):
            facts = known.output, known.inputs, known.function, known.accumulate
            return Leaf(op, parent, position, 0, *facts, source)
        written, read, _ = op.operand_groups
        said = op.properties
        symbols = self._symbols(op)
        dims = self._lookups(op, depths, extents) if "lookups" in said else ()
        own = op.hints if "hints" in said else None
        hints = iter((NO_HINTS,) * (1 + len(read)) if own is None else own.data)
        arrays = iter(read)
        output = Access(self.arrays[written], _converted(op.output_map, depths, extents, dims, symbols), next(hints))
        inputs: list[Input] = []
        for value in op.inputs.data:
            if isinstance(value, AffineMapAttr):
                array = self.arrays[next(arrays)]
                inputs.append(Access(array, _converted(value, depths, extents, dims, symbols), next(hints)))
            elif isinstance(value, IndexValueAttr):
                (expression,) = _converted(value.map, depths, extents, dims, symbols)
                inputs.append(Index(expression, dtype_name(value.type)))
            else:
                inputs.append(_constant(value))
        function, accumulate = _text(said.get("function")), _text(said.get("accumulate"))
        return Leaf(op, parent, position, 0, output, tuple(inputs), function, accumulate, source)

    def _lookups(
        self, op: ScopeOp | StatementOp, depths: tuple[int, ...], extents: tuple[int, ...]
    ) -> tuple[Expr, ...]:
        """The entries that the last dimensions of the operation's maps stand for."""
        found: tuple[Expr, ...] = ()
        lookups = () if op.lookups is None else op.lookups.data
        for number, each in enumerate(lookups):
            # A place uses no later lookup: any expression may stand for those.
            place = _converted(
                each.map, depths, extents, (*found, *(const(0),) * (len(lookups) - number)), self._symbols(op)
            )
            found = (*found, lookup(self.tables[each.table.data], place, extents))
        return found

    def _has_same_arrays(self, known: Leaf, operands: Sequence[SSAValue]) -> bool:
        return all(self.arrays[v] is a.array for v, a in zip(operands, known.accesses, strict=False))


def _text(value: Attribute | None) -> str | None:
    return value.data if isinstance(value, StringAttr) else None


def _source(op: ScopeOp | StatementOp, known: Node | None, *rest: object) -> tuple[object, ...]:
    """The data from which a node's view is computed: the properties of the operation, and its place.

    Properties equal to the previous view's are taken from there, because a rewrite may change the operation's own.
    """
    properties = op.properties
    if known is not None and known.source and known.source[0] == properties:
        return (known.source[0], *rest)
    return (dict(properties), *rest)


def _around(parent: Scope | None) -> tuple[tuple[int, ...], dict[SSAValue, int]]:
    """The extents of a scope and its ancestors, and the depths of their variables."""
    return ((), {}) if parent is None else (parent.extents, parent.depths)


@lru_cache(maxsize=1 << 16)
def _converted(
    attribute: AffineMapAttr | AffineSetAttr,
    depths: tuple[int, ...],
    extents: tuple[int, ...],
    lookups: tuple[Expr, ...] = (),
    sizes: tuple[Expr, ...] = (),
) -> tuple[Expr, ...]:
    """The expressions of a map, or of a set's `e >= 0`, in canonical form; cached, as moves change few of them."""
    data = attribute.data
    expressions = [c.lhs for c in data.constraints] if isinstance(data, AffineSet) else data.results
    dims = [*(var(depth) for depth in depths), *lookups]
    return tuple(from_affine(e, dims, extents, sizes) for e in expressions)


def _declared_by(op: BufferOp, names: tuple[str, ...], source: tuple[object, ...], sizes: tuple[Expr, ...]) -> Buffer:
    """The buffer that a declaration with memory of its own declares; `sizes` are those of its symbols."""
    extents = op.extents if "extents" in op.properties else None
    dtype, shape, sized = _array_type(op.results[0], extents, sizes)
    facts = (names, dtype, shape, op.slots, op.memory.data, None, op, byte_width(dtype))
    return Buffer(*facts, swizzles=op.swizzles, source=source, constant=op.constant is not None, sized=sized)


def same_buffer(one: Buffer, other: Buffer) -> bool:
    """Whether two views describe the same buffer; declarations are compared by identity."""
    return _facts(one) == _facts(other)


_facts = attrgetter(*(f.name for f in fields(Buffer)))


def _constant(value: Attribute) -> Constant:
    assert is_integer_constant(value) or is_float_constant(value)
    return Constant(value.value.data, dtype_name(value.type))


def _array_type(
    value: SSAValue, extents: AffineMapAttr | None, sizes: tuple[Expr, ...]
) -> tuple[str, tuple[int, ...], tuple[Expr, ...]]:
    """Element type by name, greatest extents, and extents as expressions of sizes, () if all are constant."""
    assert is_memref(value.type)
    dtype, shape = dtype_name(value.type.element_type), tuple(value.type.get_shape())
    if extents is None or DYNAMIC_INDEX not in shape:
        return dtype, shape, ()
    sized = _converted(extents, (), (), (), sizes)
    return dtype, tuple([extent.bounds(())[1] for extent in sized]), sized


def assign_ids(kernel: KernelOp, ids: Sequence[str] = ()) -> None:
    """Give every scope and statement without an identifier its number in textual order.

    `ids` are the results of `ids_of` for a kernel with the same text; then all nodes get theirs.
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


def _nodes(kernel: KernelOp) -> list[ScopeOp | StatementOp]:
    return [op for op in kernel.walk() if isinstance(op, ScopeOp | StatementOp)]

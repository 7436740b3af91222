"""The view of a kernel that analyses, moves, interpreters and backends read: plain objects instead of SSA.

A `Nest` is computed once from a `KernelOp` and never changes. Induction variables are known by the depth of their
scope, so that index expressions (`pdojo.dialect.affine`) of two nodes that share ancestors are directly comparable.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import TypeAlias

from xdsl.dialects.builtin import AffineMapAttr, DictionaryAttr, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue

from pdojo.dialect.affine import Expr, from_affine, var
from pdojo.dialect.attributes import IndexValueAttr, Intent, Mapping, Memory
from pdojo.dialect.functions import byte_width, dtype_name
from pdojo.dialect.narrowing import is_float_constant, is_integer_constant, is_memref
from pdojo.dialect.ops import BufferOp, KernelOp, OpOp, ScopeOp, Swizzle
from pdojo.dialect.syntax import names_of


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """A memory buffer, or the caller's memory behind an interface array (`op` is None, `intent` is set).

    The first of the names of a caller's memory is that of the interface array, the others are temporaries in it.
    """

    names: tuple[str, ...]
    dtype: str
    shape: tuple[int, ...]
    reuse: tuple[int, ...]
    """Slots per dimension: 0 one per index, 1 a single one, k >= 2 a circular buffer of k."""
    memory: Memory
    intent: Intent | None
    op: BufferOp | None
    alignment: int
    """Bytes; a fact for interface arrays, what the element type needs otherwise."""
    guests: BufferOp | None = None
    """The declaration of the temporaries that live in an interface array."""
    swizzles: MappingABC[int, Swizzle] = field(default_factory=dict[int, Swizzle])
    """The dimensions whose positions are exchanged by the index in another one."""

    @property
    def hints(self) -> DictionaryAttr:
        """Facts about the buffer that code may use."""
        hints = None if self.op is None else self.op.hints
        return DictionaryAttr({}) if hints is None else hints


@dataclass(frozen=True, slots=True, eq=False)
class Array:
    """A named multidimensional array and the buffer that it lives in."""

    name: str
    buffer: Buffer
    value: SSAValue

    @property
    def dtype(self) -> str:
        """Element type, by name."""
        return self.buffer.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Logical extents."""
        return self.buffer.shape

    @property
    def intent(self) -> Intent | None:
        """The intent of an interface array; None for a temporary, wherever it lives."""
        return self.buffer.intent if self.name == self.buffer.names[0] else None


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """One array element per instance of a statement."""

    array: Array
    index: tuple[Expr, ...]
    """One expression per dimension, over the depths of the enclosing scopes."""
    hints: DictionaryAttr

    @property
    def key(self) -> tuple[str, tuple[Expr, ...]]:
        """What is accessed, as a comparable value."""
        return self.array.name, self.index


@dataclass(frozen=True, slots=True)
class Constant:
    """A typed constant input; integers are signed values."""

    value: float | int
    dtype: str


@dataclass(frozen=True, slots=True)
class Index:
    """An index expression used as a value of type `dtype`."""

    expression: Expr
    dtype: str


Input: TypeAlias = Access | Constant | Index


@dataclass(eq=False)
class Scope:
    """A node of the tree with children; compared by identity."""

    op: ScopeOp
    parent: Scope | None
    position: int
    """Index among the children of the parent (or of the kernel)."""
    depth: int
    extent: int
    mapping: Mapping
    guard: tuple[Expr, ...]
    """`e >= 0` for each, over the depths up to and including this scope's."""
    children: list[Scope | Leaf] = field(default_factory=list["Scope | Leaf"])
    leaves: list[Leaf] = field(default_factory=list["Leaf"])
    """All statements inside, in order."""

    @property
    def id(self) -> str:
        """Stable identifier ('' before `assign_ids`)."""
        return _id_of(self.op)

    @property
    def intrinsic(self) -> str:
        """The name of the instruction that a scope mapped to a tensor unit stands for; '' for other scopes."""
        return "" if self.op.intrinsic is None else self.op.intrinsic.data

    @cached_property
    def chain(self) -> tuple[Scope, ...]:
        """The scopes from the outermost to this one."""
        return (*(self.parent.chain if self.parent else ()), self)

    @property
    def hints(self) -> DictionaryAttr:
        """Facts about the scope that code may use."""
        return DictionaryAttr({}) if self.op.hints is None else self.op.hints

    def __repr__(self) -> str:
        suffix = "" if self.mapping is Mapping.SEQUENTIAL else f":{self.mapping.value}"
        return f"<scope {self.id} {self.extent}{suffix}>"


@dataclass(eq=False)
class Leaf:
    """A statement: `output accumulate= function(inputs)`; compared by identity."""

    op: OpOp
    parent: Scope | None
    position: int
    order: int
    """Number of the statement in textual order."""
    output: Access
    inputs: tuple[Input, ...]
    function: str | None
    accumulate: str | None

    @property
    def id(self) -> str:
        """Stable identifier ('' before `assign_ids`)."""
        return _id_of(self.op)

    @cached_property
    def chain(self) -> tuple[Scope, ...]:
        """The enclosing scopes, outermost first."""
        return self.parent.chain if self.parent else ()

    @property
    def depth(self) -> int:
        """Number of enclosing scopes."""
        return len(self.chain)

    @cached_property
    def extents(self) -> tuple[int, ...]:
        """Extents of the enclosing scopes, outermost first."""
        return tuple(s.extent for s in self.chain)

    @cached_property
    def guards(self) -> tuple[Expr, ...]:
        """All guards (`e >= 0`) of the enclosing scopes."""
        return tuple(g for s in self.chain for g in s.guard)

    @property
    def copies(self) -> int:
        """How many copies of the statement unrolled scopes make."""
        return prod(scope.extent for scope in self.chain if scope.mapping is Mapping.UNROLL)

    @property
    def contracted(self) -> bool:
        """Whether product and sum of `z += x * y` round once (written `z fma= x * y`)."""
        return self.op.contracted is not None

    @property
    def asynchronous(self) -> bool:
        """Whether the copy runs on its own and arrives before the first access that depends on it (`t async= x`)."""
        return self.op.asynchronous is not None

    @cached_property
    def reads(self) -> tuple[Access, ...]:
        """The accesses among the inputs (not the old value of an accumulation)."""
        return tuple(i for i in self.inputs if isinstance(i, Access))

    @cached_property
    def accesses(self) -> tuple[Access, ...]:
        """The output access, then the read ones."""
        return (self.output, *self.reads)

    def __repr__(self) -> str:
        return f"<op {self.id} writes {self.output.array.name}>"


def _id_of(op: ScopeOp | OpOp) -> str:
    # Asked more often than anything else; the property of the operation takes twenty times as long.
    found = op.properties.get("id")
    return found.data if isinstance(found, StringAttr) else ""


Node: TypeAlias = Scope | Leaf


@dataclass(eq=False)
class Nest:
    """A kernel as a tree of scopes and statements over named arrays."""

    kernel: KernelOp
    arrays: dict[str, Array]
    """Interface arrays first, then temporaries, in order of declaration."""
    buffers: list[Buffer]
    """In order of declaration, interface arrays first."""
    children: list[Node]
    leaves: list[Leaf]
    """All statements in textual order."""
    scopes: list[Scope]
    """All scopes, parents first, in textual order."""

    @property
    def name(self) -> str:
        """The kernel's symbol."""
        return self.kernel.sym_name.data

    @cached_property
    def writers(self) -> dict[str, list[Leaf]]:
        """Per array, the statements that write it, in textual order."""
        found: dict[str, list[Leaf]] = {name: [] for name in self.arrays}
        for leaf in self.leaves:
            found[leaf.output.array.name].append(leaf)
        return found

    @cached_property
    def readers(self) -> dict[str, list[Leaf]]:
        """Per array, the statements that read it as an input, in textual order."""
        found: dict[str, list[Leaf]] = {name: [] for name in self.arrays}
        for leaf in self.leaves:
            for name in dict.fromkeys(a.array.name for a in leaf.reads):
                found[name].append(leaf)
        return found

    @cached_property
    def by_id(self) -> dict[str, Node]:
        """Scopes and statements by stable identifier."""
        return {node.id: node for node in (*self.scopes, *self.leaves)}

    def siblings(self, node: Node) -> list[Node]:
        """The children of the node's parent, itself among them."""
        return self.children if node.parent is None else node.parent.children

    def previous_sibling(self, node: Node) -> Node | None:
        """The node that precedes in the same parent, if any."""
        return self.siblings(node)[node.position - 1] if node.position else None

    def next_sibling(self, node: Node) -> Node | None:
        """The node that follows in the same parent, if any."""
        siblings = self.siblings(node)
        return siblings[node.position + 1] if node.position + 1 < len(siblings) else None

    def of_clone(self, kernel: KernelOp) -> Nest:
        """The view of a clone of the kernel; nothing is computed again."""
        return _Copier(self, kernel).copy()


def leaves_of(node: Node) -> list[Leaf]:
    """The statements in a subtree, in textual order."""
    return [node] if isinstance(node, Leaf) else node.leaves


def nest_of(kernel: KernelOp) -> Nest:
    """Compute the view of a kernel. Index expressions come out in canonical form."""
    return _Builder(kernel).build()


_NO_HINTS = DictionaryAttr({})


class _Builder:
    def __init__(self, kernel: KernelOp) -> None:
        self.kernel = kernel
        self.arrays: dict[SSAValue, Array] = {}
        self.buffers: list[Buffer] = []
        self.leaves: list[Leaf] = []
        self.scopes: list[Scope] = []

    def build(self) -> Nest:
        self._interface()
        children = self._children(self.kernel.body.block.ops, None, {}, ())
        arrays = {a.name: a for a in self.arrays.values()}
        return Nest(self.kernel, arrays, self.buffers, children, self.leaves, self.scopes)

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
            self.buffers.append(buffer)
            self.arrays[argument] = Array(name, buffer, argument)

    def _declare(self, op: BufferOp) -> None:
        names = names_of(op.array_names)
        if op.host is not None:
            for name, value in zip(names, op.arrays, strict=True):
                self.arrays[value] = Array(name, self.arrays[op.host].buffer, value)
            return
        dtype, shape = element_and_shape(op.arrays[0])
        width, swizzles = byte_width(dtype), op.swizzles
        buffer = Buffer(names, dtype, shape, op.slots, op.memory.data, None, op, width, swizzles=swizzles)
        self.buffers.append(buffer)
        for name, value in zip(names, op.arrays, strict=True):
            self.arrays[value] = Array(name, buffer, value)

    def _children(
        self,
        ops: Iterable[Operation],
        parent: Scope | None,
        depths: MappingABC[SSAValue, int],
        extents: tuple[int, ...],
    ) -> list[Node]:
        children: list[Node] = []
        for op in ops:
            match op:
                case BufferOp():
                    self._declare(op)
                case ScopeOp():
                    children.append(self._scope(op, parent, len(children), depths, extents))
                case OpOp():
                    children.append(self._leaf(op, parent, len(children), depths, extents))
                case _:
                    raise ValueError(f"'{op.name}' cannot be part of a pdojo.kernel")
        return children

    def _scope(
        self,
        op: ScopeOp,
        parent: Scope | None,
        position: int,
        depths: MappingABC[SSAValue, int],
        extents: tuple[int, ...],
    ) -> Scope:
        depth, count, block = len(extents), op.count, op.body.block
        inner = {**depths, block.args[0]: depth}
        inner_extents = (*extents, count)
        exprs = op.guard_exprs
        dims = [var(inner[iv]) for iv in (*op.guard_ivs, block.args[0])] if exprs else []
        guard = tuple(from_affine(e, dims, inner_extents) for e in exprs)
        scope = Scope(op, parent, position, depth, count, op.mapping.data, guard)
        self.scopes.append(scope)
        first = len(self.leaves)
        scope.children = self._children(block.ops, scope, inner, inner_extents)
        scope.leaves = self.leaves[first:]
        return scope

    def _leaf(
        self,
        op: OpOp,
        parent: Scope | None,
        position: int,
        depths: MappingABC[SSAValue, int],
        extents: tuple[int, ...],
    ) -> Leaf:
        written, read, ivs = op.operand_groups
        dims = [var(depths[iv]) for iv in ivs]
        hints = iter((_NO_HINTS,) * (1 + len(read)) if op.hints is None else op.hints.data)
        arrays = iter(read)

        def access(value: SSAValue, index: AffineMapAttr) -> Access:
            expressions = tuple(from_affine(e, dims, extents) for e in index.data.results)
            return Access(self.arrays[value], expressions, next(hints))

        output = access(written, op.output_map)
        inputs: list[Input] = []
        for value in op.inputs.data:
            match value:
                case AffineMapAttr():
                    inputs.append(access(next(arrays), value))
                case IndexValueAttr():
                    expression = from_affine(value.map.data.results[0], dims, extents)
                    inputs.append(Index(expression, dtype_name(value.type)))
                case _:
                    inputs.append(_constant(value))
        function = None if op.function is None else op.function.data
        accumulate = None if op.accumulate is None else op.accumulate.data
        leaf = Leaf(op, parent, position, len(self.leaves), output, tuple(inputs), function, accumulate)
        self.leaves.append(leaf)
        return leaf


class _Copier:
    """Makes the view of a clone from that of the original: the same numbers and expressions, other operations."""

    def __init__(self, nest: Nest, kernel: KernelOp) -> None:
        self.nest = nest
        self.kernel = kernel
        self.arrays: dict[str, Array] = {}
        self.buffers: list[Buffer] = []
        self.leaves: list[Leaf] = []
        self.scopes: list[Scope] = []

    def copy(self) -> Nest:
        declared = {names_of(op.array_names): op for op in (*self.kernel.guests(), *self.kernel.buffers())}
        values: dict[str, SSAValue] = dict(
            zip(names_of(self.kernel.arg_names), self.kernel.body.block.args, strict=True)
        )
        for names, op in declared.items():
            values.update(zip(names, op.arrays, strict=True))
        copies = {
            b: replace(b, guests=declared.get(b.names[1:])) if b.op is None else replace(b, op=declared[b.names])
            for b in self.nest.buffers
        }
        self.buffers = list(copies.values())
        self.arrays = {n: Array(n, copies[a.buffer], values[n]) for n, a in self.nest.arrays.items()}
        ops = (op for op in self.kernel.body.block.ops if not isinstance(op, BufferOp))
        children = self._children(self.nest.children, ops, None)
        return Nest(self.kernel, self.arrays, self.buffers, children, self.leaves, self.scopes)

    def _children(self, nodes: Iterable[Node], ops: Iterable[Operation], parent: Scope | None) -> list[Node]:
        return [self._node(node, op, parent) for node, op in zip(nodes, ops, strict=True)]

    def _node(self, node: Node, op: Operation, parent: Scope | None) -> Node:
        if isinstance(node, Scope):
            assert isinstance(op, ScopeOp)
            scope = Scope(op, parent, node.position, node.depth, node.extent, node.mapping, node.guard)
            self.scopes.append(scope)
            first = len(self.leaves)
            scope.children = self._children(node.children, op.body.block.ops, scope)
            scope.leaves = self.leaves[first:]
            return scope
        assert isinstance(op, OpOp)
        inputs = tuple(self._access(i) if isinstance(i, Access) else i for i in node.inputs)
        output = self._access(node.output)
        leaf = Leaf(op, parent, node.position, node.order, output, inputs, node.function, node.accumulate)
        self.leaves.append(leaf)
        return leaf

    def _access(self, access: Access) -> Access:
        return Access(self.arrays[access.array.name], access.index, access.hints)


def _constant(value: Attribute) -> Constant:
    assert is_integer_constant(value) or is_float_constant(value)
    return Constant(value.value.data, dtype_name(value.type))


def element_and_shape(value: SSAValue) -> tuple[str, tuple[int, ...]]:
    """Element type by name, and extents, of a memref value."""
    assert is_memref(value.type)
    return dtype_name(value.type.element_type), tuple(value.type.get_shape())


def assign_ids(kernel: KernelOp) -> None:
    """Give every scope and statement that has none an identifier: its number in textual order."""
    nodes = [op for op in kernel.walk() if isinstance(op, ScopeOp | OpOp)]
    used = {op.id.data for op in nodes if op.id is not None}
    fresh = (name for k in range(2 * len(nodes)) if (name := str(k)) not in used)
    for op in nodes:
        if op.id is None:
            op.properties["id"] = StringAttr(next(fresh))

"""The view of a kernel that analyses, moves, interpreters and backends read: plain objects instead of SSA.

A `Nest` is computed once from a `KernelOp` and does not change until it is released. Induction variables are depths of
scopes, so that index expressions (`pdojo.dialect.affine`) of two nodes that share ancestors are directly comparable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any, Literal, TypeAlias, TypeVar, cast

from xdsl.dialects.builtin import DictionaryAttr, StringAttr
from xdsl.ir import Attribute, SSAValue

from pdojo.dialect.affine import Expr, IndexArray, Size, const
from pdojo.dialect.attributes import Intent, Mapping, Memory
from pdojo.dialect.intrinsic import Intrinsic
from pdojo.dialect.names import symbol
from pdojo.dialect.ops import BufferOp, KernelOp, ScopeOp, StatementOp, Swizzle
from pdojo.dialect.strides import Strides
from pdojo.dialect.table import Table

NO_HINTS = DictionaryAttr({})


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """A memory buffer, or the caller's memory behind an interface array (`op` is None, `intent` is set).

    The first name of a caller's memory is the interface array's; the others are temporaries in it.
    """

    names: tuple[str, ...]
    dtype: str
    shape: tuple[int, ...]
    """Extents; the greatest one where it depends on sizes (`extents`)."""
    reuse: tuple[int, ...]
    """Slots per dimension: 0 for one per index, 1 for a single one, k >= 2 for a circular buffer of k."""
    memory: Memory
    intent: Intent | None
    op: BufferOp | None
    alignment: int
    """Bytes; guaranteed by the caller for interface arrays, the alignment of the element type for other buffers."""
    guests: BufferOp | None = None
    """The declaration of the temporaries in an interface array."""
    swizzles: MappingABC[int, Swizzle] = field(default_factory=dict[int, Swizzle])
    """Per dimension, the swizzle of its positions by the index in another dimension."""
    source: tuple[object, ...] = ()
    """The declaration's properties and types, from which the buffer was computed (`build.py`); () if there is none."""
    constant: bool = False
    """Whether it is a constant input, or a temporary that is computed once, at binding (`binding.py`)."""
    sized: tuple[Expr, ...] = ()
    """The extents as expressions of sizes; () if all are constant."""
    strides: Strides = ()
    """The strides of an interface array's outer dimensions; () if it is dense."""

    @property
    def extents(self) -> tuple[Expr, ...]:
        """The extents as expressions of sizes."""
        return self.sized or tuple([const(extent) for extent in self.shape])

    @property
    def hints(self) -> DictionaryAttr:
        """Facts about the buffer that generated code may use."""
        return NO_HINTS if self.op is None else _hints_of(self.op)


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
    """One expression per dimension, over variables of enclosing scopes (by depth)."""
    hints: DictionaryAttr = NO_HINTS

    @property
    def key(self) -> tuple[str, tuple[Expr, ...]]:
        """The array's name and the index; equal keys mean the same element."""
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
    """Constraints `e >= 0`, over depths up to and including this scope's."""
    children: list[Scope | Leaf] = field(default_factory=list["Scope | Leaf"])
    leaves: list[Leaf] = field(default_factory=list["Leaf"])
    """All statements inside, in order."""
    scopes: list[Scope] = field(default_factory=list["Scope"])
    """The scope and all scopes inside, parents first, in order."""
    source: tuple[object, ...] = ()
    """The operation's properties from which extent, mapping and guard were computed (`build.py`)."""
    sound: bool = False
    """Whether verification has accepted the operation at its place."""
    settled: bool = False
    """Whether verification has accepted everything inside as well."""
    facts: dict[str, object] = field(init=False, default_factory=dict[str, object])
    """Memo, keyed by name, of facts about the scope, its ancestors, and everything inside."""
    chain: tuple[Scope, ...] = field(init=False)
    """The scopes from the outermost to this one."""
    extents: tuple[int, ...] = field(init=False)
    """The extents of the scopes in `chain`."""
    guards: tuple[Expr, ...] = field(init=False)
    """All guards of the scopes in `chain`."""
    depths: dict[SSAValue, int] = field(init=False)
    """The depths of the variables of the scopes in `chain`."""

    def __post_init__(self) -> None:
        around = self.parent
        self.chain, self.extents, self.guards, self.depths = (self,), (self.extent,), self.guard, {self.op.iv: 0}
        if around is not None:
            self.chain, self.extents = (*around.chain, self), (*around.extents, self.extent)
            self.guards, self.depths = (*around.guards, *self.guard), {**around.depths, self.op.iv: self.depth}

    @property
    def id(self) -> str:
        """Stable identifier ('' before `assign_ids`)."""
        return _id_of(self.op)

    @property
    def intrinsic(self) -> str:
        """The name of the instruction that computes a scope mapped to a tensor unit; '' for other scopes."""
        found = self.op.properties.get("intrinsic")
        return "" if found is None else cast(StringAttr, found).data

    @property
    def path(self) -> tuple[int, ...]:
        """Positions from the root to the scope."""
        return tuple(scope.position for scope in self.chain)

    def take(self, children: list[Node]) -> None:
        """Set the children; facts about the scope's content, and verification's acceptance of it, are dropped."""
        self.children = children
        self.leaves, inner = inside_of(children)
        self.scopes = [self, *inner]
        self.settled = False
        self.facts.clear()

    @property
    def hints(self) -> DictionaryAttr:
        """Facts about the scope that generated code may use."""
        return _hints_of(self.op)

    def __repr__(self) -> str:
        suffix = "" if self.mapping is Mapping.SEQUENTIAL else f":{self.mapping.value}"
        return f"<scope {self.id} {self.extent}{suffix}>"


@dataclass(eq=False)
class Leaf:
    """A statement: `output accumulate= function(inputs)`; compared by identity."""

    op: StatementOp
    parent: Scope | None
    position: int
    order: int
    """Number of the statement in textual order."""
    output: Access
    inputs: tuple[Input, ...]
    function: str | None
    accumulate: str | None
    source: tuple[object, ...] = ()
    """The operation's properties from which accesses and inputs were computed (`build.py`)."""
    sound: bool = False
    """Whether verification has accepted the statement at its place."""
    facts: dict[str, object] = field(init=False, default_factory=dict[str, object])
    """Memo, keyed by name, of facts about the statement and its ancestors."""
    chain: tuple[Scope, ...] = field(init=False)
    """The enclosing scopes, outermost first."""
    extents: tuple[int, ...] = field(init=False)
    """Extents of the enclosing scopes, outermost first."""
    guards: tuple[Expr, ...] = field(init=False)
    """All guards (`e >= 0`) of the enclosing scopes."""
    reads: tuple[Access, ...] = field(init=False)
    """The accesses among the inputs (not the old value of an accumulation)."""
    accesses: tuple[Access, ...] = field(init=False)
    """The output access, then the reads."""

    def __post_init__(self) -> None:
        around = self.parent
        self.chain, self.extents, self.guards = (
            ((), (), ()) if around is None else (around.chain, around.extents, around.guards)
        )
        self.reads = tuple([i for i in self.inputs if isinstance(i, Access)])
        self.accesses = (self.output, *self.reads)

    @property
    def id(self) -> str:
        """Stable identifier ('' before `assign_ids`)."""
        return _id_of(self.op)

    @property
    def path(self) -> tuple[int, ...]:
        """Positions from the root to the statement."""
        return (*(scope.position for scope in self.chain), self.position)

    @property
    def settled(self) -> bool:
        """`sound`, because a statement has no content."""
        return self.sound

    @property
    def depth(self) -> int:
        """Number of enclosing scopes."""
        return len(self.chain)

    @property
    def copies(self) -> int:
        """The number of copies of the statement that unrolled scopes make."""
        return prod(scope.extent for scope in self.chain if scope.mapping is Mapping.UNROLL)

    @property
    def contracted(self) -> bool:
        """Whether product and sum of `z += x * y` round once (written `z fma= x * y`)."""
        return "contracted" in self.op.properties

    @property
    def asynchronous(self) -> bool:
        """Whether the copy is asynchronous (`t async= x`): it arrives before the first access that depends on it."""
        return "asynchronous" in self.op.properties

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """All index expressions: those of accesses, output first, then index values."""
        values = (i.expression for i in self.inputs if isinstance(i, Index))
        return (*(e for access in self.accesses for e in access.index), *values)

    def __repr__(self) -> str:
        return f"<op {self.id} writes {self.output.array.name}>"


def _hints_of(op: ScopeOp | BufferOp) -> DictionaryAttr:
    # The operation's property is slow, as for identifiers.
    found = op.properties.get("hints")
    return NO_HINTS if found is None else cast(DictionaryAttr, found)


def _id_of(op: ScopeOp | StatementOp) -> str:
    # The most frequent access; the operation's property takes twenty times as long.
    found = op.properties.get("id")
    return found.data if isinstance(found, StringAttr) else ""


def _known_id(node: Node) -> str:
    """The node's identifier at its creation; its operation may have another one by now."""
    properties = node.source[0] if node.source else node.op.properties
    found = cast("MappingABC[str, Attribute]", properties).get("id")
    return found.data if isinstance(found, StringAttr) else ""


Trait: TypeAlias = Mapping | Literal["hinted scope", "hinted statement", "intrinsic"]
"""A property of a node that few programs have: the mapping of a scope; hints; an instruction that computes a scope."""

Node: TypeAlias = Scope | Leaf

FactT = TypeVar("FactT")


@dataclass(eq=False)
class Nest:
    """A kernel as a tree of scopes and statements over named arrays."""

    kernel: KernelOp
    arrays: dict[str, Array]
    """Interface arrays first, then temporaries, in order of declaration."""
    buffers: list[Buffer]
    """Buffers in order of declaration, interface arrays first."""
    children: list[Node]
    leaves: list[Leaf]
    """All statements in textual order."""
    scopes: list[Scope]
    """All scopes, parents first, in textual order."""
    sound: set[Buffer] = field(default_factory=set[Buffer])
    """Buffers whose declaration verification has accepted."""
    declarations: list[BufferOp] = field(default_factory=list[BufferOp])
    """The declarations, in order."""
    is_declared: bool = False
    """Whether verification has accepted the places of the declarations."""
    is_named: bool = False
    """Whether verification has accepted the header, and the names of arrays."""
    of_declarations: dict[str, object] = field(default_factory=dict[str, object])
    """Memo, keyed by name, of facts about the declarations."""
    of_uses: dict[Buffer, dict[str, object]] = field(default_factory=dict[Buffer, dict[str, object]])
    """Memo, per buffer and name, of facts about its declaration, the statements that use it, and their scopes."""
    is_used_up: bool = False
    """Whether a successor view exists after a rewrite; it shares nodes with this one."""
    source: tuple[object, ...] = ()
    """The properties from which arrays and buffers were computed (`build.py`)."""
    values: dict[SSAValue, Array] = field(default_factory=dict[SSAValue, Array])
    """The arrays by SSA value; empty without a source."""
    intrinsics: Sequence[Intrinsic] = ()
    """The instructions of the kernel's machine; empty if it is unknown, or if no scope is mapped to one."""

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.kernel.sym_name.data

    @cached_property
    def tables(self) -> dict[str, Table]:
        """The kernel's tables, keyed by name, in order of declaration."""
        return self.kernel.known_tables()

    @cached_property
    def sizes(self) -> dict[str, Size]:
        """The sizes that callers give, by name, in order of declaration."""
        return self.kernel.known_sizes()

    @cached_property
    def index_arrays(self) -> dict[str, IndexArray]:
        """The arrays of indices by name, in the order of the arguments."""
        return self.kernel.index_arrays()

    @property
    def symbol(self) -> str:
        """The name of the kernel's function in the code of every target."""
        return symbol(self.name)

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
    def accesses(self) -> dict[Buffer, list[tuple[Leaf, Access]]]:
        """Per buffer that is used, its accesses with their statements, in textual order."""
        found: dict[Buffer, list[tuple[Leaf, Access]]] = {}
        for leaf in self.leaves:
            for access in leaf.accesses:
                found.setdefault(access.array.buffer, []).append((leaf, access))
        return found

    @cached_property
    def by_id(self) -> dict[str, Node]:
        """Scopes and statements by stable identifier, in no order."""
        return {node.id: node for node in (*self.scopes, *self.leaves)}

    @cached_property
    def traits(self) -> frozenset[Trait]:
        """The traits of all nodes."""
        return frozenset[Trait]().union(*[traits_of(root) for root in self.children])

    def take_ids(self, before: Nest, gone: Sequence[Node], made: Sequence[Node]) -> None:
        """Derive `by_id` from the previous view's, if computed, without nodes in `gone` and with nodes in `made`."""
        known: dict[str, Node] | None = vars(before).get("by_id")
        if known is not None and len(known) == len(before.scopes) + len(before.leaves):
            self.by_id = known.copy()
            for node in gone:
                del self.by_id[_known_id(node)]
            self.by_id.update((node.id, node) for node in made)

    def about_uses(self, buffer: Buffer, name: str, decide: Callable[[], FactT]) -> FactT:
        """The fact called `name` about a buffer; it survives moves that leave the buffer's declaration and uses alone.

        It depends on the declaration, the accesses, functions and order of their statements, and scopes around these.
        """
        return fact(self.of_uses.setdefault(buffer, {}), name, decide)

    def siblings(self, node: Node) -> list[Node]:
        """The children of the node's parent, including the node."""
        return self.children if node.parent is None else node.parent.children

    def previous_sibling(self, node: Node) -> Node | None:
        """The preceding child of the same parent; None if the node is the first."""
        return self.siblings(node)[node.position - 1] if node.position else None

    def next_sibling(self, node: Node) -> Node | None:
        """The following child of the same parent; None if the node is the last."""
        siblings = self.siblings(node)
        return siblings[node.position + 1] if node.position + 1 < len(siblings) else None

    def release(self, successor: Nest) -> None:
        """End the view: break the cycles between scopes, which frees their memory at once.

        Parts that `successor`, the view after a rewrite, shares with this one stay.
        """
        for scope in set(self.scopes).difference(successor.scopes):
            scope.children, scope.leaves, scope.scopes = [], [], []
            vars(scope).pop("chain", None)


def leaves_of(node: Node) -> list[Leaf]:
    """The statements in a subtree, in textual order."""
    return [node] if isinstance(node, Leaf) else node.leaves


def inside_of(nodes: Sequence[Node]) -> tuple[list[Leaf], list[Scope]]:
    """The statements and the scopes in subtrees, each in textual order."""
    leaves: list[Leaf] = []
    scopes: list[Scope] = []
    for node in nodes:
        if isinstance(node, Leaf):
            leaves.append(node)
        else:
            leaves += node.leaves
            scopes += node.scopes
    return leaves, scopes


def fact(known: dict[str, object], name: str, decide: Callable[[], FactT]) -> FactT:
    """The fact called `name`, computed by `decide` on first use."""
    if name not in known:
        known[name] = decide()
    found: Any = known[name]
    return found


def traits_of(node: Node) -> frozenset[Trait]:
    """The traits of a node and of all nodes inside; as a fact, they survive moves elsewhere."""
    found = cast("frozenset[Trait] | None", node.facts.get("traits"))
    if found is None:
        found = node.facts["traits"] = _traits(node)
    return found


def _traits(node: Node) -> frozenset[Trait]:
    said = node.op.properties
    if isinstance(node, Leaf):
        return frozenset[Trait]({"hinted statement"} if "hints" in said else ())
    own: set[Trait] = {node.mapping}
    if said.keys() & {"hints", "intrinsic"}:
        own |= {"hinted scope"} if node.hints.data else set()
        own |= {"intrinsic"} if node.intrinsic else set()
    for child in node.children:
        own |= traits_of(child)
    return frozenset(own)


def subtree(node: Node) -> Sequence[Node]:
    """A node and all nodes inside."""
    return [node] if isinstance(node, Leaf) else [*node.scopes, *node.leaves]

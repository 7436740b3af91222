"""One launch of a kernel as a device function: the code of each thread of a block, in order."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from math import prod

from xdsl.dialects.builtin import IntegerAttr

from pdojo.backends.c.code import FunctionText, printable, variable, without_unused
from pdojo.backends.c.expressions import strip
from pdojo.backends.c.loops import LoopText
from pdojo.backends.c.names import Identifiers
from pdojo.backends.c.prelude import Prelude
from pdojo.backends.c.statement import assignment, computed
from pdojo.backends.common.addresses import known_alignment, lanes_of, layout_of
from pdojo.backends.common.placement import ALIGNMENT, MemoryClass, Placement
from pdojo.backends.common.walk import LoopBounds, describe
from pdojo.backends.gpu.atomic_text import atomics_of, check_atomic, helper_of
from pdojo.backends.gpu.barriers import synchronisation
from pdojo.backends.gpu.block_walk import BlockWalk, chain_around, holding
from pdojo.backends.gpu.collective_text import CollectiveText
from pdojo.backends.gpu.device_code import DeviceCode
from pdojo.backends.gpu.homes import OWN, SHARED_ALIGNMENT, Workspace, own_part, shared_alignment, shared_offsets
from pdojo.backends.gpu.launches import Launch, grid_limits, launch, reduced_by
from pdojo.backends.gpu.numbering import is_complete, is_in_warp, leader
from pdojo.backends.gpu.spelling import GROUP, MATRICES, STATIC_SHARED, UNITS, DeviceSpelling
from pdojo.backends.gpu.tree_text import TreeText
from pdojo.dialect.affine import Expr, IndexArray
from pdojo.dialect.attributes import Memory
from pdojo.dialect.functions import byte_width
from pdojo.dialect.hints import READONLY, STREAMING
from pdojo.dialect.lookups import lookups_in
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.notation.printer import tree_lines
from pdojo.dialect.rules.block_threads import THREADS
from pdojo.dialect.rules.lanes import common_guard
from pdojo.dialect.view.messages import describe_access
from pdojo.dialect.view.nest import Access, Buffer, Leaf, Nest, Node, Scope
from pdojo.errors import LoweringError

_VECTOR_BYTES = 16
"""Largest access in bytes."""
_LOADS = {STREAMING: "pd_load_streaming", READONLY: "pd_load_readonly"}
"""Helpers that load elements with a cache hint."""
_STORE = "pd_store_streaming"


@dataclass
class KernelState:
    """State that the device functions of a kernel share."""

    nest: Nest
    prelude: Prelude
    spelling: DeviceSpelling
    names: dict[Buffer, str]
    tables: dict[str, str]
    """Names of the arrays that hold the tables."""
    sizes: dict[str, str]
    """Names of the sizes."""
    taken: Identifiers
    """Names in use in any of the functions."""
    workspace: Workspace
    machine: Machine
    shuffles: bool = False
    """Whether threads exchange registers by shuffles."""
    copies: set[int] = field(default_factory=set[int])
    """Sizes of the asynchronous copies in bytes."""
    helpers: set[str] = field(default_factory=set[str])
    """Names of helpers: for accesses with hints, instructions of a warp, barriers of a group of threads."""
    atomics: set[str] = field(default_factory=set[str])
    """Atomic operations, such as `add.f32`."""

    @property
    def size_parameters(self) -> list[str]:
        """The parameters of a function for the sizes."""
        return [f"int64_t {name}" for name in self.sizes.values()]


@dataclass(frozen=True)
class LaunchText:
    """A device function and the parameters of its launch."""

    name: str
    text: str
    launch: Launch
    shared_bytes: int
    """Bytes of dynamic shared memory; 0 if the function declares its memory statically."""
    arrays: tuple[Buffer, ...]
    """The first parameters: pointers to these interface arrays."""
    has_workspace: bool
    """Whether the next parameter is the workspace; the kernel's sizes follow."""
    variables: tuple[Scope, ...]
    """The last parameters: variables of the host's loops around the launch."""

    def arguments(self, kernel: KernelState) -> list[str]:
        """The arguments of a call in the host function."""
        passed = [kernel.names[b] for b in self.arrays] + ["workspace"] * self.has_workspace
        return [*passed, *kernel.sizes.values()] + [variable(s.depth) for s in self.variables]


class DeviceFunction(BlockWalk[str], LoopText):
    """Prints a device function."""

    hardware = "a graphics processor"

    def __init__(self, kernel: KernelState, node: Node, number: int, known: dict[int, int]) -> None:
        self.kernel, self.nest, self.spelling, self.number = kernel, kernel.nest, kernel.spelling, number
        self.launch = launch(self.nest, node, kernel.machine)
        self.atomics = atomics_of(self.nest, self.launch)
        self.sync = synchronisation(self.nest, self.launch, self.atomics)
        used = {a.array.buffer for leaf in self.launch.leaves for a in self.launch.touched(leaf)}
        read = lookups_in(e for leaf in self.launch.leaves for e in (*leaf.expressions, *leaf.guards))
        indices = {found.table.name for found in read if isinstance(found.table, IndexArray)}
        self.buffers = [b for b in self.nest.buffers if b in used or b.names[0] in indices]
        own = {
            b: own_part(self.launch, self.nest, b)
            for b in self.buffers
            if b.op is not None and b.memory in OWN and b not in kernel.workspace.offsets
        }
        placements = {
            b: Placement(MemoryClass.ARGUMENT, layout_of(self.nest, b), b.alignment if b.op is None else ALIGNMENT)
            for b in self.buffers
        }
        code = DeviceCode(
            kernel.prelude, placements, kernel.names, known=known, own=own, copies=kernel.workspace.copies
        )
        code.tables, code.sizes = kernel.tables, kernel.sizes
        code.indices = {b.names[0]: kernel.names[b] for b in self.buffers if b.names[0] in indices}
        super().__init__(code)
        self.device = code
        self.outer = node.chain[:-1] if isinstance(node, Scope) else node.chain
        """The host's loops around the launch."""
        self.extents.extend(s.extent for s in self.outer)
        self.kernel.atomics.update(self.atomics.values())
        for leaf in self.atomics:
            check_atomic(leaf, tree=bool(reduced_by(leaf)))
        self.trees = TreeText(self.launch, code, kernel.taken, self.atomics)
        warp = kernel.machine.gpu.warp_size
        self.wide = frozenset(n for n in self.sync.barriers if not is_in_warp(self.launch, chain_around(n), warp))
        self.held = holding(self.wide, [t.root for t in self.trees.trees if t.blocks])
        self.collectives = CollectiveText(self.launch, code, self.nest, kernel.machine)
        collectives = self.launch.collectives
        self.has_units = any(a in collectives.shared for leaf in self.launch.leaves for a in leaf.accesses)
        """Whether tensor units themselves read shared memory."""
        if self.has_units:
            kernel.helpers.add(UNITS)
        self.is_leader = False
        """Whether the appended code runs in only one thread of a group."""

    # The function

    def entry(self) -> LaunchText:
        """The complete function."""
        found, spelling = self.launch, self.spelling
        name = f"{self.nest.symbol}_{self.number}"
        arrays = tuple(b for b in self.buffers if b.op is None)
        has_workspace = any(b in self.kernel.workspace.offsets for b in self.buffers)
        variables = tuple(s for s in self.outer if s.depth not in self.known)
        parameters = [spelling.parameter(b, self.kernel.names[b]) for b in arrays] + ["void *workspace"] * has_workspace
        parameters += self.kernel.size_parameters
        parameters += [f"int {variable(s.depth)}" for s in variables]
        shared = self._declare()
        self._grid()
        self.kernel.shuffles |= self.trees.shuffles
        head = spelling.kernel(name, parameters, found.threads, self._resident())
        lines = [f"// {printable(line)}" for line in (*tree_lines([found.root]), *self._shared_lines())]
        body = [*self.code.table_lines(), *without_unused(self.code.lines)]
        text = "\n".join(["", *lines, f"{head} {{", *body, "}"])
        return LaunchText(name, text, found, shared, arrays, has_workspace, variables)

    def _shared_lines(self) -> list[str]:
        """Lines of a comment that lists the contents of shared memory, keyed by the names in the code."""
        names = self.kernel.names
        held = [f"{names[b]} {layout_of(self.nest, b).size_bytes}" for b in self.buffers if b.memory is Memory.SHARED]
        width = self.launch.threads
        held += [
            f"{t.shared} {width * byte_width(t.dtype)} (tree of {t.leaf.output.array.name})"
            for t in self.trees.trees
            if t.blocks
        ]
        return [f"bytes of shared memory: {', '.join(held)}"] * bool(held)

    def _resident(self) -> int | None:
        """Blocks per multiprocessor that the grid scope's hint requests."""
        for scope in self.launch.grids:
            hint = scope.hints.data.get("launch_bounds")
            if isinstance(hint, IntegerAttr):
                return hint.value.data
        return None

    def _declare(self) -> int:
        """Declare the memory of block and thread; returns the bytes of dynamic shared memory."""
        names, spelling = self.kernel.names, self.spelling
        for buffer in self.buffers:
            if buffer in self.kernel.workspace.offsets:
                place = f"((char *)workspace + {self.kernel.workspace.offsets[buffer]})"
                self.code.line(spelling.pointer(buffer.dtype, names[buffer], place))
        shared: list[tuple[str, str, int, int]] = [
            (b.dtype, names[b], layout_of(self.nest, b).size, shared_alignment(self.launch, b))
            for b in self.buffers
            if b.memory is Memory.SHARED
        ]
        shared += [(dtype, name, self.launch.threads, SHARED_ALIGNMENT) for dtype, name in self.trees.scratch]
        offsets, total = shared_offsets([(dtype, size, alignment) for dtype, _, size, alignment in shared])
        static = total <= STATIC_SHARED and spelling.dynamic_shared is not None
        if shared and not static and spelling.dynamic_shared is not None:
            self.code.line(spelling.dynamic_shared.format(max(alignment for *_, alignment in shared)))
        for (dtype, name, size, alignment), offset in zip(shared, offsets, strict=True):
            self.code.line(spelling.shared(dtype, name, size, (offset, alignment), dynamic=not static))
        if self.launch.threads > 1 or self.launch.strides:
            self.code.line("const int thread = threadIdx.x;")
        return 0 if static else total

    def _grid(self) -> None:
        """Declare the variables of the grid and the memory of each thread, and append the code of a block."""
        grids = self.launch.grids
        counts = [self._count(scope) for scope in grids[1:]]
        for position, scope in enumerate(grids):
            inner = counts[position:]
            divisor = product_text(inner)
            text = "blockIdx.x"
            if divisor != "1":
                text += f" / ({divisor})" if "*" in divisor else f" / {divisor}"
            if position:
                text = f"{text} % {counts[position - 1]}"
            if len(grids) == 1 or divisor == "1":
                text = text.replace("blockIdx.x", "(int)blockIdx.x", 1)
            self.code.line(f"const int {variable(scope.depth)} = {text};")
        guards = [g for scope in self.launch.grids for g in scope.guard]
        self.extents.extend(s.extent for s in self.launch.grids)
        for buffer, part in self.device.own.items():
            self.code.line(self.spelling.own(buffer.dtype, self.kernel.names[buffer], part.layout.size))
        with self.guarded(guards) as possible:
            if possible:
                self.nodes(self.launch.nodes)

    def _count(self, scope: Scope) -> str:
        """The number of iterations of a grid scope: a number, or the name of a variable."""
        count = grid_count(self.code, scope)
        if count.isdecimal():
            return count
        name = self.kernel.taken.fresh(f"blocks{scope.depth}")
        self.code.line(f"const int {name} = {count};")
        return name

    # Order

    def node(self, node: Node) -> None:
        """Append a node, and the end of a copy group after it; a batch of products begins with a fence."""
        batch = self.sync.batches.get(node)
        if batch is not None:
            self._hold(batch.accumulators)
            self.code.line(f"{UNITS}_fence();")
        super().node(node)
        if batch is not None:
            self.code.line(f"{UNITS}_commit();")
        if batch is not None and node in self.sync.drained:
            self.code.line(f"{UNITS}_wait<0>();")
            self._hold(batch.accumulators)
        if node in self.sync.commits:
            self.code.line("pd_copy_commit();")

    def _hold(self, accumulators: Iterable[Buffer]) -> None:
        """Keep accesses to accumulators on their side of this place."""
        for buffer in accumulators:
            self.code.line(f"{UNITS}_hold({self.kernel.names[buffer]});")

    def synchronise(self, node: Node) -> None:
        """Append the waits for copies and the barrier before a node, if any."""
        if node in self.sync.early_commits:
            self.code.line("pd_copy_commit();")
        if node in self.sync.waits:
            self.code.line(f"pd_copy_wait<{self.sync.waits[node]}>();")
        if node in self.sync.product_waits:
            self.code.line(f"{UNITS}_wait<{self.sync.product_waits[node]}>();")
        if node in self.sync.released:
            self._hold(dict.fromkeys(b for batch in self.sync.batches.values() for b in batch.accumulators))
        if self.has_units and node in self.sync.barriers:
            self.code.line(f"{UNITS}_show();")
        if node in self.wide:
            self.code.line("__syncthreads();")
        elif node in self.sync.barriers:
            self.code.line(f"{self._helper(GROUP)}<{self.sync.barriers[node]}>();")

    def condition(self, constraints: Sequence[Expr]) -> str:
        return self.code.condition(constraints)

    def where(self, conditions: Sequence[str]) -> AbstractContextManager[None]:
        return self.code.block(f"if ({' && '.join(conditions)})")

    def unroll(self, scope: Scope, bounds: LoopBounds) -> None:
        """Append a loop for the compiler to unroll: its extent is constant, and each iteration checks the guard."""
        super().unroll(scope, LoopBounds((), (), (), inner=bounds.own, own=bounds.own))

    # Threads

    def other(self, scope: Scope, bounds: LoopBounds) -> None:
        """Append a scope mapped to threads, or computed by the threads of a warp together."""
        if scope in self.launch.collectives.scopes:
            self._helper(MATRICES)
            self.collectives.append(self.launch.collectives.scopes[scope])
            return
        if scope.mapping not in THREADS:
            super().other(scope, bounds)
            return
        trees = [t for t in self.trees.trees if t.root is scope]
        with self.code.block(""):
            for tree in trees:
                self.trees.begin(tree)
            self.device.thread_variable(scope, self.launch)
            active = f"{variable(scope.depth)} < {scope.extent}"
            with nullcontext() if is_complete(self.launch, scope) else self.only(scope, active):
                self._iteration(scope, bounds)
            for tree in trees:
                self.trees.end(tree, self.checked)

    def _iteration(self, scope: Scope, bounds: LoopBounds) -> None:
        with self.guarded(bounds.own) as possible:
            if possible:
                self.nodes(scope.children)

    def statement(self, leaf: Leaf) -> None:
        """Append a statement: each thread of a group runs it for its own memory, one thread for shared memory."""
        with self._stored(leaf):
            self._assign(leaf)

    @contextmanager
    def _stored(self, leaf: Leaf) -> Generator[None]:
        """A context in which appended code runs only in the thread that stores for its group."""
        own = self.trees.of(leaf) is not None or leaf.output.array.buffer in self.device.own
        storing = None if own or self.is_leader else leader(self.launch, leaf.chain)
        before, self.is_leader = self.is_leader, True
        with nullcontext() if storing is None else self.code.block(f"if ({storing.text})"):
            yield
        self.is_leader = before

    def _assign(self, leaf: Leaf, target: str | None = None) -> None:
        tree = self.trees.of(leaf)
        place = None
        if target is None:
            target = self.trees.partial(tree) if tree is not None else self.code.element(leaf.output, leaf)
            if _cached(leaf.output) == STREAMING and leaf.accumulate is None and tree is None:
                target, place = "lane", target
        if leaf.asynchronous:
            self._copy(leaf, target, 1)
            return
        atomic = self.atomics.get(leaf) if tree is None else None
        loaded = dict(self.device.loaded)
        for access in leaf.reads:
            load = _LOADS.get(_cached(access) or "")
            if load is not None and access not in loaded:
                self.device.loaded[access] = f"{self._helper(load)}(&{self.code.element(access, leaf)})"
        if atomic is not None:
            text = f"{helper_of(atomic)}(&{target}, {strip(computed(self.code, leaf))})"
        else:
            text = assignment(self.code, leaf, target, target)
        self.device.loaded = loaded
        if place is None:
            self.code.line(f"{text};")
            return
        with self.code.block(""):
            self.code.line(f"{self.spelling.types[leaf.output.array.dtype]} {text};")
            self.code.line(f"{self._helper(_STORE)}(&{place}, lane);")

    def _helper(self, helper: str) -> str:
        """The name of a helper; records its use."""
        self.kernel.helpers.add(helper)
        return helper

    def _copy(self, leaf: Leaf, target: str, lanes: int) -> None:
        if not self.spelling.has_copies:
            raise LoweringError(
                f"{describe_access(leaf.output)} is an asynchronous copy, which {self.spelling.name} lacks; make it an "
                f"ordinary one (sync_copy)"
            )
        size, machine = lanes * byte_width(leaf.output.array.dtype), self.kernel.machine
        if size not in machine.gpu.async_copy_bytes:
            known = ", ".join(map(str, machine.gpu.async_copy_bytes)) or "none"
            raise LoweringError(
                f"{describe_access(leaf.output)} is an asynchronous copy of {size} bytes, of which {machine.name} has "
                f"{known}; make it an ordinary one (sync_copy)"
            )
        self.kernel.copies.add(size)
        (source,) = leaf.reads
        self.code.line(f"pd_copy_async{size}(&{target}, &{self.code.element(source, leaf)});")

    # Vectors

    def vector(self, scope: Scope, leaf: Leaf, bounds: LoopBounds) -> None:
        """Append a vector statement: vector accesses where possible, single elements elsewhere."""
        whole = common_guard(scope)
        apart = leaf.asynchronous and not all(self._is_vector(access, scope, leaf) for access in leaf.accesses)
        if whole is None or apart:
            with self._stored(leaf):
                self.unrolled(scope, bounds)
            return
        with self.guarded(whole) as possible:
            if possible:
                with self._stored(leaf):
                    if leaf.asynchronous:
                        self.known[scope.depth] = 0
                        self._copy(leaf, self.code.element(leaf.output, leaf), scope.extent)
                        del self.known[scope.depth]
                    else:
                        self._lanes(scope, leaf)

    def _is_vector(self, access: Access, scope: Scope, leaf: Leaf) -> bool:
        """Whether the lanes of an access are contiguous and aligned to their total size."""
        buffer = access.array.buffer
        width = byte_width(buffer.dtype)
        size = width * scope.extent
        if buffer in self.device.own or size > _VECTOR_BYTES or scope.extent < 2:
            return False
        place = self.code.place(access, leaf)
        # Swizzled granules contain whole vectors.
        if any(e.left.uses(scope.depth) or e.right.uses(scope.depth) for e in place.exchanges):
            return False
        if any(e.factor * width % size for e in place.exchanges):
            return False
        if any(e.index.uses(scope.depth) or e.divisor * width % size for e in place.scaled):
            return False
        extents = [s.extent for s in leaf.chain]
        lanes = lanes_of(place.linear, scope.depth, extents)
        base = self.code.placements[buffer].alignment
        return lanes.stride == 1 and known_alignment(lanes.base, width, base) % size == 0

    def _lanes(self, scope: Scope, leaf: Leaf) -> None:
        """Append a statement for all lanes: load vectors, compute lane by lane, store a vector."""
        tree = self.trees.of(leaf)
        stores = tree is None and leaf not in self.atomics and self._is_vector(leaf.output, scope, leaf)
        written = self.code.place(leaf.output, leaf)
        same = [a for a in leaf.reads if a.array.buffer is leaf.output.array.buffer]
        apart = tree is None and any(self.code.place(a, leaf) != written for a in same)
        loads = [a for a in dict.fromkeys(leaf.reads) if self._is_vector(a, scope, leaf)]
        if apart and leaf.accumulate is not None:
            raise LoweringError(f"lanes of {describe(scope)} accumulate into cells that other lanes read")
        dtype = leaf.output.array.dtype
        with self.code.block("") if stores or loads or apart else nullcontext():
            to = ""
            self.known[scope.depth] = 0
            names = self._load(loads, scope, leaf)
            if stores:
                kind = self.code.prelude.vector(dtype, scope.extent)
                place = self.code.element(leaf.output, leaf)
                to = self.spelling.vector_at(kind, place)
                old = f" = *{to}" if leaf.accumulate is not None else ""
                self.code.line(f"{kind} lane{old};")
            elif apart:
                self.code.line(f"{self.spelling.types[dtype]} lane[{scope.extent}];")
            for lane in range(scope.extent):
                self.known[scope.depth] = lane
                self.device.loaded = {access: f"{name}.at[{lane}]" for access, name in names.items()}
                target = f"lane.at[{lane}]" if stores else f"lane[{lane}]" if apart else None
                self._assign(leaf, target)
                self.device.loaded = {}
            if apart and not stores:
                for lane in range(scope.extent):
                    self.known[scope.depth] = lane
                    self.code.line(f"{self.code.element(leaf.output, leaf)} = lane[{lane}];")
            del self.known[scope.depth]
            if stores:
                streams = _cached(leaf.output) == STREAMING and leaf.accumulate is None
                self.code.line(f"{self._helper(_STORE)}({to}, lane);" if streams else f"*{to} = lane;")

    def _load(self, loads: Sequence[Access], scope: Scope, leaf: Leaf) -> dict[Access, str]:
        """Load vectors; returns their names."""
        names: dict[Access, str] = {}
        for number, access in enumerate(loads):
            kind = self.code.prelude.vector(access.array.dtype, scope.extent)
            load = _LOADS.get(_cached(access) or "")
            source = self.spelling.vector_at(f"const {kind}", self.code.element(access, leaf))
            value = f"*{source}" if load is None else f"{self._helper(load)}({source})"
            names[access] = f"lane{number}"
            self.code.line(f"const {kind} lane{number} = {value};")
        return names


def product_text(factors: Sequence[str]) -> str:
    """The product of numbers and of other texts."""
    fixed = prod(int(factor) for factor in factors if factor.isdecimal())
    texts = [factor for factor in factors if not factor.isdecimal()]
    return " * ".join([*texts, *[str(fixed)] * (fixed != 1 or not texts)])


def grid_count(code: FunctionText, scope: Scope) -> str:
    """The number of iterations of a grid scope that a launch has, at least 1: a number, or a text of type int."""
    text, limits = str(scope.extent), grid_limits(scope)
    if not limits:
        return text
    for limit in limits:
        text = f"{code.prelude.use('pd_min')}({text}, {code.index(limit)})"
    return f"(int){code.prelude.use('pd_max')}(1, {text})"


def _cached(access: Access) -> str | None:
    """The cache hint of an access; None if there is none."""
    return next((hint for hint in (STREAMING, READONLY) if hint in access.hints.data), None)

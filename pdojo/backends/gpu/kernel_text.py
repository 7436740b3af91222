"""One kernel as device functions, one per launch, and the function of the host that launches them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod

from xdsl.dialects.builtin import IntegerAttr

from pdojo.backends.addresses import Address, known_alignment, lanes_of, layout_of
from pdojo.backends.c.code import FunctionText, printable, variable
from pdojo.backends.c.loops import LoopText
from pdojo.backends.c.names import Names
from pdojo.backends.c.prelude import Prelude
from pdojo.backends.c.statement import assignment
from pdojo.backends.c.values import apply, literal
from pdojo.backends.gpu.barriers import Synchronisation, synchronisation
from pdojo.backends.gpu.homes import Own, own_part, workspace_of
from pdojo.backends.gpu.launches import THREADS, Launch, launch, reduced_by, threads_of
from pdojo.backends.gpu.spelling import STATIC_SHARED, DeviceSpelling
from pdojo.backends.placement import ALIGNMENT, Home, Placement, rounded
from pdojo.backends.walk import LoopBounds, describe
from pdojo.dialect.affine import Expr, const, var
from pdojo.dialect.attributes import Mapping as ScopeMapping
from pdojo.dialect.attributes import Memory
from pdojo.dialect.functions import byte_width, identity_value
from pdojo.dialect.notation.printer import header_lines, tree_lines
from pdojo.dialect.view.nest import Access, Buffer, Constant, Leaf, Nest, Node, Scope
from pdojo.errors import LoweringError

_OWN = ("thread", "total", "lane", "stream", "workspace", "pd_shared")
"""Local names of the printed code."""
_VECTOR_BYTES = 16
"""Most bytes that one access moves."""


@dataclass(eq=False)
class DeviceCode(FunctionText):
    """A device function under construction: a thread's own memory, and vectors that have been loaded."""

    own: dict[Buffer, Own] = field(default_factory=dict[Buffer, Own])
    """The parts of buffers that a thread has for itself."""
    loaded: dict[Access, str] = field(default_factory=dict[Access, str])
    """Accesses whose element of the present lane is in a variable."""

    def place(self, access: Access, leaf: Leaf) -> Address:
        """The address of an access, in the thread's part if it has one."""
        part = self.own.get(access.array.buffer)
        if part is None:
            return super().place(access, leaf)
        total = const(0)
        for index, stride in zip(part.indices[access], part.layout.strides, strict=True):
            total = total + index * stride
        return Address(total)

    def element(self, access: Access, leaf: Leaf) -> str:
        """The element accessed."""
        if access in self.loaded:
            return self.loaded[access]
        part = self.own.get(access.array.buffer)
        if part is not None and part.layout.size == 1:
            return self.names[access.array.buffer]
        return super().element(access, leaf)


@dataclass(frozen=True, eq=False)
class _Tree:
    """An accumulation of several threads into one cell."""

    leaf: Leaf
    root: Scope
    """The outermost thread scope whose threads accumulate into one cell."""
    reduced: tuple[Scope, ...]
    """The thread scopes whose threads accumulate into one cell, outermost first."""
    kept: tuple[Scope, ...]
    """The thread scopes inside the root with cells of their own."""
    cells: tuple[Scope, ...]
    """The loops inside the root with cells of their own."""
    name: str
    """The thread's partial result."""

    @property
    def size(self) -> int:
        """Partial results of each thread."""
        return prod(s.extent for s in self.cells)

    @property
    def cell(self) -> Expr:
        """The number of the partial result."""
        total = const(0)
        for scope in self.cells:
            total = total * scope.extent + var(scope.depth)
        return total


@dataclass(frozen=True)
class LaunchText:
    """A device function and how it is launched."""

    name: str
    text: str
    launch: Launch
    shared_bytes: int
    """Bytes of shared memory that the launch gives; 0 if the function declares its own."""
    arguments: tuple[str, ...]


class KernelText:
    """Device functions and launching function of a kernel."""

    def __init__(self, nest: Nest, prelude: Prelude, *, most_threads: int, warp: int) -> None:
        self.nest, self.prelude = nest, prelude
        spelling = prelude.spelling
        assert isinstance(spelling, DeviceSpelling)
        self.spelling = spelling
        self.most_threads, self.warp = most_threads, warp
        self.workspace = workspace_of(nest)
        self.launches: list[LaunchText] = []
        self.shuffles = False
        self.copies: set[int] = set()
        variables = [variable(d) for d in range(1 + max((s.depth for s in nest.scopes), default=0))]
        names = Names([*variables, *_OWN, nest.symbol])
        self.names = {b: names.fresh(b.names[0]) for b in nest.buffers}
        self.taken = names
        host = _Host(self)
        comment = "\n".join(f"// {printable(line)}" for line in header_lines(self.nest))
        functions = [entry.text for entry in self.launches]
        self.text = "\n".join([comment, *functions, host.text, ""])
        """The functions, with the kernel's declarations as a comment."""


def kernel_text(nest: Nest, prelude: Prelude, *, most_threads: int, warp: int) -> KernelText:
    """The code of a kernel for blocks of at most `most_threads` threads, in warps of `warp`.

    Raises LoweringError for what device code cannot say.
    """
    try:
        return KernelText(nest, prelude, most_threads=most_threads, warp=warp)
    except LoweringError as error:
        raise LoweringError(f"kernel '{nest.name}': {error}") from None


class _Host(LoopText):
    """The function that launches: loops around grids, and launches."""

    hardware = "a host"

    def __init__(self, kernel: KernelText) -> None:
        self.kernel, nest, spelling = kernel, kernel.nest, kernel.spelling
        super().__init__(FunctionText(kernel.prelude, {}, kernel.names))
        interface = [b for b in nest.buffers if b.intent is not None]
        parameters = [spelling.host_parameter(b, kernel.names[b]) for b in interface]
        self.nodes(nest.children)
        head = spelling.host(nest.symbol, [*parameters, "void *workspace"])
        begin, end = spelling.host_only[:1], spelling.host_only[1:]
        idle = [] if kernel.workspace.size_bytes else ["  (void)workspace;"]
        self.text = "\n".join([*begin, f"{head} {{", *idle, *self.code.lines, "}", *end])

    def nodes(self, nodes: Sequence[Node]) -> None:
        """Append launches and loops."""
        for node in nodes:
            leaves = node.leaves if isinstance(node, Scope) else [node]
            inside = any(s.mapping is ScopeMapping.GRID for leaf in leaves for s in leaf.chain)
            is_grid = isinstance(node, Scope) and node.mapping is ScopeMapping.GRID
            if inside and not is_grid:
                super().nodes([node])
            else:
                self._launch(node)

    def _launch(self, node: Node) -> None:
        entry = _Device(self.kernel, node, dict(self.known)).entry()
        self.kernel.launches.append(entry)
        found = entry.launch
        for line in self.kernel.spelling.launch(
            entry.name, found.blocks, found.threads, entry.shared_bytes, entry.arguments
        ):
            self.code.line(line)

    def statement(self, leaf: Leaf) -> None:
        """Not called: a statement outside of grids is a launch."""
        raise AssertionError(leaf)

    def vector(self, scope: Scope, leaf: Leaf, bounds: LoopBounds) -> None:
        """Not called: a vector outside of grids is a launch."""
        raise AssertionError(scope)


class _Device(LoopText):
    """A device function."""

    hardware = "a graphics processor"

    def __init__(self, kernel: KernelText, node: Node, known: Mapping[int, int]) -> None:
        self.kernel, self.nest, self.spelling = kernel, kernel.nest, kernel.spelling
        self.launch = launch(self.nest, node, most_threads=kernel.most_threads, warp=kernel.warp)
        self.sync: Synchronisation = synchronisation(self.nest, self.launch)
        used = {a.array.buffer for leaf in self.launch.leaves for a in leaf.accesses}
        self.buffers = [b for b in self.nest.buffers if b in used]
        own = {
            b: own_part(self.launch, self.nest, b)
            for b in self.buffers
            if b.op is not None and b.memory in (Memory.REGISTER, Memory.STACK)
        }
        placements = {
            b: Placement(Home.ARGUMENT, layout_of(self.nest, b), b.alignment if b.op is None else ALIGNMENT)
            for b in self.buffers
        }
        code = DeviceCode(kernel.prelude, placements, kernel.names, known=dict(known), own=own)
        super().__init__(code)
        self.device = code
        self.outer = node.chain[:-1] if isinstance(node, Scope) else node.chain
        """The host's loops around the launch."""
        self.extents.extend(s.extent for s in self.outer)
        self.trees = self._find_trees()
        self.is_leader = False
        """Whether what is appended runs in one thread of a group only."""

    # The function

    def entry(self) -> LaunchText:
        """The whole function."""
        found, spelling = self.launch, self.spelling
        number = len(self.kernel.launches)
        name = f"{self.nest.symbol}_{number}"
        arguments = [b for b in self.buffers if b.op is None]
        parameters = [spelling.parameter(b, self.kernel.names[b]) for b in arguments]
        passed = [self.kernel.names[b] for b in arguments]
        if any(b in self.kernel.workspace.offsets for b in self.buffers):
            parameters.append("void *workspace")
            passed.append("workspace")
        for scope in self.outer:
            if scope.depth not in self.known:
                parameters.append(f"int {variable(scope.depth)}")
                passed.append(variable(scope.depth))
        shared = self._declare()
        self._grid()
        head = spelling.kernel(name, parameters, found.threads, self._resident())
        lines = [f"// {printable(line)}" for line in tree_lines([found.root])]
        text = "\n".join(["", *lines, f"{head} {{", *self.code.lines, "}"])
        return LaunchText(name, text, found, shared, tuple(passed))

    def _resident(self) -> int | None:
        """Blocks per multiprocessor that the hint of a grid scope asks for."""
        for scope in self.launch.grids:
            hint = scope.hints.data.get("launch_bounds")
            if isinstance(hint, IntegerAttr):
                return hint.value.data
        return None

    def _declare(self) -> int:
        """Declare the memory of the block and of the thread; gives the bytes of shared memory that the launch gives."""
        names, spelling = self.kernel.names, self.spelling
        for buffer in self.buffers:
            if buffer in self.kernel.workspace.offsets:
                place = f"((char *)workspace + {self.kernel.workspace.offsets[buffer]})"
                self.code.line(spelling.pointer(buffer.dtype, names[buffer], place))
        shared: list[tuple[str, str, int]] = [
            (b.dtype, names[b], layout_of(self.nest, b).size) for b in self.buffers if b.memory is Memory.SHARED
        ]
        for tree in self.trees:
            if any(s.mapping is ScopeMapping.BLOCK for s in tree.reduced):
                dtype = tree.leaf.output.array.dtype
                shared.append((dtype, f"{tree.name}s", self.launch.threads))
        total = sum(rounded(size * byte_width(dtype), _VECTOR_BYTES) for dtype, _, size in shared)
        static = total <= STATIC_SHARED and spelling.dynamic_shared is not None
        if shared and not static and spelling.dynamic_shared is not None:
            self.code.line(spelling.dynamic_shared)
        offset = 0
        for dtype, name, size in shared:
            self.code.line(spelling.shared(dtype, name, size, offset, dynamic=not static))
            offset += rounded(size * byte_width(dtype), _VECTOR_BYTES)
        if self.launch.threads > 1:
            self.code.line("const int thread = threadIdx.x;")
        return 0 if static else offset

    def _grid(self) -> None:
        """The variables of the grid, and what each block runs."""
        remaining = self.launch.blocks
        for scope in self.launch.grids:
            remaining //= scope.extent
            text = "blockIdx.x" if remaining == 1 else f"blockIdx.x / {remaining}"
            if scope is not self.launch.grids[0]:
                text = f"{text} % {scope.extent}"
            if len(self.launch.grids) == 1 or remaining == 1:
                text = text.replace("blockIdx.x", "(int)blockIdx.x", 1)
            self.code.line(f"const int {variable(scope.depth)} = {text};")
        guards = [g for scope in self.launch.grids for g in scope.guard]
        self.extents.extend(s.extent for s in self.launch.grids)
        for buffer, part in self.device.own.items():
            name, kind = self.kernel.names[buffer], self.spelling.types[buffer.dtype]
            self.code.line(f"{kind} {name};" if part.layout.size == 1 else f"{kind} {name}[{part.layout.size}];")
        with self.guarded(guards) as possible:
            if possible:
                self.nodes(self.launch.nodes)

    # Order

    def nodes(self, nodes: Sequence[Node]) -> None:
        """Append nodes, with the barriers in front of them and the ends of groups of copies behind them."""
        for node in nodes:
            self._wait(node)
            super().nodes([node])
            if node in self.sync.commits:
                self.code.line("pd_copy_commit();")

    def _wait(self, node: Node) -> None:
        if node in self.sync.waits:
            self.code.line(f"pd_copy_wait<{self.sync.waits[node]}>();")
        group = self.sync.barriers.get(node, 1)
        if group > 1:
            chain = node.chain[:-1] if isinstance(node, Scope) else node.chain
            self._barrier(group, chain)

    def _barrier(self, group: int, chain: Sequence[Scope]) -> None:
        """The threads of a group wait for each other."""
        around = threads_of(chain)
        if around and group <= self.kernel.warp:
            self.code.line(self.spelling.warp_barrier())
            return
        for scope in around:
            stands = scope.guard or any(g.uses(s.depth) for s in chain for g in s.guard for s in around)
            full = self.launch.threads == scope.extent * self.launch.strides[scope] or scope is not around[0]
            if stands or not full:
                raise LoweringError(
                    f"threads of {describe(scope)} must wait for each other, but not all threads of the block run it"
                )
        self.code.line("__syncthreads();")

    # Threads

    def other(self, scope: Scope, bounds: LoopBounds) -> None:
        """Append a scope whose iterations are threads."""
        if scope.mapping not in THREADS:
            super().other(scope, bounds)
            return
        trees = [t for t in self.trees if t.root is scope]
        with self.code.block(""):
            for tree in trees:
                self._begin(tree)
            self._declare_variable(scope)
            self._phase(scope, bounds, self._active(scope))
            for tree in trees:
                self._end(tree)

    def _active(self, scope: Scope) -> str | None:
        """The condition of the threads that have an iteration of a thread scope; None if all have."""
        around = threads_of(scope.chain[:-1])
        whole = self.launch.strides[around[-1]] if around else self.launch.threads
        complete = scope.mapping is ScopeMapping.WARP or scope.extent * self.launch.strides[scope] == whole
        return None if complete else f"{variable(scope.depth)} < {scope.extent}"

    def _declare_variable(self, scope: Scope) -> None:
        """Declare the variable of a thread scope."""
        stride = self.launch.strides[scope]
        around = threads_of(scope.chain[:-1])
        if scope.mapping is ScopeMapping.WARP:
            text = "thread" if self.launch.threads == scope.extent else f"thread % {scope.extent}"
        else:
            whole = self.launch.strides[around[-1]] if around else self.launch.threads
            within = f"thread % {whole}" if around else "thread"
            text = f"{within} / {stride}" if stride > 1 else within
        self.code.line(f"const int {variable(scope.depth)} = {text};")

    def _phase(self, scope: Scope, bounds: LoopBounds, active: str | None) -> None:
        if active is not None:
            with self.code.block(f"if ({active})"):
                self._phase(scope, bounds, None)
            return
        with self.guarded(bounds.own) as possible:
            if possible:
                self.nodes(scope.children)

    def _leader(self, chain: Sequence[Scope]) -> str | None:
        """The condition of the one thread that stores for its group; None if every thread stores."""
        group = self.launch.group(chain)
        around = threads_of(chain)
        if not around:
            return "thread == 0" if group > 1 else None
        innermost = around[-1]
        if innermost.mapping is ScopeMapping.BLOCK:
            return f"thread % {group} == 0" if group > 1 else None
        whole = self.launch.strides[around[-2]] if len(around) > 1 else self.launch.threads
        if whole == innermost.extent:
            return None
        return f"thread % {whole} < {innermost.extent}" if len(around) > 1 else f"thread < {innermost.extent}"

    def statement(self, leaf: Leaf) -> None:
        """Append a statement: every thread of a group runs it on its own memory, one thread on memory they share."""
        with self._stored(leaf):
            self._assign(leaf)

    @contextmanager
    def _stored(self, leaf: Leaf) -> Generator[None]:
        """Only the thread that stores for its group runs what is appended within."""
        own = self._tree_of(leaf) is not None or leaf.output.array.buffer in self.device.own
        leader = None if own or self.is_leader else self._leader(leaf.chain)
        before, self.is_leader = self.is_leader, True
        with _plain() if leader is None else self.code.block(f"if ({leader})"):
            yield
        self.is_leader = before

    def _assign(self, leaf: Leaf, target: str | None = None) -> None:
        tree = self._tree_of(leaf)
        if target is None:
            target = self._partial(tree) if tree is not None else self.code.element(leaf.output, leaf)
        if leaf.asynchronous:
            self._copy(leaf, target, 1)
            return
        self.code.line(f"{assignment(self.code, leaf, target, target)};")

    def _copy(self, leaf: Leaf, target: str, lanes: int) -> None:
        size = lanes * byte_width(leaf.output.array.dtype)
        self.kernel.copies.add(size)
        (source,) = leaf.reads
        self.code.line(f"pd_copy_async{size}(&{target}, &{self.code.element(source, leaf)});")

    # Vectors

    def vector(self, scope: Scope, leaf: Leaf, bounds: LoopBounds) -> None:
        """Append a statement on vectors where memory has them, lane by lane elsewhere."""
        whole = self._whole(scope)
        if whole is None:
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

    def _whole(self, scope: Scope) -> list[Expr] | None:
        """The guard of the first lane if all lanes have the same; None if they differ."""
        found: list[Expr] = []
        for constraint in scope.guard:
            if not constraint.uses(scope.depth):
                continue  # `nodes` has checked it
            factor = constraint.coefficient(scope.depth)
            rest = constraint - var(scope.depth) * factor
            if rest.uses(scope.depth) or factor != -1:
                return None
            if any(c % scope.extent for _, c in rest.terms) or (rest.constant + 1) % scope.extent:
                return None
            found.append(rest)
        return found

    def _is_vector(self, access: Access, scope: Scope, leaf: Leaf) -> bool:
        """Whether the lanes of an access are one piece of memory, aligned to its size."""
        buffer = access.array.buffer
        width = byte_width(buffer.dtype)
        size = width * scope.extent
        if buffer in self.device.own or size > _VECTOR_BYTES or scope.extent < 2:
            return False
        place = self.code.place(access, leaf)
        if place.exchanges:
            return False
        extents = [s.extent for s in leaf.chain]
        lanes = lanes_of(place.linear, scope.depth, extents)
        base = self.code.placements[buffer].alignment
        return lanes.stride == 1 and known_alignment(lanes.base, width, base) % size == 0

    def _lanes(self, scope: Scope, leaf: Leaf) -> None:
        """A statement for all lanes: load vectors, compute lane by lane, store a vector."""
        tree = self._tree_of(leaf)
        stores = tree is None and self._is_vector(leaf.output, scope, leaf)
        written = self.code.place(leaf.output, leaf)
        same = [a for a in leaf.reads if a.array.buffer is leaf.output.array.buffer]
        apart = tree is None and any(self.code.place(a, leaf) != written for a in same)
        loads = [a for a in dict.fromkeys(leaf.reads) if self._is_vector(a, scope, leaf)]
        if apart and leaf.accumulate is not None:
            raise LoweringError(f"lanes of {describe(scope)} accumulate into cells that other lanes read")
        if not (stores or loads or apart):
            self.unrolled(scope, self.bounds(scope))
            return
        dtype = leaf.output.array.dtype
        with self.code.block(""):
            names: dict[Access, str] = {}
            kind = place = ""
            self.known[scope.depth] = 0
            for number, access in enumerate(loads):
                kind = self.code.prelude.vector(access.array.dtype, scope.extent)
                names[access] = f"lane{number}"
                place = self.code.element(access, leaf)
                self.code.line(f"const {kind} lane{number} = *(const {kind} *)&{place};")
            if stores:
                kind = self.code.prelude.vector(dtype, scope.extent)
                place = self.code.element(leaf.output, leaf)
                old = f" = *({kind} *)&{place}" if leaf.accumulate is not None else ""
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
                self.code.line(f"*({kind} *)&{place} = lane;")

    # Trees

    def _find_trees(self) -> list[_Tree]:
        trees: list[_Tree] = []
        for leaf in self.launch.leaves:
            reduced = reduced_by(leaf)
            if not reduced:
                continue
            around, index = threads_of(leaf.chain), leaf.output.index
            root = reduced[0]
            inside = leaf.chain[root.depth + 1 :]
            kept = tuple(s for s in inside if s in around and s not in reduced)
            cells = tuple(s for s in inside if s not in around and s.extent > 1 and any(e.uses(s.depth) for e in index))
            name = self.kernel.taken.fresh(f"{leaf.output.array.name}_part")
            trees.append(_Tree(leaf, root, reduced, kept, cells, name))
        return trees

    def _tree_of(self, leaf: Leaf) -> _Tree | None:
        return next((t for t in self.trees if t.leaf is leaf), None)

    def _partial(self, tree: _Tree) -> str:
        return tree.name if tree.size == 1 else f"{tree.name}[{self.code.index(tree.cell)}]"

    def _begin(self, tree: _Tree) -> None:
        """Declare the partial results of a thread: neutral."""
        leaf = tree.leaf
        dtype = leaf.output.array.dtype
        assert leaf.accumulate is not None
        neutral = -0.0 if leaf.accumulate == "arith.addf" else identity_value(leaf.accumulate, dtype)
        value, kind = literal(Constant(neutral, dtype)), self.spelling.types[dtype]
        if tree.size == 1:
            self.code.line(f"{kind} {tree.name} = {value};")
            return
        self.code.line(f"{kind} {tree.name}[{tree.size}];")
        self._unrolled_line(tree.size)
        with self.code.block(f"for (int k = 0; k < {tree.size}; k++)"):
            self.code.line(f"{tree.name}[k] = {value};")

    def _unrolled_line(self, extent: int) -> None:
        request = self.spelling.unroll(extent)
        if request is not None:
            self.code.line(request)

    def _end(self, tree: _Tree) -> None:
        """Combine the partial results of the threads, and add them to the cells."""
        with self.code.block("") if tree.kept else _plain():
            for scope in tree.kept:
                self._declare_variable(scope)
            self._over_cells(tree, list(tree.cells))

    def _over_cells(self, tree: _Tree, cells: list[Scope]) -> None:
        if cells:
            scope, *rest = cells
            own = variable(scope.depth)
            self._unrolled_line(scope.extent)
            with self.code.block(f"for (int {own} = 0; {own} < {scope.extent}; {own}++)"):
                self._over_cells(tree, rest)
            return
        depth = len(self.extents)
        # The variables of all scopes around the statement: those without cells of their own do not occur.
        self.extents.extend(s.extent for s in tree.leaf.chain[depth:])
        lonely = {s.depth: 0 for s in tree.leaf.chain[depth:] if s.extent == 1}
        self.known.update(lonely)
        self._combine(tree)
        for d in lonely:
            del self.known[d]
        del self.extents[depth:]

    def _combine(self, tree: _Tree) -> None:
        leaf = tree.leaf
        dtype = leaf.output.array.dtype
        assert leaf.accumulate is not None
        part = self._partial(tree)

        def both(one: str, other: str) -> str:
            text = apply(self.code.prelude, leaf.accumulate or "", (one, other), (dtype, dtype), dtype)
            return text[1:-1] if text.startswith("(") and text.endswith(")") and text.count("(") == 1 else text

        for scope in reversed(tree.reduced):
            if scope.mapping is ScopeMapping.WARP:
                self.kernel.shuffles = True
                offset = scope.extent // 2
                while offset:
                    other = f"pd_shfl_xor({part}, {offset}, {scope.extent})"
                    self.code.line(f"{part} = {both(part, other)};")
                    offset //= 2
        blocks = [s for s in tree.reduced if s.mapping is ScopeMapping.BLOCK]
        if blocks:
            self._across(tree, blocks, part, both)
        self._add(tree, part, both)

    def _across(self, tree: _Tree, blocks: Sequence[Scope], part: str, both: Callable[[str, str], str]) -> None:
        """Combine the partial results of the warps of a block in shared memory; every thread gets the result."""
        outer = threads_of(tree.root.chain[:-1])
        if outer:
            self._check_full(outer)
        shared = f"{tree.name}s"
        if tree.size > 1 or any(s.extent > 1 and s.mapping is ScopeMapping.SEQUENTIAL for s in tree.root.chain[:-1]):
            self.code.line("__syncthreads();")
        self.code.line(f"{shared}[thread] = {part};")
        self.code.line("__syncthreads();")
        strides = self.launch.strides
        # The place of the first thread that contributes to the same cell.
        terms: list[str] = []
        if outer:
            terms.append(f"thread / {strides[outer[-1]]} * {strides[outer[-1]]}")
        for scope in tree.kept:
            stride, extent = strides[scope], scope.extent
            inner = f"thread / {stride} % {extent}" if stride > 1 else f"thread % {extent}"
            terms.append(f"{inner} * {stride}" if stride > 1 else inner)
        first = " + ".join(terms)
        counts = [(s.extent, strides[s]) for s in blocks]
        total = prod(extent for extent, _ in counts)
        offsets: list[int] = []
        for number in range(total):
            offset = 0
            for extent, stride in reversed(counts):
                offset += number % extent * stride
                number //= extent
            offsets.append(offset)
        step = offsets[1] if total > 1 else 1
        with self.code.block(""):
            base = f"{first} + " if first else ""
            self.code.line(f"{part} = {shared}[{first or '0'}];")
            if offsets == [k * step for k in range(total)]:
                self._unrolled_line(total)
                with self.code.block(f"for (int k = 1; k < {total}; k++)"):
                    self.code.line(f"{part} = {both(part, f'{shared}[{base}k * {step}]')};")
            else:
                for offset in offsets[1:]:
                    self.code.line(f"{part} = {both(part, f'{shared}[{base}{offset}]')};")

    def _check_full(self, outer: Sequence[Scope]) -> None:
        for scope in outer:
            if self.launch.threads != scope.extent * self.launch.strides[scope] or scope.guard:
                raise LoweringError(
                    f"threads of {describe(scope)} add up in shared memory, but not all threads of the block run it"
                )

    def _add(self, tree: _Tree, part: str, both: Callable[[str, str], str]) -> None:
        """Add a result to its cell: every thread to its own, or one thread to memory they share."""
        leaf = tree.leaf
        conditions: list[str] = []
        buffer = leaf.output.array.buffer
        if buffer not in self.device.own:
            conditions += self._only_one(tree)
            conditions += self._guards(tree)
        elif tree.kept:
            conditions += self._within(tree)
        target = self.code.element(leaf.output, leaf)
        dtype = leaf.output.array.dtype
        old = f"({target} != 0)" if dtype == "i1" else target
        with self.code.block(f"if ({' && '.join(conditions)})") if conditions else _plain():
            self.code.line(f"{target} = {both(part, old)};")

    def _within(self, tree: _Tree) -> list[str]:
        """The threads that have cells: those with an iteration of the root."""
        width = tree.root.extent * self.launch.strides[tree.root]
        outer = threads_of(tree.root.chain[:-1])
        whole = self.launch.strides[outer[-1]] if outer else self.launch.threads
        kept_blocks = any(s.mapping is ScopeMapping.BLOCK for s in tree.kept)
        return [f"thread < {width}"] if width < whole and kept_blocks and not outer else []

    def _only_one(self, tree: _Tree) -> list[str]:
        """The first of the threads that have the result of a cell, and an iteration of the root."""
        conditions: list[str] = []
        strides = self.launch.strides
        outer = threads_of(tree.root.chain[:-1])
        whole = strides[outer[-1]] if outer else self.launch.threads
        inside = threads_of(tree.leaf.chain)[len(outer) :]
        within = f"thread % {whole}" if outer else "thread"
        covered = 1
        for scope in reversed(inside):
            if strides[scope] > covered:
                conditions.append(
                    f"{within} % {strides[scope]} < {covered}" if covered > 1 else f"{within} % {strides[scope]} == 0"
                )
                covered = strides[scope]
            if scope in tree.reduced:
                own = f"{within} / {strides[scope]}" if strides[scope] > 1 else within
                conditions.append(f"{own} % {scope.extent} == 0")
            covered = strides[scope] * scope.extent
        if covered < whole:
            conditions.append(f"{within} < {covered}")
        return conditions

    def _guards(self, tree: _Tree) -> list[str]:
        """The guards that decide whether a cell exists."""
        found: list[Expr] = []
        gone = {
            s.depth for s in tree.leaf.chain[tree.root.depth :] if s not in (*tree.kept, *tree.cells) and s.extent > 1
        }
        for scope in tree.leaf.chain[tree.root.depth :]:
            for constraint in scope.guard:
                if constraint.variables() & gone:
                    if any(constraint.uses(s.depth) for s in (*tree.kept, *tree.cells)):
                        raise LoweringError(
                            f"a guard of {describe(scope)} mixes threads that add up with threads that have cells"
                        )
                    continue
                bound = self.code.bind(constraint)
                if bound.bounds(self.extents)[0] < 0:
                    found.append(bound)
        return [self.code.condition(found)] if found else []


@contextmanager
def _plain() -> Generator[None]:
    yield

"""Conversion of a launch to a `gpu.launch`: the code of each thread of a block, in order."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext

from xdsl.dialects import arith, gpu, memref
from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.ir import Block, SSAValue

from pdojo.backends.c.names import Identifiers
from pdojo.backends.common.walk import LoopBounds, describe
from pdojo.backends.gpu.atomic_text import atomics_of, check_atomic
from pdojo.backends.gpu.barriers import synchronisation
from pdojo.backends.gpu.block_walk import holding
from pdojo.backends.gpu.homes import SHARED_ALIGNMENT, own_part, shared_offsets
from pdojo.backends.gpu.ir.atomic_builder import atomic_rmw
from pdojo.backends.gpu.ir.dialect import WORKGROUP, DynamicSharedMemoryOp
from pdojo.backends.gpu.ir.thread_builder import ThreadBuilder
from pdojo.backends.gpu.ir.tree_builder import TreeBuilder
from pdojo.backends.gpu.launches import Launch
from pdojo.backends.gpu.numbering import Below, is_complete, iteration, leader
from pdojo.backends.gpu.trees import Tree, trees_of
from pdojo.backends.loops.loop_builder import LoopBuilder
from pdojo.dialect.attributes import Memory
from pdojo.dialect.functions import DTYPES
from pdojo.dialect.rules.block_threads import THREADS
from pdojo.dialect.view.nest import Buffer, Leaf, Node, Scope
from pdojo.dialect.view.storage import physical_shape
from pdojo.errors import LoweringError

_IDS = 12
"""Arguments of the launch's block: indices and counts of blocks and threads, in three dimensions each."""


class LaunchBody(ThreadBuilder):
    """Builds the body of a launch."""

    def __init__(
        self,
        host: LoopBuilder,
        found: Launch,
        memories: Mapping[Buffer, SSAValue],
        counts: Sequence[SSAValue | int],
        warp: int,
    ) -> None:
        """`memories` has the memrefs of buffers that outlive launches, `counts` the iterations of grid scopes."""
        nest, variables = host.nest, host.variables
        super().__init__(nest, found, Block(arg_types=[IndexType()] * _IDS), variables, host.sizes)
        self.counts = counts
        self.atomics = atomics_of(nest, found)
        self.sync = synchronisation(nest, found, self.atomics)
        self.trees = trees_of(found, Identifiers())
        for leaf in self.atomics:
            check_atomic(leaf, tree=self._tree(leaf) is not None)
        self.tree_code = TreeBuilder(self, warp, self.atomics)
        # The gpu dialect has no barriers for parts of a block, and no shuffles for parts of a warp.
        self.wide = frozenset(self.sync.barriers)
        self.held = holding(self.wide, [t.root for t in self.trees if self.tree_code.is_of_block(t)])
        self.is_leader = False
        """Whether the appended code runs in only one thread of a group."""
        self.extents.extend(s.extent for s in found.root.chain[: len(variables)])
        used = {a.array.buffer for leaf in found.leaves for a in leaf.accesses}
        self.buffers = [b for b in nest.buffers if b in used]
        self.memories.update({b: memories[b] for b in self.buffers if b in memories})
        self.shared_bytes = self._share()
        self._own()
        self._grid()
        self.builder.insert(gpu.TerminatorOp())
        self.finish()

    # Memory

    def _share(self) -> int:
        """Declare the shared memory of a block; returns its size in bytes."""
        buffers = [b for b in self.buffers if b.memory is Memory.SHARED]
        trees = [t for t in self.trees if t.blocks]
        shapes = [(b.dtype, physical_shape(self.nest, b), b.names[0]) for b in buffers]
        shapes += [(t.dtype, (self.launch.threads,), t.shared) for t in trees]
        kinds = [MemRefType(DTYPES[dtype], shape, memory_space=WORKGROUP) for dtype, shape, _ in shapes]
        counts = [kind.element_count() for kind in kinds]
        sizes = [(dtype, count, SHARED_ALIGNMENT) for (dtype, _, _), count in zip(shapes, counts, strict=True)]
        offsets, total = shared_offsets(sizes)
        if not shapes:
            return 0
        whole = self.append(DynamicSharedMemoryOp())
        values: list[SSAValue] = []
        for (_, _, name), kind, offset in zip(shapes, kinds, offsets, strict=True):
            values.append(self.append(memref.ViewOp(whole, self.constants.index(offset), [], kind)))
            values[-1].name_hint = name
        self.memories.update(zip(buffers, values, strict=False))
        self.tree_code.scratch.update(zip(trees, values[len(buffers) :], strict=True))
        return total

    def _own(self) -> None:
        for buffer in self.buffers:
            if buffer.memory in (Memory.REGISTER, Memory.STACK) and buffer not in self.memories:
                part = own_part(self.launch, self.nest, buffer)
                self.own[buffer] = part
                self.memories[buffer] = self.private(buffer.dtype, part.layout.shape, buffer.names[0])
        for tree in self.trees:
            self.tree_code.declare(tree)

    # The walk

    def _grid(self) -> None:
        """Declare the variables of the grid, and append the code of a block."""
        grids = self.launch.grids
        if grids:
            block = self.append(gpu.BlockIdOp(gpu.DimensionAttr(gpu.DimensionEnum.X)))
            block.name_hint = "block"
            for position, scope in enumerate(grids):
                own = self.counts[position] if position else None
                self.variables.append(self._block_digit(block, self.counts[position + 1 :], own))
                self.variables[-1].name_hint = "block" if len(grids) == 1 else scope.op.iv.name_hint
        self.extents.extend(s.extent for s in grids)
        with self.guarded([g for scope in grids for g in scope.guard]) as possible:
            if possible:
                self.nodes(self.launch.nodes)

    def _block_digit(self, block: SSAValue, inner: Sequence[SSAValue | int], own: SSAValue | int | None) -> SSAValue:
        if any(count != 1 for count in inner):
            block = self.append(arith.DivUIOp(block, self.indices.product(inner)))
        return block if own is None else self.append(arith.RemUIOp(block, self.indices.product([own])))

    def synchronise(self, node: Node) -> None:
        """Append the barrier before a node: always of the whole block, even if one of the warp is enough."""
        if node in self.wide:
            self.builder.insert(gpu.BarrierOp())

    def other(self, scope: Scope, bounds: LoopBounds) -> None:
        """Append a scope mapped to threads."""
        if scope in self.launch.collectives.scopes:
            raise LoweringError(
                f"{describe(scope)} is mapped to '{scope.intrinsic}', an instruction of a whole warp, which the gpu "
                "dialect cannot say; take the mapping back (unmap)"
            )
        if scope.mapping not in THREADS:
            super().other(scope, bounds)
            return
        trees = [t for t in self.trees if t.root is scope]
        for tree in trees:
            self.tree_code.begin(tree)
        digit = iteration(self.launch, scope)
        value = self.digit(digit)
        value.name_hint = "thread" if value is self.thread else scope.op.iv.name_hint
        self.variables.append(value)
        complete = is_complete(self.launch, scope)
        active = nullcontext() if complete else self.only(scope, self.below(Below(digit, scope.extent)))
        with active, self.guarded(bounds.own) as possible:
            if possible:
                self.nodes(scope.children)
        self.variables.pop()
        for tree in trees:
            self.tree_code.end(tree, self.checked)

    # Statements

    def statement(self, leaf: Leaf) -> None:
        """Append a statement: each thread of a group runs it for its own memory, one thread for shared memory."""
        with self._stored(leaf):
            if leaf in self.atomics and self._tree(leaf) is None:
                place, index = self.target(leaf)
                self.builder.insert(atomic_rmw(leaf, self.value(leaf), place, index))
            else:
                super().statement(leaf)

    def vector(self, scope: Scope, leaf: Leaf, bounds: LoopBounds) -> None:
        """Append a loop over the lanes."""
        with self._stored(leaf):
            super().vector(scope, leaf, bounds)

    def target(self, leaf: Leaf) -> tuple[SSAValue, list[SSAValue]]:
        """The element that a statement writes: an element of its array, or the partial result of a tree."""
        tree = self._tree(leaf)
        return super().target(leaf) if tree is None else self.tree_code.partial(tree)

    def _tree(self, leaf: Leaf) -> Tree | None:
        """The tree that a statement adds to; None if each thread has its own cells."""
        return next((t for t in self.trees if t.leaf is leaf), None)

    @contextmanager
    def _stored(self, leaf: Leaf) -> Generator[None]:
        """A context in which appended code runs only in the thread that stores for its group."""
        own = self._tree(leaf) is not None or leaf.output.array.buffer in self.own
        storing = None if own or self.is_leader else leader(self.launch, leaf.chain)
        before, self.is_leader = self.is_leader, True
        with nullcontext() if storing is None else self.where([self.below(storing)]):
            yield
        self.is_leader = before

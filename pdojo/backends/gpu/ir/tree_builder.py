"""Reduction trees as operations: butterflies of shuffles in warps, shared memory between warps."""

from __future__ import annotations

from collections.abc import Container, Generator
from contextlib import contextmanager, nullcontext
from functools import reduce

from xdsl.dialects import arith, gpu, memref, scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Region, SSAValue

from pdojo.backends.common.walk import describe
from pdojo.backends.gpu.ir.atomic_builder import atomic_rmw
from pdojo.backends.gpu.ir.shuffles import Shuffles
from pdojo.backends.gpu.ir.thread_builder import ThreadBuilder
from pdojo.backends.gpu.numbering import iteration
from pdojo.backends.gpu.trees import Checked, Tree
from pdojo.dialect.view.nest import Leaf, Scope
from pdojo.errors import LoweringError


class TreeBuilder:
    """Appends the trees of a launch."""

    def __init__(self, code: ThreadBuilder, warp: int, atomics: Container[Leaf]) -> None:
        """`atomics` has the statements that add the results to the cells by an atomic operation."""
        self.code, self.warp, self.atomics = code, warp, atomics
        self.partials: dict[Tree, SSAValue] = {}
        """The memory of each thread's partial results."""
        self.scratch: dict[Tree, SSAValue] = {}
        """The arrays in shared memory, with one element per thread."""

    def declare(self, tree: Tree) -> None:
        """Declare the memory of the partial results."""
        self.partials[tree] = self.code.private(tree.dtype, [tree.size], tree.name)

    def partial(self, tree: Tree) -> tuple[SSAValue, list[SSAValue]]:
        """The memref and the index of the current cell's partial result."""
        return self.partials[tree], [self.code.indices.value(tree.cell)]

    def begin(self, tree: Tree) -> None:
        """Initialise the partial results with the neutral element."""
        neutral = self.code.constants.typed(tree.neutral)
        if tree.size == 1:
            self._store(neutral, self.partials[tree], self.code.constants.index(0))
            return
        with self.code.counted(tree.size) as number:
            self._store(neutral, self.partials[tree], number)

    def is_of_block(self, tree: Tree) -> bool:
        """Whether all threads of the block must reach the end of a tree: it has a barrier, or a shuffle in a warp whose
        threads may have different iterations of the scopes around the tree.
        """
        strides = self.code.launch.strides
        return bool(tree.blocks or (tree.offsets and any(strides[s] % self._width for s in tree.outer)))

    def end(self, tree: Tree, checked: Checked) -> None:
        """Combine the partial results of the threads, and add them to the cells.

        Inside `checked()`, appended code runs only in threads that have an iteration of the scopes around the tree.
        """
        values = {s.depth: self.code.digit(iteration(self.code.launch, s)) for s in tree.kept}
        self._over_cells(tree, list(tree.cells), values, checked)

    def _over_cells(self, tree: Tree, cells: list[Scope], values: dict[int, SSAValue], checked: Checked) -> None:
        if cells:
            scope, *rest = cells
            with self.code.counted(scope.extent) as number:
                self._over_cells(tree, rest, {**values, scope.depth: number}, checked)
            return
        with self._inside(tree, values):
            self._combine(tree, checked)

    @contextmanager
    def _inside(self, tree: Tree, values: dict[int, SSAValue]) -> Generator[None]:
        """A context with the variables of all scopes around the statement; variables that index no cell are 0."""
        before, zero = list(self.code.variables), self.code.constants.index(0)
        inside = tree.leaf.chain[len(before) :]
        self.code.variables.extend(values.get(s.depth, zero) for s in inside)
        yield
        del self.code.variables[len(before) :]

    def _combine(self, tree: Tree, checked: Checked) -> None:
        code = self.code
        place, index = self.partial(tree)
        value = code.append(memref.LoadOp.get(place, index))
        if tree.offsets:
            self._check_width(tree)
        for offset in tree.offsets:
            other = Shuffles(code.builder, code.constants).exchanged(value, tree.dtype, offset, self._width)
            value = self._both(tree, value, other)
        if tree.blocks:
            if tree.reuses_scratch:
                code.builder.insert(gpu.BarrierOp())
            self._store(value, self.scratch[tree], code.thread)
            code.builder.insert(gpu.BarrierOp())
        with checked():
            self._add(tree, self._across(tree) if tree.blocks else value)

    @property
    def _width(self) -> int:
        """Number of threads that take part in a shuffle: a whole warp, or the whole block if it is smaller."""
        return min(self.code.launch.threads, self.warp)

    def _check_width(self, tree: Tree) -> None:
        """Raise LoweringError if the last warp of the block is incomplete."""
        threads, width = self.code.launch.threads, self._width
        if threads % width:
            raise LoweringError(
                f"threads of {describe(tree.root)} exchange registers in a block of {threads} threads, which the "
                f"gpu dialect has only in whole warps of {width}; map extents whose product is a multiple of {width}"
            )

    def _both(self, tree: Tree, one: SSAValue, other: SSAValue) -> SSAValue:
        return self.code.apply(tree.accumulate, tree.dtype, one, other)

    def _across(self, tree: Tree) -> SSAValue:
        """Combine the warps' partial results, which are in shared memory; every thread gets the result."""
        code, scratch = self.code, self.scratch[tree]
        first = self._first(tree)
        offsets = tree.contributors()
        total = code.append(memref.LoadOp.get(scratch, [first]))
        step = offsets[1] if len(offsets) > 1 else 1
        if offsets == [k * step for k in range(len(offsets))]:
            return self._sum(tree, total, first, step, len(offsets))
        for offset in offsets[1:]:
            place = code.append(arith.AddiOp(first, code.constants.index(offset)))
            total = self._both(tree, total, code.append(memref.LoadOp.get(scratch, [place])))
        return total

    def _first(self, tree: Tree) -> SSAValue:
        """The number of the first thread that contributes to the same cell."""
        code = self.code
        total: SSAValue | None = None
        for digit, factor in tree.first():
            value = code.digit(digit)
            if factor > 1:
                value = code.append(arith.MuliOp(value, code.constants.index(factor)))
            total = value if total is None else code.append(arith.AddiOp(total, value))
        return code.constants.index(0) if total is None else total

    def _sum(self, tree: Tree, start: SSAValue, first: SSAValue, step: int, count: int) -> SSAValue:
        """`start` combined with the results of `count - 1` threads, at multiples of `step` after `first`."""
        code = self.code
        if count == 1:
            return start
        lower, upper, each = [code.constants.index(v) for v in (step, count * step, step)]
        with code.block(IndexType(), start.type) as block:
            place = code.append(arith.AddiOp(first, block.args[0]))
            other = code.append(memref.LoadOp.get(self.scratch[tree], [place]))
            code.builder.insert(scf.YieldOp(self._both(tree, block.args[1], other)))
        return code.append(scf.ForOp(lower, upper, each, (start,), Region(block)))

    def _add(self, tree: Tree, value: SSAValue) -> None:
        """Add a result to its cell: every thread to its own cell, or one thread to a shared cell."""
        code, leaf = self.code, tree.leaf
        if leaf.output.array.buffer in code.own:
            conditions = [code.below(test) for test in tree.with_cells()] if tree.kept else []
        else:
            conditions = [code.below(test) for test in tree.only_one()] + self._guards(tree)
        with code.where(conditions) if conditions else nullcontext():
            place, index = code.memory(leaf.output, leaf), code.position(leaf.output, leaf)
            if leaf in self.atomics:
                code.builder.insert(atomic_rmw(leaf, value, place, index))
                return
            old = code.append(memref.LoadOp.get(place, index))
            code.builder.insert(memref.StoreOp.get(self._both(tree, value, old), place, index))

    def _guards(self, tree: Tree) -> list[SSAValue]:
        if [] in tree.guards:
            return []
        pieces = [self.code.condition(piece) for piece in tree.guards]
        never = self.code.append(arith.ConstantOp.from_int_and_width(0, 1))
        return [reduce(lambda one, other: self.code.append(arith.OrIOp(one, other)), pieces)] if pieces else [never]

    def _store(self, value: SSAValue, place: SSAValue, index: SSAValue) -> None:
        self.code.builder.insert(memref.StoreOp.get(value, place, [index]))

"""Reduction trees: threads of a block that accumulate into one cell.

Each thread accumulates into a partial result of its own, in registers. When the outermost scope of such threads ends,
warps combine theirs by butterflies of shuffles, blocks in shared memory, and the result is added to the cell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from math import prod

from pdojo.backends.c.code import variable
from pdojo.backends.c.expressions import strip
from pdojo.backends.c.names import Names
from pdojo.backends.c.values import apply, literal
from pdojo.backends.gpu.device_code import DeviceCode
from pdojo.backends.gpu.launches import Launch, reduced_by, threads_of
from pdojo.backends.walk import describe
from pdojo.dialect.affine import Expr, const, var
from pdojo.dialect.attributes import Mapping
from pdojo.dialect.functions import identity_value
from pdojo.dialect.view.nest import Constant, Leaf, Scope
from pdojo.errors import LoweringError


@dataclass(frozen=True, eq=False)
class Tree:
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
    def shared(self) -> str:
        """The name of the array in shared memory, for trees of several warps."""
        return f"{self.name}s"

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


class TreeText:
    """Prints the trees of a launch."""

    def __init__(self, found: Launch, code: DeviceCode, names: Names) -> None:
        self.launch, self.code = found, code
        self.trees = _trees(found, names)
        self.shuffles = False
        """Whether threads exchange registers."""

    @property
    def scratch(self) -> list[tuple[str, str]]:
        """Element type and name of the arrays in shared memory, each with an element per thread."""
        across = [t for t in self.trees if any(s.mapping is Mapping.BLOCK for s in t.reduced)]
        return [(t.leaf.output.array.dtype, t.shared) for t in across]

    def of(self, leaf: Leaf) -> Tree | None:
        """The tree that a statement adds to; None if its cells are a thread's own."""
        return next((t for t in self.trees if t.leaf is leaf), None)

    def partial(self, tree: Tree) -> str:
        """The thread's partial result of the present cell."""
        return tree.name if tree.size == 1 else f"{tree.name}[{self.code.index(tree.cell)}]"

    def begin(self, tree: Tree) -> None:
        """Declare the partial results of a thread: neutral."""
        leaf = tree.leaf
        dtype = leaf.output.array.dtype
        assert leaf.accumulate is not None
        neutral = -0.0 if leaf.accumulate == "arith.addf" else identity_value(leaf.accumulate, dtype)
        value, kind = strip(literal(Constant(neutral, dtype))), self.code.spelling.types[dtype]
        if tree.size == 1:
            self.code.line(f"{kind} {tree.name} = {value};")
            return
        self.code.line(f"{kind} {tree.name}[{tree.size}];")
        self.code.unrolled(tree.size)
        with self.code.block(f"for (int k = 0; k < {tree.size}; k++)"):
            self.code.line(f"{tree.name}[k] = {value};")

    def end(self, tree: Tree) -> None:
        """Combine the partial results of the threads, and add them to the cells."""
        with self.code.block("") if tree.kept else nullcontext():
            for scope in tree.kept:
                self.code.thread_variable(scope, self.launch)
            self._over_cells(tree, list(tree.cells))

    def _over_cells(self, tree: Tree, cells: list[Scope]) -> None:
        if cells:
            scope, *rest = cells
            own = variable(scope.depth)
            self.code.unrolled(scope.extent)
            with self.code.block(f"for (int {own} = 0; {own} < {scope.extent}; {own}++)"):
                self._over_cells(tree, rest)
            return
        depth = len(self.code.extents)
        # The variables of all scopes around the statement: those without cells of their own do not occur.
        self.code.extents.extend(s.extent for s in tree.leaf.chain[depth:])
        lonely = {s.depth: 0 for s in tree.leaf.chain[depth:] if s.extent == 1}
        self.code.known.update(lonely)
        self._combine(tree)
        for d in lonely:
            del self.code.known[d]
        del self.code.extents[depth:]

    def _combine(self, tree: Tree) -> None:
        leaf = tree.leaf
        dtype = leaf.output.array.dtype
        assert leaf.accumulate is not None
        part = self.partial(tree)

        def both(one: str, other: str) -> str:
            return strip(apply(self.code.prelude, leaf.accumulate or "", (one, other), (dtype, dtype), dtype))

        for scope in reversed(tree.reduced):
            if scope.mapping is Mapping.WARP:
                self.shuffles = True
                offset = scope.extent // 2
                while offset:
                    other = f"pd_shfl_xor({part}, {offset}, {scope.extent})"
                    self.code.line(f"{part} = {both(part, other)};")
                    offset //= 2
        blocks = [s for s in tree.reduced if s.mapping is Mapping.BLOCK]
        if blocks:
            self._across(tree, blocks, part, both)
        self._add(tree, part, both)

    def _across(self, tree: Tree, blocks: Sequence[Scope], part: str, both: Callable[[str, str], str]) -> None:
        """Combine the partial results of the warps of a block in shared memory; every thread gets the result."""
        outer = threads_of(tree.root.chain[:-1])
        if outer:
            self._check_full(outer)
        if tree.size > 1 or any(s.extent > 1 and s.mapping is Mapping.SEQUENTIAL for s in self._inside(tree.root)):
            self.code.line("__syncthreads();")
        self.code.line(f"{tree.shared}[thread] = {part};")
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
            self.code.line(f"{part} = {tree.shared}[{first or '0'}];")
            if offsets == [k * step for k in range(total)]:
                self.code.unrolled(total)
                with self.code.block(f"for (int k = 1; k < {total}; k++)"):
                    self.code.line(f"{part} = {both(part, f'{tree.shared}[{base}k * {step}]')};")
            else:
                for offset in offsets[1:]:
                    self.code.line(f"{part} = {both(part, f'{tree.shared}[{base}{offset}]')};")

    def _inside(self, scope: Scope) -> tuple[Scope, ...]:
        """The scopes of the launch around a scope."""
        return tuple(s for s in scope.chain[:-1] if s.depth > self.launch.root.depth)

    def _check_full(self, outer: Sequence[Scope]) -> None:
        for scope in outer:
            if self.launch.threads != scope.extent * self.launch.strides[scope] or scope.guard:
                raise LoweringError(
                    f"threads of {describe(scope)} add up in shared memory, but not all threads of the block run it"
                )

    def _add(self, tree: Tree, part: str, both: Callable[[str, str], str]) -> None:
        """Add a result to its cell: every thread to its own, or one thread to memory they share."""
        leaf = tree.leaf
        conditions: list[str] = []
        buffer = leaf.output.array.buffer
        if buffer not in self.code.own:
            conditions += self._only_one(tree)
            conditions += self._guards(tree)
        elif tree.kept:
            conditions += self._within(tree)
        target = self.code.element(leaf.output, leaf)
        dtype = leaf.output.array.dtype
        old = f"({target} != 0)" if dtype == "i1" else target
        with self.code.block(f"if ({' && '.join(conditions)})") if conditions else nullcontext():
            self.code.line(f"{target} = {both(part, old)};")

    def _within(self, tree: Tree) -> list[str]:
        """The threads that have cells: those with an iteration of the root."""
        width = tree.root.extent * self.launch.strides[tree.root]
        outer = threads_of(tree.root.chain[:-1])
        whole = self.launch.strides[outer[-1]] if outer else self.launch.threads
        kept_blocks = any(s.mapping is Mapping.BLOCK for s in tree.kept)
        return [f"thread < {width}"] if width < whole and kept_blocks and not outer else []

    def _only_one(self, tree: Tree) -> list[str]:
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

    def _guards(self, tree: Tree) -> list[str]:
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
                if bound.bounds(self.code.extents)[0] < 0:
                    found.append(bound)
        return [self.code.condition(found)] if found else []


def _trees(found: Launch, names: Names) -> list[Tree]:
    trees: list[Tree] = []
    for leaf in found.leaves:
        reduced = reduced_by(leaf)
        if not reduced:
            continue
        around, index = threads_of(leaf.chain), leaf.output.index
        root = reduced[0]
        inside = leaf.chain[root.depth + 1 :]
        kept = tuple(s for s in inside if s in around and s not in reduced)
        cells = tuple(s for s in inside if s not in around and s.extent > 1 and any(e.uses(s.depth) for e in index))
        name = names.fresh(f"{leaf.output.array.name}_part")
        trees.append(Tree(leaf, root, reduced, kept, cells, name))
    return trees

"""Reduction trees as text."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext

from pdojo.backends.c.code import variable
from pdojo.backends.c.expressions import strip
from pdojo.backends.c.names import Identifiers
from pdojo.backends.c.values import apply, literal
from pdojo.backends.gpu.atomic_text import helper_of
from pdojo.backends.gpu.device_code import DeviceCode
from pdojo.backends.gpu.launches import Launch
from pdojo.backends.gpu.trees import Checked, Tree, trees_of
from pdojo.dialect.attributes import Mapping as ScopeMapping
from pdojo.dialect.view.nest import Leaf, Scope


class TreeText:
    """Prints the trees of a launch."""

    def __init__(self, found: Launch, code: DeviceCode, names: Identifiers, atomics: Mapping[Leaf, str]) -> None:
        """`atomics` has the statements that add the results to the cells by an atomic operation."""
        self.launch, self.code, self.atomics = found, code, atomics
        self.trees = trees_of(found, names)
        self.shuffles = False
        """Whether threads exchange registers by shuffles."""

    @property
    def scratch(self) -> list[tuple[str, str]]:
        """Element type and name of the arrays in shared memory, which have one element per thread."""
        return [(t.dtype, t.shared) for t in self.trees if t.blocks]

    def of(self, leaf: Leaf) -> Tree | None:
        """The tree that a statement adds to; None if each thread has its own cells."""
        return next((t for t in self.trees if t.leaf is leaf), None)

    def partial(self, tree: Tree) -> str:
        """The thread's partial result of the current cell."""
        return tree.name if tree.size == 1 else f"{tree.name}[{self.code.index(tree.cell)}]"

    def begin(self, tree: Tree) -> None:
        """Declare a thread's partial results, with the neutral element."""
        value, kind = strip(literal(tree.neutral)), self.code.spelling.types[tree.dtype]
        if tree.size == 1:
            self.code.line(f"{kind} {tree.name} = {value};")
            return
        self.code.line(f"{kind} {tree.name}[{tree.size}];")
        self.code.unrolled(tree.size)
        with self.code.block(f"for (int k = 0; k < {tree.size}; k++)"):
            self.code.line(f"{tree.name}[k] = {value};")

    def end(self, tree: Tree, checked: Checked) -> None:
        """Combine the partial results of the threads, and add them to the cells.

        All threads of the block reach this code if they add up in shared memory. Inside `checked()`, appended code runs
        only in threads that have an iteration of the scopes around the tree.
        """
        with self.code.block("") if tree.kept else nullcontext():
            for scope in tree.kept:
                self.code.thread_variable(scope, self.launch)
            self._over_cells(tree, list(tree.cells), checked)

    def _over_cells(self, tree: Tree, cells: list[Scope], checked: Checked) -> None:
        if cells:
            scope, *rest = cells
            own = variable(scope.depth)
            self.code.unrolled(scope.extent)
            with self.code.block(f"for (int {own} = 0; {own} < {scope.extent}; {own}++)"):
                self._over_cells(tree, rest, checked)
            return
        depth = len(self.code.extents)
        # Variables of all scopes around the statement; variables that index no cell do not occur.
        self.code.extents.extend(s.extent for s in tree.leaf.chain[depth:])
        lonely = {s.depth: 0 for s in tree.leaf.chain[depth:] if s.extent == 1}
        self.code.known.update(lonely)
        self._combine(tree, checked)
        for d in lonely:
            del self.code.known[d]
        del self.code.extents[depth:]

    def _both(self, tree: Tree, one: str, other: str) -> str:
        return strip(apply(self.code.prelude, tree.accumulate, (one, other), (tree.dtype, tree.dtype), tree.dtype))

    def _combine(self, tree: Tree, checked: Checked) -> None:
        part = self.partial(tree)
        for scope in reversed(tree.reduced):
            if scope.mapping is ScopeMapping.WARP:
                self.shuffles = True
                for offset in tree.offsets:
                    other = f"pd_shfl_xor({part}, {offset}, {scope.extent})"
                    self.code.line(f"{part} = {self._both(tree, part, other)};")
        if tree.blocks:
            if tree.reuses_scratch:
                self.code.line("__syncthreads();")
            self.code.line(f"{tree.shared}[thread] = {part};")
            self.code.line("__syncthreads();")
        with checked():
            if tree.blocks:
                self._across(tree, part)
            self._add(tree, part)

    def _across(self, tree: Tree, part: str) -> None:
        """Combine the warps' partial results, which are in shared memory; every thread gets the result."""
        first = " + ".join(f"{d.text} * {factor}" if factor > 1 else d.text for d, factor in tree.first())
        offsets = tree.contributors()
        total = len(offsets)
        step = offsets[1] if total > 1 else 1
        with self.code.block(""):
            base = f"{first} + " if first else ""
            self.code.line(f"{part} = {tree.shared}[{first or '0'}];")
            if offsets == [k * step for k in range(total)]:
                self.code.unrolled(total)
                with self.code.block(f"for (int k = 1; k < {total}; k++)"):
                    other = f"{tree.shared}[{base}k * {step}]"
                    self.code.line(f"{part} = {self._both(tree, part, other)};")
            else:
                for offset in offsets[1:]:
                    self.code.line(f"{part} = {self._both(tree, part, f'{tree.shared}[{base}{offset}]')};")

    def _add(self, tree: Tree, part: str) -> None:
        """Add a result to its cell: every thread to its own cell, or one thread to a shared cell."""
        conditions: list[str] = []
        if tree.leaf.output.array.buffer not in self.code.own:
            conditions += [test.text for test in tree.only_one()]
            conditions += self._guards(tree)
        elif tree.kept:
            conditions += [test.text for test in tree.with_cells()]
        target = self.code.element(tree.leaf.output, tree.leaf)
        old = f"({target} != 0)" if tree.dtype == "i1" else target
        atomic = self.atomics.get(tree.leaf)
        with self.code.block(f"if ({' && '.join(conditions)})") if conditions else nullcontext():
            if atomic is not None:
                self.code.line(f"{helper_of(atomic)}(&{target}, {part});")
            else:
                self.code.line(f"{target} = {self._both(tree, part, old)};")

    def _guards(self, tree: Tree) -> list[str]:
        pieces = [self.code.condition(piece) or "true" for piece in tree.guards]
        if "true" in pieces:
            return []
        return pieces if len(pieces) == 1 else [f"({' || '.join(f'({piece})' for piece in pieces) or 'false'})"]

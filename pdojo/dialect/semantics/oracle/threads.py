"""Private copies of a buffer in blocks and threads of a graphics processor, and the copies that a statement touches.

Shared memory lasts for one iteration of the innermost grid scope. So do registers and stack, of which every thread has
its own copy to read and write. Outside of `:w` (or `:b`) scopes every thread of the warp (of the block) runs a
statement; the adversary lets any of them read. A sum over threads into a cell that they do not index is a tree: every
thread gets the result. An instruction of a warp reads and writes each element in the thread that has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from pdojo.dialect.affine import Atom, Expr, Lookup, Size
from pdojo.dialect.attributes import Mapping, Memory
from pdojo.dialect.machines.collectives import Collectives, Held, collectives_of
from pdojo.dialect.view.nest import Access, Buffer, Leaf, Nest, Scope
from pdojo.dialect.view.storage import accesses_of

Ints = NDArray[np.int64]

_LEVELS = (Mapping.BLOCK, Mapping.WARP)


def evaluate(expression: Expr, ivs: Sequence[Ints], rows: int) -> Ints:
    """The values of an expression, one per row."""
    total: Ints = np.full(rows, expression.constant, np.int64)
    for atom, coefficient in expression.terms:
        total += _value(atom, ivs, rows) * coefficient
    return total


def _value(atom: Atom, ivs: Sequence[Ints], rows: int) -> Ints:
    if isinstance(atom, int):
        return ivs[atom]
    if isinstance(atom, Size):
        atom.of(())
    if isinstance(atom, Lookup):
        entries = np.asarray(atom.table.known.entries, np.int64)
        return entries[np.clip(evaluate(atom.operands[0], ivs, rows), 0, len(entries) - 1)]
    return evaluate(atom.numerator, ivs, rows) // atom.divisor


class ThreadCopies:
    """The copies of one buffer that is not on the heap."""

    def __init__(self, nest: Nest, buffer: Buffer) -> None:
        leaves = [leaf for leaf, _ in accesses_of(nest, buffer)]
        self.launches = list(dict.fromkeys(s for leaf in leaves if (s := _launch(leaf)) is not None))
        self.collectives: Collectives = collectives_of(nest)
        held = self.collectives.held(nest, buffer)
        self.held = held if isinstance(held, Held) else None
        """The way in which a warp holds a tile of the buffer; None if none does."""
        self.counts = [max(map(self._threads, leaves, [level] * len(leaves))) for level in _LEVELS]
        """Threads of a block and of a warp that have copies."""
        if buffer.memory is Memory.SHARED:
            self.counts = [1 for _ in _LEVELS]

    def own(self, access: Access, leaf: Leaf, ivs: Sequence[Ints], rows: int) -> list[Ints]:
        """The copy that each row reads or writes: the launch's iteration, the thread in the block and in the warp."""
        launch = _launch(leaf)
        number = np.zeros(rows, np.int64)
        if launch is not None:
            first = 1 + sum(prod(s.extent for s in one.chain) for one in self.launches[: self.launches.index(launch)])
            number = _number(launch.chain, ivs, rows) + first
        columns = [number]
        random = np.random.default_rng(leaf.order)
        for level, count in zip(_LEVELS, self.counts, strict=True):
            scopes = self._scopes(leaf, level)
            thread = self._number(access, level)
            if thread is not None and count > 1:
                columns.append(_number(scopes, ivs, rows) * thread[0] + evaluate(thread[1], ivs, rows))
            elif scopes and count > 1:
                columns.append(_number(scopes, ivs, rows))
            elif access is leaf.output or launch is None:
                columns.append(np.zeros(rows, np.int64))
            else:
                columns.append(random.integers(0, count, rows))
        return columns

    def others(self, access: Access, leaf: Leaf, own: Sequence[Ints]) -> Iterator[list[Ints]]:
        """The other copies that the write of each row changes."""
        launch, *threads = own
        if _launch(leaf) is None:
            return
        reach = [
            count if self._reaches_all(access, leaf, level) else 1
            for level, count in zip(_LEVELS, self.counts, strict=True)
        ]
        for steps in product(*(range(n) for n in reach)):
            if any(steps):
                yield [launch, *((t + s) % n for t, s, n in zip(threads, steps, self.counts, strict=True))]

    def _number(self, access: Access, level: Mapping) -> tuple[int, Expr] | None:
        """How many warps, or threads of a warp, hold an instruction's operand, and which one an element.

        None for other accesses.
        """
        spread = self.collectives.spreads.get(access)
        numbers = () if spread is None else spread.numbers
        if level is Mapping.WARP:
            return numbers[-1] if numbers else None
        return numbers[0] if len(numbers) > 1 else None

    def _threads(self, leaf: Leaf, level: Mapping) -> int:
        found = self.collectives.of(leaf)
        together = 1
        if found is not None:
            warps = found.intrinsic.warps
            together = found.intrinsic.threads // warps if level is Mapping.WARP else warps
        return together * prod(s.extent for s in self._scopes(leaf, level))

    def _scopes(self, leaf: Leaf, level: Mapping) -> list[Scope]:
        """The thread scopes of a level around a statement; block scopes inside a warp that holds a tile are its own."""
        is_single = self.held is not None and self.collectives.of(leaf) is None
        warp = self.held.warp(leaf.chain) if self.held is not None and is_single else ()
        if warp and level is Mapping.WARP:
            return list(warp)
        return [s for s in leaf.chain if s.mapping is level and s not in warp]

    def _reaches_all(self, access: Access, leaf: Leaf, level: Mapping) -> bool:
        if self._number(access, level) is not None:
            return False
        scopes = self._scopes(leaf, level)
        indexed = any(e.uses(s.depth) for s in scopes for e in access.index)
        return not scopes or (leaf.accumulate is not None and not indexed)


def _launch(leaf: Leaf) -> Scope | None:
    """The innermost grid scope around a statement."""
    return next((s for s in reversed(leaf.chain) if s.mapping is Mapping.GRID), None)


def _number(scopes: Sequence[Scope], ivs: Sequence[Ints], rows: int) -> Ints:
    number = np.zeros(rows, np.int64)
    for scope in scopes:
        number = number * scope.extent + ivs[scope.depth]
    return number

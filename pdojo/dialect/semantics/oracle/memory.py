"""Numbering of the memory of a program: the cell that each access of an instance touches.

With storage `elements`, every array has memory of its own and a place is an element. With storage `cells`, arrays of a
buffer share its memory, and reused dimensions take the slots of `pdojo.dialect.view.storage`. A buffer with a reused
dimension that a threaded scope indexes has one copy per iteration of that scope: it lives on the stack of the thread,
so no value survives the iteration and no code outside can see it. Buffers outside the heap have further copies, one per
block or thread of a graphics processor (`threads.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdojo.dialect.attributes import Memory as Location
from pdojo.dialect.semantics.oracle.threads import ThreadCopies, evaluate
from pdojo.dialect.view.nest import Access, Array, Buffer, Leaf, Nest, Scope
from pdojo.dialect.view.storage import accesses_of, physical_index
from pdojo.errors import InvalidKernel

Ints: TypeAlias = NDArray[np.int64]


@dataclass(eq=False)
class Touch:
    """The cells that one access of a statement touches in each row; `seal` numbers them."""

    array: Array
    columns: list[Ints]
    """Columns of one value per row, which together identify the cell within the run."""
    cells: Ints
    copies: list[Touch] = field(default_factory=list["Touch"])
    """The cells in other threads' copies that a write also changes."""


class CheckedMemory:
    """Cells `0 .. size`, in runs: one run per array (elements) or per buffer (cells)."""

    def __init__(self, nest: Nest, storage: str) -> None:
        self.nest = nest
        self.elements = storage == "elements"
        self.size = 0
        self.interface: dict[str, slice[int, int, None]] = {}
        """The cells of every interface array, in row-major order."""
        self._private: dict[Buffer, list[Scope]] = {}
        self._threads: dict[Buffer, ThreadCopies] = {}
        self._touches: dict[Array | Buffer, list[Touch]] = {}
        for buffer in nest.buffers:
            if buffer.intent is not None:
                self.interface[buffer.names[0]] = slice(self.size, self.size + prod(buffer.shape))
                self.size += prod(buffer.shape)

    def touch(self, access: Access, leaf: Leaf, ivs: Sequence[Ints], rows: int) -> Touch:
        """The places that an access touches in each row.

        Raises InvalidKernel if an index leaves a dimension that is not reused.
        """
        buffer = access.array.buffer
        index = access.index if self.elements else physical_index(access, leaf.chain)
        columns = [evaluate(e, ivs, rows) for e in index]
        for dimension, values in enumerate(columns):
            folded = buffer.reuse[dimension] and not self.elements
            extent = buffer.shape[dimension]
            if not folded and rows and (values.min() < 0 or values.max() >= extent):
                raise InvalidKernel(
                    f"kernel '{self.nest.name}': an access to array '{access.array.name}' leaves dimension {dimension} "
                    f"(extent {extent}): index {values.min()} to {values.max()}"
                )
        if access.array.intent is not None or (buffer.intent is not None and not self.elements):
            return Touch(access.array, columns, self._interface_cells(buffer, columns, rows))
        if not self.elements and any(buffer.reuse):
            columns.append(self._copy(buffer, leaf, ivs, rows))
        if not self.elements and buffer.memory is not Location.HEAP:
            return self._in_threads(access, leaf, ivs, columns)
        return self._numbered(access, columns, rows)

    def _numbered(self, access: Access, columns: list[Ints], rows: int) -> Touch:
        """A touch whose cells `seal` will number."""
        touch = Touch(access.array, columns, np.zeros(rows, np.int64))
        self._touches.setdefault(access.array if self.elements else access.array.buffer, []).append(touch)
        return touch

    def _in_threads(self, access: Access, leaf: Leaf, ivs: Sequence[Ints], columns: list[Ints]) -> Touch:
        """The touch of memory that each block or thread has a copy of."""
        buffer, rows = access.array.buffer, len(ivs[0]) if ivs else 1
        if buffer not in self._threads:
            self._threads[buffer] = ThreadCopies(self.nest, buffer)
        copies = self._threads[buffer]
        own = copies.own(access, leaf, ivs, rows)
        touch = self._numbered(access, [*columns, *own], rows)
        if access is leaf.output:
            touch.copies = [self._numbered(access, [*columns, *c], rows) for c in copies.others(access, leaf, own)]
        return touch

    def _interface_cells(self, buffer: Buffer, columns: list[Ints], rows: int) -> Ints:
        number: Ints = np.full(rows, 0, np.int64)
        for values, extent in zip(columns, buffer.shape, strict=True):
            number = number * extent + values
        return number + self.interface[buffer.names[0]].start

    def _copy(self, buffer: Buffer, leaf: Leaf, ivs: Sequence[Ints], rows: int) -> Ints:
        """The number of the private copy that each row uses; 0 outside of all threads."""
        if buffer not in self._private:
            self._private[buffer] = private_scopes(self.nest, buffer)
        first = 1
        found: Ints = np.zeros(rows, np.int64)
        for scope in self._private[buffer]:
            if scope in leaf.chain:
                found = number_iterations(scope.chain, ivs) + first
            first += prod(s.extent for s in scope.chain)
        return found

    def seal(self) -> None:
        """Number the cells of temporaries that are touched."""
        for touches in self._touches.values():
            numbers = [touch.cells for touch in touches]
            for column in range(len(touches[0].columns)):
                values = [t.columns[column] for t in touches]
                everything = np.concatenate(values)
                low, span = (int(everything.min()), int(np.ptp(everything)) + 1) if len(everything) else (0, 1)
                numbers = [number * span + (v - low) for number, v in zip(numbers, values, strict=True)]
            places, cells = np.unique(np.concatenate(numbers), return_inverse=True)
            ends = np.cumsum([len(number) for number in numbers])
            for touch, part in zip(touches, np.split(cells, ends[:-1]), strict=True):
                touch.cells = part + self.size
            self.size += len(places)


def private_scopes(nest: Nest, buffer: Buffer) -> list[Scope]:
    """The threaded scopes that index a reused dimension of the buffer, outermost first."""
    found: dict[Scope, None] = {}
    for leaf, access in accesses_of(nest, buffer):
        for expression, reused in zip(access.index, buffer.reuse, strict=True):
            for depth in expression.variables() if reused else ():
                if leaf.chain[depth].mapping.is_threaded:
                    found[leaf.chain[depth]] = None
    return sorted(found, key=lambda scope: scope.depth)


def number_iterations(chain: Sequence[Scope], ivs: Sequence[Ints]) -> Ints:
    """One number per iteration of the innermost scope of `chain`."""
    number: Ints = np.zeros_like(ivs[0])
    for depth, scope in enumerate(chain):
        number = number * scope.extent + ivs[depth]
    return number

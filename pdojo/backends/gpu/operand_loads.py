"""Loads of a warp instruction's operand from memory: as matrices, in vectors, or by elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pdojo.backends.common.addresses import Address, BufferLayout, address_of, known_alignment
from pdojo.backends.gpu.homes import SHARED_ALIGNMENT
from pdojo.dialect.affine import Expr, const
from pdojo.dialect.attributes import Mapping, Memory
from pdojo.dialect.functions import byte_width
from pdojo.dialect.machines.collectives import SpreadAccess
from pdojo.dialect.machines.matrix_load import MatrixLoad, rows_of
from pdojo.dialect.view.nest import Access, Scope

_NOWHERE = const(0)
_MOST_BYTES = 16
"""Largest access of a thread in bytes."""


@dataclass(frozen=True)
class Piece:
    """The consecutive slots of each thread that one instruction loads."""

    slot: int
    slots: int
    place: Address
    """The address of the first element; for matrices, of the row that the calling thread provides."""
    load: MatrixLoad | None = None
    """The instruction that loads matrices, else None."""
    matrices: int = 0


@dataclass(frozen=True)
class MemoryOperand:
    """An operand in memory; the innermost variable, at depth `lane`, is the thread's number in the warp."""

    spread: SpreadAccess
    lane: int
    layout: BufferLayout
    alignment: int
    """Alignment of the buffer's address in bytes."""
    offset: Expr = _NOWHERE
    """Offset of the block's copy of the buffer, in elements."""
    bind: Callable[[Expr], Expr] = lambda expression: expression
    """Substitutes variables whose values are known."""

    @property
    def width(self) -> int:
        """Bytes of an element."""
        return byte_width(self.spread.access.array.dtype)

    def element(self, slot: int) -> Address:
        """The address of the element in a slot of the calling thread."""
        return self._place(self.spread.fragment.element(slot, self.lane, self._around()[1]))

    def pieces(self, loads: Sequence[MatrixLoad]) -> list[Piece]:
        """The instructions that load all slots: as matrices if that takes fewer, else vectors and elements."""
        slots = self.spread.fragment.slots
        places = [self.element(slot) for slot in range(slots)]
        found: list[Piece] = []
        slot = 0
        while slot < slots:
            piece = self._matrices(loads, slot)
            if piece is None or len(self._vectors(places, slot, slot + piece.slots)) == 1:
                piece = self._vectors(places, slot, slot + 1)[0]
            found.append(piece)
            slot += piece.slots
        return found

    def _place(self, element: Sequence[Expr]) -> Address:
        """The address of the element at an index over the variables of the scopes and of the lane."""
        around, extents = self._around()
        index = dict(zip(self.spread.depths, element, strict=True))
        access = self.spread.access
        moved = Access(access.array, tuple(e.substitute(index, extents) for e in access.index))
        place = address_of(moved, self.layout, around)
        return replace(place, linear=place.linear + self.offset)

    def _around(self) -> tuple[list[Scope], list[int]]:
        """The scopes around the access, with the lane innermost, and their extents."""
        chain, threads = self.spread.leaf.chain, self.spread.fragment.threads
        lane = Scope(chain[-1].op, chain[-1], 0, self.lane, threads, Mapping.SEQUENTIAL, ())
        around = [*chain, *(lane for _ in range(self.lane + 1 - len(chain)))]
        return around, [s.extent for s in around]

    def _matrices(self, loads: Sequence[MatrixLoad], slot: int) -> Piece | None:
        """The instruction that loads most slots from `slot` on as matrices; None if no instruction fits."""
        if self.spread.access.array.buffer.memory is not Memory.SHARED:
            return None
        extents = self._around()[1]
        for load in loads:
            for matrices in reversed(load.matrices):
                rows = rows_of(load, self.spread.fragment, self.width, slot, matrices)
                if rows is not None:
                    row = [self._place(element) for element in rows.elements(self.lane, extents)]
                    if self._is_run(row):
                        return Piece(slot, rows.slots, row[0], load, matrices)
        return None

    def _vectors(self, places: Sequence[Address], slot: int, end: int) -> list[Piece]:
        """Loads as vectors and elements of the slots from `slot` to `end`."""
        found: list[Piece] = []
        while slot < end:
            count = _MOST_BYTES // self.width
            while count > 1:
                # The piece must be aligned in the fragment, too.
                inside = places[slot : slot + count]
                if slot % count == 0 and len(inside) == count and self._is_run(inside):
                    break
                count //= 2
            count = max(1, count)
            found.append(Piece(slot, count, places[slot]))
            slot += count
        return found

    def _is_run(self, places: Sequence[Address]) -> bool:
        """Whether addresses are consecutive, and the first one is aligned to the size of all."""
        first = places[0]
        if any((p.exchanges, p.scaled) != (first.exchanges, first.scaled) for p in places):
            return False
        if any(p.linear - first.linear != const(k) for k, p in enumerate(places)):
            return False
        shared = self.spread.access.array.buffer.memory is Memory.SHARED
        base = min(self.alignment, SHARED_ALIGNMENT) if shared else self.alignment
        # Swizzled granules contain whole runs.
        steps = [*(e.factor for e in first.exchanges), *(e.divisor for e in first.scaled)]
        parts = [self.bind(first.linear), *map(const, steps)]
        return all(known_alignment(part, self.width, base) % (len(places) * self.width) == 0 for part in parts)

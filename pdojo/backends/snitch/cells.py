"""Buffers in registers: each element takes a register, or a lane of one."""

from __future__ import annotations

from dataclasses import dataclass, field

from pdojo.backends.common.addresses import BufferLayout, address, bind, layout_of
from pdojo.backends.snitch.values import Value, fresh
from pdojo.dialect.affine import Expr
from pdojo.dialect.attributes import Mapping, Memory
from pdojo.dialect.functions import byte_width
from pdojo.dialect.view.nest import Access, Buffer, Leaf, Nest
from pdojo.dialect.view.storage import accesses_of, physical_index

WORD = 8
"""Bytes of a floating-point register."""


def in_registers(nest: Nest, buffer: Buffer) -> bool:
    """Whether a buffer is in registers: declared so, and indexed only by unrolled scopes and lanes."""
    if buffer.memory is not Memory.REGISTER:
        return False
    for leaf, access in accesses_of(nest, buffer):
        used = {v for e in physical_index(access, leaf.chain) for v in e.variables()}
        scopes = (leaf.chain[v] for v in used)
        if any(s.extent > 1 and s.mapping not in (Mapping.UNROLL, Mapping.VECTOR) for s in scopes):
            return False
    return True


def is_contiguous(expression: Expr, leaf: Leaf, width: int, base: int) -> bool:
    """Whether the accesses of a statement's lanes fill a whole register.

    `expression` is the distance, in elements of `width` bytes, from an address that is a multiple of `base` bytes.
    """
    lanes = leaf.chain[-1]
    if not expression.is_linear or expression.coefficient(lanes.depth) != 1 or base % WORD:
        return False
    if lanes.extent * width != WORD:
        return False
    rest = [c for a, c in expression.terms if a != lanes.depth]
    return all(c * width % WORD == 0 for c in (expression.constant, *rest))


@dataclass
class Cells:
    """The registers of buffers that are in registers."""

    nest: Nest
    known: dict[int, int]
    """Values of the induction variables that are constant at this point, keyed by depth."""
    packed: set[Buffer] = field(default_factory=set[Buffer])
    """Buffers whose registers hold as many elements as fit."""
    _layouts: dict[Buffer, BufferLayout] = field(default_factory=dict[Buffer, BufferLayout])
    _values: dict[tuple[Buffer, int], Value] = field(default_factory=dict[tuple[Buffer, int], Value])

    def position(self, access: Access, leaf: Leaf, lane: int | None = None) -> int:
        """The index of the accessed element, for `lane` if given, else for the known values of variables."""
        buffer = access.array.buffer
        if buffer not in self._layouts:
            self._layouts[buffer] = layout_of(self.nest, buffer)
        known = self.known if lane is None else {**self.known, leaf.chain[-1].depth: lane}
        known = known | {s.depth: 0 for s in leaf.chain if s.extent == 1}
        found = bind(address(access, self._layouts[buffer], leaf.chain), known, leaf.extents)
        assert found.is_constant, access
        return found.constant

    def is_packed(self, access: Access) -> bool:
        """Whether several elements share a register."""
        return access.array.buffer in self.packed

    def register(self, access: Access, position: int) -> Value:
        """The register of an element; in packed buffers, several elements share it."""
        buffer = access.array.buffer
        if buffer in self.packed:
            position //= WORD // byte_width(buffer.dtype)
        key = buffer, position
        if key not in self._values:
            self._values[key] = fresh(buffer.dtype)
        return self._values[key]

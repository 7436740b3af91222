"""The order in which a stream goes through memory, as an address generator counts: bounds, strides, repeats."""

from __future__ import annotations

from dataclasses import dataclass

from pdojo.dialect.affine import Expr, const
from pdojo.dialect.attributes import Mapping
from pdojo.dialect.functions import byte_width
from pdojo.dialect.nest import Access, Leaf, Nest, Scope
from pdojo.dialect.storage import physical_index, physical_shape


@dataclass(frozen=True, slots=True)
class Pattern:
    """The addresses of a stream, from the one of the first iteration on."""

    bounds: tuple[int, ...]
    """Iterations of the dimensions, outermost first; scopes whose strides fit are one dimension."""
    strides: tuple[int, ...]
    """Bytes between iterations."""
    repeat: int
    """How often each element is read in a row."""


def pattern_of(nest: Nest, leaf: Leaf, access: Access, region: Scope, *, writes: bool, most_repeats: int) -> Pattern:
    """The pattern of an access in a region, whose index is linear in the variables of the region."""
    address = address_in_bytes(nest, access, leaf)
    loops = [(s.extent, address.coefficient(s.depth)) for s in loops_of(leaf, region)]
    merged: list[tuple[int, int]] = []
    for bound, stride in reversed(loops):
        if merged and stride == merged[-1][0] * merged[-1][1]:
            merged[-1] = (merged[-1][0] * bound, merged[-1][1])
        else:
            merged.append((bound, stride))
    repeat = 1
    if merged and merged[0][1] == 0 and merged[0][0] <= most_repeats and not writes:
        repeat = merged.pop(0)[0]
    merged.reverse()
    return Pattern(tuple(b for b, _ in merged), tuple(s for _, s in merged), repeat)


def loops_of(leaf: Leaf, region: Scope) -> list[Scope]:
    """The scopes of a region around a statement, itself among them, that run more than once; not the lanes."""
    inside = leaf.chain[region.depth :]
    return [s for s in inside if s.extent > 1 and s.mapping is not Mapping.VECTOR]


def address_in_bytes(nest: Nest, access: Access, leaf: Leaf) -> Expr:
    """The distance of an element from the start of its buffer."""
    stride, total = byte_width(access.array.dtype), const(0)
    shape = physical_shape(nest, access.array.buffer)
    for index, extent in zip(reversed(physical_index(access, leaf.chain)), reversed(shape), strict=True):
        total = total + index * stride
        stride *= extent
    return total

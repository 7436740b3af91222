"""The order of a stream's addresses, as an address generator counts it: bounds, strides, repeats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pdojo.dialect.affine import Expr, const
from pdojo.dialect.attributes import Mapping as MappingKind
from pdojo.dialect.functions import byte_width
from pdojo.dialect.view.nest import Access, Leaf, Nest, Node, Scope, leaves_of
from pdojo.dialect.view.storage import physical_index, physical_shape

Loops: TypeAlias = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Pattern:
    """The addresses of a stream, relative to the first one."""

    bounds: tuple[int, ...]
    """Iterations of the dimensions, outermost first; scopes with matching strides share a dimension."""
    strides: tuple[int, ...]
    """Bytes between iterations."""
    repeat: int
    """The number of times that each element is read in a row."""


def pattern_of(nest: Nest, leaf: Leaf, access: Access, region: Scope, *, writes: bool, most_repeats: int) -> Pattern:
    """The pattern of an access in a region; its index is linear in the variables of the region."""
    address = address_in_bytes(nest, access, leaf)
    loops = [(s.extent, address.coefficient(s.depth)) for s in loops_of(leaf, region)]
    return condensed(loops, writes=writes, most_repeats=most_repeats)


def condensed(loops: Sequence[tuple[int, int]], *, writes: bool, most_repeats: int) -> Pattern:
    """The pattern of a nest of loops, given by iterations and bytes between them, outermost first."""
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


@dataclass(frozen=True, slots=True)
class Walk:
    """A sequence of addresses in memory."""

    start: Expr
    """The first address, in bytes from the start of the buffer."""
    loops: Loops
    """Iterations and the bytes between them, outermost first."""

    def then(self, other: Walk) -> Walk | None:
        """This walk followed by `other`; None if the two together are no nest of loops."""
        step = other.start - self.start
        if not step.is_constant:
            return None
        (mine, inner), (theirs, others) = _outermost(self.loops), _outermost(other.loops)
        if self.loops == other.loops:
            return Walk(self.start, ((2, step.constant), *self.loops))
        if mine is not None and inner == other.loops and step.constant == mine[0] * mine[1]:
            return Walk(self.start, ((mine[0] + 1, mine[1]), *inner))
        if theirs is not None and others == self.loops and step.constant == theirs[1]:
            return Walk(self.start, ((theirs[0] + 1, theirs[1]), *others))
        if mine is None or theirs is None or inner != others or mine[1] != theirs[1]:
            return None
        return (
            Walk(self.start, ((mine[0] + theirs[0], mine[1]), *inner)) if step.constant == mine[0] * mine[1] else None
        )


def _outermost(loops: Loops) -> tuple[tuple[int, int] | None, Loops]:
    return (loops[0], loops[1:]) if loops else (None, ())


def joint_walk(nest: Nest, node: Node, accesses: Mapping[Leaf, Access]) -> Walk | None:
    """The walk of the accesses of some statements inside a node, one each, in the order of execution.

    None if it is no nest of loops, or an index is not linear. At least one of the statements is inside.
    """
    if isinstance(node, Leaf):
        address = address_in_bytes(nest, accesses[node], node)
        return Walk(address, ()) if address.is_linear else None
    parts: list[Walk] = []
    for child in node.children:
        if not any(leaf in accesses for leaf in leaves_of(child)):
            continue
        part = joint_walk(nest, child, accesses)
        if part is None:
            return None
        parts.append(part)
        # Parts of a row become a row before it is compared with the rows before.
        while len(parts) > 1 and (together := parts[-2].then(parts[-1])) is not None:
            parts[-2:] = [together]
    if len(parts) != 1:
        return None
    (found,) = parts
    stride = found.start.coefficient(node.depth)
    start = found.start.substitute({node.depth: const(0)}, [s.extent for s in node.chain])
    repeats = node.extent > 1 and node.mapping is not MappingKind.VECTOR
    return Walk(start, ((node.extent, stride), *found.loops) if repeats else found.loops)


def loops_of(leaf: Leaf, region: Scope) -> list[Scope]:
    """The scopes from a region down to a statement that run more than once, including the region but not the lanes."""
    inside = leaf.chain[region.depth :]
    return [s for s in inside if s.extent > 1 and s.mapping is not MappingKind.VECTOR]


def address_in_bytes(nest: Nest, access: Access, leaf: Leaf) -> Expr:
    """The distance of an element from the start of its buffer, in bytes."""
    stride, total = byte_width(access.array.dtype), const(0)
    shape = physical_shape(nest, access.array.buffer)
    for index, extent in zip(reversed(physical_index(access, leaf.chain)), reversed(shape), strict=True):
        total = total + index * stride
        stride *= extent
    return total

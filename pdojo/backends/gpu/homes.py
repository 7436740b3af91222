"""The memory of each buffer of a launch: arguments, the caller's workspace, shared memory, a thread's own memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from pdojo.backends.common.addresses import BufferLayout, layout_of
from pdojo.backends.common.placement import rounded
from pdojo.backends.gpu.launches import Launch, holds_grid, root_of
from pdojo.dialect.affine import Expr, const, linear, var
from pdojo.dialect.attributes import Memory
from pdojo.dialect.functions import byte_width
from pdojo.dialect.machines.collectives import Held
from pdojo.dialect.reason import Reason
from pdojo.dialect.rules.block_threads import threads_of
from pdojo.dialect.view.messages import describe_access
from pdojo.dialect.view.nest import Access, Buffer, Leaf, Nest, Scope
from pdojo.dialect.view.storage import accesses_of, copy_depths, physical_index, physical_shape
from pdojo.errors import LoweringError

SHARED_ALIGNMENT = 16
"""Alignment in bytes of arrays in shared memory: the widest access."""
OWN = (Memory.REGISTER, Memory.STACK)
"""Memories that are private to each thread."""
_LISTED = 4096
"""Largest number of iterations that are enumerated to number the cells of a thread."""


@dataclass(frozen=True)
class Copies:
    """Copies of a heap buffer, one for each iteration of certain thread or grid scopes."""

    scopes: tuple[Scope, ...]
    """The scopes that have a copy each; all accesses are inside them."""
    stride: int
    """Distance between consecutive copies, in elements."""

    @property
    def count(self) -> int:
        """Number of copies."""
        return prod(s.extent for s in self.scopes)

    @property
    def offset(self) -> Expr:
        """Distance of an iteration's copy from the first one, in elements."""
        number = const(0)
        for scope in self.scopes:
            number = number * scope.extent + var(scope.depth)
        return number * self.stride


def copies_of(nest: Nest, buffer: Buffer) -> Copies | None:
    """The copies of a buffer; None if there is only one."""
    uses = [(access, leaf.chain) for leaf, access in accesses_of(nest, buffer)]
    depths = copy_depths(uses, buffer.reuse)
    if not depths:
        return None
    layout = layout_of(nest, buffer)
    scopes = tuple(uses[0][1][depth] for depth in depths)
    return Copies(scopes, rounded(layout.size_bytes) // layout.element_bytes)


@dataclass(frozen=True)
class Workspace:
    """Memory of buffers that outlive launches and are not arguments: buffers on the heap, and buffers in registers or
    on the stack outside of grids, where each node is a launch of its own.
    """

    offsets: dict[Buffer, int]
    """Offset of each buffer in bytes."""
    size_bytes: int
    copies: Mapping[Buffer, Copies]
    """Buffers with a copy for each thread or block."""


def workspace_of(nest: Nest) -> Workspace:
    """The workspace of a kernel: the places of the buffers that outlive launches."""
    offsets: dict[Buffer, int] = {}
    copies: dict[Buffer, Copies] = {}
    size = 0
    for buffer in nest.buffers:
        if buffer.op is None or not accesses_of(nest, buffer):
            continue
        if outlives_launches(nest, buffer):
            found = copies_of(nest, buffer)
            if found is not None:
                copies[buffer] = found
            offsets[buffer] = size
            size += rounded(layout_of(nest, buffer).size_bytes) * (1 if found is None else found.count)
    return Workspace(offsets, size, copies)


def outlives_launches(nest: Nest, buffer: Buffer) -> bool:
    """Whether a buffer needs memory that lasts from launch to launch.

    Statements outside of grids are separate launches of one thread, which keeps no private memory in between.
    """
    if buffer.memory is Memory.HEAP:
        return True
    roots = {root_of(leaf) for leaf, _ in accesses_of(nest, buffer)}
    alone = len(roots) == 1 and all(node.parent is None for node in roots)
    return not alone and not any(holds_grid(node) for node in roots)


def shared_offsets(sizes: Sequence[tuple[str, int, int]]) -> tuple[list[int], int]:
    """Byte offsets of arrays in a block's shared memory, from element types, sizes, alignments; and the total size."""
    offsets: list[int] = []
    total = 0
    for dtype, size, alignment in sizes:
        offsets.append(rounded(total, alignment))
        total = offsets[-1] + rounded(size * byte_width(dtype), SHARED_ALIGNMENT)
    return offsets, total


def shared_alignment(found: Launch, buffer: Buffer) -> int:
    """Alignment in bytes of a buffer in shared memory: that of its atoms if a tensor unit itself reads it."""
    atoms = [a.atom.bytes for a in found.collectives.shared.values() if a.access.array.buffer is buffer]
    return max([SHARED_ALIGNMENT, *atoms])


@dataclass(frozen=True)
class Own:
    """The part of a buffer in registers or on the stack that one thread has; its cells are numbered without gaps."""

    layout: BufferLayout
    indices: dict[Access, tuple[Expr, ...]]
    """The index of each access within the thread's part."""


def own_part(found: Launch, nest: Nest, buffer: Buffer) -> Own:
    """The part of a buffer that each thread has in a launch.

    Raises LoweringError if the buffer holds tiles of a warp and some access needs an element of another thread.
    """
    uses = [(leaf, access) for leaf, access in accesses_of(nest, buffer) if leaf in found.leaves]
    held = found.collectives.held(nest, buffer)
    if isinstance(held, Reason):
        raise LoweringError(held.text)
    indices = {access: _part_index(access, leaf, held) for leaf, access in uses}
    count = len(indices[uses[0][1]])
    extents = [1] * count
    for d in range(count):
        ranked = _ranked([(leaf.extents, indices[access][d]) for leaf, access in uses])
        extents[d] = 1 + max(e.bounds(leaf.extents)[1] for (leaf, _), e in zip(uses, ranked, strict=True))
        if held is None:
            whole = physical_shape(nest, buffer)[d]
            plain = all(indices[a][d] == physical_index(a, leaf.chain)[d] for leaf, a in uses)
        else:
            plain = d == count - 1
            whole = held.fragment.slots if plain else extents[d]
        if extents[d] > whole and plain:
            # Bounds of divisions are loose; the index itself is inside the buffer.
            extents[d] = whole
            continue
        for (_, access), expression in zip(uses, ranked, strict=True):
            indices[access][d] = expression
    strides = [prod(extents[d + 1 :]) for d in range(len(extents))]
    layout = BufferLayout(tuple(extents), tuple(strides), byte_width(buffer.dtype))
    return Own(layout, {access: tuple(index) for access, index in indices.items()})


def _part_index(access: Access, leaf: Leaf, held: Held | None) -> list[Expr]:
    """The index in a thread's part, without thread variables; the slot replaces the dimensions of a tile."""
    index = physical_index(access, leaf.chain)
    if held is None:
        return [_without_threads(e, leaf) for e in index]
    slot = held.slot(access, leaf)
    if any(slot.uses(s.depth) for s in threads_of(leaf.chain)):
        raise LoweringError(f"{describe_access(access)} is not in one place for all threads of a warp")
    return [*(_without_threads(e, leaf) for d, e in enumerate(index) if d not in held.dims), slot]


def _without_threads(expression: Expr, leaf: Leaf) -> Expr:
    threads = {s.depth for s in threads_of(leaf.chain)}
    return linear(expression.constant, [(atom, c) for atom, c in expression.terms if atom not in threads])


def _ranked(expressions: Sequence[tuple[tuple[int, ...], Expr]]) -> list[Expr]:
    """Expressions that map the given values to 0, 1, 2, ... without gaps, or else subtract the least value."""
    least = min(e.bounds(extents)[0] for extents, e in expressions)
    shifted = [e - least for _, e in expressions]
    expressions = [(extents, e) for (extents, _), e in zip(expressions, shifted, strict=True)]
    values: set[int] = set()
    for extents, expression in expressions:
        used = sorted(expression.variables())
        if not expression.is_linear or prod(extents[v] for v in used) > _LISTED:
            return shifted
        values.update(expression.evaluate(point) for point in _points(extents, used))
    rank = {value: number for number, value in enumerate(sorted(values))}
    found: list[Expr] = []
    for extents, expression in expressions:
        used = sorted(expression.variables())
        first = expression.evaluate([0] * len(extents))
        fitted = const(rank[first])
        for v in used:
            if extents[v] > 1:
                fitted = fitted + var(v) * (rank[first + expression.coefficient(v)] - rank[first])
        if any(fitted.evaluate(p) != rank[expression.evaluate(p)] for p in _points(extents, used)):
            return shifted
        found.append(fitted)
    return found


def _points(extents: Sequence[int], used: Sequence[int]) -> list[list[int]]:
    points: list[list[int]] = []
    for values in product(*(range(extents[v]) for v in used)):
        point = [0] * len(extents)
        for v, value in zip(used, values, strict=True):
            point[v] = value
        points.append(point)
    return points

"""Windows over packed numbers: half of their steps read pairs that are no word of memory.

A stream moves aligned words, so it delivers the pairs at even offsets of a window only. The other pairs are words of a
copy of the array that begins one element later. The core makes the copy while the floating-point unit computes the
steps at even offsets.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from pdojo.dialect.attributes import Mapping, Memory
from pdojo.dialect.functions import byte_width
from pdojo.dialect.hints import LANE
from pdojo.dialect.rules.lanes import base_alignment, linear_address
from pdojo.dialect.rules.streams import WORD, streams_of, walk_of
from pdojo.dialect.view.nest import Access, Leaf, leaves_of
from pdojo.dialect.view.storage import physical_shape
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.common.loops import collapse_unit_loops, is_copy, isolate, tile
from pdojo.passes.snitch.packing import JOINED

WHY = "pairs at odd places are words of a copy that begins one element later"


class Window(NamedTuple):
    """A sum over windows."""

    steps: str
    """The statement."""
    along: str
    """The loop over the elements of a row of a window."""
    results: int
    """Number of loops over results, which are around all loops over steps."""
    array: str
    """The array with the windows."""


def align_windows(builder: PassBuilder) -> None:
    """Let sums over windows read words only: first at even places, then at odd places of a copy."""
    for identifier in [leaf.id for leaf in builder.nest.leaves]:
        leaf = builder.nest.by_id.get(identifier)
        window = _window(builder, leaf) if isinstance(leaf, Leaf) else None
        if window is not None:
            builder.transact(lambda window=window: _aligned(builder, window))


def spare_port(builder: PassBuilder) -> None:
    """Give the stream with the fewest elements the core's port to memory, in regions before copies by the core."""
    machine = builder.game.machine
    for node in list(builder.nest.children):
        behind = builder.nest.next_sibling(node)
        regions = [s for s in builder.nest.scopes if s.mapping is Mapping.STREAM and s.chain[0] is node]
        if not regions or behind is None or not all(map(_copies_words, leaves_of(behind))):
            continue
        for region in regions:
            streams = streams_of(builder.nest, region, machine)
            least = min(streams, key=lambda s: prod(walk_of(builder.nest, s, region, machine).bounds))
            number = least.leaf.accesses.index(least.access)
            why = "the core copies words through the port of the first stream"
            builder.attempt("hint", f"%{least.leaf.id}", why, kind=LANE, access=number, value=0)


def _copies_words(leaf: Leaf) -> bool:
    """True if the core copies 32 bits from memory to memory."""
    return is_copy(leaf) and all(
        a.array.dtype == JOINED and a.array.buffer.memory is Memory.HEAP for a in leaf.accesses
    )


def _window(builder: PassBuilder, leaf: Leaf) -> Window | None:
    """The window of a sum whose results can be packed, but whose pairs are no words; None if it has none."""
    if leaf.accumulate is None or any(a.array.dtype != JOINED for a in leaf.accesses):
        return None
    lanes, own = builder.lanes(leaf), {v for e in leaf.output.index for v in e.variables()}
    if lanes != 2 or own != set(range(len(own))) or not own:
        return None
    if any(s.mapping is not Mapping.SEQUENTIAL or s.guard for s in leaf.chain):
        return None
    if any(len(s.children) > 1 for s in leaf.chain[len(own) :]):
        return None
    packed = leaf.chain[len(own) - 1]
    if packed.extent % lanes or packed.extent < 2 * lanes or _odd(leaf.output) != {packed.depth}:
        return None
    found = [(a, _odd(a)) for a in leaf.reads if any(e.uses(packed.depth) for e in a.index)]
    if len(found) != 1:
        return None
    ((access, odd),) = found
    inside = sorted(odd - {packed.depth})
    if packed.depth not in odd or len(inside) != 1 or inside[0] < len(own):
        return None
    along = leaf.chain[inside[0]]
    return Window(leaf.id, along.id, len(own), access.array.name) if along.extent > 1 else None


def _odd(access: Access) -> set[int]:
    """The loops whose next iteration is at a distance of one element, if all other distances are even; else none."""
    buffer = access.array.buffer
    address = linear_address(access.index, access.array.shape)
    if any(buffer.reuse) or not address.is_linear or address.constant % 2 or base_alignment(buffer) % WORD:
        return set()
    odd = {v: c for v, c in ((v, address.coefficient(v)) for v in address.variables()) if c % 2}
    return set(odd) if all(c == 1 for c in odd.values()) else set()


def _aligned(builder: PassBuilder, window: Window) -> bool:
    """Make the moves; False if there is no room for the copy."""
    odd = split_steps(builder, window)
    isolate(builder, odd, WHY, depth=window.results)
    builder.make("stage_in", builder.loop(odd, 0), WHY, array=window.array, location="heap", form="box")
    collapse_unit_loops(builder)
    return has_room(builder)


def has_room(builder: PassBuilder) -> bool:
    """True if all arrays fit the memory of the core."""
    buffers = (b for b in builder.nest.buffers if b.memory is not Memory.REGISTER)
    used = sum(prod(physical_shape(builder.nest, b)) * byte_width(b.dtype) for b in buffers)
    return used <= builder.game.machine.cache_bytes[-1]


def split_steps(builder: PassBuilder, window: Window) -> str:
    """Split the steps into the even ones and, after them, the odd ones; returns the statement of the odd ones."""
    along = builder.scope(window.along)
    while along.depth > window.results:
        builder.make("swap_scopes", along.chain[-2], WHY)
        along = builder.scope(window.along)
    last: str | None = None
    if along.extent % 2:
        builder.make("peel_scope", along, WHY, after=along.extent - 1)
        last = _next(builder, window.along)
    tiles = tile(builder, window.along, 2, WHY)
    builder.make("swap_scopes", f"%{tiles.outer}", WHY)
    builder.make("peel_scope", f"%{tiles.inner}", WHY, after=1)
    parts = [tiles.inner, _next(builder, tiles.inner)]
    for place, part in enumerate(parts):
        known = builder.nest.by_id.keys()
        builder.make("collapse_scopes", f"%{part}", WHY)
        parts[place] = next(s.id for s in builder.nest.scopes if s.id not in known)
    if last is not None:
        builder.make("swap_nodes", f"%{parts[1]}", WHY)
        builder.make("unpeel_scope", f"%{parts[0]}", WHY)
    return builder.scope(parts[1]).leaves[0].id


def _next(builder: PassBuilder, identifier: str) -> str:
    found = builder.nest.next_sibling(builder.scope(identifier))
    assert found is not None
    return found.id

"""Hints for arrays beyond the caches: non-temporal stores for outputs, prefetches for inputs."""

from __future__ import annotations

from math import prod

from pdojo.dialect.analysis.hints import streaming_misfit
from pdojo.dialect.analysis.lanes import linear_address
from pdojo.dialect.attributes import Intent, Mapping
from pdojo.dialect.functions import byte_width
from pdojo.dialect.view.nest import Access, Leaf, Scope
from pdojo.search.experts.player import Player


def stream(player: Player) -> None:
    """If the interface arrays exceed the caches, store outputs past the caches and prefetch inputs."""
    nest = player.nest
    footprint = sum(prod(b.shape) * byte_width(b.dtype) for b in nest.buffers if b.op is None)
    if footprint <= player.game.machine.streaming_bytes:
        return
    for identifier in [leaf.id for leaf in nest.leaves]:
        leaf = player.leaf(identifier)
        if leaf.parent is not None and leaf.parent.mapping is Mapping.VECTOR:
            _bypass(player, leaf, leaf.parent)
            _fetch_ahead(player, player.leaf(identifier))


def _bypass(player: Player, leaf: Leaf, lanes: Scope) -> None:
    """Hint non-temporal stores for plain stores of whole vectors to an output that nothing reads."""
    array = leaf.output.array
    # Several writers may be the parts of one peeled loop.
    written_once = all(w.accumulate is None for w in player.nest.writers[array.name])
    # If another array shares the memory, its lines are in a cache.
    unread = array.intent is Intent.OUT and not player.nest.readers[array.name] and len(array.buffer.names) == 1
    if written_once and unread and streaming_misfit(leaf, lanes) is None:
        player.attempt("hint", leaf, "the output exceeds the caches: do not read it first", kind="nontemporal")


def _fetch_ahead(player: Player, leaf: Leaf) -> None:
    """Prefetch the first read of a large input in each iteration of the outermost loop that walks through it."""
    outermost = leaf.chain[0]
    for number, access in enumerate(leaf.accesses[1:], 1):
        array = access.array
        size = prod(array.shape) * byte_width(array.dtype)
        if array.intent is not Intent.IN or size <= player.game.machine.streaming_bytes:
            continue
        if next(r.id for r in player.nest.readers[array.name] if r.chain[0].id == outermost.id) != leaf.id:
            continue
        distance = _bytes_per_iteration(access, outermost.depth)
        if 0 < distance <= player.game.machine.cache_bytes[0] // 2:
            why = "the next iteration's data comes while this one is computed"
            player.attempt("hint", leaf, why, kind="prefetch", access=number, value=distance)


def _bytes_per_iteration(access: Access, depth: int) -> int:
    """Bytes between the addresses of an access in two successive iterations of the scope at `depth`."""
    distance = linear_address(access.index, access.array.shape)
    return distance.coefficient(depth) * byte_width(access.array.dtype)

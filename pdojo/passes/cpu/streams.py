"""Hints for arrays beyond the caches: non-temporal stores for outputs, prefetches for inputs.

The benefit of non-temporal stores, and the best prefetch distance, depend on the memory system and must be measured.
Both are tuning parameters for kernels that do not fit the caches of the cores (`parameters.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from pdojo.backends.calling.arrays import array_bytes
from pdojo.dialect.attributes import Intent, Mapping
from pdojo.dialect.functions import byte_width
from pdojo.dialect.rules.hints import streaming_misfit
from pdojo.dialect.rules.lanes import linear_address
from pdojo.dialect.view.nest import Access, Leaf, Scope, leaves_of
from pdojo.dialect.view.nodes import is_plain
from pdojo.dialect.view.storage import open_strides
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.common.loops import jam, tile
from pdojo.passes.cpu.cost_model import cycles
from pdojo.passes.cpu.squares import runs_along

NONE = "none"
STREAMS = 4
"""Number of places in an array that a thread may read at the same time."""
PAGE = 4096
"""Bytes from which the addresses of an iteration's stores count as separate places."""
AHEAD = (1024, 4096)
"""Prefetch distances in bytes, besides the distance to the next iteration of the outermost scope."""


def stream(builder: PassBuilder) -> None:
    """If the interface arrays exceed the cores' caches, store outputs past the caches and prefetch inputs."""
    machine = builder.game.machine
    footprint = builder.interface_bytes()
    if footprint <= machine.private_cache * machine.threads:
        return
    least = array_bytes(builder.nest, {size.name: size.low for size in builder.nest.sizes.values()})
    _bypass_caches(builder, least)
    _fetch_ahead(builder, is_likely=footprint >= machine.streaming_bytes)


def part_streams(builder: PassBuilder) -> None:
    """Read arrays beyond the caches at several places at a time, so that more misses are in flight.

    A single loop over whole vectors becomes a loop over the parts, inside a loop over the iterations of a part.
    """
    _several_at_once(builder, "address streams", _is_single, _part)


def join_rows(builder: PassBuilder) -> None:
    """Sum up several rows of arrays beyond the caches at a time, if each pass over a row is one statement."""
    _several_at_once(builder, "rows at a time", _is_of_sums, _join_rows)


def _several_at_once(
    builder: PassBuilder,
    question: str,
    fits: Callable[[PassBuilder, Scope], bool],
    cut: Callable[[PassBuilder, str], None],
) -> None:
    """Cut fitting outermost loops into `STREAMS` parts, if the arrays exceed the caches and the answer is not one."""
    machine = builder.game.machine
    if builder.interface_bytes() < machine.streaming_bytes:
        return
    loops = [node for node in builder.nest.children if isinstance(node, Scope) and fits(builder, node)]
    wide = [loop.id for loop in loops if loop.extent % STREAMS == 0 and loop.extent >= STREAMS * machine.threads]
    if not wide or builder.choices.choose(question, ("1", str(STREAMS))) == "1":
        return
    for identifier in wide:
        builder.transact(lambda i=identifier: cut(builder, i))


def _is_of_sums(builder: PassBuilder, root: Scope) -> bool:
    """True for a loop over rows with only vector loops of one statement each, which sum up a large input."""
    loops = [child for child in root.children if isinstance(child, Scope)]
    alone = all(len(s.children) == 1 for child in loops for leaf in child.leaves for s in leaf.chain[1:])
    summed = [leaf for leaf in root.leaves if leaf.accumulate is not None]
    plain = is_plain(root)
    return plain and alone and bool(_first_reads(builder, summed)) and not _stores(root)


def _stores(root: Scope) -> bool:
    """True if a nest stores vectors of an output, and so has enough streams."""
    outputs = (leaf for leaf in root.leaves if leaf.output.array.intent is Intent.OUT)
    return any(_is_vector(leaf, leaf.output) for leaf in outputs)


def _join_rows(builder: PassBuilder, identifier: str) -> None:
    """Cut a loop over rows into groups, and make the rows of a group the innermost loop around every vector."""
    loop = builder.scope(identifier)
    why = f"{STREAMS} rows at a time: more misses are in flight"
    jam(builder, loop, STREAMS, why)


def _part(builder: PassBuilder, identifier: str) -> None:
    loop = builder.scope(identifier)
    why = f"{STREAMS} places at a time"
    parts = tile(builder, loop, loop.extent // STREAMS, why)
    builder.make("swap_scopes", f"%{parts.outer}", why)


def _is_single(builder: PassBuilder, loop: Scope) -> bool:
    """True for a loop whose iterations are a few vectors of arrays beyond the caches, without sums over them."""
    if not is_plain(loop) or not _first_reads(builder, loop.leaves):
        return False
    vectors = all(leaf.parent is not None and leaf.parent.mapping is Mapping.VECTOR for leaf in loop.leaves)
    summed = any(not any(e.uses(loop.depth) for e in leaf.output.index) for leaf in loop.leaves)
    inner = {scope.extent for leaf in loop.leaves for scope in leaf.chain[1:-1]}
    return vectors and not summed and max(inner, default=1) <= STREAMS


def _bypass_caches(builder: PassBuilder, footprint: int) -> None:
    """Hint non-temporal stores where they are legal and profitable; variants: wherever they are legal, or nowhere."""
    stores = [leaf for leaf in builder.nest.leaves if _may_bypass(builder, leaf)]
    streams = _streams(stores)
    likely = [s.id for s in stores if footprint >= builder.game.machine.streaming_from(streams[_loop(s).id])]
    options = ("past the caches", "plain") if likely else ("plain", "past the caches")
    if stores and builder.choices.choose("stores", options) == "past the caches":
        for identifier in likely or [s.id for s in stores]:
            why = "the output exceeds the caches: do not read it first"
            builder.attempt("hint", builder.leaf(identifier), why, kind="nontemporal")


def _streams(stores: Sequence[Leaf]) -> dict[str, int]:
    """Number of separate places that an iteration of each innermost loop stores to."""
    found: dict[str, int] = {}
    for leaf in stores:
        loop = _loop(leaf)
        address = linear_address(leaf.output.index, leaf.output.array.shape)
        width = byte_width(leaf.output.array.dtype)
        apart = (s.extent for s in leaf.chain[loop.depth + 1 :] if address.coefficient(s.depth) * width >= PAGE)
        found[loop.id] = found.get(loop.id, 0) + prod(apart)
    return found


def _loop(leaf: Leaf) -> Scope:
    """The innermost loop around a statement that is neither unrolled nor a vector; else the outermost scope."""
    inside = (s for s in reversed(leaf.chain) if s.mapping in (Mapping.SEQUENTIAL, Mapping.PARALLEL))
    return next(inside, leaf.chain[0])


def _may_bypass(builder: PassBuilder, leaf: Leaf) -> bool:
    """True for a plain store of whole vectors to an output that nothing reads."""
    lanes, array = leaf.parent, leaf.output.array
    if lanes is None or lanes.mapping is not Mapping.VECTOR:
        return False
    # Several writers may be the parts of one peeled loop.
    written_once = all(w.accumulate is None for w in builder.nest.writers[array.name])
    # If another array shares the memory, its lines are in a cache.
    unread = array.intent is Intent.OUT and not builder.nest.readers[array.name] and len(array.buffer.names) == 1
    return written_once and unread and streaming_misfit(leaf, lanes) is None


def _fetch_ahead(builder: PassBuilder, *, is_likely: bool) -> None:
    """Prefetch large inputs in one pass over each row, by one row or by a number of bytes."""
    plans = {root.id: _passes(builder, root) for root in builder.nest.children if isinstance(root, Scope)}
    rows = any(len(passes) > 1 for passes in plans.values())
    if not any(plans.values()):
        return
    options = [*(["next row"] if rows else []), NONE, *map(str, AHEAD)]
    preferred = _preferred(builder, rows=rows, is_likely=is_likely)
    distance = builder.choices.choose("prefetch", (preferred, *options))
    if distance == NONE:
        return
    where = builder.choices.choose("prefetch in", ("the longest pass", "the first pass")) if rows else "the first pass"
    for root, passes in plans.items():
        if passes:
            chosen = max(passes, key=lambda p: p.cost) if where == "the longest pass" else passes[0]
            for leaf, number in chosen.reads:
                _prefetch(builder, root, leaf, number, distance)


def _preferred(builder: PassBuilder, *, rows: bool, is_likely: bool) -> str:
    """The first distance to try: the next row if `rows`, else the measured distance of the machine; "none" if unlikely
    to help.
    """
    if not is_likely:
        return NONE
    if rows and any(open_strides(b) for b in builder.nest.buffers if b.intent is Intent.IN):
        return NONE  # The distance to the next row is not known.
    measured = builder.game.machine.measured.prefetch_distance(builder.game.machine.threads)
    return "next row" if rows else str(measured) if measured in AHEAD else NONE


def _prefetch(builder: PassBuilder, root: str, identifier: str, number: int, distance: str) -> None:
    leaf, scope = builder.leaf(identifier), builder.scope(root)
    access = leaf.accesses[number]
    ahead = _bytes_per_iteration(access, scope.depth) if distance == "next row" else int(distance)
    if 0 < ahead <= builder.game.machine.private_cache // 4:
        why = "the data comes while other data is computed with"
        builder.attempt("hint", leaf, why, kind="prefetch", access=number, value=ahead)


@dataclass(frozen=True, slots=True)
class _Pass:
    """One of the successive parts of a nest in an iteration of its outermost scope."""

    cost: float
    """Estimated cycles of computing."""
    reads: tuple[tuple[str, int], ...]
    """The first read of each large input, by statement and number of the access."""


def _passes(builder: PassBuilder, root: Scope) -> list[_Pass]:
    """The passes of a nest that read large inputs, in order."""
    parts = root.children if len(root.children) > 1 else [root]
    found = ((part, _first_reads(builder, leaves_of(part))) for part in parts)
    machine = builder.game.machine
    return [_Pass(cycles(part, builder.nest, machine), reads) for part, reads in found if reads]


def _first_reads(builder: PassBuilder, leaves: Sequence[Leaf]) -> tuple[tuple[str, int], ...]:
    found: dict[str, tuple[str, int]] = {}
    for leaf in leaves:
        for number, access in enumerate(leaf.accesses[1:], 1):
            if _is_large_input(builder, access) and _is_vector(leaf, access):
                found.setdefault(access.array.name, (leaf.id, number))
    return tuple(found.values())


def _is_vector(leaf: Leaf, access: Access) -> bool:
    """True if the lanes of a statement read neighbouring elements."""
    lanes = leaf.parent
    if lanes is None or lanes.mapping is not Mapping.VECTOR:
        return False
    return runs_along(access, lanes)


def _is_large_input(builder: PassBuilder, access: Access) -> bool:
    size = prod(access.array.shape) * byte_width(access.array.dtype)
    return access.array.intent is Intent.IN and size > builder.game.machine.private_cache


def _bytes_per_iteration(access: Access, depth: int) -> int:
    """Bytes between the addresses of an access in two successive iterations of the scope at `depth`."""
    distance = linear_address(access.index, access.array.shape)
    return distance.coefficient(depth) * byte_width(access.array.dtype)

"""Streams and hardware loops wherever they are legal."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from pdojo.dialect.attributes import Mapping, Memory
from pdojo.dialect.hints import ORDINARY
from pdojo.dialect.rules.streams import FPU_FUNCTIONS, Stream, streams_of, walk_of
from pdojo.dialect.view.nest import Buffer, Node, Scope
from pdojo.dialect.view.storage import physical_shape
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.common.loops import tile
from pdojo.passes.snitch.ordering import order_statements
from pdojo.passes.snitch.packing import is_streamable, lanes_along
from pdojo.passes.snitch.registers import INVARIANT, STRAIGHT, invariants, is_innermost, is_load, stage

ROOM = 25
"""Registers for values from outside in a region: streams and functions need the others."""

LONG = 48
"""Statement instances of straight code that pay for the set-up of streams."""

REGION = "the region has one iteration, the loop is inside"


def stream(builder: PassBuilder, when: Callable[[Scope], bool] = lambda _: True) -> None:
    """Stream the memory accesses of the outermost scopes that allow it and satisfy `when`."""
    _spare_and_stream(builder, when, some=False)


def stream_some(builder: PassBuilder) -> None:
    """Like `stream`; perfect nests with more accesses than there are streams stream some of them."""
    _spare_and_stream(builder, lambda _: True, some=True)


def _spare_and_stream(builder: PassBuilder, when: Callable[[Scope], bool], *, some: bool) -> None:
    for node in list(builder.nest.children):
        if isinstance(node, Scope) and some:
            order_statements(builder, node.id)
        if isinstance(node, Scope):
            _spare_streams(builder, node.id)
    for node in list(builder.nest.children):
        _stream(builder, node.id, when, some=some)


def repeat(builder: PassBuilder) -> None:
    """Turn innermost loops, and loops directly around one of these, into hardware loops."""
    for scope in [s.id for s in builder.nest.scopes]:
        found = builder.find_scope(scope)
        if found is not None and found.mapping is Mapping.SEQUENTIAL and is_innermost(found):
            builder.attempt("frep", found, "the sequencer repeats the instructions, the core goes on")
    for scope in [s.id for s in builder.nest.scopes]:
        found = builder.find_scope(scope)
        if found is not None and found.mapping is Mapping.SEQUENTIAL and _wraps_hardware_loop(found):
            builder.attempt("frep", found, "the sequencer repeats what is around its loop too")


def _wraps_hardware_loop(scope: Scope) -> bool:
    """True if a loop directly contains a hardware loop and other nodes."""
    loops = [c for c in scope.children if isinstance(c, Scope) and c.mapping is Mapping.FREP]
    return scope.extent > 1 and len(scope.children) > 1 and len(loops) == 1


def _spare_streams(builder: PassBuilder, identifier: str) -> None:
    """If a perfect nest needs more streams than exist, move another loop innermost and load the values it shares."""
    most = builder.game.machine.snitch.stream_registers
    loops = _perfect(builder, identifier)
    if not loops or streams_needed(builder, loops[0]) <= most:
        return
    for loop in [s.id for s in loops]:
        if builder.transact(lambda loop=loop: _shared_innermost(builder, loop) <= most):
            return


def _perfect(builder: PassBuilder, identifier: str) -> list[Scope]:
    """The sequential loops of a perfect nest around straight code; empty if the nest is not perfect."""
    found: list[Scope] = []
    node: Node | None = builder.nest.by_id.get(identifier)
    while isinstance(node, Scope):
        if node.mapping is Mapping.SEQUENTIAL:
            found.append(node)
        elif node.mapping not in STRAIGHT:
            return []
        if len(node.children) > 1:
            return found if is_innermost(node) else []
        node = node.children[0]
    return found


def share_innermost(builder: PassBuilder, identifier: str) -> str | None:
    """If a perfect nest needs more streams than exist, move a loop innermost whose iterations share enough reads.

    Returns the loop; None if there is none, or no need. Temporaries of single iterations need no streams.
    """
    most = builder.game.machine.snitch.stream_registers
    loops = _perfect(builder, identifier)
    if len(loops) < 2:
        return None
    accesses = [a for leaf in loops[-1].leaves for a in leaf.accesses if a.array.buffer.op is None]
    results = [leaf.output for leaf in loops[-1].leaves if leaf.output.array.buffer.op is None]
    if len(accesses) <= most or any(leaf.accumulate is not None for leaf in loops[-1].leaves):
        return None
    for loop in loops:
        differ = [a for a in accesses if any(e.uses(loop.depth) for e in a.index)]
        if len(differ) <= most and all(a in differ for a in results):
            return loop.id if builder.transact(lambda loop=loop.id: _move_innermost(builder, loop)) else None
    return None


def _move_innermost(builder: PassBuilder, loop: str) -> None:
    """Move a loop of a perfect nest inwards, up to the straight code."""
    while isinstance(child := builder.scope(loop).children[0], Scope) and child.mapping is Mapping.SEQUENTIAL:
        builder.make("swap_scopes", f"%{loop}", "its iterations share what they read")


def _shared_innermost(builder: PassBuilder, loop: str) -> int:
    """Move a loop of a perfect nest inwards, up to the unrolled loops, and load the values that its iterations share.

    Returns the number of streams still needed.
    """
    _move_innermost(builder, loop)
    for name in invariants(builder.scope(loop)):
        builder.transact(lambda name=name: _load(builder, builder.scope(loop), name, INVARIANT))
    root = builder.nest.by_id[loop].chain[0]
    return streams_needed(builder, root)


def streams_needed(builder: PassBuilder, region: Scope) -> int:
    """Number of streams of a scope, if it is a region."""
    return len(streams_of(builder.nest, region, builder.game.machine))


def _spare_in_loop(builder: PassBuilder, identifier: str) -> None:
    """If an innermost loop needs more streams than exist, load the values that its unrolled statements share."""
    most = builder.game.machine.snitch.stream_registers
    why = "all copies read it: a register instead of a stream"
    for leaf in [leaf.id for leaf in builder.scope(identifier).leaves]:
        for access in builder.leaf(leaf).reads:
            if streams_needed(builder, builder.scope(identifier)) <= most:
                return
            chain = builder.leaf(leaf).chain[builder.scope(identifier).depth + 1 :]
            inside = [s for s in chain if s.mapping is Mapping.UNROLL]
            is_shared = inside and not any(e.uses(s.depth) for s in inside for e in access.index)
            if access.array.buffer.memory is Memory.HEAP and is_shared:
                builder.transact(lambda at=inside[0], name=access.array.name: _load(builder, at, name, why))


def _load(builder: PassBuilder, scope: Scope, name: str, why: str) -> bool:
    """Load a scope's reads of an array into registers before the scope, without a stream."""
    before = set(builder.nest.arrays)
    if not stage(builder, scope.id, name, why):
        return False
    (copy,) = set(builder.nest.arrays) - before
    for writer in [writer.id for writer in builder.nest.writers[copy]]:
        builder.make("hint", f"%{writer}", why, kind="ordinary", access=1)
    return True


def _stream(builder: PassBuilder, identifier: str, when: Callable[[Scope], bool], *, some: bool) -> None:
    scope = builder.find_scope(identifier)
    if scope is None or scope.mapping is not Mapping.SEQUENTIAL or not when(scope):
        return
    some = some and _is_elementwise(builder, scope)
    if is_innermost(scope):
        if scope.extent == 1:
            if _instances(scope) >= LONG:
                builder.transact(lambda: _streamed(builder, identifier, spare=False))
            return
        _spare_in_loop(builder, identifier)
        if not builder.transact(lambda: _wrapped(builder, scope)) and some:
            builder.transact(lambda: _wrapped(builder, scope, some=True))
        return
    if any(
        builder.transact(lambda spare=spare: _streamed(builder, _region(builder, identifier), spare=spare))
        for spare in (False, True)
    ):
        return
    if some and builder.transact(lambda: _streamed(builder, scope.id, spare=False, some=True)):
        return
    for child in scope.children:
        _stream(builder, child.id, when, some=some)


def _instances(scope: Scope) -> int:
    """Number of statement instances, or packed ones, in one run of a scope."""
    chains = (leaf.chain[scope.depth :] for leaf in scope.leaves)
    return sum(prod(s.extent for s in chain if s.mapping is not Mapping.VECTOR) for chain in chains)


def _region(builder: PassBuilder, identifier: str) -> str:
    """The scope to stream: the loop, or a scope around it if it may become a hardware loop around another one."""
    scope = builder.scope(identifier)
    loops = [c for c in scope.children if isinstance(c, Scope) and c.mapping is Mapping.SEQUENTIAL]
    if scope.extent == 1 or len(scope.children) == 1 or len(loops) != 1 or not is_innermost(loops[0]):
        return scope.id
    return tile(builder, scope, scope.extent, REGION).outer


def _streamed(builder: PassBuilder, identifier: str, *, spare: bool, some: bool = False) -> bool:
    """Stream the accesses of a scope that are whole words; the others remain loads and stores.

    `spare`: copies from memory into registers remain loads, too.
    """
    if _registers(builder, builder.scope(identifier)) > ROOM:
        return False
    why = "no stream can load or store it, or none is left"
    for leaf in [leaf.id for leaf in builder.scope(identifier).leaves]:
        for number, access in enumerate(builder.leaf(leaf).accesses):
            if ORDINARY in access.hints.data or access.array.buffer.memory is not Memory.HEAP:
                continue
            if not is_streamable(access, builder.leaf(leaf)) or (spare and is_load(builder.leaf(leaf))):
                builder.make("hint", f"%{leaf}", why, kind="ordinary", access=number)
    if some:
        _choose(builder, identifier, why)
    builder.make("stream", f"%{identifier}", "streams load and store what the scope accesses")
    return streams_needed(builder, builder.scope(identifier)) > 0


def _is_elementwise(builder: PassBuilder, scope: Scope) -> bool:
    """True for a perfect nest around single instructions without sums, in which loads fill the cycles of latencies."""
    is_simple = all(leaf.function is None or leaf.function in FPU_FUNCTIONS for leaf in scope.leaves)
    return is_simple and all(leaf.accumulate is None for leaf in scope.leaves) and bool(_perfect(builder, scope.id))


def _choose(builder: PassBuilder, identifier: str, why: str) -> None:
    """Leave accesses to loads and stores until the streams suffice: walks of too many loops, then the shortest ones."""
    machine = builder.game.machine

    def rank(stream: Stream) -> tuple[bool, int]:
        bounds = walk_of(builder.nest, stream, builder.scope(identifier), machine).bounds
        return len(bounds) <= machine.snitch.stream_dims, prod(bounds)

    while streams_needed(builder, region := builder.scope(identifier)) > machine.snitch.stream_registers:
        streams = streams_of(builder.nest, region, machine)
        least = min(streams, key=rank)
        # Half of the statements that share a stream go through fewer loops.
        members = least.members[len(least.members) // 2 :] if least.others else least.members
        for leaf, access in members:
            builder.make("hint", f"%{leaf.id}", why, kind="ordinary", access=leaf.accesses.index(access))


def _registers(builder: PassBuilder, scope: Scope) -> int:
    """Number of registers with values that a scope shares with its surroundings. Constants can be loaded in it."""
    leaves = scope.leaves
    outside = {a.array.buffer for leaf in builder.nest.leaves if leaf not in leaves for a in leaf.accesses}
    shared = {a.array.buffer for leaf in leaves for a in leaf.accesses} & outside
    values = [b for b in shared if b.memory is Memory.REGISTER]
    return sum(_registers_of(builder, b) for b in values)


def _registers_of(builder: PassBuilder, buffer: Buffer) -> int:
    """Number of registers of a buffer, whose elements may be packed."""
    lanes = max(lanes_along(builder, buffer.names[0], d) for d in range(len(buffer.shape))) if buffer.shape else 1
    return prod(physical_shape(builder.nest, buffer)) // lanes


def _wrapped(builder: PassBuilder, scope: Scope, *, some: bool = False) -> bool:
    """Stream an innermost loop: a scope is either a streaming region or a hardware loop, so the region is around it."""
    tiles = tile(builder, scope, scope.extent, REGION)
    return _streamed(builder, tiles.outer, spare=False, some=some)

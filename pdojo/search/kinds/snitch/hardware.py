"""Registers, streams and hardware loops wherever they are legal."""

from __future__ import annotations

from math import prod

from pdojo.dialect.attributes import Mapping, Memory
from pdojo.dialect.functions import byte_width, is_float
from pdojo.dialect.rules.hints import ORDINARY
from pdojo.dialect.rules.streams import WORD, streams_of
from pdojo.dialect.view.nest import Access, Leaf, Node, Scope
from pdojo.dialect.view.storage import physical_shape
from pdojo.search.kinds.common.builder import PassBuilder
from pdojo.search.kinds.common.loops import tile
from pdojo.search.kinds.snitch.packing import is_word


_STRAIGHT = (Mapping.UNROLL, Mapping.VECTOR)
"""Mappings whose iterations are straight code."""
REGISTERS = 12
"""Most registers for values that all iterations of a loop read."""


def is_streamable(access: Access, leaf: Leaf) -> bool:
    """True if a stream can move what a statement accesses: numbers of 8 bytes, or packed numbers that are a word."""
    lanes = leaf.parent
    if lanes is not None and lanes.mapping is Mapping.VECTOR:
        return is_word(access, leaf, lanes)
    return byte_width(access.array.dtype) == WORD and is_float(access.array.dtype)


def use_registers(builder: PassBuilder) -> None:
    """Keep sums, values that all iterations of a loop read, and temporaries in registers."""
    _locate(builder)
    _keep_sums(builder)
    keep_invariants(builder)
    _locate(builder)


def _locate(builder: PassBuilder) -> None:
    """Put temporaries into registers."""
    # The room in registers is limited, so those that are used come first.
    for name in sorted(builder.temporaries(), key=lambda name: not builder.nest.writers[name]):
        builder.attempt("set_location", name, "only constants index it: registers", location="register")


def stream(builder: PassBuilder) -> None:
    """Stream the memory accesses of the outermost scopes that allow it."""
    for node in list(builder.nest.children):
        if isinstance(node, Scope):
            _spare_streams(builder, node.id)
    for node in list(builder.nest.children):
        _stream(builder, node.id)


def repeat(builder: PassBuilder) -> None:
    """Turn innermost loops, and loops directly around one of these, into hardware loops."""
    for scope in [s.id for s in builder.nest.scopes]:
        found = builder.scope(scope)
        if found is not None and found.mapping is Mapping.SEQUENTIAL and _is_innermost(found):
            builder.attempt("frep", found, "the sequencer repeats the instructions, the core goes on")
    for scope in [s.id for s in builder.nest.scopes]:
        found = builder.scope(scope)
        if found is not None and found.mapping is Mapping.SEQUENTIAL and _wraps_hardware_loop(found):
            builder.attempt("frep", found, "the sequencer repeats what is around its loop too")


def _wraps_hardware_loop(scope: Scope) -> bool:
    """True if a loop directly contains a hardware loop and other nodes."""
    loops = [c for c in scope.children if isinstance(c, Scope) and c.mapping is Mapping.FREP]
    return scope.extent > 1 and len(scope.children) > 1 and len(loops) == 1


def _is_innermost(scope: Scope) -> bool:
    """True if a scope contains only straight code."""
    return all(inner.mapping in _STRAIGHT for leaf in scope.leaves for inner in leaf.chain[scope.depth + 1 :])


def _keep_sums(builder: PassBuilder) -> None:
    """Accumulate into registers: loops that add to one element work on a copy of it."""
    for identifier in [leaf.id for leaf in builder.nest.leaves]:
        leaf = builder.nest.by_id.get(identifier)
        if not isinstance(leaf, Leaf) or leaf.accumulate is None or leaf.output.array.buffer.op is not None:
            continue
        scope = _around_sum(leaf)
        if scope is not None:
            builder.transact(lambda scope=scope, name=leaf.output.array.name: _in_registers(builder, scope, name))


def _in_registers(builder: PassBuilder, scope: Scope, name: str) -> None:
    """Let a scope accumulate one element, or a few unrolled ones, in registers."""
    why = "sums are in registers until they are complete"
    depth = scope.depth
    wraps = len(builder.nest.siblings(scope)) > 1 and scope.parent is not None
    if wraps and scope.parent is not None:
        # Include the zeros before the loop and the statements behind it.
        scope = _scope(builder, tile(builder, scope.parent, 1, why).inner)
    before = set(builder.nest.arrays)
    builder.make("stage_out", scope, why, array=name, location="stack")
    (copy,) = set(builder.nest.arrays) - before
    if wraps:
        builder.transact(lambda: _unwrap(builder, scope, why))
    _settle(builder, copy, depth, why)


def _unwrap(builder: PassBuilder, scope: Scope, why: str) -> None:
    """Remove a loop of one iteration, whose children are scopes."""
    children = [child.id for child in scope.children]
    for place in reversed(range(1, len(children))):
        builder.make("split_scopes", f"%{scope.id}", why, after=place)
    for child in children:
        inner = _scope(builder, child)
        around = inner.chain[-2].id
        is_unrolled = inner.mapping is Mapping.UNROLL
        if is_unrolled:
            builder.make("unmap", inner, why)
        known = builder.nest.by_id.keys()
        builder.make("collapse_scopes", f"%{around}", why)
        if is_unrolled:
            kept = child if child in builder.nest.by_id else next(i for i in builder.nest.by_id if i not in known)
            builder.make("unroll", f"%{kept}", why)


def _settle(builder: PassBuilder, copy: str, depth: int, why: str) -> None:
    """Put an array into registers; the loops from `depth` on that index it become straight code."""
    users = [leaf.id for leaf in (*builder.nest.writers[copy], *builder.nest.readers[copy])]
    packed = any(leaf.parent is not None and leaf.parent.mapping is Mapping.VECTOR for leaf in map(builder.leaf, users))
    for user in users:
        leaf = builder.leaf(user)
        accesses = [access for access in leaf.accesses if access.array.name == copy]
        for inner in leaf.chain[depth:]:
            indexes = any(e.uses(inner.depth) for access in accesses for e in access.index)
            if inner.mapping is Mapping.SEQUENTIAL and indexes:
                is_packed = packed and inner is leaf.parent and builder.attempt("vectorize", f"%{inner.id}", why)
                if not is_packed:
                    builder.attempt("unroll", f"%{inner.id}", why)
    builder.make("set_location", copy, why, location="register")


def _scope(builder: PassBuilder, identifier: str) -> Scope:
    found = builder.scope(identifier)
    assert found is not None
    return found


def _around_sum(leaf: Leaf) -> Scope | None:
    """The outermost scope around a sum inside of which only unrolled scopes index the result."""
    own = {v for e in leaf.output.index for v in e.variables()}
    found: Scope | None = None
    for scope in reversed(leaf.chain):
        if scope.depth in own and scope.mapping not in (Mapping.UNROLL, Mapping.VECTOR):
            break
        found = scope
    return found


def keep_invariants(builder: PassBuilder) -> None:
    """Copy the values that all iterations of an innermost loop read into registers before the loop."""
    for identifier in [s.id for s in builder.nest.scopes]:
        scope = builder.scope(identifier)
        if scope is None or scope.mapping is not Mapping.SEQUENTIAL or not _is_innermost(scope):
            continue
        why = "all iterations read it: a register instead of a stream"
        for name in _invariants(scope):
            builder.transact(lambda scope=identifier, name=name: _stage(builder, scope, name, why))


def _stage(builder: PassBuilder, identifier: str, name: str, why: str) -> bool:
    """Copy what a scope reads of an array into registers before it; False if these are too many."""
    before = set(builder.nest.arrays)
    builder.make("stage_in", f"%{identifier}", why, array=name, location="stack")
    (copy,) = set(builder.nest.arrays) - before
    if prod(physical_shape(builder.nest, builder.nest.arrays[copy].buffer)) > REGISTERS:
        return False
    _settle(builder, copy, _scope(builder, identifier).depth, why)
    return True


def _invariants(scope: Scope) -> list[str]:
    """Arrays in memory that a loop only reads, by indices independent of the loop."""
    written = {leaf.output.array.name for leaf in scope.leaves}
    found: dict[str, bool] = {}
    for leaf in scope.leaves:
        for access in leaf.reads:
            array = access.array
            if array.buffer.memory is not Memory.REGISTER and array.name not in written:
                fixed = not any(e.uses(scope.depth) for e in access.index)
                found[array.name] = found.get(array.name, True) and fixed
    return [name for name, fixed in found.items() if fixed]


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
        elif node.mapping not in _STRAIGHT:
            return []
        if len(node.children) > 1:
            return found if _is_innermost(node) else []
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
            why = "its iterations share what they read"
            return loop.id if builder.transact(lambda loop=loop.id: _move_innermost(builder, loop, why)) else None
    return None


def _move_innermost(builder: PassBuilder, loop: str, why: str) -> None:
    """Move a loop of a perfect nest inwards, up to the straight code."""
    while isinstance(child := _scope(builder, loop).children[0], Scope) and child.mapping is Mapping.SEQUENTIAL:
        builder.make("swap_scopes", f"%{loop}", why)


def _shared_innermost(builder: PassBuilder, loop: str) -> int:
    """Move a loop of a perfect nest inwards, up to the unrolled loops, and load the values that its iterations share.

    Returns the number of streams still needed.
    """
    _move_innermost(builder, loop, "its iterations share what they read")
    why = "all iterations read it: a register instead of a stream"
    for name in _invariants(_scope(builder, loop)):
        builder.transact(lambda name=name: _load(builder, _scope(builder, loop), name, why))
    root = builder.nest.by_id[loop].chain[0]
    return streams_needed(builder, root)


def streams_needed(builder: PassBuilder, region: Scope) -> int:
    """Number of streams of a scope, if it is a region."""
    return len(streams_of(builder.nest, region, builder.game.machine))


def _spare_in_loop(builder: PassBuilder, identifier: str) -> None:
    """If an innermost loop needs more streams than exist, load the values that its unrolled statements share."""
    most = builder.game.machine.snitch.stream_registers
    why = "all copies read it: a register instead of a stream"
    for leaf in [leaf.id for leaf in _scope(builder, identifier).leaves]:
        for access in builder.leaf(leaf).reads:
            if streams_needed(builder, _scope(builder, identifier)) <= most:
                return
            chain = builder.leaf(leaf).chain[_scope(builder, identifier).depth + 1 :]
            inside = [s for s in chain if s.mapping is Mapping.UNROLL]
            is_shared = inside and not any(e.uses(s.depth) for s in inside for e in access.index)
            if access.array.buffer.memory is Memory.HEAP and is_shared:
                builder.transact(lambda at=inside[0], name=access.array.name: _load(builder, at, name, why))


def _load(builder: PassBuilder, scope: Scope, name: str, why: str) -> bool:
    """Load a scope's reads of an array into registers before the scope, without a stream."""
    before = set(builder.nest.arrays)
    if not _stage(builder, scope.id, name, why):
        return False
    (copy,) = set(builder.nest.arrays) - before
    for writer in [writer.id for writer in builder.nest.writers[copy]]:
        builder.make("hint", f"%{writer}", why, kind="ordinary", access=1)
    return True


def _stream(builder: PassBuilder, identifier: str) -> None:
    scope = builder.scope(identifier)
    if scope is None or scope.mapping is not Mapping.SEQUENTIAL:
        return
    if _is_innermost(scope):
        if scope.extent == 1:
            return
        _spare_in_loop(builder, identifier)
        builder.transact(lambda: _wrapped(builder, scope))
        return
    if any(
        builder.transact(lambda spare=spare: _streamed(builder, identifier, spare=spare)) for spare in (False, True)
    ):
        return
    for child in scope.children:
        _stream(builder, child.id)


def _streamed(builder: PassBuilder, identifier: str, *, spare: bool) -> bool:
    """Stream the accesses of a scope that are whole words; the others remain loads and stores.

    `spare`: copies from memory into registers remain loads, too.
    """
    why = "no stream can load or store it, or none is left"
    for leaf in [leaf.id for leaf in _scope(builder, identifier).leaves]:
        for number, access in enumerate(builder.leaf(leaf).accesses):
            if ORDINARY in access.hints.data or access.array.buffer.memory is not Memory.HEAP:
                continue
            if not is_streamable(access, builder.leaf(leaf)) or (spare and _is_load(builder.leaf(leaf))):
                builder.make("hint", f"%{leaf}", why, kind="ordinary", access=number)
    builder.make("stream", f"%{identifier}", "streams load and store what the scope accesses")
    return streams_needed(builder, _scope(builder, identifier)) > 0


def _is_load(leaf: Leaf) -> bool:
    """True for a plain copy into a register."""
    return leaf.function is None and leaf.accumulate is None and leaf.output.array.buffer.memory is Memory.REGISTER


def _wrapped(builder: PassBuilder, scope: Scope) -> bool:
    """Stream an innermost loop: a scope is either a streaming region or a hardware loop, so the region is around it."""
    tiles = tile(builder, scope, scope.extent, "the region has one iteration, the loop is inside")
    return _streamed(builder, tiles.outer, spare=False)

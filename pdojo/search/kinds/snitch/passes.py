"""The passes for Snitch cores (paper section 4.1).

The greedy pass uses streams and hardware loops wherever they are legal. The heuristic pass first interleaves four
results, which hides the latency of the FPU.
"""

from __future__ import annotations

from math import prod

from pdojo.dialect.attributes import Mapping, Memory
from pdojo.dialect.rules.lanes import Stride, known_alignment, lane_stride
from pdojo.dialect.rules.streams import FPU_FUNCTIONS, WORD, streams_of
from pdojo.dialect.view.nest import Leaf, Node, Scope
from pdojo.search.kinds.common.builder import PassBuilder
from pdojo.search.kinds.common.fusion import CHEAP, recompute
from pdojo.search.kinds.common.greedy import naive
from pdojo.search.kinds.common.loops import drop_unit_loops, flatten, indexing, sink, straighten, tile

UNROLLED = 96
"""Greatest number of statements of an unrolled loop body that no hardware loop repeats."""
COPIES = 4
"""Number of interleaved results: the latency in cycles from an operation to its use."""


def greedy(builder: PassBuilder) -> None:
    """The naive pass, then every hardware move wherever it is legal."""
    _simplify(builder)
    naive(builder)
    use_hardware(builder)


def heuristic(builder: PassBuilder) -> None:
    """Fuse loops, tile each nest's outermost loop by four and unroll the tile innermost; then every hardware move."""
    _simplify(builder)
    builder.exhaust(builder.scopes, "join_scopes", "fused loops keep values in registers")
    _recompute(builder)
    for identifier in [s.id for s in reversed(builder.nest.scopes)]:
        _vectorize(builder, identifier)
    _join_behind_zeros(builder)
    for node in list(builder.nest.children):
        if isinstance(node, Scope):
            _interleave(builder, node.id)
    builder.exhaust(builder.dimensions, "reuse_dims", "the dimension is dead after each iteration: less memory")
    use_hardware(builder)
    _unroll_rest(builder)


def _unroll_rest(builder: PassBuilder) -> None:
    """Unroll short loops of single instructions without hardware loops, and parts of longer ones."""
    for identifier in [s.id for s in reversed(builder.nest.scopes)]:
        scope = builder.scope(identifier)
        if scope is None or scope.mapping is not Mapping.SEQUENTIAL or scope.depth == 0:
            continue
        mappings = {s.mapping for leaf in scope.leaves for s in leaf.chain}
        simple = all(f is None or f in FPU_FUNCTIONS for leaf in scope.leaves for f in (leaf.function, leaf.accumulate))
        if not simple or mappings & {Mapping.STREAM, Mapping.FREP}:
            continue
        each = _instances(scope) // scope.extent
        most = max(n for n in range(1, scope.extent + 1) if scope.extent % n == 0 and (n == 1 or n * each <= UNROLLED))
        if most > 1:
            builder.transact(lambda scope=scope, most=most: _unroll(builder, scope, most))


def _unroll(builder: PassBuilder, scope: Scope, count: int) -> None:
    why = "fewer loops to count, equal loads become one"
    if count < scope.extent:
        scope = _scope(builder, tile(builder, scope, count, why).inner)
    builder.make("unroll", scope, why)


def _instances(scope: Scope) -> int:
    """Statement instances of one run of a scope; packed numbers count once."""
    chains = (leaf.chain[scope.depth :] for leaf in scope.leaves)
    return sum(prod(s.extent for s in chain if s.mapping is not Mapping.VECTOR) for chain in chains)


def _recompute(builder: PassBuilder) -> None:
    """Recompute single-instruction values in the other loops that use them, so that they need no memory."""
    for identifier in [leaf.id for leaf in builder.nest.leaves]:
        leaf = builder.nest.by_id.get(identifier)
        if not isinstance(leaf, Leaf) or leaf.function not in CHEAP or leaf.accumulate is not None:
            continue
        name = leaf.output.array.name
        elsewhere = any(reader.parent is not leaf.parent for reader in builder.nest.readers[name])
        if leaf.output.array.buffer.op is not None and builder.nest.writers[name] == [leaf] and elsewhere:
            builder.transact(lambda leaf=leaf, name=name: recompute(builder, leaf, name))


def _vectorize(builder: PassBuilder, identifier: str) -> None:
    """Pack the numbers of one register along a contiguous loop; sums over it get partial sums."""
    scope = builder.scope(identifier)
    if scope is None or scope.mapping is not Mapping.SEQUENTIAL or _has_lanes(scope):
        return
    lanes = min(builder.lanes(leaf) for leaf in scope.leaves)
    if lanes < 2 or scope.extent % lanes or scope.extent < 2 * lanes:
        return
    accesses = [access for leaf in scope.leaves for access in leaf.accesses]
    strides = {lane_stride(a.index, a.array.shape, scope.depth) for a in accesses}
    if Stride.CONTIGUOUS not in strides or not strides <= {Stride.CONTIGUOUS, Stride.BROADCAST}:
        return
    sums = [leaf for leaf in scope.leaves if not any(e.uses(scope.depth) for e in leaf.output.index)]
    if not sums:
        builder.transact(lambda: _packed(builder, identifier, lanes))
    elif len(scope.children) == 1 and scope.children[0] is sums[0] and sums[0].accumulate is not None:
        alone = all(s.extent % COPIES for s in scope.chain[:-1]) and scope.extent % (COPIES * lanes) == 0
        copies = COPIES if alone else 1
        why = f"{lanes * copies} partial sums, {lanes} in a register"
        builder.transact(lambda: _partial_sums(builder, identifier, lanes, copies, why))


def _has_lanes(scope: Scope) -> bool:
    return any(s.mapping is Mapping.VECTOR for leaf in scope.leaves for s in leaf.chain)


def _packed(builder: PassBuilder, identifier: str, lanes: int) -> bool:
    why = f"{lanes} numbers in a register"
    parts = sink(builder, tile(builder, identifier, lanes, why).inner, why)
    for part in parts:
        builder.make("vectorize", f"%{part}", why)
    return all(_is_aligned(leaf) for part in parts for leaf in _scope(builder, part).leaves)


def _is_aligned(leaf: Leaf) -> bool:
    """True if the packed numbers that a statement accesses are aligned words of memory."""
    lanes = leaf.chain[-1]
    moving = [access for access in leaf.accesses if any(e.uses(lanes.depth) for e in access.index)]
    return not any(known_alignment(access, leaf, lanes) % WORD for access in moving)


def _partial_sums(builder: PassBuilder, identifier: str, lanes: int, copies: int, why: str) -> None:
    scopes, arrays = builder.nest.by_id.keys(), builder.nest.arrays.keys()
    builder.make("split_reduction", f"%{identifier}", why, size=lanes * copies)
    (parts,) = builder.nest.arrays.keys() - arrays
    for loop in indexing(builder, parts):
        if loop not in scopes:
            straighten(builder, loop, lanes, why)


def _join_behind_zeros(builder: PassBuilder) -> None:
    """Join loops separated only by the initialisation of a sum, which can move before both."""
    why = "loops behind it can be fused"
    for identifier in [leaf.id for leaf in builder.nest.leaves]:
        leaf = builder.leaf(identifier)
        while not leaf.reads and isinstance(before := builder.nest.previous_sibling(leaf), Scope):
            if not builder.attempt("swap_nodes", before, why):
                break
            leaf = builder.leaf(identifier)
    builder.exhaust(builder.scopes, "join_scopes", "fused loops keep values in registers")
    builder.exhaust(lambda: builder.nest.leaves, "contract", "a fused multiply-add is one instruction")


def _interleave(builder: PassBuilder, identifier: str) -> None:
    """Interleave four iterations of a nest's outermost loop innermost; a single sum gets four partial sums."""
    scope = builder.scope(identifier)
    if scope is None or scope.mapping is not Mapping.SEQUENTIAL:
        return
    if any(s.mapping is Mapping.UNROLL for leaf in scope.leaves for s in leaf.chain):
        # Its sums are already interleaved.
        return
    only = scope.children[0]
    is_sum = len(scope.children) == 1 and isinstance(only, Leaf) and only.accumulate is not None
    if scope.extent % COPIES == 0:
        if is_sum and not any(e.uses(scope.depth) for leaf in scope.leaves for e in leaf.output.index):
            why = "four partial sums hide the latency of the FPU"
            builder.transact(lambda: _partial_sums(builder, identifier, 1, COPIES, why))
        else:
            builder.transact(lambda: _four_at_a_time(builder, identifier))
        return
    for child in [child.id for child in scope.children]:
        _interleave(builder, child)


def _four_at_a_time(builder: PassBuilder, identifier: str) -> bool:
    why = "four results at a time hide the latency of the FPU"
    tiles = tile(builder, identifier, COPIES, why)
    _stage_sums(builder, tiles.inner)
    parts = sink(builder, tiles.inner, why)
    for part in parts:
        builder.attempt("unroll", f"%{part}", why)
    _cut_temporaries(builder, why)
    return bool(parts)


def _stage_sums(builder: PassBuilder, identifier: str) -> None:
    """Accumulate inside the four iterations into registers, so that the loops can be split."""
    scope = builder.scope(identifier)
    assert scope is not None
    names = dict.fromkeys(
        leaf.output.array.name
        for leaf in scope.leaves
        if leaf.accumulate is not None and leaf.output.array.buffer.op is None
    )
    for name in names:
        why = "sums are in registers until they are complete"
        builder.attempt("stage_out", f"%{identifier}", why, array=name, location="register")


def _cut_temporaries(builder: PassBuilder, why: str) -> None:
    """Reduce the temporaries' dimensions that the tiled loop indexes to four elements."""
    for name in list(builder.temporaries()):
        for dimension, extent in enumerate(builder.nest.arrays[name].shape):
            if extent > COPIES and extent % COPIES == 0:
                builder.transact(lambda name=name, d=dimension: _cut(builder, name, d, why))


def _cut(builder: PassBuilder, name: str, dimension: int, why: str) -> None:
    place = f"{name}:{dimension}"
    builder.make("tile_dim", place, why, size=COPIES)
    builder.make("reuse_dims", place, why)


def _simplify(builder: PassBuilder) -> None:
    builder.exhaust(lambda: builder.nest.leaves, "contract", "a fused multiply-add is one instruction")
    drop_unit_loops(builder)
    flatten(builder)


def use_hardware(builder: PassBuilder) -> None:
    """Use registers, streams and hardware loops wherever they are legal."""
    _keep_sums(builder)
    _keep_invariants(builder)
    for name in list(builder.temporaries()):
        builder.attempt("set_location", name, "only constants index it: registers", location="register")
    for node in list(builder.nest.children):
        if isinstance(node, Scope):
            _spare_streams(builder, node.id)
    for node in list(builder.nest.children):
        _stream(builder, node.id)
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
    return all(
        inner.mapping in (Mapping.UNROLL, Mapping.VECTOR)
        for leaf in scope.leaves
        for inner in leaf.chain[scope.depth + 1 :]
    )


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
    if len(builder.nest.siblings(scope)) > 1 and scope.parent is not None:
        # Include the zeros before the loop and the statements behind it.
        scope = _scope(builder, tile(builder, scope.parent, 1, why).inner)
    before = set(builder.nest.arrays)
    builder.make("stage_out", scope, why, array=name, location="stack")
    (copy,) = set(builder.nest.arrays) - before
    users = [*builder.nest.writers[copy], *builder.nest.readers[copy]]
    packed = any(leaf.parent is not None and leaf.parent.mapping is Mapping.VECTOR for leaf in users)
    for leaf in users:
        for inner in leaf.chain[scope.depth :]:
            if inner.mapping is Mapping.SEQUENTIAL and any(e.uses(inner.depth) for e in leaf.output.index):
                is_lanes = packed and inner is leaf.parent
                builder.attempt("vectorize" if is_lanes else "unroll", f"%{inner.id}", why)
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


def _keep_invariants(builder: PassBuilder) -> None:
    """Copy the values that all iterations of an innermost loop read into registers before the loop."""
    for identifier in [s.id for s in builder.nest.scopes]:
        scope = builder.scope(identifier)
        if scope is None or scope.mapping is not Mapping.SEQUENTIAL or not _is_innermost(scope):
            continue
        for name in _invariants(scope):
            why = "all iterations read it: a register instead of a stream"
            builder.attempt("stage_in", f"%{identifier}", why, array=name, location="register")


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
    if not loops or _streams(builder, loops[0]) <= most:
        return
    for loop in [s.id for s in loops]:
        if builder.transact(lambda loop=loop: _shared_innermost(builder, loop) <= most):
            return


def _perfect(builder: PassBuilder, identifier: str) -> list[Scope]:
    """The sequential loops of a perfect nest, without unrolled ones; empty if the nest is not perfect."""
    found: list[Scope] = []
    node: Node | None = builder.nest.by_id.get(identifier)
    while isinstance(node, Scope):
        if node.mapping is Mapping.SEQUENTIAL:
            found.append(node)
        elif node.mapping is not Mapping.UNROLL:
            return []
        if len(node.children) > 1:
            return found if all(isinstance(child, Leaf) for child in node.children) else []
        node = node.children[0]
    return found


def _shared_innermost(builder: PassBuilder, loop: str) -> int:
    """Move a loop of a perfect nest inwards, up to the unrolled loops, and load the values that its iterations share.

    Returns the number of streams still needed.
    """
    while isinstance(child := _scope(builder, loop).children[0], Scope) and child.mapping is Mapping.SEQUENTIAL:
        builder.make("swap_scopes", f"%{loop}", "its iterations share what they read")
    why = "all iterations read it: a register instead of a stream"
    for name in _invariants(_scope(builder, loop)):
        builder.transact(lambda name=name: _load(builder, _scope(builder, loop), name, why))
    root = builder.nest.by_id[loop].chain[0]
    return _streams(builder, root)


def _streams(builder: PassBuilder, region: Scope) -> int:
    return len(streams_of(builder.nest, region, builder.game.machine))


def _spare_in_loop(builder: PassBuilder, identifier: str) -> None:
    """If an innermost loop needs more streams than exist, load the values that its unrolled statements share."""
    most = builder.game.machine.snitch.stream_registers
    why = "all copies read it: a register instead of a stream"
    for leaf in [leaf.id for leaf in _scope(builder, identifier).leaves]:
        for access in builder.leaf(leaf).reads:
            if _streams(builder, _scope(builder, identifier)) <= most:
                return
            inside = builder.leaf(leaf).chain[_scope(builder, identifier).depth + 1 :]
            is_shared = inside and not any(e.uses(s.depth) for s in inside for e in access.index)
            if access.array.buffer.memory is Memory.HEAP and is_shared:
                builder.transact(lambda at=inside[0], name=access.array.name: _load(builder, at, name, why))


def _load(builder: PassBuilder, scope: Scope, name: str, why: str) -> None:
    """Load a scope's reads of an array into registers before the scope, without a stream."""
    before = set(builder.nest.arrays)
    builder.make("stage_in", scope, why, array=name, location="register")
    (copy,) = set(builder.nest.arrays) - before
    for writer in list(builder.nest.writers[copy]):
        builder.make("hint", writer, why, kind="ordinary", access=1)


def _stream(builder: PassBuilder, identifier: str) -> None:
    """Stream the memory accesses of the outermost scopes that allow it."""
    scope = builder.scope(identifier)
    if scope is None or scope.mapping is not Mapping.SEQUENTIAL:
        return
    why = "streams load and store what the scope accesses"
    if _is_innermost(scope):
        _spare_in_loop(builder, identifier)
        # A scope is either a streaming region or a hardware loop, so a region around a hardware loop is a loop of one
        # iteration.
        builder.transact(lambda: _wrapped(builder, scope, why))
        return
    if builder.attempt("stream", scope, why) or builder.transact(lambda: _beside_scalars(builder, identifier, why)):
        return
    for child in scope.children:
        _stream(builder, child.id)


def _beside_scalars(builder: PassBuilder, identifier: str, why: str) -> bool:
    """Stream a scope, except for reads that all lanes of packed numbers share: these are not whole words."""
    found = False
    for leaf in [leaf.id for leaf in _scope(builder, identifier).leaves]:
        for number, access in enumerate(builder.leaf(leaf).accesses):
            lanes = builder.leaf(leaf).parent
            if number and lanes is not None and lanes.mapping is Mapping.VECTOR:
                is_shared = not any(e.uses(lanes.depth) for e in access.index)
                if access.array.buffer.memory is Memory.HEAP and is_shared:
                    found |= builder.attempt("hint", f"%{leaf}", "all lanes read it", kind="ordinary", access=number)
    return found and builder.attempt("stream", f"%{identifier}", why)


def _wrapped(builder: PassBuilder, scope: Scope, why: str) -> None:
    tiles = tile(builder, scope, scope.extent, "the region has one iteration, the loop is inside")
    builder.make("stream", f"%{tiles.outer}", why)

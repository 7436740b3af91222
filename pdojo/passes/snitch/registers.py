"""Values in registers: sums, intermediate values, and values that all iterations of a loop read."""

from __future__ import annotations

from math import prod

from pdojo.dialect.attributes import Mapping, Memory
from pdojo.dialect.rules.hardware_loops import instructions_of
from pdojo.dialect.rules.streams import streams_of
from pdojo.dialect.view.nest import Leaf, Scope
from pdojo.dialect.view.storage import physical_shape
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.common.loops import tile
from pdojo.passes.snitch.packing import is_streamable, updates

STRAIGHT = (Mapping.UNROLL, Mapping.VECTOR)
"""Mappings whose iterations are straight code."""
INVARIANT = "all iterations read it: a register instead of a stream"
REGISTERS = 16
"""Most registers for values that all iterations of a loop read."""

LONG = 4
"""Most values whose loads take no longer than the set-up of a stream."""


def is_innermost(scope: Scope) -> bool:
    """True if a scope contains only straight code."""
    return all(inner.mapping in STRAIGHT for leaf in scope.leaves for inner in leaf.chain[scope.depth + 1 :])


def use_registers(builder: PassBuilder) -> None:
    """Keep sums, values that all iterations of a loop read, and temporaries in registers."""
    _locate(builder)
    _keep_sums(builder)
    _keep_intermediates(builder)
    keep_invariants(builder)
    _locate(builder)


def _locate(builder: PassBuilder) -> None:
    """Put temporaries into registers."""
    # The number of registers is limited, so used arrays come first.
    for name in sorted(builder.temporaries(), key=lambda name: not builder.nest.writers[name]):
        builder.attempt("set_location", name, "only constants index it: registers", location="register")


def _keep_sums(builder: PassBuilder) -> None:
    """Accumulate into registers: loops that compute one element from its old value work on a copy of it."""
    for identifier in [leaf.id for leaf in builder.nest.leaves]:
        leaf = builder.nest.by_id.get(identifier)
        if not isinstance(leaf, Leaf) or not updates(leaf) or leaf.output.array.buffer.memory is Memory.REGISTER:
            continue
        scope = _around_sum(leaf)
        if scope is not None and _is_kept(builder, leaf, scope):
            builder.transact(lambda scope=scope, name=leaf.output.array.name: _in_registers(builder, scope, name))


def _in_registers(builder: PassBuilder, scope: Scope, name: str) -> None:
    """Let a scope accumulate one element, or a few unrolled ones, in registers."""
    why = "sums are in registers until they are complete"
    depth = scope.depth
    wraps = len(builder.nest.siblings(scope)) > 1 and scope.parent is not None
    if wraps and scope.parent is not None:
        # Include the zeros before the loop and the statements after it.
        scope = builder.scope(tile(builder, scope.parent, 1, why).inner)
    before = set(builder.nest.arrays)
    builder.make("stage_out", scope, why, array=name, location="stack")
    (copy,) = set(builder.nest.arrays) - before
    if wraps:
        _flatten(builder, scope, why)
    _settle(builder, copy, depth, why)


def _flatten(builder: PassBuilder, scope: Scope, why: str) -> None:
    """Remove a loop of one iteration, or let it be straight code."""
    if not builder.transact(lambda: _unwrap(builder, scope, why)):
        builder.attempt("unroll", scope, why)


def _unwrap(builder: PassBuilder, scope: Scope, why: str) -> bool:
    """Remove a loop of one iteration; False if some of its children are statements."""
    if any(isinstance(child, Leaf) for child in scope.children):
        return False
    children = [child.id for child in scope.children]
    for place in reversed(range(1, len(children))):
        builder.make("split_scopes", f"%{scope.id}", why, after=place)
    for child in children:
        inner = builder.scope(child)
        around = inner.chain[-2].id
        is_unrolled = inner.mapping is Mapping.UNROLL
        if is_unrolled:
            builder.make("unmap", inner, why)
        known = builder.nest.by_id.keys()
        builder.make("collapse_scopes", f"%{around}", why)
        if is_unrolled:
            kept = child if child in builder.nest.by_id else next(i for i in builder.nest.by_id if i not in known)
            builder.make("unroll", f"%{kept}", why)
    return True


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


def _around_sum(leaf: Leaf) -> Scope | None:
    """The outermost scope around a sum inside of which only unrolled scopes index the result."""
    own = {v for e in leaf.output.index for v in e.variables()}
    found: Scope | None = None
    for scope in reversed(leaf.chain):
        if scope.depth in own and scope.mapping not in (Mapping.UNROLL, Mapping.VECTOR):
            break
        found = scope
    return found


def _is_kept(builder: PassBuilder, leaf: Leaf, scope: Scope) -> bool:
    """True if a scope uses an element that a statement updates several times, or if its streams do not suffice."""
    own = {v for e in leaf.output.index for v in e.variables()}
    others = (a for other in scope.leaves if other is not leaf for a in other.accesses)
    if any(s.depth not in own for s in leaf.chain[scope.depth :]) or any(a.array is leaf.output.array for a in others):
        return True
    streamed = [
        a
        for other in leaf.chain[0].leaves
        for a in other.accesses
        if a.array.buffer.op is None and is_streamable(a, other) and any(e.uses(other.chain[-1].depth) for e in a.index)
    ]
    return len(streamed) > builder.game.machine.snitch.stream_registers


def _keep_intermediates(builder: PassBuilder) -> None:
    """Keep the values that an innermost loop computes and uses at once in registers; it stores the last one."""
    for identifier in [s.id for s in builder.nest.scopes]:
        scope = builder.find_scope(identifier)
        if scope is None or scope.mapping is not Mapping.SEQUENTIAL or not is_innermost(scope):
            continue
        for name in dict.fromkeys(leaf.output.array.name for leaf in scope.leaves):
            mine = [a for leaf in scope.leaves for a in leaf.accesses if a.array.name == name]
            is_memory = builder.nest.arrays[name].buffer.memory is not Memory.REGISTER
            moves = all(any(e.uses(scope.depth) for e in a.index) for a in mine)
            users = sum(any(a.array.name == name for a in leaf.accesses) for leaf in scope.leaves)
            if is_memory and moves and users > 1 and any(builder.nest.readers[name]):
                builder.transact(lambda scope=identifier, name=name: _keep(builder, scope, name))


def _keep(builder: PassBuilder, identifier: str, name: str) -> None:
    """Let the iterations of a loop write to a copy in registers."""
    why = "values are in registers until they are complete"
    inner = builder.scope(tile(builder, identifier, 1, why).inner)
    depth = inner.depth
    before = set(builder.nest.arrays)
    builder.make("stage_out", inner, why, array=name, location="stack")
    (copy,) = set(builder.nest.arrays) - before
    _flatten(builder, inner, why)
    _settle(builder, copy, depth, why)


def keep_invariants(builder: PassBuilder) -> None:
    """Copy the values that all iterations of an innermost loop read into registers before the loop.

    If there are enough streams, they deliver many values to hardware loops, and all values in perfect nests, which
    would copy them again and again.
    """
    most = builder.game.machine.snitch.stream_registers
    for identifier in [s.id for s in builder.nest.scopes]:
        scope = builder.find_scope(identifier)
        if scope is None or scope.mapping is not Mapping.SEQUENTIAL or not is_innermost(scope):
            continue
        others = (leaf for leaf in scope.chain[0].leaves if leaf not in scope.leaves)
        repeats = scope.depth > 0 and all(map(is_load, others))
        for name in invariants(scope):
            inside = builder.scope(identifier)
            is_long = repeats or (_fits_loop(builder, inside) and prod(builder.nest.arrays[name].shape) > LONG)
            if _is_streamed(inside, name) and (inside.extent == 1 or (is_long and _streams(builder, inside) <= most)):
                continue
            builder.transact(lambda scope=identifier, name=name: stage(builder, scope, name, INVARIANT))


def _fits_loop(builder: PassBuilder, scope: Scope) -> bool:
    """True if a hardware loop can hold the instructions of a loop."""
    return sum(instructions_of(leaf, scope) for leaf in scope.leaves) <= builder.game.machine.snitch.frep_instructions


def is_load(leaf: Leaf) -> bool:
    """True for a plain copy into a register."""
    return leaf.function is None and leaf.accumulate is None and leaf.output.array.buffer.memory is Memory.REGISTER


def _streams(builder: PassBuilder, scope: Scope) -> int:
    return len(streams_of(builder.nest, scope, builder.game.machine))


def _is_streamed(scope: Scope, name: str) -> bool:
    """True if streams can make all of a scope's accesses to an array."""
    accesses = ((a, leaf) for leaf in scope.leaves for a in leaf.accesses if a.array.name == name)
    return all(a.array.buffer.memory is Memory.HEAP and is_streamable(a, leaf) for a, leaf in accesses)


def stage(builder: PassBuilder, identifier: str, name: str, why: str) -> bool:
    """Copy what a scope reads of an array into registers before it; False if these are too many."""
    before = set(builder.nest.arrays)
    if not builder.attempt("stage_in", f"%{identifier}", why, array=name, location="stack"):
        builder.make("stage_in", f"%{identifier}", why, array=name, location="stack", form="box")
    (copy,) = set(builder.nest.arrays) - before
    if prod(physical_shape(builder.nest, builder.nest.arrays[copy].buffer)) > REGISTERS:
        return False
    _settle(builder, copy, builder.scope(identifier).depth, why)
    return True


def invariants(scope: Scope) -> list[str]:
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

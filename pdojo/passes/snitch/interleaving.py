"""Interleaving: several results at a time, innermost, because an addition takes four cycles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import prod

from pdojo.dialect.affine import Expr
from pdojo.dialect.attributes import Mapping, Memory
from pdojo.dialect.rules.streams import FPU_FUNCTIONS
from pdojo.dialect.view.nest import Access, Leaf, Scope
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.common.loops import peel_rest, sink, tile
from pdojo.passes.snitch.hardware import share_innermost
from pdojo.passes.snitch.packing import is_streamable, lanes_along, partial_sums
from pdojo.passes.snitch.registers import REGISTERS
from pdojo.passes.snitch.rests import REST, cut, own_dimensions

COPIES = 4
"""Number of interleaved results: the latency in cycles from an operation to its use."""
SHARED = 8
"""Most interleaved results of short sums, or if they share a value that no stream delivers: one load serves all."""


ODD = (5, 6, 7)
"""Numbers of interleaved results of loops that four does not divide."""
MORE = (9, 10, 11, 13, 14, 15)
"""More such numbers, of statements without sums: in sums, as many registers would be occupied in each step."""


def interleave(builder: PassBuilder, identifier: str, group: int = COPIES) -> None:
    """Interleave several iterations of one of a nest's loops innermost; a single sum gets as many partial sums.

    `group`: the number of iterations, a multiple of four.
    """
    scope = builder.find_scope(identifier)
    if scope is None or scope.mapping is not Mapping.SEQUENTIAL:
        return
    if any(s.mapping is Mapping.UNROLL for leaf in scope.leaves for s in leaf.chain):
        # Its sums are already interleaved.
        return
    only = scope.children[0]
    is_sum = len(scope.children) == 1 and isinstance(only, Leaf) and only.accumulate is not None
    if is_sum and not _has_results(scope):
        why = f"{group} partial sums hide the latency of the FPU"
        if scope.extent >= 2 * group:
            builder.transact(lambda: _partial_sums(builder, identifier, group, why))
        return
    if _is_of_sums(scope) and builder.transact(partial(_one_by_one, builder, identifier, group)):
        return
    shared = share_innermost(builder, identifier)
    if shared is not None:
        scope = builder.scope(shared).chain[scope.depth]
    elif _is_independent(scope, builder.game.machine.snitch.stream_registers):
        return
    # The values that iterations of the innermost loop share are loaded once for all of its iterations.
    most = group if shared is None else max(group, _fitting(builder, scope))
    _interleave_one(builder, [loop for loop in _loops(scope) if loop.id != shared], group, most)


def _fitting(builder: PassBuilder, scope: Scope) -> int:
    """The number of copies of a nest's statements whose values fit registers, and whose code fits a hardware loop."""
    core, leaves = builder.game.machine.snitch, scope.leaves
    temporaries = {a.array.name for leaf in leaves for a in leaf.accesses if a.array.buffer.op is not None}
    accesses = [a for leaf in leaves for a in leaf.accesses if a.array.buffer.op is None]
    values = len(temporaries) + max(0, len(accesses) - core.stream_registers)
    instructions = sum(1 + (leaf.accumulate is not None and not leaf.contracted) for leaf in leaves)
    return max(COPIES, min(REGISTERS // max(1, values), core.frep_instructions // instructions))


def _interleave_one(builder: PassBuilder, loops: Sequence[Scope], group: int, most: int) -> None:
    """Interleave `group`, up to `most`, iterations of the best of nested loops; if none fits, loops inside of them.

    The best one is in no guard, which each copy would check, needs the fewest loads, and leaves no loop over tiles, so
    that streams have fewer dimensions.
    """
    plans = [(loop, _copies(loop, group, most)) for loop in loops]
    ranks = {loop.id: (_is_checked(loop), _loads(loop), loop.extent != copies) for loop, copies in plans}
    for loop, copies in sorted(plans, key=lambda plan: ranks[plan[0].id]):
        if copies > 1 and builder.transact(lambda i=loop.id, n=copies: _several_at_a_time(builder, i, n)):
            return
    if any(loop.extent % group == 0 for loop in loops) or any(map(builder.transact, _odd_plans(builder, loops, group))):
        return
    for child in [child.id for child in loops[-1].children]:
        interleave(builder, child, group)


def _odd_plans(builder: PassBuilder, loops: Sequence[Scope], group: int) -> Iterator[Callable[[], bool]]:
    """The plans for loops of a perfect nest that groups do not divide: five copies or more, or a rest behind them."""
    plain = [loop for loop in loops if not loop.guard and _has_results(loop)]
    for loop in sorted(plain, key=_loads):
        copies = _odd_copies(builder, loop)
        if copies > 1:
            yield partial(_several_at_a_time, builder, loop.id, copies)
    longer = [loop for loop in plain if loop.extent > group]
    for loop in sorted(longer, key=lambda loop: (_loads(loop), loop.extent % group / loop.extent)):
        yield partial(_with_rest, builder, loop.id, loop.depth - loops[0].depth, group)


def _has_results(loop: Scope) -> bool:
    """True if some statement has other results in each iteration of a loop."""
    return any(_moves(leaf, loop) for leaf in loop.leaves)


def _odd_copies(builder: PassBuilder, loop: Scope) -> int:
    """The number of iterations to interleave, more than four, whose code fits a hardware loop; 1 if there is none."""
    if not all(leaf.function is None or leaf.function in FPU_FUNCTIONS for leaf in loop.leaves):
        return 1
    most = builder.game.machine.snitch.frep_instructions // len(loop.leaves)
    counts = ODD if any(leaf.accumulate is not None for leaf in loop.leaves) else ODD + MORE
    return next((n for n in counts if n <= most and loop.extent % n == 0), 1)


def _with_rest(builder: PassBuilder, identifier: str, levels: int, group: int) -> bool:
    """Interleave a group of iterations of a loop, and make the last iterations, which fill none, a nest of their own.

    `levels`: the number of loops around it, up to the outermost one of the perfect nest.
    """
    peel_rest(builder, builder.scope(identifier), group, REST)
    rest = builder.nest.next_sibling(builder.scope(identifier))
    assert isinstance(rest, Scope)
    for _ in range(levels):
        around = builder.scope(identifier).parent
        while around is not None and len(around.children) == 1:
            around = around.parent
        assert around is not None
        builder.make("split_scopes", around, REST, after=1)
    own = own_dimensions(builder, rest.id)
    if not _several_at_a_time(builder, identifier, group):
        return False
    rest = builder.scope(rest.id)
    others = [loop for loop in _loops(rest.chain[rest.depth - levels]) if loop.id != rest.id and loop.extent >= COPIES]
    if others:
        _interleave_one(builder, others, COPIES, COPIES)
    elif rest.extent > 1:
        builder.transact(partial(_several_at_a_time, builder, rest.id, rest.extent))
    for name, dimension in own:
        size = group * lanes_along(builder, name, dimension)
        builder.transact(partial(cut, builder, name, dimension, size, REST))
    return True


def _partial_sums(builder: PassBuilder, identifier: str, count: int, why: str) -> None:
    """Add up by several partial sums; the last terms, which are fewer, come after them."""
    peel_rest(builder, builder.scope(identifier), count, REST)
    partial_sums(builder, identifier, 1, count, why)


def _is_of_sums(scope: Scope) -> bool:
    """True for a loop of several sums over its iterations, without anything else."""
    sums = (isinstance(c, Leaf) and c.accumulate is not None and not _moves(c, scope) for c in scope.children)
    return len(scope.children) > 1 and all(sums)


def _moves(leaf: Leaf, loop: Scope) -> bool:
    """True if a statement has other results in each iteration of a loop."""
    return any(e.uses(loop.depth) for e in leaf.output.index)


def _one_by_one(builder: PassBuilder, identifier: str, group: int) -> bool:
    """Make each of a loop's sums a loop of its own, with partial sums; False if some of them are too short."""
    statements = [child.id for child in builder.scope(identifier).children]
    if builder.scope(identifier).extent < 2 * group:
        return False
    for place in reversed(range(1, len(statements))):
        builder.make("split_scopes", f"%{identifier}", "each sum gets partial sums", after=place)
    for statement in statements:
        loop = builder.leaf(statement).parent
        assert loop is not None
        _partial_sums(builder, loop.id, group, f"{group} partial sums hide the latency of the FPU")
    return True


def _guards_of(loop: Scope) -> set[tuple[Leaf, Expr]]:
    """The guards inside of a loop that depend on it and on other loops, with their statements."""
    found = ((leaf, guard) for leaf in loop.leaves for guard in leaf.guards if guard.uses(loop.depth))
    return {(leaf, guard) for leaf, guard in found if len(guard.variables()) > 1}


def _separates_results(loop: Scope) -> bool:
    """True if all statements have other results in each iteration of a loop."""
    return all(_moves(leaf, loop) for leaf in loop.leaves)


def _is_checked(loop: Scope) -> bool:
    """True if guards depend on a loop and on others around it, one of them too long for straight code."""
    return any(leaf.chain[v].extent > COPIES for leaf, guard in _guards_of(loop) for v in guard.variables())


def _is_independent(scope: Scope, streams: int) -> bool:
    """True if a nest is one instruction on `streams` streams, so that no instruction waits for another one."""
    if len(scope.leaves) > 1:
        return False
    (leaf,) = scope.leaves
    is_one = leaf.accumulate is None and (leaf.function is None or leaf.function in FPU_FUNCTIONS)
    moved = [a for a in leaf.accesses if any(e.uses(s.depth) for e in a.index for s in leaf.chain)]
    return is_one and len(moved) <= streams and all(is_streamable(access, leaf) for access in moved)


def _loops(scope: Scope) -> list[Scope]:
    """A loop and the loops that are the only children, outermost first, as long as all results depend on them."""
    found = [scope]
    while len(found[-1].children) == 1:
        (child,) = found[-1].children
        if not isinstance(child, Scope) or child.mapping is not Mapping.SEQUENTIAL:
            break
        if not all(_moves(leaf, child) for leaf in child.leaves):
            break
        found.append(child)
    return found


def _loads(loop: Scope) -> int:
    """Number of reads that no stream can make and that differ from iteration to iteration of a loop."""
    return sum(any(e.uses(loop.depth) for e in access.index) for access in _unstreamed(loop))


def _unstreamed(loop: Scope) -> list[Access]:
    """The reads of memory, in a loop's innermost statements, that no stream can make."""
    depth = max(len(leaf.chain) for leaf in loop.leaves)
    innermost = [leaf for leaf in loop.leaves if len(leaf.chain) == depth]
    return [
        access
        for leaf in innermost
        for access in leaf.reads
        if access.array.buffer.memory is Memory.HEAP and not is_streamable(access, leaf)
    ]


def _copies(loop: Scope, group: int, most: int) -> int:
    """The number of iterations of a loop to interleave, `group` up to `most`; 1 if they fill no whole groups."""
    if loop.extent % group:
        return 1
    if not all(leaf.function is None or leaf.function in FPU_FUNCTIONS for leaf in loop.leaves):
        # More copies of a function of many instructions than hide the latency need more registers only.
        return group
    if loop.extent % SHARED == 0 and (_shares_loads(loop) or _is_short(loop)):
        return SHARED
    return max(n for n in range(group, max(most, group) + 1, group) if loop.extent % n == 0)


def _shares_loads(loop: Scope) -> bool:
    """True if the iterations of a loop need the same loads, which differ inside of it and are too many to be kept."""
    unstreamed = [access for access in _unstreamed(loop) if not is_kept(access, loop)]
    inside = any(v > loop.depth for access in unstreamed for e in access.index for v in e.variables())
    return inside and not any(e.uses(loop.depth) for access in unstreamed for e in access.index)


def _is_short(loop: Scope) -> bool:
    """True for sums of a few products, whose hardware loops would start again and again, if streams deliver them."""
    steps = [leaf for leaf in loop.leaves if leaf.contracted]
    own = {v for leaf in steps for e in leaf.output.index for v in e.variables()}
    counts = {prod(s.extent for s in leaf.chain if s.depth not in own) for leaf in steps}
    return len(counts) == 1 and COPIES < counts.pop() <= SHARED and not _unstreamed(loop)


def is_kept(access: Access, loop: Scope) -> bool:
    """True if registers can hold all that an access reads, for all iterations of the loops around."""
    around = any(v <= loop.depth for e in access.index for v in e.variables())
    return not around and prod(access.array.shape) <= REGISTERS


def _several_at_a_time(builder: PassBuilder, identifier: str, copies: int) -> bool:
    why = f"{copies} results at a time hide the latency of the FPU"
    loop = builder.scope(identifier)
    is_whole = loop.extent == copies and all(is_kept(access, loop) for access in _unstreamed(loop))
    tiles = None if is_whole else tile(builder, identifier, copies, why)
    parts = sink(builder, identifier if tiles is None else tiles.inner, why)
    if copies % COPIES and not any(len(builder.scope(part).leaves) == 1 for part in parts):
        # The iterations depend on each other.
        return False
    for part in parts:
        builder.attempt("unroll", f"%{part}", why)
        around = builder.scope(part).parent
        if around is not None and around.extent <= COPIES and _guards_of(around) and _separates_results(around):
            builder.attempt("unroll", around, "no copy checks the guard")
    if tiles is not None:
        _cut_temporaries(builder, tiles.outer, copies, why)
    return bool(parts)


def _cut_temporaries(builder: PassBuilder, identifier: str, copies: int, why: str) -> None:
    """Reduce the temporaries' dimensions that the loop over tiles indexes to the elements of one tile."""
    for name in list(builder.temporaries()):
        for dimension, extent in enumerate(builder.nest.arrays[name].shape):
            if not _indexes(builder, identifier, name, dimension):
                continue
            size = copies * lanes_along(builder, name, dimension)
            if extent > size:
                builder.transact(lambda name=name, d=dimension, n=size: cut(builder, name, d, n, why))


def _indexes(builder: PassBuilder, identifier: str, name: str, dimension: int) -> bool:
    """True if a loop indexes a dimension of an array."""
    loop = builder.find_scope(identifier)
    return loop is not None and any(
        access.index[dimension].uses(loop.depth)
        for leaf in loop.leaves
        for access in leaf.accesses
        if access.array.name == name
    )

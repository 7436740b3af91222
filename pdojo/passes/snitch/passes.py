"""The passes for Snitch cores (paper section 4.1).

The greedy pass packs numbers, and uses streams and hardware loops, wherever they are legal. The heuristic pass first
interleaves several results, which hides the latency of the FPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import prod

from pdojo.dialect.attributes import Mapping, Memory
from pdojo.dialect.rules.streams import FPU_FUNCTIONS
from pdojo.dialect.view.nest import Leaf, Node, Scope
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.common.greedy import naive
from pdojo.passes.common.loops import collapse_unit_loops, flatten, tile
from pdojo.passes.common.reciprocals import share_reciprocals
from pdojo.passes.cpu.fusion import CHEAP, materialize
from pdojo.passes.snitch.arrivals import add_latest_last
from pdojo.passes.snitch.carried import carry_values, forward_copies
from pdojo.passes.snitch.costs import cheapest
from pdojo.passes.snitch.guards import cut_guards
from pdojo.passes.snitch.hardware import repeat, stream, stream_some
from pdojo.passes.snitch.interleaving import COPIES, interleave, is_kept
from pdojo.passes.snitch.odd_copies import copy_odd_rows
from pdojo.passes.snitch.odd_rows import align_sums, pack_odd_rows
from pdojo.passes.snitch.packing import contract, contract_scalars, is_streamable, lanes_along, pack, updates
from pdojo.passes.snitch.pools import sum_windows_by_rows
from pdojo.passes.snitch.registers import is_innermost, keep_invariants, use_registers
from pdojo.passes.snitch.steps import shorten_sums
from pdojo.passes.snitch.values import inline_once, merge_values, separate_values
from pdojo.passes.snitch.windows import align_windows, spare_port

GROUPS = (COPIES, 2 * COPIES, 1)
"""Numbers of interleaved results to try: as many as hide the latency, twice as many, and none."""
UNROLLED = 128
"""Greatest number of statements of an unrolled loop body that no hardware loop repeats."""


def greedy(builder: PassBuilder) -> None:
    """The naive pass, then every hardware move wherever it is legal."""
    _simplify(builder)
    naive(builder)
    pack(builder, 1)
    builder.exhaust(builder.dimensions, "reuse_dims", "the dimension is dead after each iteration: less memory")
    use_registers(builder)
    # A window's steps wait for each other, and windows share loads: straight code of several windows is faster.
    unroll(builder, lambda leaf: _slides(leaf) or not _is_streamed(leaf))
    keep_invariants(builder)
    stream(builder, lambda scope: not any(map(_slides, scope.leaves)))
    repeat(builder)
    unroll(builder)


def heuristic(builder: PassBuilder) -> None:
    """Fuse loops, pack numbers, interleave several results innermost; then every hardware move.

    How many results are interleaved, and whether that pays, is decided by simulations of the programs.
    """
    cheapest(builder, _prepared, [partial(_interleaved, group=group) for group in GROUPS], greedy)


def _prepared(builder: PassBuilder) -> dict[str, str]:
    """Fuse loops and pack numbers; returns the arrays of values with the array that each was part of."""
    why = "a shorter form of the function has fewer instructions"
    builder.exhaust(lambda: builder.nest.leaves, "approximate", why)
    sum_windows_by_rows(builder)
    separated = separate_values(builder)
    add_latest_last(builder)
    _simplify(builder)
    share_reciprocals(builder)
    builder.exhaust(partial(_joined, builder), "join_scopes", "fused loops keep values in registers")
    _recompute(builder)
    contract(builder)
    carry_values(builder)
    cut_guards(builder)
    copy_odd_rows(builder)
    align_windows(builder)
    align_sums(builder)
    pack(builder, COPIES)
    contract_scalars(builder)
    forward_copies(builder)
    _join_behind_zeros(builder)
    pack_odd_rows(builder, COPIES)
    return separated


def _interleaved(builder: PassBuilder, separated: dict[str, str], group: int) -> None:
    """The heuristic pass with a number of interleaved results; 1 interleaves none."""
    for node in list(builder.nest.children):
        if isinstance(node, Scope) and group > 1:
            interleave(builder, node.id, group)
    builder.exhaust(builder.dimensions, "reuse_dims", "the dimension is dead after each iteration: less memory")
    merge_values(builder, separated)
    use_registers(builder)
    shorten_sums(builder)
    unroll(builder, lambda leaf: not _is_streamed(leaf))
    keep_invariants(builder)
    stream_some(builder)
    spare_port(builder)
    repeat(builder)
    unroll(builder)


def _is_streamed(leaf: Leaf) -> bool:
    """True if streams can make all accesses of a statement to memory."""
    return all(is_streamable(a, leaf) for a in leaf.accesses if a.array.buffer.memory is Memory.HEAP)


def _slides(leaf: Leaf) -> bool:
    """True for a step of a sum over a window that overlaps the windows of other results."""
    own = {v for e in leaf.output.index for v in e.variables()}
    read = (set(e.variables()) for access in leaf.reads for e in access.index)
    return leaf.accumulate is not None and any(used & own and used - own for used in read)


def unroll(builder: PassBuilder, when: Callable[[Leaf], bool] = lambda _: True) -> None:
    """Unroll short loops of single instructions without hardware loops, and parts of longer ones.

    Only loops of which some statement satisfies `when` are unrolled.
    """
    for identifier in [s.id for s in reversed(builder.nest.scopes)]:
        scope = builder.find_scope(identifier)
        if scope is None or scope.mapping is not Mapping.SEQUENTIAL or scope.depth == 0:
            continue
        mappings = {s.mapping for leaf in scope.leaves for s in leaf.chain[scope.depth :]}
        simple = all(f is None or f in FPU_FUNCTIONS for leaf in scope.leaves for f in (leaf.function, leaf.accumulate))
        if not simple or mappings & {Mapping.STREAM, Mapping.FREP} or not any(map(when, scope.leaves)):
            continue
        each = _instances(scope) // scope.extent
        if each <= builder.game.machine.snitch.frep_instructions and _needs_no_load(scope):
            continue
        most = max(n for n in range(1, min(scope.extent, max(UNROLLED // each, 1)) + 1) if scope.extent % n == 0)
        if most > 1:
            builder.transact(lambda scope=scope, most=most: _unroll(builder, scope, most))


def _needs_no_load(scope: Scope) -> bool:
    """True if streams deliver what differs from iteration to iteration of a loop that registers cannot hold."""
    accesses = [(a, leaf) for leaf in scope.leaves for a in leaf.accesses if a.array.buffer.memory is Memory.HEAP]
    apart = [access for access, leaf in accesses if not is_streamable(access, leaf)]
    return is_innermost(scope) and bool(apart) and all(is_kept(access, scope) for access in apart)


def _unroll(builder: PassBuilder, scope: Scope, count: int) -> None:
    why = "fewer loops to count, equal loads become one"
    identifier = scope.id if count == scope.extent else tile(builder, scope, count, why).inner
    builder.make("unroll", f"%{identifier}", why)
    for name in list(builder.temporaries()):
        if builder.nest.arrays[name].buffer.memory is Memory.REGISTER:
            builder.transact(lambda name=name: _separate(builder, identifier, name, count))


def _separate(builder: PassBuilder, identifier: str, name: str, count: int) -> bool:
    """Give the sums of an unrolled loop registers of their own, so that they do not wait for each other.

    Returns False if the loop has no sums in the array, or several results inside, which need not wait already.
    """
    why = "sums that do not wait for each other"
    loop = builder.scope(identifier)
    sums = [leaf for leaf in loop.leaves if updates(leaf) and leaf.output.array.name == name]
    if not sums or any(_results(leaf, loop) >= COPIES for leaf in sums):
        return False
    buffer = builder.nest.arrays[name].buffer
    for dimension, slots in enumerate(buffer.reuse):
        if slots and all(leaf.output.index[dimension].uses(loop.depth) for leaf in sums):
            size = count * lanes_along(builder, name, dimension)
            whole = buffer.shape[dimension] == size
            if not whole:
                builder.make("tile_dim", f"{name}:{dimension}", why, size=size)
            builder.make("materialize_dims", f"{name}:{dimension if whole else dimension + 1}", why)
            return True
    return False


def _results(leaf: Leaf, loop: Scope) -> int:
    """Number of results of a sum in an iteration of a loop."""
    inside = leaf.chain[loop.depth + 1 :]
    return prod(s.extent for s in inside if any(e.uses(s.depth) for e in leaf.output.index))


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
        readers = builder.nest.readers[name]
        elsewhere = [reader.id for reader in readers if reader.parent is not leaf.parent]
        # Inside of further loops, it would be computed again and again.
        is_deeper = any(len(reader.chain) > len(leaf.chain) for reader in readers)
        if (
            elsewhere
            and not is_deeper
            and leaf.output.array.buffer.op is not None
            and builder.nest.writers[name] == [leaf]
        ):
            builder.transact(lambda i=identifier, name=name, readers=elsewhere: _inline(builder, i, name, readers))


def _inline(builder: PassBuilder, identifier: str, name: str, readers: Sequence[str]) -> None:
    """Inline a statement where some of its readers use it; without other readers, delete it."""
    why = f"computed once more where it is used: '{name}' need not be kept in between"
    for reader in dict.fromkeys(readers):
        materialize(builder, inline_once(builder, name, [reader], why))
    if not builder.nest.readers[name]:
        builder.make("delete_op", f"%{identifier}", "nobody reads it any more")


def _join_behind_zeros(builder: PassBuilder) -> None:
    """Join loops separated only by the initialisation of a sum, which can move before both."""
    why = "loops behind it can be fused"
    for identifier in [leaf.id for leaf in builder.nest.leaves if not leaf.reads]:
        while isinstance(before := builder.nest.previous_sibling(_whole(builder.leaf(identifier))), Scope):
            if not builder.attempt("swap_nodes", before, why):
                break
    builder.exhaust(lambda: (s for s in _joined(builder) if s.extent > 1), "join_scopes", why)
    contract(builder)


def _joined(builder: PassBuilder) -> Iterator[Scope]:
    """The loops that may be fused with the next one: sealed ones stay apart."""
    for scope in builder.nest.scopes:
        behind = builder.nest.next_sibling(scope)
        if behind is not None and not builder.sealed & {scope.id, behind.id}:
            yield scope


def _whole(leaf: Leaf) -> Node:
    """A statement with its lanes."""
    return leaf.parent if leaf.parent is not None and leaf.parent.mapping is Mapping.VECTOR else leaf


def _simplify(builder: PassBuilder) -> None:
    contract(builder)
    collapse_unit_loops(builder)
    flatten(builder, guarded=False)

"""Blocks and threads for a nest: an element, a row or a result for each thread, warp or block."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from pdojo.dialect.attributes import Intent, Mapping, Memory
from pdojo.dialect.rules.lanes import Stride, lane_stride
from pdojo.dialect.view.nest import Access, Scope
from pdojo.dialect.view.storage import accesses_of, physical_index
from pdojo.errors import IllegalMove
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.common.loops import Tiles, tile
from pdojo.passes.cpu.threads import perfect
from pdojo.passes.gpu.launches import multiprocessors
from pdojo.passes.gpu.threads import (
    ThreadLoops,
    collapse,
    largest_power,
    map_threads,
    may_be_vectors,
    power_of_two,
    spread,
    vector_lanes,
    vectors,
)

THREADS = 256
"""Default number of threads of a block."""
SHORT = 32
"""Iterations below which a loop is left to one thread."""
CELLS = 1024
"""Results per multiprocessor from which each result may have its own thread."""
PER_THREAD = 32
"""Greatest number of a row's elements that a thread keeps in registers."""


def map_nest(builder: PassBuilder, statement: str) -> bool:
    """Give the nest around a statement blocks and threads; False if every known mapping is illegal."""
    scope = _root(builder, statement)
    if scope.mapping is not Mapping.SEQUENTIAL:
        return False
    inner = [c for c in perfect(scope)[-1].children if isinstance(c, Scope)]
    ways = [_elements, _alone] if not inner else [_rows, _cells] if _has_rows(builder, scope) else [_cells, _rows]
    return any(builder.transact(lambda w=way: w(builder, statement)) for way in ways)


def _has_rows(builder: PassBuilder, scope: Scope) -> bool:
    """True if threads should share the loops inside the scope, rather than the loops around them.

    Neighbouring threads should access neighbouring elements, or the same one.
    """
    outer = perfect(scope)[-1]
    rows = cells = longest = 0
    for leaf in outer.leaves:
        inside = [s for s in leaf.chain if s.depth > outer.depth]
        if not inside:
            continue
        count = prod(s.extent for s in inside)
        longest = max(longest, count)
        for access in leaf.accesses:
            if access.array.buffer.memory is Memory.HEAP:
                rows += count * _is_scattered(access, inside[-1].depth)
                cells += count * _is_scattered(access, outer.depth)
    if longest < SHORT:
        return False
    many = prod(s.extent for s in perfect(scope)) >= CELLS * multiprocessors(builder)
    return rows < cells or (rows == cells and not many)


def _is_scattered(access: Access, depth: int) -> bool:
    """True if neighbouring iterations of a loop access elements that are neither neighbours nor the same."""
    uses = any(e.uses(depth) for e in access.index)
    return uses and lane_stride(access.index, access.array.shape, depth) is not Stride.CONTIGUOUS


# Elements


def _elements(builder: PassBuilder, statement: str) -> None:
    why = "neighbouring threads have neighbouring elements"
    lanes = vector_lanes(builder, list(_root(builder, statement).leaves))
    while len(chain := perfect(_root(builder, statement))) > 1 and chain[-1].extent < THREADS * lanes[0]:
        builder.make("collapse_scopes", chain[-2], why)
    alone = len(perfect(_root(builder, statement))) == 1
    for name in _private(builder, _root(builder, statement)) if alone else ():
        for dimension in reversed(range(len(builder.nest.arrays[name].shape) - 1)):
            builder.attempt("collapse_dims", f"{name}:{dimension}", why)
    builder.first(lambda n=n: _in_vectors(builder, statement, n, why) for n in lanes)


def _in_vectors(builder: PassBuilder, statement: str, lanes: int, why: str) -> bool:
    chain = perfect(_root(builder, statement))
    count, extent = prod(s.extent for s in chain), chain[-1].extent
    machine = builder.game.machine
    if lanes > 1 and extent % lanes:
        return False
    turns = 2 if count >= 4 * multiprocessors(builder) * 2048 * lanes else 1
    threads = power_of_two(count / lanes / multiprocessors(builder), machine.gpu.warp_size, THREADS)
    temporaries = _private(builder, chain[0])
    group = threads * lanes * turns
    tiles = tile(builder, chain[-1], group, why)
    found = spread(builder, tiles.inner, threads, lanes, why)
    if found.lanes is not None and not may_be_vectors(builder, found.lanes):
        return False
    outer = [*(s.id for s in chain[:-1]), tiles.outer]
    for name in temporaries if lanes > 1 else ():
        # The last dimension is tiled like the loop that indexes it.
        last = len(builder.nest.arrays[name].shape) - 1
        builder.make("tile_dim", f"{name}:{last}", "a block needs its own part only", size=group)
    _reuse(builder, outer if lanes > 1 else [s.id for s in perfect(_root(builder, statement))], temporaries)
    _grid(builder, outer)
    builder.make("map_block", f"%{found.threads}", why)
    if found.turns is not None:
        builder.attempt("unroll", f"%{found.turns}", "loads of several vectors are under way together")
    if found.lanes is not None:
        vectors(builder, found.lanes, f"{lanes} neighbouring elements in one access")
    _keep(builder, temporaries)
    return True


# Results


def _cells(builder: PassBuilder, statement: str) -> None:
    """Give each iteration of the outer loops a thread."""
    why = "a thread for each result"
    temporaries = _private(builder, _root(builder, statement))
    while len(chain := perfect(_root(builder, statement))) > 1 and chain[-1].extent < THREADS:
        if not builder.attempt("collapse_scopes", chain[-2], why):
            break
    cells = prod(s.extent for s in chain)
    machine = builder.game.machine
    threads = power_of_two(cells / multiprocessors(builder), machine.gpu.warp_size, THREADS)
    ids = [s.id for s in chain]
    if chain[-1].extent > threads or len(ids) == 1:
        ids[-1:] = tile(builder, chain[-1], min(threads, chain[-1].extent), why)
    _reuse(builder, ids, temporaries)
    _grid(builder, ids[:-1])
    builder.make("map_block", f"%{ids[-1]}", why)
    _keep(builder, temporaries)


# Rows


def _rows(builder: PassBuilder, statement: str) -> None:
    """Give each iteration of the outer loops a warp or a block, whose threads share the inner loops."""
    why = "the threads of a row have neighbouring elements"
    for child in [child.id for child in _phases(builder, statement)]:
        collapse(builder, child, why)
    longest = max(child.extent for child in _phases(builder, statement))
    leaves = list(_root(builder, statement).leaves)
    lanes = [n for n in vector_lanes(builder, leaves) if longest >= builder.game.machine.gpu.warp_size * n]
    ways = [(n, fast) for fast in (True, False) for n in lanes or [1]]
    builder.first(lambda w=way: _spread_rows(builder, statement, longest, *w) for way in ways)


def _alone(builder: PassBuilder, statement: str) -> None:
    """Use one block, whose threads add up one result."""
    why = "the threads of one block add up"
    collapse(builder, _root(builder, statement).id, why)
    root, machine = _root(builder, statement), builder.game.machine
    threads = min(largest_power(root.extent), machine.gpu.block_threads)
    tiles = tile(builder, root, root.extent, why)
    found = spread(builder, tiles.inner, threads, 1, why)
    _grid(builder, [tiles.outer])
    map_threads(builder, found.threads, machine.gpu.warp_size, why)


def _phases(builder: PassBuilder, statement: str) -> list[Scope]:
    """The loops inside of the loops over rows."""
    return [c for c in perfect(_root(builder, statement))[-1].children if isinstance(c, Scope)]


def _spread_rows(builder: PassBuilder, statement: str, longest: int, lanes: int, fast: bool) -> None:
    """Give rows to warps or blocks, with `lanes` neighbouring elements per thread at a time.

    If `fast`, temporaries must stay within the block; else a block has one row, and large temporaries are in global
    memory.
    """
    machine = builder.game.machine
    warp = machine.gpu.warp_size
    rows = prod(s.extent for s in perfect(_root(builder, statement)))
    least = warp if fast and rows >= 4 * multiprocessors(builder) else 4 * warp
    threads = power_of_two(longest / PER_THREAD, least, machine.gpu.block_threads)
    threads = min(threads, largest_power(longest / lanes))
    why = f"{threads} threads for a row of {longest}"
    if longest <= threads * PER_THREAD:
        _stage(builder, statement)
    _stage_results(builder, statement)
    temporaries = _private(builder, _root(builder, statement))
    parts = [spread(builder, child.id, threads, lanes, why) for child in _phases(builder, statement)]
    for part in parts:
        if part.lanes is not None:
            vectors(builder, part.lanes, f"{lanes} elements in one access")
    ids = [s.id for s in perfect(_root(builder, statement))]
    group = _group(builder, ids[-1], 4 * warp // threads) if fast else None
    if group is not None:
        ids[-1] = group.outer
    _reuse(builder, [s.id for s in perfect(_root(builder, statement))], temporaries)
    _grid(builder, ids)
    if group is not None:
        builder.make("map_block", f"%{group.inner}", "a warp for each row of a block")
    _fuse_phases(builder, parts)
    for part in parts:
        if builder.find_scope(part.threads) is not None:
            map_threads(builder, part.threads, warp, why)
    _unroll(builder, [s.turns for s in parts if s.turns is not None], PER_THREAD // lanes)
    _keep(builder, temporaries, fast=fast)


def _unroll(builder: PassBuilder, loops: Sequence[str], most: int) -> None:
    for identifier in loops:
        scope = builder.find_scope(identifier)
        if scope is not None and scope.extent <= most:
            builder.attempt("unroll", scope, "only constants index a thread's elements: registers")


def _group(builder: PassBuilder, rows: str, count: int) -> Tiles | None:
    """Group the rows for a block; None if a block has one row."""
    scope = builder.scope(rows)
    return tile(builder, scope, count, f"{count} rows in a block") if 1 < count < scope.extent else None


def _stage(builder: PassBuilder, statement: str) -> None:
    """Stage the arrays that several loops over a row read, so that each is read once."""
    reads: dict[str, set[str]] = {}
    for child in _phases(builder, statement):
        for access in (a for leaf in child.leaves for a in leaf.reads):
            if access.array.buffer.op is None and any(e.uses(child.depth) for e in access.index):
                reads.setdefault(access.array.name, set()).add(child.id)
    around = {s.depth for s in perfect(_root(builder, statement))}
    for name, phases in reads.items():
        indices = [a.index for leaf in builder.nest.readers[name] for a in leaf.reads if a.array.name == name]
        by_row = any(e.variables() & around for index in indices for e in index)
        if len(phases) > 1 and by_row and builder.nest.arrays[name].intent is Intent.IN:
            _copy(builder, statement, name)


def _copy(builder: PassBuilder, statement: str, name: str) -> bool:
    return any(builder.transact(lambda f=form: _copy_as(builder, statement, name, f)) for form in ("iteration", "box"))


def _copy_as(builder: PassBuilder, statement: str, name: str, form: str) -> bool:
    why = f"'{name}' is read once"
    depth = len(perfect(_root(builder, statement)))
    position = _root(builder, statement).position
    builder.make("stage_in", _root(builder, statement), why, array=name, location="heap", form=form)
    copy = builder.nest.children[position]
    assert isinstance(copy, Scope)
    chain = [s.id for s in perfect(copy)]
    if len(chain) < depth + 1:
        return False
    for one in chain[:depth]:
        builder.make("join_scopes", f"%{one}", why)
    collapse(builder, chain[depth], why)
    return True


def _stage_results(builder: PassBuilder, statement: str) -> None:
    """Keep the results of sums over a row in registers until complete, if code outside of the nest needs them too."""
    root = _root(builder, statement)
    around = {s.depth for s in perfect(root)}
    private = _private(builder, root)
    found = [
        leaf.output.array.name
        for leaf in root.leaves
        # Only results complete in one iteration of the loops around: other iterations add nothing to them.
        if leaf.accumulate is not None and {v for e in leaf.output.index for v in e.variables()} == around
    ]
    for name in dict.fromkeys(found):
        if name not in private:
            builder.transact(lambda n=name: _copy_out(builder, statement, n))


def _copy_out(builder: PassBuilder, statement: str, name: str) -> bool:
    why = f"'{name}' is stored when it is complete"
    root = _root(builder, statement)
    depth = len(perfect(root))
    builder.make("stage_out", root, why, array=name, location="heap")
    for level in range(depth):
        builder.make("join_scopes", builder.loop(statement, level), why)
    return len(perfect(_root(builder, statement))) == depth


def _fuse_phases(builder: PassBuilder, found: Sequence[ThreadLoops]) -> None:
    """Join loops over a row, and the loops over turns inside, if each thread needs only its own values."""
    why = "values stay in the registers of a thread"
    for kind in ("threads", "turns"):
        ids = {getattr(s, kind) for s in found}
        builder.exhaust(lambda ids=ids: [s for s in builder.nest.scopes if s.id in ids], "join_scopes", why)


# Common helpers


def _root(builder: PassBuilder, statement: str) -> Scope:
    return builder.leaf(statement).chain[0]


def _grid(builder: PassBuilder, ids: Sequence[str]) -> None:
    """Map as many of the loops as legal to the grid, outermost first; the last one must be legal."""
    why = "independent: a block for each iteration"
    for identifier in ids[:-1]:
        builder.attempt("map_grid", f"%{identifier}", why)
    for identifier in ids[-1:]:
        builder.make("map_grid", f"%{identifier}", why)


def _private(builder: PassBuilder, scope: Scope) -> list[str]:
    """Names of the temporaries used only by statements of a scope."""
    inside = set(scope.leaves)
    found: list[str] = []
    for name in builder.temporaries():
        users = {*builder.nest.writers.get(name, ()), *builder.nest.readers.get(name, ())}
        if users and users <= inside:
            found.append(name)
    return found


def _reuse(builder: PassBuilder, loops: Sequence[str], temporaries: Sequence[str]) -> None:
    """Reuse the dimensions of temporaries that are indexed only by these loops around the whole nest."""
    for name in temporaries:
        buffer = builder.nest.arrays[name].buffer
        uses = [(leaf, physical_index(a, leaf.chain)) for leaf, a in accesses_of(builder.nest, buffer)]
        for dimension in range(len(buffer.shape)):
            if all(leaf.chain[v].id in loops for leaf, index in uses for v in index[dimension].variables()):
                builder.attempt("reuse_dims", f"{name}:{dimension}", "no other iteration needs it")


def _keep(builder: PassBuilder, temporaries: Sequence[str], *, fast: bool = False) -> None:
    """Put temporaries into registers, else into shared memory or on the stack; others get an element for each index.

    If `fast`, a temporary must not fit the heap only.
    """
    places = {
        "register": "each thread keeps its own elements",
        "shared": "the threads of a block exchange elements",
        "stack": "each thread keeps its own elements, which its code indexes",
    }
    for name in temporaries:
        if any(builder.attempt("set_location", name, why, location=place) for place, why in places.items()):
            continue
        if fast:
            raise IllegalMove(f"'{name}' is too large for the memory of a block")
        for dimension in range(len(builder.nest.arrays[name].shape)):
            builder.attempt("materialize_dims", f"{name}:{dimension}", "too large for the memory of a block")

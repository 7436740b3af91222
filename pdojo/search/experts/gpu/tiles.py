"""Tiles of contractions: shared memory for a block, registers for a thread (as CUTLASS and the paper's Figure 12 do).

A block computes a tile of results. In steps over the terms it copies what the tile needs of both operands to shared
memory, the next step's while it computes with this one's. Each thread keeps a part of the tile in registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from pdojo.dialect.analysis.lanes import Stride, lane_stride
from pdojo.dialect.attributes import Mapping
from pdojo.dialect.functions import is_float
from pdojo.dialect.view.nest import Leaf, Scope
from pdojo.search.experts.contraction import has_terms, is_alone, loop_at, reorder, spatial_loops, uses
from pdojo.search.experts.gpu.launches import multiprocessors, part_terms
from pdojo.search.experts.gpu.threads import collapse, largest_power, spread, vector_lanes
from pdojo.search.experts.loops import Tiles, tile
from pdojo.search.experts.player import Player

STEP = 16
"""Terms of a step."""
LEAST, FEW = 32, 4
"""Columns from which tiles pay, and rows."""
MOST_TERMS = 256
"""Terms below which a sum is not parted."""
PADDING = 4
"""Elements between rows of shared memory, so that columns are in different banks."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Sizes of a tile, and of the part of a thread."""

    rows: int
    columns: int
    height: int
    width: int

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return -(-self.rows // self.height) * (self.columns // self.width)

    @property
    def title(self) -> str:
        """The plan in a few words."""
        return f"{self.rows} x {self.columns} results of a block, {self.height} x {self.width} of a thread"


PLANS = (Plan(128, 128, 8, 8), Plan(128, 64, 8, 4), Plan(64, 64, 4, 4), Plan(64, 32, 4, 4), Plan(32, 32, 4, 4))


@dataclass(frozen=True, slots=True)
class Roles:
    """The loops of a contraction, by identifier, outermost first."""

    outer: tuple[str, ...]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    terms: tuple[str, ...]


def tile_contractions(player: Player) -> None:
    """Tile every contraction of two operands, each of which many results share."""
    for identifier in [leaf.id for leaf in player.nest.leaves]:
        leaf = player.leaf(identifier)
        if has_terms(leaf) and is_alone(player, leaf) and len(leaf.reads) == 2:
            roles = _roles(leaf)
            if roles is not None and player.transact(lambda i=identifier, r=roles: _prepare(player, i, r)):
                player.sealed.add(loop_at(player, identifier, 0).id)


def split_terms_of_few(player: Player) -> None:
    """Part the terms of contractions whose tiles are too few for the multiprocessors."""
    for identifier in [leaf.id for leaf in player.nest.leaves]:
        leaf = player.leaf(identifier)
        if not has_terms(leaf) or not is_alone(player, leaf) or len(leaf.reads) != 2:
            continue
        roles = _roles(leaf)
        if roles is not None:
            player.transact(lambda i=identifier, r=roles: _split_terms(player, i, r))


def _split_terms(player: Player, identifier: str, roles: Roles) -> bool:
    chain = {s.id: s.extent for s in player.leaf(identifier).chain}
    outer, rows, columns, terms = (
        prod(chain[s] for s in ids) for ids in (roles.outer, roles.rows, roles.columns, roles.terms)
    )
    blocks = outer * -(-rows // 64) * -(-columns // 64)
    count = largest_power(min(2 * multiprocessors(player) / blocks, terms / MOST_TERMS))
    if count < 2 or rows < LEAST or columns < LEAST:
        return False
    why = f"{blocks} tiles are too few for {multiprocessors(player)} multiprocessors"
    return part_terms(player, identifier, count, why)


def _roles(leaf: Leaf) -> Roles | None:
    if any(s.mapping is not Mapping.SEQUENTIAL or s.guard for s in leaf.chain):
        return None
    spatial = [s for s in leaf.chain if s.depth in spatial_loops(leaf)]
    first, second = leaf.reads
    only = [[s for s in spatial if uses(a, s) and not uses(b, s)] for a, b in ((first, second), (second, first))]
    if not all(only):
        return None
    # The columns are those along which the results are contiguous.
    columns, rows = sorted(only, key=lambda loops: -max(s.depth for s in loops))
    both = tuple(s.id for s in spatial if s not in (*rows, *columns))
    terms = tuple(s.id for s in leaf.chain if s not in spatial)
    return Roles(both, tuple(s.id for s in rows), tuple(s.id for s in columns), terms)


def _prepare(player: Player, identifier: str, roles: Roles) -> bool:
    """One loop each over rows, columns and terms, then tiles of the first size that fits."""
    why = "one loop over rows, one over columns, one over terms"
    if not reorder(player, identifier, [*roles.outer, *roles.rows, *roles.columns, *roles.terms]):
        return False
    depths = len(roles.outer), len(roles.rows), len(roles.columns), len(roles.terms)
    for start, count in ((sum(depths[:3]), depths[3]), (sum(depths[:2]), depths[2]), (depths[0], depths[1])):
        for _ in range(count - 1):
            if not player.attempt("collapse_scopes", loop_at(player, identifier, start), why):
                return False
    chain = player.leaf(identifier).chain
    rows, columns, terms = (s.extent for s in chain[-3:])
    if rows < FEW or columns < LEAST or terms < STEP:
        return False
    outer = prod(s.extent for s in chain[:-3])
    name = player.leaf(identifier).output.array.name
    plans = {plan.title: plan for plan in _ordered(player, outer, rows, columns)}
    if not plans:
        return False
    chosen = player.choices.choose(f"tile of {name}", plans)
    ordered = [plans[chosen], *(plan for title, plan in plans.items() if title != chosen)]
    return any(player.transact(lambda p=plan: _tile(player, identifier, p)) for plan in ordered)


def _ordered(player: Player, outer: int, rows: int, columns: int) -> list[Plan]:
    """The plans, those first that take the least time, by loads from shared memory and idle multiprocessors."""

    def cost(plan: Plan) -> float:
        blocks = outer * -(-rows // plan.rows) * -(-columns // plan.columns)
        rounds = -(-blocks // multiprocessors(player))
        return rounds * plan.rows * plan.columns * (1 + 2 / plan.height + 2 / plan.width)

    few = [Plan(rows, width, -(-rows // 2), 4) for width in (512, 256, 128)] if rows <= 16 else []
    return sorted((p for p in (*PLANS, *few) if p.rows <= rows and p.columns <= columns), key=cost)


def _tile(player: Player, identifier: str, plan: Plan) -> bool:
    depth = len(player.leaf(identifier).chain) - 3
    zero = player.nest.leaves[player.leaf(identifier).order - 1].id
    result = player.leaf(identifier).output.array.name
    if not _in_blocks(player, identifier, plan, depth):
        return False
    results = _to_registers(player, identifier, result, depth)
    if results is None:
        return False
    tiles = [_share(player, identifier, k, depth) for k in (0, 1)]
    if None in tiles:
        return False
    shared = [copy for copy in tiles if copy is not None]
    if not all(_fragment(player, identifier, copy.shared, depth) for copy in shared):
        return False
    if not _map_block(player, (zero, results), identifier, depth):
        return False
    copies = _map_copies(player, shared, plan, depth)
    if copies is None or not _overlap(player, identifier, copies, depth) or not _place(player, copies, identifier):
        return False
    player.transact(lambda: _neutral_tails(player, zero, identifier, copies))
    return True


def _in_blocks(player: Player, identifier: str, plan: Plan, depth: int) -> bool:
    """[rows, columns, terms] to [row tiles, column tiles {zeros, steps {threads {terms {part of a tile}}}}]."""
    why = plan.title
    chain = player.leaf(identifier).chain
    outer, rows, columns = [s.id for s in chain[:depth]], chain[depth].id, chain[depth + 1].id
    lanes = min(4, *vector_lanes(player, [player.leaf(identifier)])[:1])
    order: list[list[str]] = [[], [], []]
    for loop, whole, own in ((rows, plan.rows, plan.height), (columns, plan.columns, lanes)):
        tiles = _cut(player, loop, whole, why)
        if tiles is None:
            return False
        order[0].append(tiles.outer)
        inner = tiles.inner
        if loop == columns and plan.width > lanes:
            groups = _cut(player, inner, whole * lanes // plan.width, why)
            if groups is None:
                return False
            order[2].append(groups.outer)
            inner = groups.inner
        parts = _cut(player, inner, own, why)
        if parts is None:
            return False
        order[1].append(parts.outer)
        order[2].append(parts.inner)
    if not reorder(player, identifier, [*outer, *order[0], *order[1], *order[2]]):
        return False
    for level in reversed(range(depth + 2, depth + 4 + len(order[2]))):
        if not player.attempt("split_scopes", loop_at(player, identifier, level), why, after=1):
            return False
    steps = tile(player, loop_at(player, identifier, -1), STEP, f"{STEP} terms at a time")
    if steps is None:
        return False
    ids = [s.id for s in player.leaf(identifier).chain]
    wanted = [*ids[: depth + 2], steps.outer, *ids[depth + 2 : depth + 4], steps.inner, *ids[depth + 4 : -2]]
    return reorder(player, identifier, wanted)


def _cut(player: Player, identifier: str, size: int, why: str) -> Tiles | None:
    scope = player.scope(identifier)
    assert scope is not None
    return tile(player, scope, size, why)


def _to_registers(player: Player, identifier: str, name: str, depth: int) -> str | None:
    """Keep a block's results in a buffer of its own until they are complete; the statement that stores them."""
    why = "each thread keeps its results in registers"
    known = player.nest.by_id.keys()
    scope = loop_at(player, identifier, depth + 1)
    if not player.attempt("stage_out", scope, why, array=name, location="heap"):
        return None
    stored = next(leaf.id for leaf in player.nest.leaves if leaf.id not in known)
    copied = player.leaf(identifier).output.array.name
    if not player.attempt("join_scopes", loop_at(player, identifier, depth + 1), why):
        return None
    _reuse_outer(player, copied, depth + 2)
    return stored


def _reuse_outer(player: Player, name: str, count: int) -> None:
    for dimension in range(count):
        player.attempt("reuse_dims", f"{name}:{dimension}", "a block needs its own part only")


@dataclass(frozen=True, slots=True)
class _Copy:
    """A tile of an operand in shared memory."""

    shared: str
    """Name of the buffer."""
    operand: str
    """Name of the array that it is a copy of."""
    store: str
    """The statement that writes it."""
    is_transposed: bool
    load: str | None = None
    """The statement that reads the operand into registers first; None if the copy is direct."""


def _share(player: Player, identifier: str, position: int, depth: int) -> _Copy | None:
    """Copy what a step needs of an operand to shared memory, one row for each term."""
    leaf = player.leaf(identifier)
    access = leaf.reads[position]
    threads, terms = leaf.chain[depth + 3], leaf.chain[depth + 5]
    along = lane_stride(access.index, access.array.shape, terms.depth) is Stride.CONTIGUOUS
    why = "the threads of a block share it"
    made = None
    if all(e.is_linear for e in access.index):
        made = _staged(player, threads, access.array.name, "box", why)
    number = 1 if along else 0
    if made is None or len(player.leaf(made[1]).chain) != depth + 5:
        # A loop over threads, the loop over terms, a thread's part.
        made, number = made or _staged(player, threads, access.array.name, "iteration", why), 1
    if made is None:
        return None
    shared, store = made
    first = len(player.nest.arrays[shared].shape) - (len(player.leaf(store).chain) - depth - 3)
    for dimension in reversed(range(first, first + number)):
        if not player.attempt("swap_dims", f"{shared}:{dimension}", "neighbouring threads read neighbouring elements"):
            return None
    if not _order_copy(player, store, depth + 3, number, last=along):
        return None
    if along:
        shape = player.nest.arrays[shared].shape
        player.attempt("pad_dim", f"{shared}:{len(shape) - 1}", "terms are in different banks", to=shape[-1] + PADDING)
    return _Copy(shared, access.array.name, store, is_transposed=along)


def _order_copy(player: Player, store: str, depth: int, number: int, *, last: bool) -> bool:
    """Make the loop over terms of a copy, the one with this number, the last or the first one."""
    why = "neighbouring threads copy neighbouring elements"
    count = len(player.leaf(store).chain) - depth
    moves = range(number, count - 1) if last else reversed(range(number))
    return all(player.attempt("swap_scopes", loop_at(player, store, depth + k), why) for k in moves)


def _staged(player: Player, scope: Scope, name: str, form: str, why: str) -> tuple[str, str] | None:
    """Stage an array for a scope; the copy's name and the statement that writes it."""
    leaves, arrays = {leaf.id for leaf in player.nest.leaves}, set(player.nest.arrays)
    if not player.attempt("stage_in", scope, why, array=name, location="heap", form=form):
        return None
    (made,) = player.nest.arrays.keys() - arrays
    (writer,) = (leaf.id for leaf in player.nest.leaves if leaf.id not in leaves)
    return made, writer


def _fragment(player: Player, identifier: str, shared: str, depth: int) -> bool:
    """Read what a thread needs for one term into registers."""
    scope = loop_at(player, identifier, depth + 6)
    return _staged(player, scope, shared, "iteration", "one read for several products") is not None


def _map_copies(player: Player, copies: Sequence[_Copy], plan: Plan, depth: int) -> list[_Copy] | None:
    """All threads of the block copy, neighbouring ones neighbouring elements, in vectors where they are aligned."""
    found: list[_Copy] = []
    for copy in copies:
        for lanes in (4, 2, 1):
            made: list[_Copy] = []
            if player.transact(lambda c=copy, n=lanes, m=made: _map_copy(player, c, plan.threads, n, depth, m)):
                found += made
                break
        else:
            return None
    return found


def _map_copy(player: Player, copy: _Copy, threads: int, lanes: int, depth: int, made: list[_Copy]) -> bool:
    """Give a copy to the threads, through registers if it is transposed; appends what became of it."""
    why = "neighbouring threads copy neighbouring elements"
    if not collapse(player, loop_at(player, copy.store, depth + 3).id, why):
        return False
    found = spread(player, loop_at(player, copy.store, depth + 3).id, threads, lanes, why)
    if found is None:
        return False
    statements = [copy.store]
    if copy.is_transposed:
        threads_scope = player.scope(found.threads)
        assert threads_scope is not None
        staged = _staged(player, threads_scope, copy.operand, "iteration", "it is transposed on the way")
        if staged is None:
            return False
        copy = replace(copy, load=staged[1])
        statements.insert(0, staged[1])
    made.append(copy)
    return all(_map_loops(player, s, s != copy.store or not copy.is_transposed, depth, why) for s in statements)


def _map_loops(player: Player, statement: str, in_vectors: bool, depth: int, why: str) -> bool:
    """Map the loops of a copy: threads, turns, and the elements that a thread copies together."""
    threads, *inner = (s.id for s in player.leaf(statement).chain[depth + 3 :])
    if not player.attempt("map_block", f"%{threads}", why):
        return False
    for loop in inner:
        scope = player.scope(loop)
        assert scope is not None
        last = isinstance(scope.children[0], Leaf) and scope.extent <= 4
        if not (in_vectors and last and player.attempt("vectorize", scope, why)):
            if in_vectors and last and len(inner) > 1:
                return False
            if not player.attempt("unroll", scope, why):
                return False
    return True


def _map_block(player: Player, others: Sequence[str], identifier: str, depth: int) -> bool:
    """The threads of the block, and straight code for the part of each."""
    why = "a part of the tile for each thread"
    ids = [s.id for s in player.leaf(identifier).chain[: depth + 2]]
    if not all(player.attempt("map_grid", f"%{i}", "independent: a block for each iteration") for i in ids):
        return False
    for statement, level in ((identifier, depth + 3), *((other, depth + 2) for other in others)):
        for _ in range(2):
            if not player.attempt("map_block", loop_at(player, statement, level), why):
                return False
            level += 1
        if not _straighten(player, loop_at(player, statement, level).id, why):
            return False
    return True


def _straighten(player: Player, identifier: str, why: str) -> bool:
    """Unroll loops, the innermost ones as vectors of what a load or a fused multiply-add takes."""
    scope = player.scope(identifier)
    assert scope is not None
    for inner in [
        s.id for s in player.nest.scopes if s.id in {c.id for leaf in scope.leaves for c in leaf.chain[scope.depth :]}
    ]:
        loop = player.scope(inner)
        assert loop is not None
        last = len(loop.children) == 1 and isinstance(loop.children[0], Leaf)
        if last and _in_vectors(player, loop, why):
            continue
        if not player.attempt("unroll", loop, why):
            return False
    return True


def _in_vectors(player: Player, loop: Scope, why: str) -> bool:
    lanes = min(4, *vector_lanes(player, list(loop.leaves))[:1])
    if lanes in (1, loop.extent):
        return lanes > 1 and player.attempt("vectorize", loop, why)

    def tiled() -> bool:
        tiles = tile(player, loop, lanes, why) if loop.extent % lanes == 0 else None
        return (
            tiles is not None
            and player.attempt("vectorize", f"%{tiles.inner}", why)
            and player.attempt("unroll", f"%{tiles.outer}", why)
        )

    return player.transact(tiled)


def _overlap(player: Player, identifier: str, copies: Sequence[_Copy], depth: int) -> bool:
    """Copy the next step's tiles while the block computes with this one's; the steps one by one if that is illegal."""
    if not player.transact(lambda: _pipeline(player, identifier, copies, depth)):
        for name in _step_buffers(player, copies):
            player.attempt("reuse_dims", f"{name}:{depth + 2}", "every step needs it anew")
    return True


def _step_buffers(player: Player, copies: Sequence[_Copy]) -> list[str]:
    """The names of the buffers that hold what a step needs."""
    return [player.leaf(s).output.array.name for copy in copies for s in (copy.load, copy.store) if s is not None]


def _pipeline(player: Player, identifier: str, copies: Sequence[_Copy], depth: int) -> bool:
    why = "the next tiles come while these are in use"
    # What reads memory comes first, what stores from registers last.
    first = [copy.store if copy.load is None else copy.load for copy in copies]
    last = [copy.store for copy in copies if copy.load is not None]
    if not _order(player, [*first, *last], depth, why):
        return False
    for name in _step_buffers(player, copies):
        if not player.attempt("fold_dim", f"{name}:{depth + 2}", "two tiles: one in use, one that comes", slots=2):
            return False
    steps = loop_at(player, identifier, depth + 2)
    if not player.attempt("pipeline", steps, why, stages=2, after=len(first) + len(last)):
        return False
    if last:
        stage = loop_at(player, last[0], depth + 3)
        if not player.attempt("split_scopes", stage, why, after=len(first)):
            return False
        stage = loop_at(player, last[0], depth + 3)
        if not player.attempt("swap_nodes", stage, "stored when the block has computed: the loads have time"):
            return False
    for copy in copies:
        if copy.load is not None:
            name = player.leaf(copy.load).output.array.name
            player.attempt("reuse_dims", f"{name}:{depth + 2}", "in registers for one step only")
    return True


def _order(player: Player, statements: Sequence[str], depth: int, why: str) -> bool:
    """Put the nodes with these statements first in a step, in this order."""
    for number, statement in enumerate(statements):
        while (node := loop_at(player, statement, depth + 3)).position > number:
            before = player.nest.previous_sibling(node)
            if before is None or not player.attempt("swap_nodes", before, why):
                return False
    return True


def _place(player: Player, copies: Sequence[_Copy], identifier: str) -> bool:
    """Tiles of the block to shared memory, parts of a thread to registers."""
    why = "the threads of a block share it"
    for copy in copies:
        if not player.attempt("set_location", copy.shared, why, location="shared"):
            return False
    own = {player.leaf(c.load).output.array.name for c in copies if c.load is not None}
    own |= {a.array.name for a in player.leaf(identifier).accesses}
    for name in sorted(own):
        if not player.attempt("set_location", name, "each thread keeps its own part", location="register"):
            return False
    for copy in copies:
        if copy.load is None:
            player.attempt("async_copy", copy.shared, "the copy runs while the block computes")
    return True


def _neutral_tails(player: Player, zero: str, identifier: str, copies: Sequence[_Copy]) -> bool:
    """Where tiles reach beyond the operands, fill them with zeros, so that the sums need no guards."""
    why = "what is beyond the operand adds nothing"
    if not any(s.guard for leaf in (zero, identifier) for s in player.leaf(leaf).chain):
        return False
    # x + 0 * -0.0 is x to the bit.
    for copy, value in zip(copies, ("-0.0", "0"), strict=True):
        statement = player.leaf(copy.store if copy.load is None else copy.load)
        if any(s.guard for s in statement.chain):
            is_integer = not is_float(statement.output.array.dtype)
            player.attempt("fill_tail", statement, why, value=0 if is_integer or value == "0" else value)
    fragments = [w.id for a in player.leaf(identifier).reads for w in player.nest.writers[a.array.name]]
    stores = [copy.store for copy in copies if copy.load is not None]
    for statement in (zero, *stores, *fragments, identifier):
        # Scopes of one iteration hold the stages of the pipeline.
        for scope in [s.id for s in player.leaf(statement).chain if s.extent > 1]:
            _drop_guards(player, scope, why)
    return True


def _drop_guards(player: Player, identifier: str, why: str) -> None:
    scope = player.scope(identifier)
    for constraint in reversed(range(len(scope.guard) if scope is not None else 0)):
        player.attempt("drop_guard", f"%{identifier}", why, constraint=constraint)

"""Tiles of contractions: shared memory for a block, registers for a thread (as CUTLASS and the paper's Figure 12 do).

A block computes a tile of results in steps over the terms. In each step it copies the tile's operands for the next step
to shared memory while it computes with the current ones. Each thread keeps a part of the tile in registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from pdojo.dialect.attributes import Mapping
from pdojo.dialect.view.nest import Leaf, Scope
from pdojo.search.kinds.common.builder import PassBuilder
from pdojo.search.kinds.common.loops import tile
from pdojo.search.kinds.cpu.contraction import has_terms, is_alone, loop_at, reorder, spatial_loops, uses
from pdojo.search.kinds.gpu.copies import Copy, cut, map_copies, neutral_tails, overlap, share, staged, to_registers
from pdojo.search.kinds.gpu.launches import multiprocessors, part_terms
from pdojo.search.kinds.gpu.matrices import use_tensor_units
from pdojo.search.kinds.gpu.threads import largest_power, vector_lanes

STEP = 16
"""Terms of a step."""
LEAST, FEW = 32, 4
"""Fewest columns and fewest rows for which tiles pay."""
MOST_TERMS = 256
"""Number of terms below which a sum is not split."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Sizes of a tile, and of a thread's part of it."""

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


def tile_contractions(builder: PassBuilder) -> None:
    """Tile every contraction of two operands that are both shared by many results."""
    for identifier in [leaf.id for leaf in builder.nest.leaves]:
        leaf = builder.leaf(identifier)
        if has_terms(leaf) and is_alone(builder, leaf) and len(leaf.reads) == 2:
            roles = _roles(leaf)
            if roles is not None and builder.transact(lambda i=identifier, r=roles: _prepare(builder, i, r)):
                builder.sealed.add(loop_at(builder, identifier, 0).id)


def split_terms_of_few(builder: PassBuilder) -> None:
    """Split the terms of contractions with too few tiles for the multiprocessors."""
    for identifier in [leaf.id for leaf in builder.nest.leaves]:
        leaf = builder.leaf(identifier)
        if not has_terms(leaf) or not is_alone(builder, leaf) or len(leaf.reads) != 2:
            continue
        roles = _roles(leaf)
        if roles is not None:
            builder.transact(lambda i=identifier, r=roles: _split_terms(builder, i, r))


def _split_terms(builder: PassBuilder, identifier: str, roles: Roles) -> bool:
    chain = {s.id: s.extent for s in builder.leaf(identifier).chain}
    outer, rows, columns, terms = (
        prod(chain[s] for s in ids) for ids in (roles.outer, roles.rows, roles.columns, roles.terms)
    )
    blocks = outer * -(-rows // 64) * -(-columns // 64)
    count = largest_power(min(2 * multiprocessors(builder) / blocks, terms / MOST_TERMS))
    if count < 2 or rows < LEAST or columns < LEAST:
        return False
    why = f"{blocks} tiles are too few for {multiprocessors(builder)} multiprocessors"
    return part_terms(builder, identifier, count, why)


def _roles(leaf: Leaf) -> Roles | None:
    if any(s.mapping is not Mapping.SEQUENTIAL or s.guard for s in leaf.chain):
        return None
    spatial = [s for s in leaf.chain if s.depth in spatial_loops(leaf)]
    first, second = leaf.reads
    only = [[s for s in spatial if uses(a, s) and not uses(b, s)] for a, b in ((first, second), (second, first))]
    if not all(only):
        return None
    # The columns are the loops along which the results are contiguous.
    columns, rows = sorted(only, key=lambda loops: -max(s.depth for s in loops))
    both = tuple(s.id for s in spatial if s not in (*rows, *columns))
    terms = tuple(s.id for s in leaf.chain if s not in spatial)
    return Roles(both, tuple(s.id for s in rows), tuple(s.id for s in columns), terms)


def _prepare(builder: PassBuilder, identifier: str, roles: Roles) -> bool:
    """Make one loop each over rows, columns and terms, then tiles of the first size that fits."""
    why = "one loop over rows, one over columns, one over terms"
    if not reorder(builder, identifier, [*roles.outer, *roles.rows, *roles.columns, *roles.terms]):
        return False
    depths = len(roles.outer), len(roles.rows), len(roles.columns), len(roles.terms)
    for start, count in ((sum(depths[:3]), depths[3]), (sum(depths[:2]), depths[2]), (depths[0], depths[1])):
        for _ in range(count - 1):
            if not builder.attempt("collapse_scopes", loop_at(builder, identifier, start), why):
                return False
    chain = builder.leaf(identifier).chain
    rows, columns, terms = (s.extent for s in chain[-3:])
    if rows < FEW or columns < LEAST or terms < STEP:
        return False
    if use_tensor_units(builder, identifier):
        return True
    outer = prod(s.extent for s in chain[:-3])
    name = builder.leaf(identifier).output.array.name
    plans = {plan.title: plan for plan in _ordered(builder, outer, rows, columns)}
    if not plans:
        return False
    chosen = builder.choices.choose(f"tile of {name}", plans)
    ordered = [plans[chosen], *(plan for title, plan in plans.items() if title != chosen)]
    return any(builder.transact(lambda p=plan: _tile(builder, identifier, p)) for plan in ordered)


def _ordered(builder: PassBuilder, outer: int, rows: int, columns: int) -> list[Plan]:
    """The plans, the fastest first by loads from shared memory and idle multiprocessors."""

    def cost(plan: Plan) -> float:
        blocks = outer * -(-rows // plan.rows) * -(-columns // plan.columns)
        rounds = -(-blocks // multiprocessors(builder))
        return rounds * plan.rows * plan.columns * (1 + 2 / plan.height + 2 / plan.width)

    few = [Plan(rows, width, -(-rows // 2), 4) for width in (512, 256, 128)] if rows <= 16 else []
    return sorted((p for p in (*PLANS, *few) if p.rows <= rows and p.columns <= columns), key=cost)


def _tile(builder: PassBuilder, identifier: str, plan: Plan) -> bool:
    depth = len(builder.leaf(identifier).chain) - 3
    zero = builder.nest.leaves[builder.leaf(identifier).order - 1].id
    result = builder.leaf(identifier).output.array.name
    if not _in_blocks(builder, identifier, plan, depth):
        return False
    results = to_registers(builder, identifier, result, depth)
    if results is None:
        return False
    tiles = [share(builder, identifier, k, depth) for k in (0, 1)]
    if None in tiles:
        return False
    shared = [copy for copy in tiles if copy is not None]
    if not all(_fragment(builder, identifier, copy.shared, depth) for copy in shared):
        return False
    if not _map_block(builder, (zero, results), identifier, depth):
        return False
    copies = map_copies(builder, shared, plan.threads, depth)
    if copies is None or not overlap(builder, identifier, copies, depth) or not _place(builder, copies, identifier):
        return False
    builder.transact(lambda: neutral_tails(builder, zero, identifier, copies))
    return True


def _in_blocks(builder: PassBuilder, identifier: str, plan: Plan, depth: int) -> bool:
    """[rows, columns, terms] to [row tiles, column tiles {zeros, steps {threads {terms {part of a tile}}}}]."""
    why = plan.title
    chain = builder.leaf(identifier).chain
    outer, rows, columns = [s.id for s in chain[:depth]], chain[depth].id, chain[depth + 1].id
    lanes = min(4, *vector_lanes(builder, [builder.leaf(identifier)])[:1])
    order: list[list[str]] = [[], [], []]
    for loop, whole, own in ((rows, plan.rows, plan.height), (columns, plan.columns, lanes)):
        tiles = cut(builder, loop, whole, why)
        if tiles is None:
            return False
        order[0].append(tiles.outer)
        inner = tiles.inner
        if loop == columns and plan.width > lanes:
            groups = cut(builder, inner, whole * lanes // plan.width, why)
            if groups is None:
                return False
            order[2].append(groups.outer)
            inner = groups.inner
        parts = cut(builder, inner, own, why)
        if parts is None:
            return False
        order[1].append(parts.outer)
        order[2].append(parts.inner)
    if not reorder(builder, identifier, [*outer, *order[0], *order[1], *order[2]]):
        return False
    for level in reversed(range(depth + 2, depth + 4 + len(order[2]))):
        if not builder.attempt("split_scopes", loop_at(builder, identifier, level), why, after=1):
            return False
    steps = tile(builder, loop_at(builder, identifier, -1), STEP, f"{STEP} terms at a time")
    if steps is None:
        return False
    ids = [s.id for s in builder.leaf(identifier).chain]
    wanted = [*ids[: depth + 2], steps.outer, *ids[depth + 2 : depth + 4], steps.inner, *ids[depth + 4 : -2]]
    return reorder(builder, identifier, wanted)


def _fragment(builder: PassBuilder, identifier: str, shared: str, depth: int) -> bool:
    """Read a thread's operands for one term into registers."""
    scope = loop_at(builder, identifier, depth + 6)
    return staged(builder, scope, shared, "iteration", "one read for several products") is not None


def _map_block(builder: PassBuilder, others: Sequence[str], identifier: str, depth: int) -> bool:
    """Map loops to the threads of the block, and unroll the part of each thread."""
    why = "a part of the tile for each thread"
    ids = [s.id for s in builder.leaf(identifier).chain[: depth + 2]]
    if not all(builder.attempt("map_grid", f"%{i}", "independent: a block for each iteration") for i in ids):
        return False
    for statement, level in ((identifier, depth + 3), *((other, depth + 2) for other in others)):
        for _ in range(2):
            if not builder.attempt("map_block", loop_at(builder, statement, level), why):
                return False
            level += 1
        if not _straighten(builder, loop_at(builder, statement, level).id, why):
            return False
    return True


def _straighten(builder: PassBuilder, identifier: str, why: str) -> bool:
    """Unroll loops, the innermost ones as vectors of the width of a load or of a fused multiply-add."""
    scope = builder.scope(identifier)
    assert scope is not None
    for inner in [
        s.id for s in builder.nest.scopes if s.id in {c.id for leaf in scope.leaves for c in leaf.chain[scope.depth :]}
    ]:
        loop = builder.scope(inner)
        assert loop is not None
        last = len(loop.children) == 1 and isinstance(loop.children[0], Leaf)
        if last and _in_vectors(builder, loop, why):
            continue
        if not builder.attempt("unroll", loop, why):
            return False
    return True


def _in_vectors(builder: PassBuilder, loop: Scope, why: str) -> bool:
    lanes = min(4, *vector_lanes(builder, list(loop.leaves))[:1])
    if lanes in (1, loop.extent):
        return lanes > 1 and builder.attempt("vectorize", loop, why)

    def tiled() -> bool:
        tiles = tile(builder, loop, lanes, why) if loop.extent % lanes == 0 else None
        return (
            tiles is not None
            and builder.attempt("vectorize", f"%{tiles.inner}", why)
            and builder.attempt("unroll", f"%{tiles.outer}", why)
        )

    return builder.transact(tiled)


def _place(builder: PassBuilder, copies: Sequence[Copy], identifier: str) -> bool:
    """Put tiles of the block into shared memory, and parts of a thread into registers."""
    why = "the threads of a block share it"
    for copy in copies:
        if not builder.attempt("set_location", copy.shared, why, location="shared"):
            return False
    own = {builder.leaf(c.load).output.array.name for c in copies if c.load is not None}
    own |= {a.array.name for a in builder.leaf(identifier).accesses}
    for name in sorted(own):
        if not builder.attempt("set_location", name, "each thread keeps its own part", location="register"):
            return False
    for copy in copies:
        if copy.load is None:
            builder.attempt("async_copy", copy.shared, "the copy runs while the block computes")
    return True

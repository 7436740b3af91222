"""Register tiles for contractions: sums of products whose operands are each used by many results.

The plan is the usual one of fast matrix products. A block of rows by vectors of columns stays in registers over the
whole sum. The operand that the columns index (the *panel*) is packed, so that the sum reads contiguous memory. The rest
that fills no block is peeled off and gets smaller blocks. Sizes follow from extents, vector length and registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

from pdojo.dialect.affine import Expr
from pdojo.dialect.attributes import Mapping
from pdojo.dialect.functions import byte_width
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.rules.lanes import Stride, lane_stride, linear_address
from pdojo.dialect.view.nest import Access, Leaf, Scope
from pdojo.search.kinds.common.builder import PassBuilder
from pdojo.search.kinds.common.threads import balance, work

FEW_APART = 4
"""Largest stride in elements at which a gather still touches few cache lines."""
MOST_STRAIGHT = 32
"""Greatest extent of each of a block's two loops that is unrolled."""
MOST_TERMS = 64
"""Greatest number of vector operations of a block's whole sum that is unrolled."""
CLOSE, MOST_PLANS = 1.25, 3
"""Greatest estimate of a tried block, as a multiple of the least one; greatest number of tried blocks."""
UNLIKE = 2.0
"""The best plan with another panel or other columns is tried if its estimate is at most this multiple of the least."""
WORTH_CHOOSING = 1 << 20
"""Fewest products of a contraction whose plan is left open."""
FEW_SETS = 16
"""Lines at equal distances fit into a cache divided by this number."""
VECTORS = (1, 2, 4, 5, 6, 8)
"""Numbers of vectors in a block's row. Not three: LLVM takes seconds to keep arrays of three vectors in registers."""
MOST_PADDED = 1.25
"""Greatest size of a packed copy, as a multiple of the array's."""
WORTH_PACKING = 4
"""Fewest panels that must reuse a packed copy of the other operand's rows."""
NEAR_ROWS = 4
"""Rows of a block are packed if they fill at least this many first-level caches."""


@dataclass(frozen=True, slots=True)
class Roles:
    """The loops of a contraction, by identifier."""

    outer: tuple[str, ...]
    """Spatial loops that are not tiled, in their order."""
    rows: str | None
    """The spatial loop whose iterations share the panel; None if no loop shares it."""
    columns: str
    """The spatial loop of the vectors."""
    lanes: int
    """Lanes of a vector."""
    panel: int
    """Index of the read that is the panel."""
    height: int
    """Rows of a block."""
    vectors: int
    """Vectors in a row of a block."""
    cost: float
    """Estimated cycles of the whole contraction."""

    def title(self, leaf: Leaf) -> str:
        """The plan in a few words: the block, and the operand that is the panel."""
        panel = leaf.reads[self.panel].array.name
        return f"{self.height} x {self.vectors} vectors of {self.lanes}, panel {panel}"


def tile_contractions(builder: PassBuilder) -> None:
    """Tile every contraction so that a block of results stays in registers over the whole sum."""
    for identifier in [leaf.id for leaf in builder.nest.leaves]:
        leaf = builder.leaf(identifier)
        if has_terms(leaf) and is_alone(builder, leaf):
            # The first plan that applies completely.
            any(
                builder.transact(lambda i=identifier, r=roles: _tile(builder, i, r))
                for roles in _ordered(builder, leaf)
            )


def _ordered(builder: PassBuilder, leaf: Leaf) -> list[Roles]:
    """The plans for a contraction, the cheapest first; a tuning parameter chooses among the cheapest ones."""
    plans = _roles(builder, leaf)
    close = [plan for plan in plans if plan.cost <= CLOSE * plans[0].cost][:MOST_PLANS]
    unlike = {(plan.panel, plan.columns): plan for plan in reversed(plans) if plan.cost <= UNLIKE * plans[0].cost}
    tried = {plan.title(leaf): plan for plan in (*unlike.values(), *reversed(close))}
    titles = sorted(tried, key=lambda title: tried[title].cost)
    if len(titles) < 2 or work(leaf.chain[0]) < WORTH_CHOOSING:
        return plans
    chosen = tried[builder.choices.choose(f"block of {leaf.output.array.name}", titles)]
    return [chosen, *(plan for plan in plans if plan is not chosen)]


def has_terms(leaf: Leaf) -> bool:
    """True for an accumulation of one or two reads over loops of terms, into results indexed by other loops."""
    return leaf.accumulate is not None and 0 < len(spatial_loops(leaf)) < len(leaf.chain) and len(leaf.reads) in (1, 2)


def spatial_loops(leaf: Leaf) -> set[int]:
    """Depths of the loops that index the result, and of one-iteration loops outside of these."""
    used = {s.depth for s in leaf.chain if any(e.uses(s.depth) for e in leaf.output.index)}
    return used | {s.depth for s in leaf.chain if s.extent == 1 and s.depth < max(used, default=0)}


def _variables(access: Access) -> set[int]:
    return {v for e in access.index for v in e.variables()}


def uses(access: Access, scope: Scope) -> bool:
    """True if a loop indexes an access."""
    return any(e.uses(scope.depth) for e in access.index)


def _roles(builder: PassBuilder, leaf: Leaf) -> list[Roles]:
    """The possible choices of rows, columns and block, the cheapest first, then choices with results close together."""
    if any(s.mapping is not Mapping.SEQUENTIAL or s.guard for s in leaf.chain):
        return []
    spatial = [s for s in leaf.chain if s.depth in spatial_loops(leaf)]
    found: list[Roles] = []
    for panel, columns in product(range(len(leaf.reads)), spatial):
        vector, scalars = leaf.reads[panel], [a for k, a in enumerate(leaf.reads) if k != panel]
        lengths = _lengths(builder, leaf, columns.extent)
        if not lengths or not uses(vector, columns) or any(uses(scalar, columns) for scalar in scalars):
            continue
        sharing = [s for s in spatial if all(uses(a, s) for a in scalars) and not uses(vector, s)] if scalars else []
        if not sharing and not _is_near(leaf, columns, vector):
            continue
        if not _is_contiguous(vector, columns) and sharing and not can_pack(leaf, vector):
            continue
        for rows, lanes in product(sharing or [None], lengths):
            outer = tuple(s.id for s in spatial if s not in (rows, columns))
            roles = Roles(outer, None if rows is None else rows.id, columns.id, lanes, panel, 1, 1, 0.0)
            found += _sized(builder, leaf, roles)
    address = linear_address(leaf.output.index, leaf.output.array.shape)
    apart = {s.id: address.coefficient(s.depth) for s in spatial}
    return sorted(found, key=lambda roles: (roles.cost, apart.get(roles.rows or "", 0)))


def _lengths(builder: PassBuilder, leaf: Leaf, extent: int) -> list[int]:
    """The longest vector length, and shorter ones of the same throughput per lane."""
    fitting = [n for n in builder.vector_lanes(leaf) if n <= extent]
    longest = max(fitting, default=0)
    width = max(byte_width(access.array.dtype) for access in leaf.accesses)
    split = builder.game.machine.cpu.pipe_bytes
    return [n for n in reversed(fitting) if n == longest or (split and longest * width > split <= n * width)]


def _is_contiguous(access: Access, columns: Scope) -> bool:
    return lane_stride(access.index, access.array.shape, columns.depth) is Stride.CONTIGUOUS


def _is_near(leaf: Leaf, columns: Scope, vector: Access) -> bool:
    """True if lanes along the columns store whole vectors and read elements at most `FEW_APART` apart."""
    step = linear_address(vector.index, vector.array.shape).coefficient(columns.depth)
    return _is_contiguous(leaf.output, columns) and 0 < step <= FEW_APART


def can_pack(leaf: Leaf, panel: Access) -> bool:
    """True if a copy of the panel in loop order is at most `MOST_PADDED` times the array; overlapping windows are not.

    The copy's rows are padded to whole vectors.
    """
    return prod(leaf.chain[v].extent for v in _variables(panel)) <= MOST_PADDED * prod(panel.array.shape)


def _sized(builder: PassBuilder, leaf: Leaf, roles: Roles) -> list[Roles]:
    """The cheapest blocks by estimate that fit the registers, one for each number of vectors."""
    lanes = roles.lanes
    rows = 1 if roles.rows is None else leaf.chain[_depth(leaf, roles.rows)].extent
    columns = leaf.chain[_depth(leaf, roles.columns)].extent
    steps = prod(s.extent for s in leaf.chain if s.depth not in spatial_loops(leaf))
    others = [s.extent for s in leaf.chain if s.id in roles.outer]
    machine = builder.game.machine
    line = lanes * byte_width(leaf.output.array.dtype)
    whole = _is_contiguous(leaf.output, leaf.chain[_depth(leaf, roles.columns)])
    overhead = machine.cpu.store_vector if whole else machine.cpu.store_lane * lanes
    apart = not _is_contiguous(leaf.reads[roles.panel], leaf.chain[_depth(leaf, roles.columns)])
    packing = columns * steps * (machine.cpu.pack_lane if apart else machine.cpu.pack_vector / lanes)
    outer = [s for s in leaf.chain if s.id in roles.outer]
    packing *= prod(others[: _copies(outer, leaf.reads[roles.panel])])
    panel = leaf.reads[roles.panel].array
    whole_panel = prod(panel.shape) * byte_width(panel.dtype) // prod(others)
    found: list[Roles] = []
    for vectors in VECTORS:
        best = (float("inf"), 1)
        if vectors > 1 and lanes * (vectors - 1) >= columns:
            break
        for height in range(1, min(32, rows) + 1):
            if height * vectors + vectors + 1 > machine.vector_registers:
                break
            packed = _is_packed(leaf, roles, rows, height)
            gathered = apart and not packed and roles.rows is not None
            load = _gather(machine, lanes, vectors) if gathered else _load(machine, steps * vectors * line)
            # The first block of rows brings its panel into the core's caches.
            first = load if gathered else max(load, _load(machine, 2 * whole_panel))
            shared = next((n for n in others if n > 1), -(-columns // (lanes * vectors)))
            blocks = [
                (h, v, n * b, source)
                for v, b in _parts(-(-columns // lanes), vectors)
                for h, a in _parts(rows, height)
                for n, source in ((min(a, h == height), first), (a - min(a, h == height), load))
                if n * b
            ]
            cycles = sum(n * (steps * _step(machine, line, h, v, near) + overhead * h * v) for h, v, n, near in blocks)
            cycles = cycles * prod(others) + (packing if packed else 0)
            best = min(best, (cycles / balance(shared, machine.threads), height))
        found.append(replace(roles, height=best[1], vectors=vectors, cost=best[0]))
    return found


def _load(machine: Machine, panel: int) -> float:
    """Cycles to load a vector of a panel of `panel` bytes."""
    return machine.cpu.near_load if panel <= machine.private_cache // 2 else machine.cpu.far_load


def _gather(machine: Machine, lanes: int, vectors: int) -> float:
    """Cycles to load a vector of an unpacked panel whose lanes are lines apart."""
    lines = lanes * vectors * machine.cache_line
    return lanes * (
        machine.cpu.gather_lane if lines <= machine.cache_bytes[0] // FEW_SETS else machine.cpu.gather_conflict
    )


def _is_packed(leaf: Leaf, roles: Roles, rows: int, height: int) -> bool:
    """True if enough blocks of `height` rows reuse the panel to repay packing."""
    return roles.rows is not None and rows >= 2 * height and can_pack(leaf, leaf.reads[roles.panel])


def _parts(extent: int, size: int) -> list[tuple[int, int]]:
    """Size and number of the full tiles and of the rest."""
    return [(size, extent // size), (extent % size, 1 if extent % size else 0)]


def _step(machine: Machine, size: int, height: int, vectors: int, load: float) -> float:
    """Cycles of one term of a block's sums: the bound of arithmetic, loads, latency or cache.

    `size` is the bytes of a vector.
    """
    passes = machine.cpu.passes(size)
    core = machine.cpu
    work, loads = height * vectors * passes / core.fma_pipes, (height + vectors) * passes / core.load_pipes
    # Loads take issue slots even if they are not the bound.
    return max(work, loads, core.fma_latency, vectors * load) + loads / 8


def _depth(leaf: Leaf, identifier: str) -> int:
    return next(s.depth for s in leaf.chain if s.id == identifier)


def _tile(builder: PassBuilder, identifier: str, roles: Roles) -> bool:
    """Apply the plan to one contraction; returns False if a move is illegal."""
    lanes = roles.lanes
    depth = len(roles.outer)
    if roles.rows is not None:
        ordered = reorder(builder, identifier, [*roles.outer, roles.columns, roles.rows])
    else:
        ordered = reorder(builder, identifier, [*roles.outer, roles.columns]) and _lone_row(builder, identifier, depth)
    if not ordered:
        return False
    width = lanes * roles.vectors
    why = f"blocks of {roles.height} rows of {roles.vectors} vectors of {lanes} stay in registers"
    before = {other.id for other in builder.nest.leaves}
    pieces = _cut(builder, identifier, depth, width, lanes, why)
    if not all(_columns(builder, piece, depth, roles, lanes, why) for piece in pieces):
        return False
    _seal(builder, identifier, before, depth)
    if roles.rows is not None and _is_flat(builder, identifier, roles):
        _rows_first(builder, [*pieces, *_rests(builder, identifier, before)], depth)
    return True


def _is_flat(builder: PassBuilder, identifier: str, roles: Roles) -> bool:
    """True if the sum is short and has many results: all panels stay in a core's cache, and the results do not."""
    leaf = builder.leaf(identifier)
    machine, output = builder.game.machine, leaf.output.array
    panels = prod(s.extent for s in leaf.chain if uses(leaf.reads[roles.panel], s))
    results = prod(output.shape) * byte_width(output.dtype)
    return panels * byte_width(output.dtype) <= machine.private_cache // 2 and results > machine.private_cache


def _rests(builder: PassBuilder, identifier: str, before: set[str]) -> list[str]:
    """The sums of the peeled rests of a contraction."""
    like = builder.leaf(identifier)
    return [
        leaf.id
        for leaf in builder.nest.leaves
        if leaf.id not in before and leaf.accumulate is not None and leaf.reads[0].array is like.reads[0].array
    ]


def _rows_first(builder: PassBuilder, pieces: Sequence[str], depth: int) -> None:
    """Put the loops over blocks of rows around those over panels, so that results are stored row by row."""
    why = "all panels are in the cache: whole rows of results are stored"
    for identifier in pieces:
        while len((panels := loop_at(builder, identifier, depth)).children) > 1:
            if not builder.attempt("split_scopes", panels, why, after=1):
                return
        builder.attempt("swap_scopes", panels, why)


def _lone_row(builder: PassBuilder, identifier: str, depth: int) -> bool:
    """Put a loop of one iteration inside the columns, in place of the missing rows."""
    columns = builder.leaf(identifier).chain[depth]
    why = "a block of one row"
    made = builder.attempt("tile_scope", columns, why, size=columns.extent)
    return made and builder.attempt("swap_scopes", loop_at(builder, identifier, depth), why)


def _seal(builder: PassBuilder, identifier: str, before: set[str], depth: int) -> None:
    """Seal the loops of the blocks and of their copies against fusion."""
    array = builder.leaf(identifier).output.array.name
    for leaf in builder.nest.leaves:
        if leaf.id == identifier or leaf.id not in before or leaf.output.array.name == array:
            builder.sealed.update(scope.id for scope in leaf.chain[depth:])


def is_alone(builder: PassBuilder, leaf: Leaf) -> bool:
    """True if the nest holds only initialisation and sum, with the spatial loops around both."""
    spatial = spatial_loops(leaf)
    if not spatial or spatial != set(range(len(spatial))):
        return False
    innermost = leaf.chain[len(spatial) - 1]
    if len(innermost.children) != 2 or any(len(s.children) != 1 for s in leaf.chain[: len(spatial) - 1]):
        return False
    first = innermost.children[0]
    return isinstance(first, Leaf) and first.accumulate is None and first.output.key == leaf.output.key


def _cut(builder: PassBuilder, identifier: str, depth: int, size: int, least: int, why: str) -> list[str]:
    """Peel off the rest behind whole tiles, but at least `least` iterations; returns the sums of both parts."""
    scope = builder.leaf(identifier).chain[depth]
    whole = scope.extent // size * size
    if 0 < scope.extent - whole < least:
        whole -= size
    if whole in (0, scope.extent):
        return [identifier]
    before = {leaf.id for leaf in builder.nest.leaves}
    if not builder.attempt("peel_scope", scope, f"{why}; the rest by itself", after=whole):
        return [identifier]
    array = builder.leaf(identifier).output.array.name
    rest = [w for w in builder.nest.writers[array] if w.id not in before and w.accumulate is not None]
    return [identifier, *(leaf.id for leaf in rest)]


def _columns(builder: PassBuilder, identifier: str, depth: int, roles: Roles, lanes: int, why: str) -> bool:
    """Tile one piece of the columns: [outer, columns, rows] to [outer, panels, rows, vectors, lanes]; then its rows."""
    extent = builder.leaf(identifier).chain[depth].extent
    width, height = lanes * roles.vectors, roles.height
    tiled = extent % width == 0 and extent > width
    if tiled and not builder.attempt("tile_scope", loop_at(builder, identifier, depth), why, size=width):
        return False
    if not tiled:
        vectors = -(-extent // lanes)
        height = min(height, max(1, (builder.game.machine.vector_registers - 1 - vectors) // vectors))
    inner = depth + tiled
    if not builder.attempt("tile_scope", loop_at(builder, identifier, inner), f"vectors of {lanes} lanes", size=lanes):
        return False
    for position in (inner + 1, inner):
        if not builder.attempt("swap_scopes", loop_at(builder, identifier, position), "a block is rows of vectors"):
            return False
    _pack(builder, identifier, inner, roles)
    if tiled:
        _pack_rows(builder, identifier, depth, roles)
    pieces = _cut(builder, identifier, inner, height, 1, why)
    return all(_block(builder, piece, inner, height, why) for piece in pieces)


def loop_at(builder: PassBuilder, identifier: str, depth: int) -> Scope:
    """The loop around a statement at a depth; -1 is the innermost one."""
    return builder.leaf(identifier).chain[depth]


def _pack(builder: PassBuilder, identifier: str, rows: int, roles: Roles) -> None:
    """Copy the panel in the order of the sum's reads, if that pays."""
    leaf = builder.leaf(identifier)
    panel = leaf.reads[roles.panel]
    if not _is_packed(leaf, roles, leaf.chain[rows].extent, roles.height):
        return
    lanes = rows + 2
    terms = leaf.chain[lanes + 1 :]
    # One copy serves all iterations that do not index it, all blocks of rows, and one panel of columns if there are
    # several.
    again = _copies(leaf.chain[: len(roles.outer)], panel)
    inner = next((s for s in leaf.chain[len(roles.outer) : rows] if uses(panel, s)), leaf.chain[rows])
    top = leaf.chain[again] if again < len(roles.outer) else inner
    name = panel.array.name
    if not builder.attempt("stage_in", top, "the sum reads contiguous memory", array=name, location="heap"):
        return
    copied = builder.leaf(identifier).reads[roles.panel].array.name
    _order_copy(builder, copied, len(terms))
    (writer,) = builder.nest.writers[copied]
    builder.attempt("vectorize", writer.chain[-1], "the lanes of a vector")
    builder.attempt("unroll", writer.chain[-2], "the vectors of one term")


def _copies(outer: Sequence[Scope], panel: Access) -> int:
    """Number of outer loops, counted from the outermost, whose iterations each need their own copy of the panel."""
    return next((k for k, scope in enumerate(outer) if not uses(panel, scope)), len(outer))


def _pack_rows(builder: PassBuilder, identifier: str, panels: int, roles: Roles) -> None:
    """Copy the other operand with the rows of a block side by side, if rows are long and many blocks reuse them.

    The loop over panels is at the depth `panels`, the loop over rows next to it.
    """
    leaf = builder.leaf(identifier)
    if roles.rows is None:
        return
    scalar = leaf.reads[1 - roles.panel]
    name, rows = scalar.array.name, panels + 1
    terms = prod(s.extent for s in leaf.chain if s.depth not in spatial_loops(leaf))
    size = roles.height * terms * byte_width(scalar.array.dtype)
    near = size <= NEAR_ROWS * builder.game.machine.cache_bytes[0]
    if leaf.chain[panels].extent < WORTH_PACKING or near or not can_pack(leaf, scalar):
        return
    if builder.choices.choose("rows of blocks", ("packed", "in place")) == "in place":
        return
    if _read_copy(builder, identifier, 1 - roles.panel, roles.height):
        return
    why = "the rows of a block lie side by side, not pages apart"
    if not builder.attempt("stage_in", leaf.chain[panels], why, array=name, location="heap"):
        return
    copied = builder.leaf(identifier).reads[1 - roles.panel].array.name
    index = builder.leaf(identifier).reads[1 - roles.panel].index
    dimension = next(d for d, e in enumerate(index) if e.uses(rows))
    if builder.attempt("tile_dim", f"{copied}:{dimension}", why, size=roles.height):
        for d in range(dimension + 1, len(index)):
            builder.attempt("swap_dims", f"{copied}:{d}", why)


def _read_copy(builder: PassBuilder, identifier: str, position: int, height: int) -> bool:
    """Read an operand from a copy that an earlier contraction packed in blocks of `height` rows, if there is one."""
    leaf = builder.leaf(identifier)
    read = leaf.reads[position]
    for writer in builder.nest.leaves[: leaf.order]:
        if not is_copy(writer) or writer.reads[0].array is not read.array or writer.output.array.shape[-1] != height:
            continue
        index = _index_in_copy(writer, read, leaf)
        why = "an earlier contraction has packed these rows"
        params = {"input": leaf.inputs.index(read), "array": writer.output.array.name, "index": index}
        if index and builder.attempt("outline_op", leaf, why, **params):
            return True
    return False


def is_copy(leaf: Leaf) -> bool:
    """True for a statement that copies elements."""
    return leaf.function is None and leaf.accumulate is None and len(leaf.reads) == len(leaf.inputs) == 1


def _index_in_copy(writer: Leaf, read: Access, leaf: Leaf) -> str:
    """Location in a copy of an element that a statement reads; '' if the copy's loops do not run by elements."""
    places: dict[int, Expr] = {}
    for source, wanted in zip(writer.reads[0].index, read.index, strict=True):
        (variable, step), *others = source.terms or ((None, 0),)
        if isinstance(variable, int) and step == 1 and not others and not source.constant:
            places[variable] = wanted
        elif source != wanted:
            return ""
    if any(not places.keys() >= e.variables() for e in writer.output.index):
        return ""
    index = (e.substitute(places, leaf.extents) for e in writer.output.index)
    return ",".join(e.render(lambda d: f"{{{d}}}") for e in index)


def _order_copy(builder: PassBuilder, name: str, terms: int) -> None:
    """Move the dimensions of the sum's terms before vectors and lanes, in the buffer and in the copy."""
    rank = len(builder.nest.arrays[name].shape)
    for term in range(terms):
        at = rank - terms + term
        for dimension in range(at, at - 2, -1):
            builder.attempt("swap_dims", f"{name}:{dimension - 1}", "vectors of one term lie together")
            (writer,) = builder.nest.writers[name]
            chain = writer.chain
            builder.attempt("swap_scopes", chain[dimension - 1 + len(chain) - rank], "written in order")


def _block(builder: PassBuilder, identifier: str, rows: int, height: int, why: str) -> bool:
    """Tile one piece of the rows: [rows, vectors, lanes] around initialisation and sum becomes blocks in registers."""
    size = min(height, loop_at(builder, identifier, rows).extent)
    if not builder.attempt("tile_scope", loop_at(builder, identifier, rows), why, size=size):
        return False
    array = builder.leaf(identifier).output.array.name
    for depth in (rows + 3, rows + 2, rows + 1):
        if not builder.attempt(
            "split_scopes", loop_at(builder, identifier, depth), "zeros first, then the sum", after=1
        ):
            return False
    chain = [s.id for s in builder.leaf(identifier).chain]
    block, terms = chain[rows + 1 : rows + 4], chain[rows + 4 :]
    if not reorder(builder, identifier, [*chain[: rows + 1], *terms, *block]):
        return False
    return _to_registers(builder, identifier, array, rows)


def _to_registers(builder: PassBuilder, identifier: str, array: str, depth: int) -> bool:
    """Keep the block in its own buffer from its zeros to its last sum; the loop over blocks is at `depth`."""
    why = "the block is in registers until it is complete"
    if not builder.attempt("stage_out", loop_at(builder, identifier, depth), why, array=array, location="heap"):
        return False
    copied = builder.leaf(identifier).output.array.name
    (back,) = [w for w in builder.nest.writers[array] if any(r.array.name == copied for r in w.reads)]
    if loop_at(builder, identifier, depth).extent == 1:
        # Copies have no loops of one iteration.
        beside = loop_at(builder, back.id, depth)
        builder.attempt("tile_scope", beside, why, size=beside.extent)
    if not builder.attempt("join_scopes", loop_at(builder, identifier, depth), why):
        return False
    builder.exhaust(lambda: [f"{copied}:{d}" for d in range(len(builder.nest.arrays[copied].shape))], "reuse_dims", why)
    first = next(w for w in builder.nest.writers[copied] if w.accumulate is None)
    for statement in (first.id, identifier, back.id):
        chain = builder.leaf(statement).chain
        builder.attempt("vectorize", chain[-1], "the lanes of a vector")
        for scope in chain[-3:-1]:
            if scope.depth > depth and scope.extent <= MOST_STRAIGHT:
                builder.attempt("unroll", scope, "the block is straight code")
    terms = builder.leaf(identifier).chain[depth + 1 : -3]
    if prod(s.extent for s in builder.leaf(identifier).chain[depth + 1 : -1]) <= MOST_TERMS:
        for scope in reversed(terms):
            builder.attempt("unroll", f"%{scope.id}", "few terms: the sum is straight code")
    return builder.attempt("set_location", copied, why, location="register")


def reorder(builder: PassBuilder, identifier: str, wanted: list[str]) -> bool:
    """Interchange the loops around a statement into the wanted order, outermost first; returns False if illegal."""
    for position, target in enumerate(wanted):
        while True:
            chain = builder.leaf(identifier).chain
            current = next((s for s in chain if s.id == target), None)
            if current is None:
                return False
            if current.depth == position:
                break
            if not builder.attempt("swap_scopes", chain[current.depth - 1], "the order of loops that reuses most"):
                return False
    return True

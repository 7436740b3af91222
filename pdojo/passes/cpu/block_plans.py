"""Plans for contractions: which loops are rows and columns of blocks, and an estimate of each block in cycles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from math import gcd, inf, prod

from pdojo.dialect.attributes import Numerics
from pdojo.dialect.functions import byte_width
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.rules.lanes import linear_address
from pdojo.dialect.view.nest import Access, Leaf, Scope
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.common.contraction import (
    VECTORS,
    Block,
    ContractionShape,
    best_blocks,
    can_pack,
    is_bound,
    spatial_loops,
    tiles_of,
    uses,
)
from pdojo.passes.cpu.cost_model import start_cycles
from pdojo.passes.cpu.squares import runs_along
from pdojo.passes.cpu.threads import balance

FEW_APART = 4
"""Largest stride in elements at which a gather still touches few cache lines."""
FEW_SETS = 16
"""Lines at equal distances fit into a cache divided by this number."""
WAYS = 8
"""Lines of a set of a core's caches."""
SLACK = 1.1
"""Latency of sums that a processor does not hide completely, as a multiple."""
WORTH_PACKING = 4
"""Fewest panels that must reuse a packed copy of the other operand's rows."""
MASKS = frozenset({"avx512f", "sve", "v"})
"""Features of processors whose masks have registers of their own."""


@dataclass(frozen=True, slots=True)
class BlockPlan:
    """A plan for a contraction, with the loops by identifier."""

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
    block: Block
    """The block of results in registers; its cost is in cycles."""

    @property
    def height(self) -> int:
        """Rows of a block."""
        return self.block.height

    @property
    def vectors(self) -> int:
        """Vectors in a row of a block."""
        return self.block.vectors

    @property
    def cost(self) -> float:
        """Estimated cycles of the whole contraction."""
        return self.block.cost

    def title(self, leaf: Leaf) -> str:
        """The plan in a few words: the block, and the operand that is the panel."""
        panel = leaf.reads[self.panel].array.name
        return f"{self.height} x {self.vectors} vectors of {self.lanes}, panel {panel}"


def block_plans(builder: PassBuilder, shape: ContractionShape) -> list[BlockPlan]:
    """The possible choices of rows, columns and block, the cheapest first, then choices with results close together."""
    leaf = shape.leaf
    found: list[BlockPlan] = []
    for panel, vector in enumerate(leaf.reads):
        others = [loops for k, loops in enumerate(shape.own) if k != panel]
        for columns in (*shape.own[panel], *_along_all(shape, panel)):
            lengths = _lengths(builder, leaf, columns.extent)
            sharing = others[0] if others else ()
            is_near = _is_near(leaf, columns, vector) or (is_bound(leaf, vector) and runs_along(leaf.output, columns))
            if not sharing and not is_near:
                continue
            if not builder.game.machine.gather and not runs_along(leaf.output, columns):
                # Lanes that are apart cannot be stored.
                continue
            if not runs_along(vector, columns) and sharing and not can_pack(leaf, vector):
                continue
            for rows in sharing or [None]:
                for lanes in lengths:
                    found += _Blocks(builder.game.machine, shape, panel, columns, rows, lanes).plans()
    address = linear_address(leaf.output.index, leaf.output.array.shape)
    apart = {s.id: address.coefficient(s.depth) for s in shape.spatial}
    return sorted(found, key=lambda plan: (plan.cost, apart.get(plan.rows or "", 0)))


def _along_all(shape: ContractionShape, panel: int) -> Iterator[Scope]:
    """The loops along all operands and results; the panel may be packed instead."""
    leaf = shape.leaf
    others = [leaf.output, *(read for k, read in enumerate(leaf.reads) if k != panel)]
    for scope in shape.shared:
        is_near = runs_along(leaf.reads[panel], scope) or is_bound(leaf, leaf.reads[panel])
        if is_near and all(runs_along(access, scope) for access in others):
            yield scope


def _lengths(builder: PassBuilder, leaf: Leaf, extent: int) -> list[int]:
    """The longest vector length, and shorter ones of the same throughput per lane."""
    fitting = [n for n in builder.vector_lanes(leaf) if n <= extent]
    longest = max(fitting, default=0)
    width = max(byte_width(access.array.dtype) for access in leaf.accesses)
    split = builder.game.machine.cpu.pipe_bytes
    return [n for n in reversed(fitting) if n == longest or (split and longest * width > split <= n * width)]


def _is_near(leaf: Leaf, columns: Scope, vector: Access) -> bool:
    """True if lanes along the columns store whole vectors and read elements at most `FEW_APART` apart."""
    step = linear_address(vector.index, vector.array.shape).coefficient(columns.depth)
    return runs_along(leaf.output, columns) and 0 < step <= FEW_APART


@dataclass(frozen=True)
class _Blocks:
    """The blocks of a contraction with given rows, columns and lanes, and estimates of their cycles."""

    machine: Machine
    shape: ContractionShape
    panel: int
    columns: Scope
    rows: Scope | None
    """The loop over rows; None if no loop shares the panel."""
    lanes: int

    @cached_property
    def leaf(self) -> Leaf:
        """The sum."""
        return self.shape.leaf

    @cached_property
    def access(self) -> Access:
        """The read of the panel."""
        return self.leaf.reads[self.panel]

    @cached_property
    def outer(self) -> list[Scope]:
        """The other loops over results."""
        return [s for s in self.shape.spatial if s not in (self.rows, self.columns)]

    @cached_property
    def count(self) -> int:
        """The number of rows."""
        return 1 if self.rows is None else self.rows.extent

    @cached_property
    def line(self) -> int:
        """Bytes of a vector."""
        return self.lanes * byte_width(self.leaf.output.array.dtype)

    @cached_property
    def steps(self) -> int:
        """Terms of a result."""
        return prod(s.extent for s in self.shape.terms)

    def plans(self) -> Iterator[BlockPlan]:
        """The cheapest blocks by estimate that fit the registers, one for each number of vectors."""
        columns, rows = self.columns, self.rows
        fitting = takewhile(lambda vectors: vectors == 1 or self.lanes * (vectors - 1) < columns.extent, VECTORS)
        outer = tuple(s.id for s in self.outer)
        for block in best_blocks(self.count, fitting, self.machine.vector_registers, self.cycles):
            yield BlockPlan(outer, None if rows is None else rows.id, columns.id, self.lanes, self.panel, block)

    def cycles(self, height: int, vectors: int) -> float:
        """Cycles of the whole contraction in blocks of so many rows of vectors."""
        width = self.lanes * vectors
        load, first, total = self._loads(height, vectors)
        # A rest shorter than a vector joins the last panel.
        wholly = self.columns.extent // width - (0 < self.columns.extent % width < self.lanes)
        for v, b in tiles_of(-(-self.columns.extent // self.lanes), vectors):
            if not b:
                continue
            more = self._rows_load(height, b if v < vectors else wholly) / v
            parts: list[tuple[int, float]] = []
            for h, a in tiles_of(self.count, height):
                if a:
                    source = first if h == height else load
                    parts.append((a, self._block(h, v, more + source) + (a - 1) * self._block(h, v, more + load)))
            total += _shared(self.machine, [*(s.extent for s in self.outer), b], parts)
        return total

    def _loads(self, height: int, vectors: int) -> tuple[float, float, float]:
        """Cycles to load a vector of the panel, one for the first block of rows, and of packing in each call."""
        machine, leaf, access, columns = self.machine, self.leaf, self.access, self.columns
        apart, others = not runs_along(access, columns), [s.extent for s in self.outer]
        bound = is_bound(leaf, access)
        packed = bound or is_repaid(machine, leaf, access, self.count, height, apart=apart)
        if apart and not packed and self.rows is not None:
            gather = _gather(machine, self.lanes, vectors)
            return gather, gather, 0.0
        load = _load(machine, self.steps * vectors * self.line)
        # The first block of rows brings its panel into the core's caches.
        whole = prod(access.array.shape) * byte_width(access.array.dtype) // prod(others)
        first = max(load, _load(machine, 2 * whole))
        if not packed:
            load = first = max(first, _load_in_place(machine, leaf, access, self.line, vectors))
        if not packed or bound:
            return load, first, 0.0
        vector = max(machine.cpu.pack_vector, _load_in_place(machine, leaf, access, self.line, VECTORS[1]))
        elements = columns.extent * self.steps * prod(others[: copies_of(self.outer, access)])
        return load, first, elements * (machine.cpu.pack_lane if apart else vector / self.lanes)

    def _rows_load(self, height: int, panels: int) -> float:
        """Cycles to load the elements of a block's rows for one term; the rows of few panels are not packed."""
        reads = self.leaf.reads
        if len(reads) < 2 or panels * times_read(self.outer, reads[1 - self.panel]) >= WORTH_PACKING:
            return 0.0
        return _rows_load(self.machine, self.leaf, self.panel, self.rows, height)

    def _block(self, height: int, vectors: int, load: float) -> float:
        """Cycles of a block."""
        machine, is_shared = self.machine, self.columns in self.shape.shared
        step = _step(machine, self.line, height, vectors, load, scalars=height * vectors if is_shared else height)
        store = _store(machine, self.leaf, self.access, self.columns, self.lanes, self.rows, height)
        return self.steps * step + height * vectors * store


def _shared(machine: Machine, loops: Sequence[int], parts: Sequence[tuple[int, float]]) -> float:
    """Cycles of all threads for loops, outermost first, around parts: the number and the cycles of blocks of rows.

    The threads share a loop around all parts, or the blocks of each part; or one thread computes all.
    """
    runs, threads = prod(loops), machine.threads
    whole = runs * sum(cycles for _, cycles in parts)
    if threads == 1:
        return whole
    start = threads * start_cycles(machine)
    inside = sum(runs * (cycles / balance(number, threads) + start) for number, cycles in parts)
    best, count = min(whole * threads, inside), 1
    for extent in loops:
        best = min(best, whole / balance(extent, threads) + count * start)
        count *= extent
    return best


def _store(
    machine: Machine, leaf: Leaf, panel: Access, columns: Scope, lanes: int, rows: Scope | None, height: int
) -> float:
    """Cycles to zero and to store a vector of a block.

    Lanes on lines of their own cost less if the rows of a block write neighbours in the same lines. Only with panels of
    constants: of others, the copies of both operands cost more than is estimated.
    """
    if runs_along(leaf.output, columns):
        return machine.cpu.store_vector
    line = machine.cache_line // byte_width(leaf.output.array.dtype)
    together = rows is not None and is_bound(leaf, panel) and runs_along(leaf.output, rows)
    return lanes * (machine.cpu.store_lane / min(height, line) + 1 if together else machine.cpu.store_lane)


def _load(machine: Machine, panel: int) -> float:
    """Cycles to load a vector of a panel of `panel` bytes."""
    return machine.cpu.near_load if panel <= machine.private_cache // 2 else machine.cpu.far_load


def _rows_load(machine: Machine, leaf: Leaf, panel: int, rows: Scope | None, height: int) -> float:
    """Cycles to load the elements of a block's rows for one term, if they are not in the first cache.

    Rows side by side are in lines of their own for each term; rows at multiples of a way's size evict each other.
    """
    if rows is None or len(leaf.reads) < 2:
        return 0.0
    scalar = leaf.reads[1 - panel]
    step = linear_address(scalar.index, scalar.array.shape).coefficient(rows.depth)
    width = byte_width(scalar.array.dtype)
    if step == 1:
        return _load_in_place(machine, leaf, scalar, height * width, 1)
    return height * machine.cpu.near_load if evict_each_other(machine, step * width, height) else 0.0


def evict_each_other(machine: Machine, step: int, count: int) -> bool:
    """True if `count` elements `step` bytes apart share so few sets of the first cache that it does not keep them."""
    way = machine.cache_bytes[0] // WAYS
    sets = way // max(gcd(step, way), machine.cache_line)
    return step != 0 and count >= WAYS * sets


def _load_in_place(machine: Machine, leaf: Leaf, panel: Access, line: int, vectors: int) -> float:
    """Cycles to load a vector of an unpacked panel: most of a cache line's time if terms lie lines apart."""
    steps = _term_steps(leaf, panel)
    terms = prod(extent for extent, _ in steps)
    near = prod(extent for extent, step in steps if abs(step) < machine.cache_line)
    lines = -(-vectors * line // machine.cache_line)
    is_near = terms // near * lines * machine.cache_line <= machine.cache_bytes[0] // 2
    if is_near and not _collides(machine, leaf, panel):
        return 0.0
    return machine.cpu.far_line * lines / vectors / near


def _gather(machine: Machine, lanes: int, vectors: int) -> float:
    """Cycles to load a vector of an unpacked panel whose lanes are lines apart."""
    lines = lanes * vectors * machine.cache_line
    return lanes * (
        machine.cpu.gather_lane if lines <= machine.cache_bytes[0] // FEW_SETS else machine.cpu.gather_conflict
    )


def is_repaid(machine: Machine, leaf: Leaf, panel: Access, rows: int, height: int, *, apart: bool) -> bool:
    """True if enough blocks of `height` rows reuse the panel to repay packing in each call.

    If the lanes of a vector are `apart`, one use does: squares are transposed in registers, and gathers take longer.
    Overlapping windows are packed, and so copied several times, only if their terms share sets of the first cache.
    """
    if apart and can_pack(leaf, panel):
        return True
    return rows >= 2 * height and (can_pack(leaf, panel) or _collides(machine, leaf, panel))


def dots_cost(builder: PassBuilder, shape: ContractionShape) -> float:
    """Estimated cycles of a contraction without blocks, as a sum over vectors of terms for each result.

    Infinite if the factors of neighbouring terms do not lie side by side, or their order may not change.
    """
    leaf, machine, terms = shape.leaf, builder.game.machine, shape.terms[-1]
    is_free = builder.game.program.permits(Numerics.REASSOCIATES)
    if not is_free or len(leaf.reads) != 2 or not all(runs_along(read, terms) for read in leaf.reads):
        return inf
    width = byte_width(leaf.output.array.dtype)
    lanes = builder.lanes(leaf, terms.extent)
    panel = max(prod(s.extent for s in leaf.chain if uses(read, s)) for read in leaf.reads) * width
    far = panel > machine.cache_bytes[0] // 2
    vector = max(2 * machine.cpu.passes(lanes * width) / machine.cpu.load_pipes, _load(machine, panel) if far else 0.0)
    each = -(-prod(s.extent for s in shape.terms) // lanes) * vector + machine.cpu.add_lanes
    return _shared(machine, [s.extent for s in shape.spatial], [(1, each)])


def _collides(machine: Machine, leaf: Leaf, panel: Access) -> bool:
    """True if more terms of a sum than the first cache has ways lie at a multiple of the size of a way."""
    way = machine.cache_bytes[0] // WAYS
    return any(extent > WAYS and step and step % way == 0 for extent, step in _term_steps(leaf, panel))


def _term_steps(leaf: Leaf, panel: Access) -> list[tuple[int, int]]:
    """Of each loop over terms, the extent and the distance in bytes between the panel's elements of two iterations."""
    address = linear_address(panel.index, panel.array.shape)
    spatial, width = spatial_loops(leaf), byte_width(panel.array.dtype)
    return [(s.extent, address.coefficient(s.depth) * width) for s in leaf.chain if s.depth not in spatial]


def _step(machine: Machine, size: int, height: int, vectors: int, load: float, *, scalars: int | None = None) -> float:
    """Cycles of one term of a block's sums: the bound of arithmetic, loads, latency or cache.

    `size` is the bytes of a vector; `scalars` the loads of the other operand, None for one in each row.
    """
    passes = machine.cpu.passes(size)
    core = machine.cpu
    work, loads = height * vectors * passes / core.fma_pipes, (vectors + (scalars or height)) * passes / core.load_pipes
    # Loads take issue slots even if they are not the bound; twice as many if products are twice as many instructions.
    issued = loads / 4 if core.pipe_bytes and passes == 1 else loads / 8
    return max(work, loads, SLACK * core.fma_latency, vectors * load) + issued


def tallest(machine: Machine, vectors: int, *, masked: bool) -> int:
    """The most rows of a block of `vectors` vectors, the last one perhaps masked, that fit the registers."""
    mask = masked and MASKS.isdisjoint(machine.features)
    return max(1, (machine.vector_registers - 1 - mask - vectors) // vectors)


def least_rest(builder: PassBuilder, identifier: str, depth: int, plan: BlockPlan) -> int:
    """The fewest columns that get blocks of their own: 1, or a vector if a shorter rest is better with a whole panel.

    The columns are at `depth`, the rows next to them.
    """
    leaf, machine = builder.leaf(identifier), builder.game.machine
    columns, rows = leaf.chain[depth].extent, leaf.chain[depth + 1].extent
    rest = columns % (plan.lanes * plan.vectors)
    if not 0 < rest < plan.lanes <= columns - rest:
        return 1
    if rest == 1:
        # A single column has no lanes.
        return plan.lanes
    line = plan.lanes * byte_width(leaf.output.array.dtype)

    def cycles(vectors: int, *, masked: bool) -> float:
        height = min(rows, tallest(machine, vectors, masked=masked), plan.height if not masked else rows)
        return -(-rows // height) * _step(machine, line, height, vectors, machine.cpu.near_load)

    apart = cycles(plan.vectors, masked=False) + cycles(1, masked=True)
    return 1 if apart <= cycles(plan.vectors + 1, masked=True) else plan.lanes


def copies_of(outer: Sequence[Scope], panel: Access) -> int:
    """Number of outer loops, counted from the outermost, whose iterations each need their own copy of the panel."""
    return next((k for k, scope in enumerate(outer) if not uses(panel, scope)), len(outer))


def times_read(outer: Sequence[Scope], operand: Access) -> int:
    """The number of iterations of the outer loops that share a copy of the operand."""
    return prod(s.extent for s in outer[copies_of(outer, operand) :] if not uses(operand, s))

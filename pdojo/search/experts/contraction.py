"""Register tiles for contractions: sums of products whose operands are each used by many results."""

from __future__ import annotations

from dataclasses import dataclass

from pdojo.dialect.analysis.lanes import Stride, stride_over
from pdojo.dialect.attributes import Mapping
from pdojo.dialect.nest import Leaf, Node, Scope
from pdojo.search.experts.greedy import widest_lanes
from pdojo.search.experts.player import Player


@dataclass(frozen=True, slots=True)
class Shape:
    """The loops of a contraction, by identifier: spatial ones index the result, reductions do not."""

    outer: tuple[str, ...]
    """Spatial loops that are not tiled."""
    rows: str
    """The spatial loop whose iterations share the vector operand."""
    columns: str
    """The spatial loop along which the result is contiguous."""
    reductions: tuple[str, ...]


def tile_contractions(player: Player) -> None:
    """Tile every contraction so that a block of results stays in registers over the whole sum."""
    for identifier in [leaf.id for leaf in player.nest.leaves]:
        leaf = player.leaf(identifier)
        if leaf.accumulate is not None and _shares_operands(leaf) and _isolate(player, identifier):
            _tile(player, identifier)


def _shares_operands(leaf: Leaf) -> bool:
    """Two operands, each constant along a spatial loop of the other: every value is used several times."""
    spatial = {s.depth for s in leaf.chain if any(e.uses(s.depth) for e in leaf.output.index)}
    missing = [spatial - {v for e in a.index for v in e.variables()} for a in leaf.reads]
    reduced = len(spatial) < len(leaf.chain)
    return reduced and len(missing) == 2 and all(missing) and not missing[0] & missing[1]


def _isolate(player: Player, identifier: str) -> bool:
    """Split every loop around the statement that wraps other statements too."""
    for scope_id in [s.id for s in reversed(player.leaf(identifier).chain)]:
        scope = player.leaf(identifier).chain[_depth(player, identifier, scope_id)]
        position = _branch(scope, identifier)
        why = "the contraction gets loops of its own"
        behind = position + 1
        if behind < len(scope.children) and not player.attempt("split_scopes", scope, why, after=behind):
            return False
        scope = player.leaf(identifier).chain[_depth(player, identifier, scope_id)]
        if position and not player.attempt("split_scopes", scope, why, after=position):
            return False
    return True


def _depth(player: Player, identifier: str, scope_id: str) -> int:
    """Depth of the loop around the statement that has, or comes from, that identifier."""
    chain = player.leaf(identifier).chain
    return next((s.depth for s in chain if s.id == scope_id or s.id.startswith(f"{scope_id}.s")), len(chain) - 1)


def _branch(scope: Scope, identifier: str) -> int:
    return next(c.position for c in scope.children if _holds(c, identifier))


def _holds(node: Node, identifier: str) -> bool:
    leaves = [node] if isinstance(node, Leaf) else node.leaves
    return any(leaf.id == identifier for leaf in leaves)


def _shape(leaf: Leaf) -> Shape | None:
    chain = leaf.chain
    if any(s.mapping is not Mapping.SEQUENTIAL or s.guard for s in chain):
        return None
    spatial = [s for s in chain if any(e.uses(s.depth) for e in leaf.output.index)]
    columns = next((s for s in spatial if stride_over(leaf.output.index, s.depth) is Stride.CONTIGUOUS), None)
    if columns is None:
        return None
    # The operand that the columns index must be contiguous along them, the other one is broadcast.
    strides = [stride_over(a.index, columns.depth) for a in leaf.reads]
    if sorted(s.value for s in strides) != [Stride.BROADCAST.value, Stride.CONTIGUOUS.value]:
        return None
    vector = leaf.reads[strides.index(Stride.CONTIGUOUS)]
    shared = [s for s in spatial if s is not columns and not any(e.uses(s.depth) for e in vector.index)]
    if not shared:
        return None
    rows = shared[-1]
    outer = tuple(s.id for s in spatial if s not in (rows, columns))
    return Shape(outer, rows.id, columns.id, tuple(s.id for s in chain if s not in spatial))


def tile_sizes(rows: int, columns: int, lanes: int, registers: int) -> tuple[int, int]:
    """Rows and vectors of the block with the most work per load that fits the registers and divides the extents."""
    best = (0.0, 1, 1)
    for vectors in range(1, 5):
        for height in range(1, 15):
            fits = height * vectors + vectors + 1 <= registers
            if fits and rows % height == 0 and columns % (lanes * vectors) == 0:
                best = max(best, (height * vectors / (height + vectors), height, vectors))
    return best[1], best[2]


def _tile(player: Player, identifier: str) -> None:
    leaf = player.leaf(identifier)
    shape = _shape(leaf)
    if shape is None:
        return
    lanes = widest_lanes(player, leaf)
    rows, columns = player.scope(shape.rows), player.scope(shape.columns)
    assert rows is not None
    assert columns is not None
    height, vectors = tile_sizes(rows.extent, columns.extent, lanes, player.game.machine.vector_registers)
    if lanes < 2 or columns.extent % (lanes * vectors):
        return
    order = _block(player, shape.rows, shape.columns, height, vectors, lanes)
    wanted = [*shape.outer, *order[:2], *shape.reductions, *order[2:]]
    if not reorder(player, identifier, wanted):
        return
    _map_block(player, order)
    _tile_initialisation(player, identifier, height, vectors, lanes, len(shape.outer))


def _block(player: Player, rows: str, columns: str, height: int, vectors: int, lanes: int) -> list[str]:
    """Tile rows and columns; the loops in order: columns of blocks, rows of blocks, rows, vectors, lanes."""
    why = f"blocks of {height} rows of {vectors} vectors stay in registers"
    order = [columns, rows]
    inner_rows: list[str] = []
    if height > 1 and _attempt_tile(player, rows, height, why):
        order[1] = f"{rows}.o"
        inner_rows = [f"{rows}.i"]
    within = columns
    if _attempt_tile(player, columns, lanes * vectors, why):
        order[0], within = f"{columns}.o", f"{columns}.i"
    inner = [within]
    if vectors > 1 and _attempt_tile(player, within, lanes, f"vectors of {lanes} lanes"):
        inner = [f"{within}.o", f"{within}.i"]
    return [*order, *inner_rows, *inner]


def _attempt_tile(player: Player, identifier: str, size: int, why: str) -> bool:
    return player.attempt("tile_scope", f"%{identifier}", why, size=size)


def reorder(player: Player, identifier: str, wanted: list[str]) -> bool:
    """Interchange the loops around a statement until they stand in the wanted order, outermost first."""
    for position, target in enumerate(wanted):
        while True:
            chain = player.leaf(identifier).chain
            current = next((s for s in chain if s.id == target), None)
            if current is None:
                return False
            if current.depth == position:
                break
            if not player.attempt("swap_scopes", chain[current.depth - 1], "the order of loops that reuses most"):
                return False
    return True


def _map_block(player: Player, order: list[str]) -> None:
    player.attempt("vectorize", f"%{order[-1]}", "the lanes of a vector")
    for identifier in reversed(order[2:-1]):
        player.attempt("unroll", f"%{identifier}", "the block is straight code, its results are registers")


def _tile_initialisation(player: Player, identifier: str, height: int, vectors: int, lanes: int, outer: int) -> None:
    """Give the initialisation of the result the same blocks and fuse it with the contraction."""
    leaf = player.leaf(identifier)
    array = leaf.output.array.name
    first = next((w for w in player.nest.writers[array] if w.accumulate is None and w.order < leaf.order), None)
    if first is None or not _isolate(player, first.id):
        return
    chain = player.leaf(first.id).chain
    columns = next((s for s in chain if stride_over(first.output.index, s.depth) is Stride.CONTIGUOUS), None)
    if columns is None or len(chain) != outer + 2:
        return
    rows = next(s for s in reversed(chain) if s is not columns)
    others = [s.id for s in chain if s not in (rows, columns)]
    order = _block(player, rows.id, columns.id, height, vectors, lanes)
    if not reorder(player, first.id, [*others, *order]):
        return
    _map_block(player, order)
    for depth in range(outer + 2):
        target = player.leaf(first.id).chain[depth]
        player.attempt("join_scopes", target, "the block is initialised where it is summed up")

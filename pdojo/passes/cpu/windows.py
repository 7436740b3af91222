"""Strided windows: elements read by neighbouring results become neighbours in memory."""

from __future__ import annotations

from math import prod

from pdojo.dialect.attributes import Memory
from pdojo.dialect.rules.lanes import Stride, lane_stride
from pdojo.dialect.view.nest import Access, Leaf
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.common.contraction import can_pack, has_terms, is_bound, spatial_loops
from pdojo.passes.cpu.block_plans import FEW_APART

MOST_TERMS = 150
"""Most terms of sums of products with constants whose windows are parted.

With more, vectors along another loop take longer over their sums than over scattered stores, and copy no windows: 3 x 3
by 2 of 128 channels 219 GFLOP/s instead of 150; 3 channels, 7 x 7 by 2, 182 if parted, 159 if not (AMD EPYC, Zen 4)."""
REUSED = 32
"""Fewest reads of an element of the caller's array that repay a copy of the array."""


def part_windows(builder: PassBuilder) -> None:
    """If the lanes of a sum read an array with a small stride, store its elements by remainder.

    A row 0 1 2 3 4 5 becomes 0 2 4, 1 3 5. Vectors along the results then read contiguous memory instead of gathering,
    and stores need no scatter. Of an array that is no temporary, overlapping windows read a copy; others are packed.
    """
    for identifier in [leaf.id for leaf in builder.nest.leaves]:
        leaf = builder.leaf(identifier)
        stays = builder.game.machine.gather and _has_many_terms(leaf)
        found = _apart(builder, leaf) if has_terms(leaf) and not stays else None
        if found is not None:
            builder.transact(lambda i=identifier, number=found[0], step=found[1]: _read_parts(builder, i, number, step))


def _has_many_terms(leaf: Leaf) -> bool:
    """True for sums of many products with constants, which have vectors along another loop."""
    spatial = spatial_loops(leaf)
    terms = prod(scope.extent for scope in leaf.chain if scope.depth not in spatial)
    return terms > MOST_TERMS and len(leaf.reads) == 2 and any(is_bound(leaf, read) for read in leaf.reads)


def _apart(builder: PassBuilder, leaf: Leaf) -> tuple[int, int] | None:
    """The number of a read of neighbouring results with a stride, and the stride; None if there is none."""
    for scope in leaf.chain:
        output = leaf.output
        if lane_stride(output.index, output.array.shape, scope.depth) is not Stride.CONTIGUOUS:
            continue
        if builder.lanes(leaf, scope.extent) == 1:
            continue
        for number, access in enumerate(leaf.reads):
            step = access.index[-1].coefficient(scope.depth) if access.index else 0
            if 1 < step <= FEW_APART and _may_change(leaf, access):
                return number, step
    return None


def _may_change(leaf: Leaf, access: Access) -> bool:
    """True for temporaries in memory, and for other arrays whose copy is repaid."""
    buffer = access.array.buffer
    if buffer.op is not None:
        return buffer.memory is not Memory.REGISTER
    reads = prod(leaf.extents) // prod(access.array.shape)
    return leaf.guards == () and not buffer.constant and not can_pack(leaf, access) and reads >= REUSED


def _read_parts(builder: PassBuilder, identifier: str, number: int, step: int) -> None:
    array = builder.leaf(identifier).reads[number].array
    if array.buffer.op is None:
        why = f"every {step}th element of a copy is read by neighbouring lanes"
        builder.make("stage_in", builder.loop(identifier, 0), why, array=array.name, location="heap", form="box")
        array = builder.leaf(identifier).reads[number].array
    _part(builder, array.name, step)


def _part(builder: PassBuilder, array: str, step: int) -> None:
    """Split the last dimension into remainder and quotient, and reorder the loops that write it."""
    why = f"every {step}th element is read by neighbouring lanes"
    last = len(builder.nest.arrays[array].shape) - 1
    loops: list[str] = []
    for writer in builder.nest.writers[array]:
        used = [d for d in writer.output.index[last].variables() if writer.output.index[last].coefficient(d) == 1]
        loops += [writer.chain[d].id for d in used]
    builder.make("tile_dim", f"{array}:{last}", why, size=step)
    builder.make("swap_dims", f"{array}:{last}", why)
    for loop in dict.fromkeys(loops):
        if builder.attempt("tile_scope", f"%{loop}", why, size=step):
            numbers = next(s for s in builder.nest.scopes if s.id.startswith(f"{loop}.") and s.id.endswith("o"))
            builder.attempt("swap_scopes", numbers, why)

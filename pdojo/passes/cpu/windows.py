"""Strided windows: elements read by neighbouring results become neighbours in memory."""

from __future__ import annotations

from pdojo.dialect.attributes import Memory
from pdojo.dialect.rules.lanes import Stride, lane_stride
from pdojo.dialect.view.nest import Leaf
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.common.contraction import has_terms
from pdojo.passes.cpu.block_plans import FEW_APART


def part_windows(builder: PassBuilder) -> None:
    """If the lanes of a sum read a temporary with a small stride, store its elements by remainder.

    A row 0 1 2 3 4 5 becomes 0 2 4, 1 3 5. Vectors along the results then read contiguous memory instead of gathering,
    and stores need no scatter.
    """
    for identifier in [leaf.id for leaf in builder.nest.leaves]:
        leaf = builder.leaf(identifier)
        found = _apart(builder, leaf) if has_terms(leaf) else None
        if found is not None:
            array, step = found
            builder.transact(lambda array=array, step=step: _part(builder, array, step))


def _apart(builder: PassBuilder, leaf: Leaf) -> tuple[str, int] | None:
    """A temporary read by neighbouring results with a stride, and the stride; None if there is none."""
    for scope in leaf.chain:
        output = leaf.output
        if lane_stride(output.index, output.array.shape, scope.depth) is not Stride.CONTIGUOUS:
            continue
        if builder.lanes(leaf, scope.extent) == 1:
            continue
        for access in leaf.reads:
            buffer = access.array.buffer
            step = access.index[-1].coefficient(scope.depth) if access.index else 0
            if buffer.op is not None and buffer.memory is not Memory.REGISTER and 1 < step <= FEW_APART:
                return access.array.name, step
    return None


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

"""Parts of the ranges of sizes that get programs of their own, because those for large sizes are slow there.

Blocks for large sizes are tall, and their operands are packed. Few rows of a product do not fill them, and a small
product does not repay the packing. Stores past the caches pay only for arrays that exceed them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from pdojo.backends.calling.arrays import array_bytes
from pdojo.dialect.affine import Size
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.build import nest_of
from pdojo.dialect.view.nest import Access, Leaf, Nest, Scope
from pdojo.dialect.view.nodes import run_time_extent
from pdojo.passes.common.contraction import has_terms, uses

FEW_ROWS = (1, 8)
"""Greatest numbers of rows of a product that have programs of their own."""
SMALL = 32
"""Greatest extent of the loops of a small product; loops of a constant extent have at most twice as many iterations."""
LARGE = 16 << 20
"""Bytes of all arrays from which they are taken to exceed the caches; the same for all machines, so that libraries have
the same programs."""


def parts_of_ranges(kernel: KernelOp) -> list[dict[str, range]]:
    """The parts, each as ranges of some sizes, in the order in which a call tries them; [] if one program is enough.

    Together they are the whole ranges.
    """
    nest = nest_of(kernel)
    found: list[dict[str, range]] = []
    for leaf in nest.leaves:
        reads = _factors(nest, leaf) if has_terms(leaf) else ()
        # For each factor, the loops over results that index it and not the other one.
        own = [[s for s in leaf.chain if uses(leaf.output, s) and uses(r, s) and not _all_use(reads, s)] for r in reads]
        if len(own) == 2 and all(own):
            found += [part for part in (*_few_rows(leaf, own), _small(leaf)) if part and part not in found]
    return [*found, {}] if found else _by_caches(nest)


def _by_caches(nest: Nest) -> list[dict[str, range]]:
    """The values of the only size at which the arrays fit the caches, and the others; [] if one part has all values."""
    if len(nest.sizes) != 1:
        return []
    ((name, size),) = nest.sizes.items()
    values = size.values
    fitting = bisect_left(values, x=True, key=lambda value: array_bytes(nest, {name: value}) >= LARGE)
    return [{name: part} for part in (values[:fitting], values[fitting:])] if 0 < fitting < len(values) else []


def _factors(nest: Nest, leaf: Leaf) -> Sequence[Access]:
    """The factors of the terms of a sum, which a statement beside it may multiply."""
    if len(leaf.reads) != 1:
        return leaf.reads
    writers = nest.writers.get(leaf.reads[0].array.name, ())
    beside = [writer for writer in writers if writer.parent is leaf.parent and writer.output.key == leaf.reads[0].key]
    return beside[0].reads if len(beside) == 1 else leaf.reads


def _all_use(reads: Sequence[Access], scope: Scope) -> bool:
    return all(uses(read, scope) for read in reads)


def _few_rows(leaf: Leaf, own: Sequence[Sequence[Scope]]) -> list[dict[str, range]]:
    """The parts with few rows, if one loop has the rows; the columns are the loop of the last dimension of results."""
    rows = [loops for loops in own if not any(leaf.output.index[-1].uses(scope.depth) for scope in loops)]
    size = _open_size(rows[0][0]) if len(rows) == 1 and len(rows[0]) == 1 else None
    return [] if size is None else [_least(size, most) for most in FEW_ROWS]


def _small(leaf: Leaf) -> dict[str, range]:
    """The part in which all loops of a product have few iterations, if several of them depend on sizes."""
    found: dict[str, range] = {}
    for scope in leaf.chain:
        size = _open_size(scope)
        part = {} if size is None else _least(size, SMALL)
        if not part and scope.extent > 2 * SMALL:
            return {}
        found |= part
    return found if len(found) > 1 else {}


def _open_size(scope: Scope) -> Size | None:
    """The size that is the extent of a loop; None for other extents."""
    found = run_time_extent(scope)
    if found is None or found[0].constant:
        return None
    match found[0].terms:
        case ((Size() as size, factor),) if factor == size.step:
            return size
        case _:
            return None


def _least(size: Size, most: int) -> dict[str, range]:
    """The part of a size's range up to a value; {} if that is all of it or nothing."""
    return {size.name: range(size.low, most + 1, size.step)} if size.low <= most < size.high else {}

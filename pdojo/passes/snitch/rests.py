"""The last iterations of loops, which fill no whole group, and the memory of their values."""

from __future__ import annotations

from pdojo.passes.common.builder import PassBuilder

REST = "the last iterations fill no whole group"


def own_dimensions(builder: PassBuilder, identifier: str) -> list[tuple[str, int]]:
    """Give the values of a loop over the last iterations arrays of their own; the dimensions that the loop indexes."""
    found: list[tuple[str, int]] = []
    for leaf in [leaf.id for leaf in builder.scope(identifier).leaves]:
        if builder.attempt("rename_array", f"%{leaf}", REST):
            output, depth = builder.leaf(leaf).output, builder.scope(identifier).depth
            found += [(output.array.name, d) for d, e in enumerate(output.index) if e.uses(depth)]
    return found


def cut(builder: PassBuilder, name: str, dimension: int, size: int, why: str) -> None:
    """Reduce a dimension to the elements of one group of `size`."""
    place = f"{name}:{dimension}"
    builder.make("tile_dim", place, why, size=size)
    builder.make("reuse_dims", place, why)

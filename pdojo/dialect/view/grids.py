"""Grids: the statements of a launch on a graphics processor, and its number of blocks."""

from __future__ import annotations

from pdojo.dialect.attributes import Mapping
from pdojo.dialect.view.nest import Buffer, Leaf, Nest, Scope
from pdojo.dialect.view.storage import accesses_of

MOST_BLOCKS = (1 << 31) - 1
"""Most blocks of a grid (CUDA C++ Programming Guide, "Compute Capabilities"; HIP has the same limit)."""


def launch_of(leaf: Leaf) -> Scope | None:
    """The innermost grid scope around a statement: each of its iterations is one block of threads."""
    return next((s for s in reversed(leaf.chain) if s.mapping is Mapping.GRID), None)


def is_in_grid(nest: Nest, buffer: Buffer) -> bool:
    """Whether some access to the buffer is inside a grid."""
    return any(launch_of(leaf) is not None for leaf, _ in accesses_of(nest, buffer))

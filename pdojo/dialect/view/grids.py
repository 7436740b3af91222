"""Grids: the statements of a launch on a graphics processor, and its number of blocks."""

from __future__ import annotations

from pdojo.dialect.attributes import Mapping
from pdojo.dialect.machines.machine import Machine
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


def grid_problem(blocks: int, threads: int, machine: Machine) -> str | None:
    """The reason why a machine cannot launch a grid of `blocks` blocks with `threads` threads each; None if it can."""
    if blocks > MOST_BLOCKS:
        return f"a grid would have {blocks} blocks, more than {MOST_BLOCKS}"
    most = machine.gpu.grid_threads
    if 0 < most < blocks * threads:
        return f"a grid would have {blocks} blocks of {threads} threads; {machine.name} allows {most} threads in all"
    return None

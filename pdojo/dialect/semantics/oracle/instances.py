"""Enumeration of every statement instance of a small program, and of the memory it touches, without analysis.

A *row* is one instance of a statement. An *event* executes in lock step: the lanes of one statement under vector
scopes, otherwise a single row. The rows of an event are consecutive.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdojo.dialect.attributes import Mapping
from pdojo.dialect.semantics.oracle.memory import CheckedMemory, Touch
from pdojo.dialect.semantics.oracle.threads import evaluate
from pdojo.dialect.view.nest import Index, Leaf, Nest
from pdojo.errors import PdojoError

Storage: TypeAlias = Literal["elements", "cells"]
"""Whether accesses go to the elements of unfolded arrays, or to memory cells after reuse and sharing."""

Ints: TypeAlias = NDArray[np.int64]

INSTANCE_LIMIT = 200_000
"""Default limit of statement instances; larger programs are refused."""


@dataclass(frozen=True, eq=False)
class LeafInstances:
    """The rows of one statement, numbered `first_row`, `first_row + 1`, ..."""

    leaf: Leaf
    first_row: int
    rows: int
    touches: list[Touch]
    """Per access, output first, the cell of each row."""
    indices: tuple[Ints | None, ...]
    """Per input, the values of an index expression."""


@dataclass(frozen=True, eq=False)
class Instances:
    """The rows and events of a program."""

    nest: Nest
    memory: CheckedMemory
    leaves: list[LeafInstances]
    rows: int
    event_leaf: Ints
    """Per event, the position of its statement in `leaves`."""
    event_ivs: NDArray[np.int64]
    """The induction variables of each event, zero for lock-step scopes. Shape (events, depths)."""
    event_rows: Ints
    """Per event, its first row and its number of rows."""


def count_instances(nest: Nest) -> int:
    """Number of statement instances, guards not counted."""
    return sum(prod(leaf.extents) for leaf in nest.leaves)


def enumerate_instances(nest: Nest, storage: Storage, *, lockstep: bool, limit: int = INSTANCE_LIMIT) -> Instances:
    """All instances; `lockstep` gathers the lanes of vector scopes into events.

    Raises PdojoError if there are more than `limit`, or if an access leaves its array.
    """
    total = count_instances(nest)
    if total > limit:
        raise PdojoError(
            f"kernel '{nest.name}' has {total} statement instances; the exact oracle enumerates at most "
            f"{limit}: reduce the sizes"
        )
    memory = CheckedMemory(nest, storage)
    depths = max((leaf.depth for leaf in nest.leaves), default=0)
    leaves: list[LeafInstances] = []
    events: list[tuple[Ints, Ints]] = []
    row = 0
    for leaf in nest.leaves:
        ivs, ids = _iterations(leaf, lockstep=lockstep)
        rows = len(ids)
        starts = np.flatnonzero(np.diff(ids, prepend=-1))
        table = np.zeros((len(starts), depths), np.int64)
        for depth, scope in enumerate(leaf.chain):
            if not (lockstep and scope.mapping is Mapping.VECTOR):
                table[:, depth] = ivs[depth][starts]
        events.append((table, starts + row))
        indices = tuple(evaluate(i.expression, ivs, rows) if isinstance(i, Index) else None for i in leaf.inputs)
        touches = [memory.touch(a, leaf, ivs, rows) for a in leaf.accesses]
        leaves.append(LeafInstances(leaf, row, rows, touches, indices))
        row += rows
    event_leaf = np.repeat(np.arange(len(leaves)), [len(starts) for _, starts in events])
    tables = np.concatenate([np.zeros((0, depths), np.int64), *(table for table, _ in events)])
    starts = np.concatenate([*(starts for _, starts in events), np.array([row])])
    memory.seal()
    return Instances(nest, memory, leaves, row, event_leaf, tables, starts)


def _iterations(leaf: Leaf, *, lockstep: bool) -> tuple[list[Ints], Ints]:
    """The induction variables of all rows within the guards, and the event number of each row, ascending."""
    chain = leaf.chain
    lanes = [d for d, s in enumerate(chain) if lockstep and s.mapping is Mapping.VECTOR]
    order = [d for d in range(len(chain)) if d not in lanes] + lanes
    grid = np.indices([chain[d].extent for d in order]).reshape(len(chain), prod(leaf.extents))
    ivs: list[Ints] = [grid[order.index(d)] for d in range(len(chain))]
    width = prod(chain[d].extent for d in lanes)
    ids = np.arange(grid.shape[1]) // width
    if not leaf.guards:
        return ivs, ids
    mask = np.ones(grid.shape[1], np.bool_)
    for guard in leaf.guards:
        mask &= evaluate(guard, ivs, len(mask)) >= 0
    return [v[mask] for v in ivs], ids[mask]

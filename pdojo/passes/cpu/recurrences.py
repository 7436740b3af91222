"""Recurrences: several rows at a time, so that the operations of one row do not wait for each other."""

from __future__ import annotations

from pdojo.dialect.attributes import Mapping
from pdojo.dialect.view.nest import Leaf, Scope
from pdojo.dialect.view.nodes import is_plain
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.common.loops import jam, peel_rest

ROWS = 4
"""Rows at a time; an addition takes about as many cycles."""


def join_recurrences(builder: PassBuilder) -> None:
    """Compute running sums and their like for groups of `ROWS` iterations of the outermost loop."""
    loops = [node for node in builder.nest.children if isinstance(node, Scope) and _has_recurrence(node)]
    for loop in loops:
        if is_plain(loop) and loop.extent >= ROWS * builder.game.machine.threads:
            builder.transact(lambda i=loop.id: _join(builder, i))


def _join(builder: PassBuilder, identifier: str) -> None:
    loop = builder.scope(identifier)
    why = f"{ROWS} rows at a time: a running result waits for the one before"
    peel_rest(builder, loop, ROWS, "whole groups of rows; the rest by itself")
    jam(builder, builder.scope(identifier), ROWS, why)


def _has_recurrence(root: Scope) -> bool:
    """True if an inner loop accumulates into a cell that another of its statements reads."""
    return any(is_running(leaf) for leaf in root.leaves)


def is_running(leaf: Leaf) -> bool:
    """True for an accumulation into a cell that another statement of its loop reads."""
    loop = leaf.parent
    if leaf.accumulate is None or loop is None or loop.mapping is not Mapping.SEQUENTIAL or loop.depth == 0:
        return False
    if any(e.uses(loop.depth) for e in leaf.output.index):
        return False
    result = leaf.output.array
    return any(read.array is result for other in loop.leaves if other is not leaf for read in other.reads)

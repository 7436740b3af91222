"""Memory that is contiguous along a loop: temporaries with other dimensions last, and copies of inputs."""

from __future__ import annotations

from math import prod

from pdojo.dialect.rules.lanes import Stride, lane_stride
from pdojo.dialect.view.nest import Scope
from pdojo.passes.common.builder import PassBuilder

AGAIN = 4
"""Fewest reads of an element that pay for a copy of it."""
WHY = "lanes are contiguous along the loop"


def writes_along(scope: Scope) -> bool:
    """True if a statement writes contiguous elements of an output of the kernel along a loop."""
    outputs = (leaf.output for leaf in scope.leaves if leaf.output.array.buffer.op is None)
    return any(lane_stride(a.index, a.array.shape, scope.depth) is Stride.CONTIGUOUS for a in outputs)


def turn(builder: PassBuilder, identifier: str) -> None:
    """Let a loop run along contiguous memory of its temporaries, and of copies of inputs that it reads again."""
    scope = builder.scope(identifier)
    for name in dict.fromkeys(leaf.output.array.name for leaf in scope.leaves if leaf.output.array.buffer.op):
        _put_last(builder, identifier, name)
    for name in _gathered(builder.scope(identifier)):
        known = builder.nest.arrays.keys()
        root = builder.scope(identifier).chain[0]
        builder.make("stage_in", root, WHY, array=name, location="heap", form="box")
        (copy,) = builder.nest.arrays.keys() - known
        _put_last(builder, identifier, copy)


def _put_last(builder: PassBuilder, identifier: str, name: str) -> None:
    """Make the dimension of an array that a loop indexes the last one; several such dimensions stay."""
    scope = builder.scope(identifier)
    access = next(a for leaf in scope.leaves for a in leaf.accesses if a.array.name == name)
    along = [d for d, e in enumerate(access.index) if e.uses(scope.depth)]
    for dimension in range(along[0], len(access.index) - 1) if len(along) == 1 else ():
        builder.make("swap_dims", f"{name}:{dimension}", WHY)


def _gathered(scope: Scope) -> list[str]:
    """The inputs that lanes along a loop would gather, again in each iteration of loops around it."""
    found: list[str] = []
    for access in (a for leaf in scope.leaves for a in leaf.reads if a.array.buffer.op is None):
        again = [s.extent for s in scope.chain[: scope.depth] if not any(e.uses(s.depth) for e in access.index)]
        is_gathered = lane_stride(access.index, access.array.shape, scope.depth) is Stride.STRIDED
        if is_gathered and prod(again) >= AGAIN:
            found.append(access.array.name)
    return list(dict.fromkeys(found))

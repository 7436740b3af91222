"""Shapes and axes as callers write them: checks, broadcasting, words for messages."""

from __future__ import annotations

from collections.abc import Sequence

from pdojo.build.sizes import Open, UnequalExtents, expression_of, is_open
from pdojo.errors import UsageError


def check_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """The shape as a tuple. Raises UsageError for a negative extent, and for one that is not linear in sizes."""
    extents = tuple(extent if isinstance(extent, Open) else int(extent) for extent in shape)
    for extent in extents:
        expression_of(extent)
    if any(extent < 0 for extent in extents):
        raise UsageError(f"shape {shown(extents)} has a negative extent")
    return extents


def shown(shape: Sequence[int]) -> str:
    """A shape in messages: `[4, 8]`."""
    return f"[{', '.join([str(extent) for extent in shape])}]"


def axes_of(axis: int | Sequence[int] | None, rank: int) -> tuple[int, ...]:
    """Axes as numbers from 0, in order; negative ones count from the end, and None is all axes."""
    if axis is None:
        return tuple(range(rank))
    given = (axis,) if isinstance(axis, int) else tuple(axis)
    for each in given:
        if not -rank <= each < rank:
            raise UsageError(f"axis {each} is out of bounds for an array of {rank} dimensions")
    axes = tuple(sorted(each % rank for each in given))
    if len(set(axes)) < len(axes):
        raise UsageError(f"axis {next(a for a in axes if axes.count(a) > 1)} is given twice")
    return axes


def broadcast_shape(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that NumPy's rules give arrays of these shapes together. Raises UsageError if they do not fit."""
    rank = max([len(shape) for shape in shapes], default=0)
    padded = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    found: list[int] = []
    for position, extents in enumerate(zip(*padded, strict=True)):
        wide = list(dict.fromkeys(extent for extent in extents if extent != 1))
        if len(wide) > 1:
            error = UnequalExtents if is_open(wide) else UsageError
            raise error(
                f"shapes {' and '.join(shown(s) for s in shapes)} do not broadcast: "
                f"axis {position - rank} has {' and '.join(str(e) for e in dict.fromkeys(extents))} elements"
            )
        found.append(wide[0] if wide else 1)
    return tuple(found)

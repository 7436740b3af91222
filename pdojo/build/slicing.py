"""The places that `x[items]` selects: integers, slices, and arrays of indices, as in NumPy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from types import EllipsisType
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdojo.build.extents import broadcast_shape
from pdojo.build.graph import Indices, Operand, Read
from pdojo.build.sizes import Open, expression_of, greatest, is_open, lesser, open_extent
from pdojo.dialect.affine import Expr, const, linear, lookup, var
from pdojo.dialect.element_types import is_float
from pdojo.dialect.table import MOST_ENTRIES, Outside, Table
from pdojo.dialect.view.nest import Constant, Index
from pdojo.errors import UsageError

Outer: TypeAlias = Literal["refuse", "clamp", "wrap"]
"""The meaning of an index of a caller that is outside of its axis: the call is refused; it is the nearest index; -1 is
the last index, and the call is refused for others."""
_OUTSIDE = {"refuse": Outside.REFUSED, "clamp": Outside.CLAMP, "wrap": Outside.WRAP}


@dataclass(frozen=True)
class Places:
    """An array of indices of an axis."""

    dtype: str
    shape: tuple[int, ...]
    operand: Operand

    def along(self, axis: int, extent: int, outside: Outer) -> Expr:
        """The index over the iterations of the array, of an axis of some elements. Raises UsageError."""
        match self.operand:
            case Index(expression):
                self._check(expression, axis, extent)
                return expression
            case Constant(number) if self._is_index():
                self._check(const(int(number)), axis, extent)
                return const(int(number))
            case Read(definition, place) if definition.is_input and self._is_index():
                if outside not in _OUTSIDE:
                    raise UsageError(f"indices outside of an axis are refuse, clamp or wrap, not '{outside}'")
                if not extent:
                    raise UsageError(f"axis {axis} has no elements, and so no indices")
                shape = tuple(expression_of(each) for each in definition.shape)
                last, meaning = expression_of(extent - 1), _OUTSIDE[outside]
                known = Indices(definition.name, definition.dtype, shape, 0, last, meaning, definition=definition)
                return lookup(known, place, greatest(self.shape))
            case _:
                what = "computed" if self._is_index() else f"of type {self.dtype}"
                raise UsageError(
                    f"the places along axis {axis} are {what}; they are signed integers: an input or a view of one, a "
                    "table, iota or integers"
                )

    def _is_index(self) -> bool:
        return not is_float(self.dtype) and self.dtype[0] == "i" and self.dtype != "i1"

    def _check(self, expression: Expr, axis: int, extent: int) -> None:
        low, high = _ends(expression, self.shape) if prod(self.shape) else (0, -1)
        if low < 0 or high >= extent:
            raise UsageError(f"places from {low} to {high} are out of bounds for axis {axis} of {extent} elements")


def _ends(expression: Expr, shape: Sequence[int]) -> tuple[int, int]:
    """Bounds of an expression over the iterations of a shape; exact if it has no divisions of iterations."""
    own = [(atom, factor) for atom, factor in expression.terms if isinstance(atom, int)]
    rest = expression - linear(0, own)
    if not is_open(shape) or rest.variables():
        return expression.bounds(greatest(shape))
    low = high = open_extent(rest)
    for depth, factor in own:
        low, high = low + min(factor, 0) * (shape[depth] - 1), high + max(factor, 0) * (shape[depth] - 1)
    return low, high


@dataclass(frozen=True)
class Known(Places):
    """An array of indices of an axis that are known; negative ones count from the end."""

    values: NDArray[Any]
    length: int | None
    """The number of elements that the axis has; None is any."""

    def along(self, axis: int, extent: int, outside: Outer) -> Expr:
        """The index over the iterations of the array, of an axis of some elements. Raises UsageError."""
        if self.length is not None and self.length != extent:
            raise UsageError(f"a mask of {self.length} elements is not for axis {axis} of {extent} elements")
        if not self.values.size:
            return const(0)
        low, high = int(self.values.min()), int(self.values.max())
        if not (-extent <= low and high < extent):
            wrong = low if high < extent else high
            raise UsageError(f"index {wrong} is out of bounds for axis {axis} of {extent} elements")
        if high < 0:
            return entries(self.values.ravel().tolist(), self.shape) + expression_of(extent)
        places = self.values if low >= 0 else np.where(self.values < 0, self.values + int(extent), self.values)
        return entries(places.ravel().tolist(), self.shape)


def known_places(values: NDArray[Any]) -> Iterator[Selected]:
    """Indices of an axis in an array of NumPy, or those of the true elements of a mask. Raises UsageError."""
    if values.dtype.kind == "b" and values.ndim:
        for length, places in zip(values.shape, values.nonzero(), strict=True):
            yield Known("i64", places.shape, Constant(0, "i64"), places, length)
        return
    if values.size and values.dtype.kind not in "iu":
        raise UsageError(f"indices are integers or a mask, not {values.dtype}")
    yield Known("i64", values.shape, Constant(0, "i64"), values.astype(np.int64), None) if values.ndim else int(values)


def entries(values: Sequence[int], shape: Sequence[int]) -> Expr:
    """The expression that is element i of `values` at iteration i of a nest of `shape`, in row-major order."""
    if len(values) > MOST_ENTRIES:
        raise UsageError(f"a table has at most {MOST_ENTRIES} numbers, not {len(values)}")
    if not values:
        return const(0)
    place, stride = const(0), 1
    for axis in reversed(range(len(shape))):
        place, stride = place + var(axis) * stride, stride * shape[axis]
    least = min(values)
    plain = place.substitute({}, shape)
    steps = {b - a for a, b in pairwise(values)}
    if len(steps) == 1 and (step := steps.pop()) >= 0:
        return plain * step + values[0]
    return lookup(Table("idx", tuple(value - least for value in values)), [plain], shape) + least


Selected: TypeAlias = int | slice | EllipsisType | Places | None


def selected(
    extents: Sequence[int], items: Sequence[Selected], outside: Outer = "wrap"
) -> tuple[tuple[int, ...], list[Expr]]:
    """The shape of the view `x[items]` of an array with these extents, and the index of each axis over it.

    The common axes of arrays of indices stand where the first of them is, or first if slices are between them.
    """
    filled = _filled(items, len(extents))
    chosen = [k for k, item in enumerate(filled) if isinstance(item, Places | int)]
    has_places = any(isinstance(item, Places) for item in filled)
    common = broadcast_shape(*(item.shape for item in filled if isinstance(item, Places)))
    is_apart = has_places and chosen[-1] - chosen[0] >= len(chosen)
    shape: list[int] = [*common] if is_apart else []
    first = 0
    found: list[Expr | Places] = []
    for number, item in enumerate(filled):
        if item is None:
            shape.append(1)
            continue
        axis = len(found)
        if isinstance(item, slice):
            start, count, step = _range(item, extents[axis])
            found.append(var(len(shape)) * step + expression_of(start))
            shape.append(count)
            continue
        if has_places and not is_apart and number == chosen[0]:
            first = len(shape)
            shape += common
        found.append(item if isinstance(item, Places) else _number(item, axis, extents[axis]))
    index: list[Expr] = []
    for axis, each in enumerate(found):
        known = each.along(axis, extents[axis], outside) if isinstance(each, Places) else each
        index.append(_over(each.shape, known, common, first, shape) if isinstance(each, Places) else known)
    return tuple(shape), index


def _filled(items: Sequence[Selected], rank: int) -> list[Selected]:
    """The items with slices in the place of '...' and for the last axes. Raises UsageError for too many."""
    given = sum(item is not None and item is not ... for item in items)
    ellipses = sum(item is ... for item in items)
    if given > rank or ellipses > 1:
        what = f"{given} indices" if given > rank else "several '...'"
        raise UsageError(f"{what} for an array of {rank} dimensions")
    filled: list[Selected] = []
    for item in items if ellipses else (*items, ...):
        filled += [slice(None)] * (rank - given) if item is ... else [item]
    return filled


def _over(own: Sequence[int], index: Expr, common: Sequence[int], first: int, shape: Sequence[int]) -> Expr:
    """An index over the extents `own`, over a view in which they broadcast to the common axes, from `first` on."""
    start = first + len(common) - len(own)
    replacements = {d: var(start + d) if extent != 1 else const(0) for d, extent in enumerate(own)}
    return index.substitute(replacements, greatest(shape)) if prod(shape) else const(0)


def _number(item: object, axis: int, extent: int) -> Expr:
    if not isinstance(item, int | Open) or isinstance(item, bool):
        raise UsageError(f"an index is an integer, a slice, a handle, '...' or None, not {type(item).__name__}")
    if not -extent <= item < extent:
        raise UsageError(f"index {item} is out of bounds for axis {axis} of {extent} elements")
    return expression_of(item if item >= 0 else item + extent)


def _range(item: slice, extent: int) -> tuple[int, int, int]:
    """The first index that a slice of an axis selects, the number of indices, and the step."""
    if is_open([extent, *(end for end in (item.start, item.stop) if end is not None)]):
        return _open_range(item, extent)
    try:
        found = range(extent)[item]
        return found.start, len(found), found.step
    except (TypeError, ValueError):
        ends = ":".join(["" if end is None else str(end) for end in (item.start, item.stop, item.step)])
        raise UsageError(f"a slice has integers, and a step that is not 0, not {ends}") from None


def _open_range(item: slice, extent: int) -> tuple[int, int, int]:
    """`_range` where the extent, or an end, depends on sizes. Raises OpenExtent where the ends depend on them."""
    step = 1 if item.step is None else item.step
    if not isinstance(step, int) or isinstance(step, Open) or not step:
        raise UsageError(f"a slice has a step that is an integer and not 0, not {step}")
    low, high = (0, extent) if step > 0 else (-1, extent - 1)
    ends: list[int] = []
    for end, default in ((item.start, low), (item.stop, high)) if step > 0 else ((item.start, high), (item.stop, low)):
        if not (end is None or isinstance(end, int | Open)):
            raise UsageError(f"a slice has integers, not {end}")
        ends.append(default if end is None else -lesser(-low, -lesser(high, end + extent if end < 0 else end)))
    distance = (ends[1] - ends[0]) * (1 if step > 0 else -1)
    return ends[0], (distance + abs(step) - 1) // abs(step) if distance >= 0 else 0, step

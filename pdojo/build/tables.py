"""Constant integers: arrays of them, and elements of other arrays at places that they give.

They are tables of the kernel (docs/notation.md), so that gathering reads no array of indices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeAlias, Union

import numpy as np
from numpy.typing import NDArray

from pdojo.build.array import Array, iota, sliced
from pdojo.build.extents import axes_of, shown
from pdojo.build.graph import Read
from pdojo.build.numbers import check_dtype, storage_of
from pdojo.build.scatters import Accumulation, put_items, target
from pdojo.build.slicing import Outer, entries
from pdojo.dialect.affine import Expr
from pdojo.dialect.element_types import is_float
from pdojo.dialect.flow.points import evaluate
from pdojo.dialect.view.nest import Index
from pdojo.errors import UsageError

Numbers: TypeAlias = Union[int, "Sequence[Numbers]"]
"""An integer, or nested sequences of integers of one shape."""
Constants: TypeAlias = Callable[[NDArray[Any], str], Array]
"""A function that makes numbers that are no table a constant input of an element type: the caller of a kernel binds it.
"""
MOST_PLACES = 1 << 22
"""Most places of `scatter` that are compared one by one."""


def table(values: Numbers, dtype: str = "i64") -> Array:
    """An array of constant integers; it takes no memory.

    >>> from pdojo import build
    >>> build.table([[3, 0], [1, 3]], "i32")
    <Array i32 [2, 2]>
    """
    kind = check_dtype(dtype)
    numbers = _numbers(values)
    expression = entries(numbers.ravel().tolist(), numbers.shape)
    if not is_float(kind) and numbers.size and not _fits(int(numbers.min()), int(numbers.max()), kind):
        raise UsageError(f"numbers from {numbers.min()} to {numbers.max()} do not fit {kind}")
    return Array(kind, numbers.shape, Index(expression, storage_of(kind)))


def _numbers(values: Numbers) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    try:
        numbers = np.array(values)
    except ValueError:
        raise UsageError("the rows of a table have one length") from None
    if numbers.size and numbers.dtype.kind not in "iu":
        raise UsageError(f"a table has integers, not {numbers.dtype}")
    if any(abs(int(number)) >= 1 << 61 for number in numbers.ravel()):
        raise UsageError("the numbers of a table stay below 2^61")
    return numbers.astype(np.int64)


def _fits(least: int, most: int, dtype: str) -> bool:
    bits = int(dtype[1:])
    if dtype.startswith("u") or dtype == "i1":
        return least >= 0 and most < 1 << bits
    return least >= -1 << bits - 1 and most < 1 << bits - 1


def gather(x: Array, places: Sequence[Array | Numbers], *, outside: Outer = "wrap") -> Array:
    """The view of the elements at places, as NumPy's `x[places]` with an array of integers for each axis.

    `places` are tables, results of `iota`, integers, or integer inputs and views of them; their shapes broadcast.
    Negative integers count from the end; `outside` is the meaning of indices of inputs as in `take`.

    >>> from pdojo import build
    >>> x = build.input("x", "f32", (4, 8))
    >>> build.gather(x, [[3, 0], [[1], [5], [7]]])
    <Array f32 [3, 2]>
    """
    return sliced(x, _arrays(x.shape, places), outside)


def scatter(
    x: Array,
    places: Sequence[Array | Numbers],
    values: Array,
    *,
    accumulation: Accumulation | None = None,
    outside: Outer = "wrap",
) -> Array:
    """A copy of `x` with `values` at places, as NumPy's `x[places] = values`.

    `places` and `outside` are those of `gather`. With an accumulation, all values at a place join the element there;
    without one, the last value at a place counts, and constant places are given once.

    >>> from pdojo import build
    >>> x, v = build.input("x", "f32", (4, 8)), build.input("v", "f32", (4,))
    >>> build.scatter(x, [build.iota((4,)), [3, 0, 2, 7]], v)
    <Array f32 [4, 8]>
    >>> build.scatter(x, [build.iota((4,)), build.input("i", "i64", (4,))], v, accumulation="+")
    <Array f32 [4, 8]>
    """
    arrays = _arrays(x.shape, places)
    if accumulation is None and all(isinstance(array.operand, Index) for array in arrays):
        there = target(x, lambda whole: sliced(whole, arrays))
        assert isinstance(there.operand, Read)
        _check_unique(there.shape, there.operand.index)
    return put_items(x, arrays, values, accumulation, outside)


def diagonal(x: Array, offset: int = 0, axis: int = 0, other: int = 1) -> Array:
    """The view of the elements of two axes at places (i, i + offset), along a new last axis, as `numpy.diagonal`."""
    return gather(x, _of_diagonal(x, offset, axis, other))


def put_diagonal(x: Array, values: Array, offset: int = 0, axis: int = 0, other: int = 1) -> Array:
    """A copy of `x` with `values` in the place of `diagonal(x, offset, axis, other)`."""
    return scatter(x, _of_diagonal(x, offset, axis, other), values)


def _of_diagonal(x: Array, offset: int, axis: int, other: int) -> list[Array]:
    """The places of a diagonal: of each axis an array of the shape of the diagonal."""
    (first,), (second,) = axes_of(axis, x.rank), axes_of(other, x.rank)
    starts = {first: max(-offset, 0), second: max(offset, 0)}
    length = max(0, min(x.shape[d] - start for d, start in starts.items()))
    rest = [d for d in range(x.rank) if d not in starts]
    shape = (*(x.shape[d] for d in rest), length)
    return [iota(shape, "i64", -1, starts[d]) if d in starts else iota(shape, "i64", rest.index(d))
            for d in range(x.rank)]  # fmt: skip


def _arrays(extents: Sequence[int], places: Sequence[Array | Numbers]) -> list[Array]:
    """The places along each axis as arrays."""
    if len(places) != len(extents):
        raise UsageError(f"an array of {len(extents)} dimensions takes places for each, not {len(places)}")
    return [p if isinstance(p, Array) else _normal(p, axis, extents[axis]) for axis, p in enumerate(places)]


def _normal(values: Numbers, axis: int, extent: int) -> Array:
    """A table of places without negative ones."""
    numbers = _numbers(values)
    wrong = numbers[(numbers < -extent) | (numbers >= extent)]
    if wrong.size:
        raise UsageError(f"index {wrong[0]} is out of bounds for axis {axis} of {extent} elements")
    return table((numbers % max(extent, 1)).tolist())


def _check_unique(shape: Sequence[int], index: Sequence[Expr]) -> None:
    repeated = _repeated(shape, index) if prod(shape) else None
    if repeated is not None:
        twice = [expression.evaluate(repeated) for expression in index]
        raise UsageError(f"element {shown(twice)} is given several values")


def _repeated(shape: Sequence[int], index: Sequence[Expr]) -> Sequence[int] | None:
    """An iteration of `shape` whose indices are those of another one; None if there is none.

    Iterations differ in their indices if they do so in the variables of each independent group of expressions.
    """
    groups = _independent(index)
    used = {depth for _, depths in groups for depth in depths}
    if any(extent > 1 and depth not in used for depth, extent in enumerate(shape)):
        return [0] * len(shape)
    for expressions, variables in groups:
        depths = sorted(variables)
        if any(_numbers_all(expression, shape, depths) for expression in expressions):
            continue
        extents = [shape[depth] for depth in depths]
        if prod(extents) > MOST_PLACES:
            raise UsageError(f"{prod(extents)} places are too many to see that each is given once")
        points = np.zeros((len(shape), prod(extents)), np.int64)
        points[depths] = np.indices(extents).reshape(len(depths), -1)
        found = np.stack([evaluate(expression, points) for expression in expressions], axis=1)
        _, first, counts = np.unique(found, axis=0, return_index=True, return_counts=True)
        if len(first) < len(found):
            return points[:, first[counts > 1][0]].tolist()
    return None


def _numbers_all(expression: Expr, shape: Sequence[int], depths: Sequence[int]) -> bool:
    """Whether a linear expression differs in each iteration: each stride exceeds the range of the inner terms."""
    inside = 0
    for depth in sorted(depths, key=lambda depth: abs(expression.coefficient(depth))):
        stride = abs(expression.coefficient(depth))
        if stride <= inside and shape[depth] > 1:
            return False
        inside += stride * (shape[depth] - 1)
    return expression.is_linear


def _independent(index: Sequence[Expr]) -> list[tuple[list[Expr], set[int]]]:
    """The expressions that are not constant in groups without common variables, and the variables of each group."""
    groups: list[tuple[list[Expr], set[int]]] = []
    for expression in index:
        if expression.is_constant:
            continue
        together: tuple[list[Expr], set[int]] = ([expression], set(expression.variables()))
        apart: list[tuple[list[Expr], set[int]]] = []
        for group in groups:
            if group[1] & together[1]:
                together = (group[0] + together[0], group[1] | together[1])
            else:
                apart.append(group)
        groups = [*apart, together]
    return groups

"""Elements at indices, and choices by comparison."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdojo import build
from pdojo.build import indexing
from pdojo.build.operator import array, call, operator

Values = NDArray[Any]
ANY = ("f64", "f32", "f16", "bf16", "i64", "i32", "i8", "u8")
_JOIN: dict[str | None, Any] = {"+": np.add, "*": np.multiply, "max": np.maximum, "min": np.minimum}


def _known(seed: int, low: int, high: int, *shape: int) -> Values:
    return np.random.default_rng(seed).integers(low, high, shape)


def joined(x: Values, places: Any, updates: Values, accumulation: str | None) -> Values:
    """A copy with updates at places, of which the last one counts, or which join the elements there."""
    found = x.copy()
    if accumulation is None:
        shape = np.broadcast_shapes(*(np.shape(each) for each in places))
        for at in np.ndindex(*shape):
            index = tuple(np.broadcast_to(each, shape)[at] for each in places)
            found[index] = updates[at]
        return found
    with np.errstate(over="ignore"):
        _JOIN[accumulation].at(found, tuple(places), updates)
    return found


def _own(places: Values, axis: int) -> list[Values]:
    grid = np.indices(places.shape)
    return [places if d == axis else grid[d] for d in range(places.ndim)]


@operator(
    build.take,
    call(array("5 4"), [4, 0, 0, 2, -1], 0),
    call(array("2 5 3"), [1, 3], -2),
    call(array("2 5"), [3, 2, 1, 0], 1),
    call(array("2 3"), [0, 0, 1, 1, 2, 2], 1),
    call(array("1 7"), [0, 5, 3, 6, 1, 1, 4, 2, 0], 1),
    call(array("3 2"), [], 0),
    call(array("5 4"), array("3", "i64", low=0, high=5)),
    call(array("5 4"), array("2 3", "i32", low=0, high=5), outside="refuse"),
    call(array("5 4"), array("1 3", "i64", given=[-1, 3, -5])),
    call(array("2 5 3"), array("4 2", "i64", low=-5, high=5), -2),
    call(array("1 7"), array("", "i32", low=0, high=7), 1),
    call(array("5 4"), array("6", "i64", given=[-7, 2, 5, 9, 0, 4]), 0, outside="clamp"),
    types=ANY,
)
def take(x: Values, indices: Sequence[int] | Values, axis: int = 0, *, outside: str = "wrap") -> Values:
    """The elements at indices along an axis."""
    return np.take(x, np.array(indices, int), axis, mode="clip" if outside == "clamp" else "raise")


_TWICE = [2, 0, 2, -1, 0, 2]


@operator(
    build.put,
    call(array("4 3"), _TWICE, array("6 3")),
    call(array("4 3"), _TWICE, array("6 3"), accumulation="+"),
    call(array("2 4"), _TWICE, array("2 6"), -1, accumulation="*"),
    call(array("4 1"), _TWICE, array("6 1"), accumulation="max"),
    call(array("4"), _TWICE, array("6"), accumulation="min"),
    call(array("9 2"), [8, 1, 3, 0, 7, 5], array("6 2")),
    call(array("3 2"), [], array("0 2"), accumulation="+"),
    *(call(array("2 5"), indices, array(f"1 {len(indices)}"), -1) for indices in ([1, 2], [1, 3], [3, 0, 4, 1, 2])),
    *(call(array("2 5"), indices, array(f"2 {len(indices)}"), -1)
      for indices in ([1, 2, 3], [0], [2, 3, 4], [0, 1, 2, 3, 4], [1, 3], [3, 2])),
    *(call(array("5 4"), array("9", "i64", low=-5, high=5), array("9 4"), accumulation=joins)
      for joins in (None, "+", "*", "max", "min")),
    call(array("2 3"), array("4", "i64", low=0, high=3), array("2 4"), -1, outside="refuse"),
    call(array("3 2"), array("5", "i32", low=0, high=3), array("5 2"), accumulation="+", outside="refuse"),
    call(array("2 5 3"), array("4 2", "i64", low=-5, high=5), array("2 4 2 3"), 1, accumulation="+"),
    call(array("3 1"), array("", "i64", given=[-1]), array("1")),
    call(array("5"), array("6", "i32", given=[-7, 2, 5, 9, 0, 4]), array(""), outside="clamp", accumulation="+"),
    types=ANY,
)  # fmt: skip
def put(
    x: Values, indices: Sequence[int] | Values, updates: Values, axis: int = 0, *, accumulation: str | None = None,
    outside: str = "wrap",
) -> Values:  # fmt: skip
    """A copy with updates at indices along an axis."""
    places, axis = np.array(indices, int), axis % x.ndim
    places = np.clip(places, 0, x.shape[axis] - 1) if outside == "clamp" else places
    return put_at(x, [*[None] * axis, places], updates, accumulation)


@operator(
    indexing.take_along,
    call(array("5 4"), _known(0, 0, 4, 3, 6), 1),
    call(array("5 4"), _known(1, 0, 5, 7, 2), 0),
    call(array("2 3 4"), _known(2, 0, 3, 2, 1, 4), 1),
    call(array("2 3"), np.array([[0, 1, 2], [0, 1, 2]]), 1),
    call(array("4"), np.array([2]), 0),
    call(array("5 4"), array("3 6", "i64", low=0, high=4), 1, outside="refuse"),
    call(array("5 4"), array("7 2", "i64", low=-5, high=5), 0),
    call(array("2 3 1"), array("1 3 4", "i32", given=[0] * 12), 2),
    call(array("4 5", given=[np.nan, np.inf, -np.inf, 0, 1] * 4), array("6 5", "i64", low=0, high=4), 0, types=ANY[:4]),
    types=ANY,
)
def take_along(x: Values, places: Values, axis: int, *, outside: str = "wrap") -> Values:
    """The elements at indices of an axis, an index for each."""
    return x[tuple(_own(places.astype(int), axis))]


_ROWS = _known(3, 0, 5, 6, 4)


@operator(
    indexing.put_along,
    call(array("5 4"), _ROWS, array("6 4"), 0),
    call(array("5 4"), _ROWS, array("6 4"), 0, "+"),
    call(array("5 4"), _ROWS, array("6 4"), 0, "*"),
    call(array("5 4"), _ROWS, array("6 4"), 0, "max"),
    call(array("5 4"), _ROWS, array("6 4"), 0, "min"),
    call(array("3 5 2"), _known(4, 0, 5, 2, 3, 1), array("2 3 1"), 1),
    call(array("1 7"), np.array([[3, 3, 3]]), array("1 3"), 1, "+"),
    *(call(array("5 4"), array("6 4", "i64", low=0, high=5), array("6 4"), 0, joins, outside="refuse")
      for joins in (None, "+", "*", "max", "min")),
    call(array("3 5 2"), array("2 3 1", "i32", low=-5, high=5), array("2 3 1"), 1),
    call(array("4 5"), array("4 1", "i64", low=0, high=5), array("4 1"), 1, "+", outside="refuse"),
    types=ANY,
)  # fmt: skip
def put_along(
    x: Values, places: Values, updates: Values, axis: int, accumulation: str | None = None, *, outside: str = "wrap"
) -> Values:
    """A copy with elements at indices of an axis replaced or joined."""
    return joined(x, _own(places.astype(int), axis), updates, accumulation)


_AT = (
    [np.array([2, 0, -1])],
    [np.array([[2, 0], [4, 4]])],
    [None, np.array([3, 3, 0, 1, 1, 2])],
    [np.array([2, 0]), np.array([1, -3])],
    [np.array([[2], [0]]), np.array([1, 3, 0])],
    [np.array([2, 0]), None, np.array([1, 2])],
    [np.array([2, 0]), np.array([1, 3]), np.array([2, -2])],
    [np.array(2)],
    [None, np.array([[1, 1], [0, 1]]), np.array([0, 2])],
)


def _shape(indices: Sequence[Values | None]) -> Sequence[int]:
    """The shape of the elements at indices of an array [5, 4, 3]."""
    return take_at(np.zeros((5, 4, 3)), indices).shape


_COMPUTED = array("2 3", "i64", low=-3, high=3)


@operator(
    indexing.take_at,
    *(call(array("5 4 3"), indices) for indices in _AT),
    call(array("5 4 3"), [_COMPUTED]),
    call(array("5 4 3"), [None, array("3", "i32", low=0, high=4)], outside="refuse"),
    call(array("5 4 3"), [array("2 1", "i64", low=0, high=5), None, _COMPUTED]),
    call(array("5 4 3"), [array("", "i64", low=0, high=5), np.array([1, 3, 0]), array("2 1", "i64", low=0, high=3)]),
    call(array("3 3"), [array("4", "i64", low=0, high=3), array("4", "i64", low=0, high=3)]),
    types=ANY,
)
def take_at(x: Values, indices: Sequence[Values | None], *, outside: str = "wrap") -> Values:
    """The elements at indices of some axes."""
    return x[tuple(slice(None) if each is None else each for each in indices)]


@operator(
    indexing.put_at,
    call(array("5 4 3"), [np.array([2, 0, 2])], array("3 4 3")),
    call(array("5 4 3"), [np.array([2, 0, 2])], array("3 4 3"), "+"),
    call(array("5 4 3"), [np.array([2, 0]), np.array([1, 3])], array("3")),
    call(array("5 4 3"), [None, np.array([1, 1, -1])], array("5 3 3"), "max"),
    call(array("5 4 3"), [np.array([2, 0]), None, np.array([1, 2])], array("2 4"), "*"),
    call(array("5 4"), [np.array([[2], [2]]), np.array([1, 3, 1])], array("2 3"), "+"),
    call(array("7"), [np.array([4, 0, 4, -1, 4])], array("5"), "min"),
    call(array("5 4"), [np.array([4, -1, 0, 1, 4, 0])], array("6 4"), "*"),
    call(array("5 4"), [np.array([4, -1, 0, 1, 4, 0])], array("6 4"), "max"),
    *(call(array("5 4 3"), at, array(" ".join(map(str, _shape(at)))), "+") for at in _AT),
    call(array("5 4 3"), [np.array([2, 0, 2])], array("")),
    *(call(array("5 4 3"), [_COMPUTED], array("2 3 4 3"), joins) for joins in (None, "+", "*", "max", "min")),
    call(array("5 4 3"), [None, array("3", "i32", low=0, high=4)], array("5 3 3"), outside="refuse"),
    call(array("5 4 3"), [array("2 1", "i64", low=0, high=5), None, _COMPUTED], array("2 3 1"), "+"),
    call(array("4 3"), [array("", "i64", low=0, high=4), np.array([1, 2, 1])], array("3")),
    call(array("3 3"), [array("4", "i64", low=0, high=3), array("4", "i64", low=0, high=3)], array("4"), "max"),
    types=ANY,
)
def put_at(
    x: Values,
    indices: Sequence[Values | None],
    values: Values,
    accumulation: str | None = None,
    *,
    outside: str = "wrap",
) -> Values:
    """A copy with values at indices of some axes."""
    index = [slice(None) if each is None else each for each in indices]
    numbers = np.arange(x.size).reshape(x.shape)[tuple(index)]
    whole = np.broadcast_to(values, numbers.shape)
    return joined(x.reshape(-1), [numbers.reshape(-1)], whole.reshape(-1), accumulation).reshape(x.shape)


@operator(
    build.scatter,
    call(array("4 8"), [build.iota((4,)), [3, 0, 2, 7]], array("4")),
    call(array("4 8"), [[3, 0, 3], 2], array("3"), accumulation="+"),
    call(array("4 8"), [array("3", "i64", low=-4, high=4), [1, 1, -1]], array("3")),
    call(array("4 8"), [build.iota((4,)), array("5 4", "i32", low=0, high=8)], array("5 4"), accumulation="max"),
    call(array("4 8"), [build.iota((4, 1)), array("4 3", "i64", low=0, high=8)], array("4 3"), outside="refuse"),
    call(array("6"), [array("5", "i64", given=[-9, 2, 2, 7, 6])], array("5"), accumulation="*", outside="clamp"),
    types=ANY,
)
def scatter(
    x: Values, places: Sequence[Any], values: Values, *, accumulation: str | None = None, outside: str = "wrap"
) -> Values:
    """A copy with values at places."""
    numbers = [
        np.arange(each.shape[0]).reshape(each.shape) if isinstance(each, build.Array) else each for each in places
    ]
    known = [np.array(each, int) for each in numbers]
    known = [np.clip(each, 0, e - 1) for each, e in zip(known, x.shape, strict=True)] if outside == "clamp" else known
    return put_at(x, known, values, accumulation)


@operator(
    build.take_from,
    call(array("5 4"), array("", "i64", given=[2]), 3),
    call(array("2 5 3"), array("2 1 1", "i32", given=[0, 3]), 2, -2),
    call(array("3 4"), array("", "i64", given=[0]), 4, 1),
    call(array("3 1"), array("3 1", "i32", given=[0, 0, 0]), 1, 1),
    call(array("6"), array("", "i64", given=[5]), 3, outside="clamp"),
    types=ANY,
)
def take_from(x: Values, start: Values, length: int, axis: int = 0, *, outside: str = "refuse") -> Values:
    """Neighbouring elements from a start on."""
    return np.take_along_axis(x, _from(x, start, length, axis), axis)


def _from(x: Values, start: Values, length: int, axis: int) -> Values:
    """The places of neighbouring elements along an axis, one for each element of the result."""
    shape = [length if d == axis % x.ndim else extent for d, extent in enumerate(x.shape)]
    first = np.broadcast_to(np.clip(start.astype(int), 0, x.shape[axis] - length), shape)
    return first + np.indices(shape)[axis]


@operator(
    build.put_from,
    call(array("5 4"), array("", "i64", given=[2]), array("3 4")),
    call(array("2 5 3"), array("2 1 1", "i32", given=[0, 3]), array("2 2 3"), -2),
    call(array("3 4"), array("", "i64", given=[0]), array("3 4"), 1),
    call(array("3 4"), array("", "i64", given=[3]), array("1 1"), 1),
    call(array("6"), array("", "i64", given=[-5]), array("3"), outside="clamp"),
    types=ANY,
)
def put_from(x: Values, start: Values, values: Values, axis: int = 0, *, outside: str = "refuse") -> Values:
    """A copy with neighbouring elements replaced from a start on."""
    places = _from(x, start, values.shape[axis], axis)
    found = x.copy()
    np.put_along_axis(found, places, np.broadcast_to(values, places.shape), axis)
    return found


@operator(
    indexing.write_sequences,
    call(array("2 3 5 2"), array("2 3 2 2"), [3, 0], 2),
    call(array("3 4"), array("3 3"), [0, 1, 0], 1),
    call(array("2 4 1"), array("2 3 1"), [3, 2], 1, circular=True),
    call(array("2 1 4 3"), array("2 1 6 3"), [1, 3], 2, circular=True),
    call(array("1 3"), array("1 0"), [1], 1),
    call(array("2 3 5 2"), array("2 3 2 2"), array("2", "i64", given=[3, 0]), 2),
    call(array("2 1 4 3"), array("2 1 6 3"), array("2", "i64", given=[1, 11]), 2, circular=True),
    types=ANY,
)
def write_sequences(
    x: Values, updates: Values, starts: Sequence[int] | Values, axis: int, *, circular: bool = False
) -> Values:
    """A copy with the updates of each sequence from its start on."""
    found = np.moveaxis(x.copy(), axis, 1)
    for row, start, new in zip(found, starts, np.moveaxis(updates, axis, 1), strict=True):
        row[(start + np.arange(len(new))) % len(row)] = new
    return np.moveaxis(found, 1, axis)


@operator(
    indexing.reverse_sequences,
    call(array("4 3"), [4, 1, 2], 0, 1),
    call(array("3 5 2"), [5, 3, 1], 1, 0),
    call(array("1 2"), [1, 1], 0, 1),
    types=ANY,
)
def reverse_sequences(x: Values, lengths: Sequence[int], axis: int, batch: int) -> Values:
    """A copy with the first elements of each sequence in reverse order."""
    found = x.copy()
    rows = np.moveaxis(found, (batch, axis), (0, 1))
    for row, length in zip(rows, lengths, strict=True):
        row[:length] = row[:length][::-1].copy()
    return found


@operator(
    indexing.one_hot,
    call(array("4", "i64", given=[1, 1, -1, 7]), 4, 1, array(""), array("")),
    call(array("2 3", "i32", low=-4, high=4), 4, 0, array("", "i64"), array("", "i64")),
    call(array("2 1", "i64", low=-1, high=1), 1, 2, array(""), array("")),
    call(array("3", "f32", given=[0, 1.5, -2]), 3, 0, array(""), array("")),
    types=ANY,
)
def one_hot(indices: Values, depth: int, axis: int, on: Values, off: Values) -> Values:
    """One of two numbers, chosen by indices."""
    places = np.expand_dims(np.where(indices < 0, indices + depth, indices), axis)
    shape = [depth if d == axis else 1 for d in range(places.ndim)]
    return np.where(places == np.arange(depth).reshape(shape), on, off)


@operator(
    indexing.triangle,
    call(array("3 5"), upper=True),
    call(array("3 5"), -1, upper=False),
    call(array("2 4 3"), 2, upper=True),
    call(array("2 4 3"), -9, upper=False),
    call(array("1 4"), 7, upper=True),
    call(array("3 5"), array("", "i64", low=-9, high=9), upper=True),
    call(array("2 4 3"), array("", "i32", low=-9, high=9), upper=False),
    call(array("3 3", given=[np.nan, np.inf, 1] * 3), 1, upper=False, types=ANY[:4]),
    types=ANY,
)
def triangle(x: Values, diagonal: int | Values = 0, *, upper: bool) -> Values:
    """The part of matrices on one side of a diagonal."""
    return np.triu(x, int(diagonal)) if upper else np.tril(x, int(diagonal))

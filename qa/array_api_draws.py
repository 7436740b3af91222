"""Random calls of the functions of the array API, for `qa.array_api`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Values = NDArray[Any]
FLOATS = ("f4", "f8")
SIGNED = ("i1", "i2", "i4", "i8")
UNSIGNED = ("u1", "u2", "u4", "u8")
INTEGERS = (*SIGNED, *UNSIGNED)
NUMBERS = (*FLOATS, *INTEGERS)


@dataclass(frozen=True)
class Call:
    """The arguments of a call: arrays first, in a list if `listed`, and options."""

    arrays: Sequence[Values]
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    rest: Sequence[Any] = ()
    """Positional arguments behind the arrays."""
    listed: bool = False
    tolerance: float = 16
    """The relative and the absolute error, in units of the last place."""

    def applied(self, function: Callable[..., Any], arrays: Sequence[Any]) -> Any:
        """The result with these arrays."""
        given = [list(arrays)] if self.listed else list(arrays)
        return function(*given, *self.rest, **self.options)

    def __str__(self) -> str:
        kinds = [f"{x.dtype}{list(x.shape)}" for x in self.arrays]
        return f"({', '.join([*kinds, *map(str, self.rest), *(f'{k}={v}' for k, v in self.options.items())])})"


Draw = Callable[[Generator], Call]


def shape(g: Generator, least: int = 0, most: int = 3) -> tuple[int, ...]:
    """A shape of some axes."""
    return tuple(int(n) for n in g.integers(1, 5, int(g.integers(least, most + 1))))


def values(g: Generator, kind: str, extents: Sequence[int], low: float = -4, high: float = 4) -> Values:
    """Random elements: of floats some whole numbers and zeros, of integers small ones."""
    if kind == "?":
        return g.integers(0, 2, extents).astype(np.bool_)
    if kind[0] == "f":
        found = g.uniform(low, high, extents)
        return np.where(g.random(extents) < 0.2, np.clip(np.rint(found), low, high), found).astype(kind)
    least = max(0, int(low)) if kind[0] == "u" else int(low)
    return g.integers(least, int(high) + 1, extents).astype(kind)


def one_of(g: Generator, options: Sequence[Any]) -> Any:
    """A random option."""
    return options[int(g.integers(len(options)))]


def partner(g: Generator, kind: str, kinds: Sequence[str]) -> str:
    """The type itself, or one of `kinds` with which the standard gives it a common type; half floats, too."""
    mixed = [each for each in kinds if mixes(kind, each)]
    return one_of(g, [kind, one_of(g, [*mixed, "f2"] if kind[0] == "f" else mixed)])


def mixes(kind: str, other: str) -> bool:
    """Whether two types have a common one: floats, booleans, integers but u8 (64 bits) beside signed ones."""
    if "?" in (kind, other) or "f" in kind + other:
        return kind == other or "?" in (kind, other) or kind[0] == other[0]
    return kind[0] == other[0] or "u8" not in (kind, other)


def alone(kinds: Sequence[str], low: float = -4, high: float = 4, special: bool = False) -> Draw:
    """Calls with one array; `special` mixes NaN and infinities in."""

    def draw(g: Generator) -> Call:
        x = values(g, one_of(g, kinds), shape(g), low, high)
        if special and x.dtype.kind == "f":
            x = np.where(g.random(x.shape) < 0.4, g.choice([np.nan, np.inf, -np.inf, -0.0], x.shape), x).astype(x.dtype)
        return Call([x])

    return draw


def together(kinds: Sequence[str], low: float = -4, high: float = 4, second: tuple[float, float] | None = None) -> Draw:
    """Calls with two arrays, of types that have a common one, whose shapes broadcast."""

    def draw(g: Generator) -> Call:
        kind, extents = one_of(g, kinds), shape(g)
        other = tuple(1 if g.random() < 0.3 else n for n in extents)[int(g.integers(0, len(extents) + 1)) :]
        also = partner(g, kind, kinds)
        pair = [values(g, kind, extents, low, high), values(g, also, other, *(second or (low, high)))]
        if also[0] != "f" and second is not None and second[0] > 0:
            pair[1] = np.where(pair[1] == 0, np.ones((), also), pair[1])
        return Call(pair[::-1] if second is None and g.random() < 0.5 else pair)

    return draw


def along(kinds: Sequence[str], *, single: bool = False, keeps: bool = True, low: float = -4, **more: Any) -> Draw:
    """Calls with one array and `axis`: a number, several or None."""

    def draw(g: Generator) -> Call:
        extents = shape(g, 1)
        axes: list[Any] = [int(g.integers(-len(extents), len(extents))), None]
        if not single and len(extents) > 1:
            axes.append((0, -1))
        options: dict[str, Any] = {"axis": one_of(g, axes)}
        if keeps and g.random() < 0.5:
            options["keepdims"] = True
        options |= {name: one_of(g, choices) for name, choices in more.items()}
        return Call([values(g, one_of(g, kinds), extents, low)], options, tolerance=64)

    return draw


def _axis(g: Generator, rank: int) -> int:
    return int(g.integers(-rank, rank))


def _clip(g: Generator) -> Call:
    kind, extents = one_of(g, NUMBERS), shape(g)
    return Call([values(g, kind, extents, 0, 9)], {"min": one_of(g, [None, 2]), "max": one_of(g, [5, 6])})


def _where(g: Generator) -> Call:
    call = together((*NUMBERS, "?"))(g)
    extents = np.broadcast_shapes(*(x.shape for x in call.arrays))
    return Call([values(g, "?", extents), *call.arrays])


def _matmul(g: Generator) -> Call:
    m, k, n = (int(each) for each in g.integers(1, 5, 3))
    lead = shape(g, 0, 2)
    kind = one_of(g, NUMBERS)
    left = one_of(g, [(k,), (m, k), (*lead, m, k)])
    right = one_of(g, [(k,), (k, n), (*lead, k, n)])
    return Call([values(g, kind, left), values(g, partner(g, kind, NUMBERS), right)], tolerance=64)


def _vecdot(g: Generator) -> Call:
    call = together(NUMBERS)(g)
    k = int(g.integers(1, 5))
    arrays = [values(g, x.dtype.str[1:], (*x.shape, k)) for x in call.arrays]
    return Call(arrays, tolerance=64)


def _tensordot(g: Generator) -> Call:
    kind, a, b, c, d = one_of(g, NUMBERS), *(int(each) for each in g.integers(1, 5, 4))
    arrays, axes = one_of(
        g,
        [
            (((a, b, c), (b, c, d)), 2),
            (((a, b), (b, c)), 1),
            (((a, b), (c,)), 0),
            (((a, b, c), (c, d, a)), ([0, -1], [2, 0])),
        ],
    )
    kinds = kind, partner(g, kind, NUMBERS)
    return Call([values(g, *each) for each in zip(kinds, arrays, strict=True)], {"axes": axes}, tolerance=64)


def _matrices(function: Callable[[Generator], Mapping[str, Any]] | None = None, square: bool = False) -> Draw:
    def draw(g: Generator) -> Call:
        extents = shape(g, 2)
        extents = (*extents[:-1], extents[-2]) if square else extents
        return Call([values(g, one_of(g, NUMBERS), extents)], function(g) if function else {}, tolerance=256)

    return draw


def _several(name: str) -> Draw:
    def draw(g: Generator) -> Call:
        kind, extents, count = one_of(g, (*NUMBERS, "?")), list(shape(g, 1)), int(g.integers(1, 4))
        kinds = kind, partner(g, kind, (*NUMBERS, "?"))
        axis = _axis(g, len(extents))
        arrays: list[Values] = []
        for _ in range(count):
            if name == "concat":
                extents[axis] = int(g.integers(1, 4))
            arrays.append(values(g, one_of(g, kinds), extents))
        whole = name == "concat" and g.random() < 0.2
        return Call(arrays, {"axis": None if whole else axis}, listed=True)

    return draw


def _with(rest: Callable[[Generator, Values], tuple[Sequence[Any], Mapping[str, Any]]], least: int = 1) -> Draw:
    """Calls with one array, and arguments that depend on it."""

    def draw(g: Generator) -> Call:
        x = values(g, one_of(g, (*NUMBERS, "?")), shape(g, least))
        positional, options = rest(g, x)
        return Call([x], options, positional)

    return draw


def _factors(size: int) -> list[int]:
    return [n for n in range(1, size + 1) if size % n == 0]


def _new_shape(g: Generator, x: Values) -> tuple[Sequence[Any], Mapping[str, Any]]:
    first = int(one_of(g, _factors(x.size)))
    return [one_of(g, [(first, -1), (-1, first), (first, x.size // first, 1), -1])], {}


def _squeezed(g: Generator) -> Call:
    extents = list(shape(g, 1))
    extents.insert(int(g.integers(0, len(extents) + 1)), 1)
    return Call([values(g, one_of(g, NUMBERS), extents)], {"axis": extents.index(1)})


def _take(g: Generator, x: Values) -> tuple[Sequence[Any], Mapping[str, Any]]:
    axis = _axis(g, x.ndim)
    return [g.integers(-x.shape[axis], x.shape[axis], int(g.integers(1, 6)))], {"axis": axis}


def _take_along(g: Generator) -> Call:
    x = values(g, one_of(g, NUMBERS), shape(g, 1))
    axis = _axis(g, x.ndim)
    extents = [*x.shape]
    extents[axis] = int(g.integers(1, 6))
    return Call([x, g.integers(-x.shape[axis], x.shape[axis], extents)], {"axis": axis})


def _searchsorted(g: Generator) -> Call:
    kind = one_of(g, NUMBERS)
    row = np.sort(values(g, kind, (int(g.integers(1, 9)),)))
    return Call([row, values(g, partner(g, kind, NUMBERS), shape(g))], {"side": one_of(g, ["left", "right"])})


def _astype(g: Generator) -> Call:
    x = values(g, one_of(g, (*NUMBERS, "?")), shape(g), 0, 9)
    return Call([x], {}, [np.dtype(one_of(g, (*NUMBERS, "?")))])


def _can_cast(g: Generator) -> Call:
    kinds = (*NUMBERS, "?", "f2")
    return Call([values(g, one_of(g, kinds), shape(g))], {}, [np.dtype(one_of(g, kinds))])


def _like(*rest: Any) -> Draw:
    return _with(lambda g, _: (rest, one_of(g, [{}, {"dtype": np.dtype("f4")}])), 0)


def _power(g: Generator) -> Call:
    n = int(g.integers(1, 4))
    return Call([values(g, one_of(g, FLOATS), (*shape(g, 0, 1), n, n))], {}, [int(g.integers(0, 6))], tolerance=4096)


def _cross(g: Generator) -> Call:
    extents = (*shape(g, 0, 2), 3)
    kind = one_of(g, (*FLOATS, *SIGNED))
    return Call([values(g, kind, extents), values(g, partner(g, kind, (*FLOATS, *SIGNED)), extents)])


_ANY = (*NUMBERS, "?")
_COMPARED = together(_ANY)
_BITS = together((*INTEGERS, "?"))
_SHIFTS = together(INTEGERS, 0, 9, (0, 6))
_LOGIC = together(_ANY)
_WIDE = alone(FLOATS, -3, 3)
_UNARY: dict[str, Draw] = {
    **dict.fromkeys("exp expm1 sin cos tan sinh cosh tanh asinh atan".split(), _WIDE),
    **dict.fromkeys("acos asin".split(), alone(FLOATS, -1, 1)),
    **{"acosh": alone(FLOATS, 1, 9), "atanh": alone(FLOATS, -0.9, 0.9)},
    **dict.fromkeys("log log2 log10 log1p sqrt".split(), alone(FLOATS, 0.1, 9)),
    **{"reciprocal": alone(FLOATS, 0.5, 9), "round": alone(NUMBERS), "signbit": alone(FLOATS, special=True)},
    **dict.fromkeys("floor ceil trunc isnan isinf isfinite".split(), alone(NUMBERS, special=True)),
    **dict.fromkeys("abs sign".split(), alone(NUMBERS, special=True)),
    **dict.fromkeys("negative positive square real imag conj".split(), alone(NUMBERS)),
    **{"bitwise_invert": alone((*INTEGERS, "?")), "logical_not": alone(_ANY)},
}
_BINARY: dict[str, Draw] = {
    **dict.fromkeys("add subtract multiply maximum minimum".split(), together(NUMBERS)),
    **dict.fromkeys("equal not_equal less less_equal greater greater_equal".split(), _COMPARED),
    **dict.fromkeys("bitwise_and bitwise_or bitwise_xor".split(), _BITS),
    **dict.fromkeys("bitwise_left_shift bitwise_right_shift".split(), _SHIFTS),
    **dict.fromkeys("logical_and logical_or logical_xor".split(), _LOGIC),
    **dict.fromkeys("copysign hypot atan2 logaddexp nextafter".split(), together(FLOATS)),
    **dict.fromkeys("floor_divide remainder".split(), together(NUMBERS, -9, 9, (0.5, 5))),
    **{"divide": together(FLOATS, -4, 4, (0.5, 4)), "pow": together(FLOATS, 0.1, 4, (-3, 3))},
}
_STATISTICS: dict[str, Draw] = {
    **dict.fromkeys("max min".split(), along(NUMBERS)),
    **{"sum": along(_ANY), "prod": along(_ANY, low=-2), "mean": along(FLOATS)},
    **dict.fromkeys("std var".split(), along(FLOATS, low=-4, correction=[0, 0.5])),
    **dict.fromkeys("all any".split(), along(_ANY, low=0)),
    **dict.fromkeys("argmax argmin".split(), along(NUMBERS, single=True)),
    "count_nonzero": along(_ANY),
}


def _running(g: Generator) -> Call:
    x = values(g, one_of(g, NUMBERS), shape(g, 1), -2, 2)
    return Call([x], {"axis": _axis(g, x.ndim), "include_initial": bool(g.integers(2))}, tolerance=64)


def _sorted(g: Generator) -> Call:
    x = alone(NUMBERS, special=True)(g).arrays[0].reshape(-1, 1)
    return Call([x if g.random() < 0.5 else x.T], {"axis": one_of(g, [0, -1]), "stable": True})


DRAWS: dict[str, Draw] = {
    **_UNARY,
    **_BINARY,
    **_STATISTICS,
    **{"clip": _clip, "where": _where, "matmul": _matmul, "vecdot": _vecdot, "tensordot": _tensordot},
    **{"cumulative_sum": _running, "cumulative_prod": _running, "sort": _sorted, "argsort": _sorted},
    **{"concat": _several("concat"), "stack": _several("stack"), "broadcast_arrays": together(NUMBERS)},
    **{"searchsorted": _searchsorted, "take": _with(_take), "take_along_axis": _take_along, "astype": _astype},
    "matrix_transpose": _matrices(),
    "broadcast_to": _with(lambda g, x: ([(2, *x.shape)], {})),
    "expand_dims": _with(lambda g, x: ([], {"axis": int(g.integers(-x.ndim - 1, x.ndim + 1))})),
    "flip": _with(lambda g, x: ([], {"axis": one_of(g, [None, _axis(g, x.ndim)])})),
    "moveaxis": _with(lambda g, x: ([_axis(g, x.ndim), _axis(g, x.ndim)], {})),
    "permute_dims": _with(lambda g, x: ([tuple(int(d) for d in g.permutation(x.ndim))], {})),
    "repeat": _with(lambda g, x: ([int(g.integers(1, 4))], {"axis": one_of(g, [None, _axis(g, x.ndim)])})),
    "reshape": _with(_new_shape),
    "roll": _with(lambda g, x: ([int(g.integers(-9, 9))], {"axis": one_of(g, [None, _axis(g, x.ndim)])})),
    "squeeze": _squeezed,
    "tile": _with(lambda g, x: ([one_of(g, [2, (2, 1), (1, 3, 2)])], {})),
    "unstack": _with(lambda g, x: ([], {"axis": _axis(g, x.ndim)})),
    "diff": _with(lambda g, x: ([], {"axis": x.shape.index(max(x.shape)), "n": int(max(x.shape) > 1)})),
    **{"result_type": together(NUMBERS), "can_cast": _can_cast},
    **{"full_like": _like(1), "ones_like": _like(), "zeros_like": _like()},
    "empty_like": lambda g: Call([values(g, "f4", shape(g))], tolerance=np.inf),
    "meshgrid": lambda g: Call([values(g, "f4", (n,)) for n in (2, 3)], {"indexing": one_of(g, ["xy", "ij"])}),
    **dict.fromkeys("tril triu".split(), _matrices(lambda g: {"k": int(g.integers(-2, 3))})),
    "linalg.cross": _cross,
    "linalg.det": lambda g: Call([values(g, one_of(g, FLOATS), (*shape(g, 0, 1), 3, 3))], tolerance=4096),
    "linalg.diagonal": _matrices(square=True),
    "linalg.matmul": _matmul,
    "linalg.matrix_norm": _matrices(lambda g: {"ord": one_of(g, ["fro", 1, -1, np.inf, -np.inf])}),
    "linalg.matrix_power": _power,
    "linalg.matrix_transpose": _matrices(),
    "linalg.outer": lambda g: Call([values(g, "f4", (3,)), values(g, "f4", (4,))]),
    "linalg.tensordot": _tensordot,
    "linalg.trace": _matrices(square=True),
    "linalg.vecdot": _vecdot,
    "linalg.vector_norm": along(FLOATS, ord=[1, 2, 3, np.inf, -np.inf, 0]),
}
"""A random call of each function, by its name in the standard."""

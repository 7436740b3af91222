"""NumPy's functions of elements: its ufuncs with `reduce`, `accumulate` and `outer`, choices and comparisons."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from math import pi
from typing import Any

import numpy as np

from pdojo.build import elementwise
from pdojo.build.array import Array, Like, broadcast_to, cast, constant, map, power, promoted
from pdojo.build.bits import next_after
from pdojo.build.extents import broadcast_shape
from pdojo.build.like_numpy.constants import as_float, element_type, of, operand_of
from pdojo.build.like_numpy.table import FUNCTIONS
from pdojo.build.plain import number_of
from pdojo.build.shapes import reshape
from pdojo.errors import UsageError


def _named(function: str, **parameters: Any) -> Callable[..., Array]:
    """A function of elements by its name in pdojo."""
    return lambda *operands: map(function, *operands, **parameters)


def _of_floats(function: str) -> Callable[[Array], Array]:
    """A function by its name that leaves integers as they are."""
    return lambda x: map(function, x) if x.is_float else x


def _is(function: str) -> Callable[[Array], Array]:
    """A question by its name whose answer for integers is no."""
    return lambda x: map(function, x) if x.is_float else constant(0, "i1", x.shape)


def _truth(x: Like) -> Like:
    return cast(x, "i1") if isinstance(x, Array) else bool(x)


def _is_finite(x: Array) -> Array:
    return abs(x) < float("inf") if x.is_float else constant(1, "i1", x.shape)


def _heaviside(x: Array, middle: Like) -> Array:
    halves = elementwise.where(x == 0, middle, cast(x > 0, x.dtype))
    return elementwise.where(map("is_nan", x), x, halves)


def _next_after(x: Like, y: Like) -> Array:
    return next_after(*_alike("nextafter", x, y))


def _operator(name: str) -> Callable[..., Any]:
    """An operator of Python by its name."""
    return getattr(operator, name)


def _logical(sign: str) -> Callable[[Like, Like], Array]:
    return lambda x, y: map(sign, _truth(x), _truth(y))


def _scaled(factor: float) -> Callable[[Array], Array]:
    return lambda x: x * factor


def _not(x: Array) -> Array:
    return ~cast(x, "i1")


def _square(x: Array) -> Array:
    return x * x


_OPERATORS = {
    **{"add": "add", "subtract": "sub", "multiply": "mul", "divide": "truediv", "floor_divide": "floordiv"},
    **{"remainder": "mod", "equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt"},
    **{"greater_equal": "ge", "bitwise_and": "and_", "bitwise_or": "or_", "bitwise_xor": "xor"},
    **{"left_shift": "lshift", "right_shift": "rshift"},
}
_TOGETHER: dict[str, Callable[..., Any]] = {
    **{name: _operator(sign) for name, sign in _OPERATORS.items()},
    **{name: _named(name) for name in ("fmax", "fmin", "hypot", "copysign", "logaddexp")},
    **{"maximum": _named("max"), "minimum": _named("min"), "fmod": _named("rem"), "arctan2": _named("atan2")},
    **{"power": power, "divmod": divmod, "heaviside": _heaviside, "nextafter": _next_after},
}
"""Ufuncs of two operands of one element type."""
_LOGICAL = {f"logical_{name}": _logical(sign) for name, sign in (("and", "&"), ("or", "|"), ("xor", "^"))}
"""Ufuncs of two operands of any types."""
_ALONE: dict[str, Callable[..., Any]] = {
    **{"negative": operator.neg, "positive": operator.pos, "absolute": abs, "fabs": abs, "invert": operator.inv},
    **{name: _named(name) for name in ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "tanh")},
    **{name: _named(name) for name in ("sin", "cos", "tan", "sinh", "cosh", "reciprocal")},
    **{f"arc{name}": _named(f"a{name}") for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{"floor": _of_floats("floor"), "ceil": _of_floats("ceil"), "trunc": _of_floats("trunc")},
    **{"rint": _of_floats("roundeven"), "isnan": _is("is_nan"), "isinf": _is("is_inf"), "isfinite": _is_finite},
    **{"sign": _named("sign"), "signbit": _named("sign_bit"), "square": _square, "conjugate": operator.pos},
    **dict.fromkeys(("degrees", "rad2deg"), _scaled(180 / pi)),
    **dict.fromkeys(("radians", "deg2rad"), _scaled(pi / 180)),
    "logical_not": _not,
}
"""Ufuncs of one operand."""


def _ufunc(name: str, function: Callable[..., Any], count: int) -> Callable[..., Any]:
    """A function of elements with NumPy's arrays as operands, and without NumPy's options."""

    def call(*operands: Any, **options: Any) -> Any:
        for option in options:
            raise UsageError(f"np.{name} of handles has no option '{option}'; use np.where, or x.astype")
        if len(operands) != count:
            raise UsageError(f"np.{name} takes {count} operand{'s' * (count != 1)}, not {len(operands)}")
        given = [x if isinstance(x, Array) else number_of(x) for x in (operand_of(each) for each in operands)]
        return function(*(given if name in _LOGICAL else promoted(f"'np.{name}'", *given)))

    return call


def _outer(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of each element of one operand and each of another."""

    def call(one: Any, other: Any) -> Any:
        left, right = operand_of(one), operand_of(other)
        if isinstance(left, Array) and isinstance(right, Array):
            left = reshape(left, (*left.shape, *[1] * right.rank))
        return function(left, right)

    return _ufunc(f"{name}.outer", call, 2)


def _fill(table: Mapping[str, Callable[..., Any]], count: int) -> None:
    for name, function in table.items():
        FUNCTIONS[name] = _ufunc(name, function, count)
        if count == 2:
            FUNCTIONS[f"{name}.outer"] = _outer(name, function)


_fill(_ALONE, 1)
_fill(_TOGETHER, 2)
_fill(_LOGICAL, 2)


def _alike(name: str, *operands: Like) -> list[Array]:
    """The operands as arrays of their common element type, which is that of NumPy's numbers if none is an array."""
    given = promoted(f"'np.{name}'", *operands)
    kinds = [x.dtype for x in given if isinstance(x, Array)] or [element_type(np.result_type(*given))]
    return [x if isinstance(x, Array) else constant(x, kinds[0]) for x in given]


@of("astype")
def astype(x: Array, dtype: Any) -> Array:
    """The array in another element type."""
    return cast(x, element_type(dtype))


@of("where")
def where(condition: Array, x: Like, y: Like) -> Array:
    """The elements of `x` where the condition is not 0, those of `y` elsewhere."""
    return elementwise.where(cast(condition, "i1"), *_alike("where", x, y))


@of("select")
def select(condlist: Sequence[Array], choicelist: Sequence[Like], default: Like = 0) -> Array:
    """The elements of the first choice whose condition holds."""
    found, *choices = _alike("select", default, *choicelist)
    for condition, choice in zip(condlist[::-1], choices[::-1], strict=True):
        found = where(condition, choice, found)
    return found


@of("clip")
def clip(
    a: Array,
    a_min: Like | None = None,
    a_max: Like | None = None,
    *,
    min: Like | None = None,  # NumPy's names
    max: Like | None = None,
) -> Array:
    """The elements, but at least a minimum and at most a maximum."""
    x, *limits = promoted("'np.clip'", a, min if a_min is None else a_min, max if a_max is None else a_max)
    shape = broadcast_shape(*(each.shape for each in (x, *limits) if isinstance(each, Array)))
    return elementwise.clip(broadcast_to(x, shape), *limits)


@of("round", "around")
def round(a: Array, decimals: int = 0) -> Array:
    """The elements rounded to so many decimals, ties to even."""
    if not a.is_float:
        if decimals < 0:
            raise UsageError(f"integers are not rounded to {decimals} decimals; use x // 10 * 10")
        return a
    return map("round_decimals", a, decimals=decimals) if decimals else map("roundeven", a)


@of("fix")
def fix(x: Array) -> Array:
    """The elements rounded toward 0."""
    return map("trunc", x) if x.is_float else x


@of("sinc")
def sinc(x: Array) -> Array:
    """`sin(pi x) / (pi x)`, and 1 at 0."""
    return map("sinc", x)


@of("isclose")
def isclose(a: Like, b: Like, rtol: float = 1e-5, atol: float = 1e-8) -> Array:
    """Whether `|a - b| <= atol + rtol |b|`; equal infinities are close, NaN is not."""
    one, other = _alike("isclose", *(as_float(x) if isinstance(x, Array) else x for x in (a, b)))
    return (one == other) | ((abs(one - other) <= atol + rtol * abs(other)) & _is_finite(other))


@of("allclose")
def allclose(a: Like, b: Like, rtol: float = 1e-5, atol: float = 1e-8) -> Array:
    """Whether all elements are close."""
    return isclose(a, b, rtol, atol).all()


@of("copy", "real", "real_if_close")
def copy(a: Array) -> Array:
    """The array itself."""
    return a


@of("imag")
def imag(val: Array) -> Array:
    """The imaginary part of real numbers: 0."""
    return constant(0, val.dtype, val.shape)


@of("nan_to_num")
def nan_to_num(x: Array, nan: float = 0.0) -> Array:
    """The elements, with a number for NaN and the greatest and least numbers for infinities."""
    if not x.is_float:
        return x
    if x.dtype == "bf16":
        raise UsageError("np.nan_to_num does not take bf16; use np.where and np.isnan")
    greatest = {"f64": 1.7976931348623157e308, "f32": 3.4028234663852886e38, "f16": 65504.0}[x.dtype]
    return elementwise.where(map("is_nan", x), nan, elementwise.clip(x, -greatest, greatest))

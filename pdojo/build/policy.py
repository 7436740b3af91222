"""The element types in which operators compute."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar
from typing import cast as typed

from pdojo.build.arguments import listed, replaced
from pdojo.build.array import Array, cast, wide
from pdojo.dialect.element_types import WIDE, is_float
from pdojo.errors import UsageError

_P = ParamSpec("_P")
_R = TypeVar("_R")
_F = TypeVar("_F", bound=Callable[..., Any])


def rounded_once(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """A function of floating-point numbers that computes f16 and bf16 in f32, and rounds its first result once.

    The first argument is an array, whose type the first result has; further results, such as statistics, stay in the
    type of the computation, in a list. The wrapper raises UsageError for integers.
    """
    computed = accumulated_wide(function)

    @wraps(computed)
    def check(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        x = typed("Array", args[0])
        if not is_float(x.dtype):
            raise UsageError(f"'{function.__name__}' takes floating-point numbers, not {x.dtype}; use build.cast")
        return computed(*args, **kwargs)

    return check


def accumulated_wide(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """As `rounded_once`, of a function that takes integers too: they are computed in their own type."""

    @wraps(function)
    def computed(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        x, widened = typed("Array", args[0]), typed("Any", function)
        if x.dtype not in WIDE:
            return widened(*args, **kwargs)
        made: Any = widened(*_widened(args), **_widened(kwargs))
        if isinstance(made, Array):
            return typed("Any", cast(made, x.dtype))
        first, *statistics = listed(made)
        return typed("Any", [cast(first, x.dtype), *statistics])

    typed("Any", computed).policy = WIDE
    return computed


def calls_wide(function: _F) -> _F:
    """A mark of a function that computes f16 and bf16 in f32 because it calls functions that do."""
    typed("Any", function).policy = WIDE
    return function


def of_one_type(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """A function whose floating-point arrays have one element type; the wrapper raises UsageError for several."""

    @wraps(function)
    def check(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        kinds: dict[str, None] = {}
        replaced((args, kwargs), Array, lambda x: kinds.setdefault(x.dtype) if x.is_float else None)
        if len(kinds) > 1:
            title = function.__name__
            raise UsageError(f"'{title}' takes arrays of one element type, not {' and '.join(kinds)}; use build.cast")
        return function(*args, **kwargs)

    return check


def _widened(value: Any) -> Any:
    """An argument, with arrays of f16 and bf16 in f32."""
    return replaced(value, Array, wide)

"""Checks of the options of public functions: a wrong name or type raises one clear error."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import cache, wraps
from operator import index
from types import NoneType, SimpleNamespace
from typing import Any, Literal, ParamSpec, TypeVar, get_args, get_origin, get_type_hints

from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.errors import UsageError, did_you_mean

_P = ParamSpec("_P")
_R = TypeVar("_R")
_ELSEWHERE = {KernelOp, Machine}
"""Types that `programs` checks, with better messages."""
_MEANT = {int: "a whole number", float: "a number", bool: "True or False", str: "a text", NoneType: "None"}


def checked(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """A wrapper of `function` that raises UsageError for unknown options and for values that its annotations exclude.

    Whole numbers of other packages (NumPy) become Python's `int`.
    """
    signature = inspect.signature(function)
    named = [name for name, each in signature.parameters.items() if each.kind is not each.VAR_POSITIONAL]
    title = function.__name__
    hints = cache(lambda: _hints(function, named))

    @wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        unknown = next((name for name in kwargs if name not in named), None)
        if unknown is not None:
            raise UsageError(f"'{title}' has no option '{unknown}'; {did_you_mean(unknown, named)}")
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise UsageError(f"'{title}' cannot be called like that: {error}") from None
        for name in bound.arguments.keys() & set(named):
            bound.arguments[name] = _fitting(title, name, bound.arguments[name], _alternatives(hints()[name]))
        return function(*bound.args, **bound.kwargs)

    return call


def _hints(function: Callable[..., Any], named: Sequence[str]) -> dict[str, Any]:
    """Annotations of the parameters `named`; the annotation of the result may name a module that is not imported."""
    texts = {name: function.__annotations__[name] for name in named}
    return get_type_hints(SimpleNamespace(__annotations__=texts), function.__globals__)


def _alternatives(hint: Any) -> tuple[Any, ...]:
    return (hint,) if get_origin(hint) is Literal else get_args(hint) or (hint,)


def _fitting(title: str, name: str, value: Any, alternatives: tuple[Any, ...]) -> Any:
    """The value, with a whole number as Python's `int`. Raises UsageError if no annotation fits it."""
    kinds = [get_origin(each) or each for each in alternatives]
    if _ELSEWHERE.intersection(kinds):
        return value
    whole = _whole(value) if int in kinds or float in kinds else None
    if whole is not None:
        return whole
    if any(_is(value, kind, each) for kind, each in zip(kinds, alternatives, strict=True)):
        return value
    meant = " or ".join(_words(each) for each in alternatives)
    raise UsageError(f"'{title}': '{name}' is {meant}, not {value!r:.60}")


def _whole(value: Any) -> int | None:
    """A whole number as Python's `int`; None for all other values, including truth values."""
    try:
        return None if isinstance(value, bool) else index(value)
    except TypeError:
        return None


def _is(value: Any, kind: Any, hint: Any) -> bool:
    """True if a value may be of that kind; protocols accept every object."""
    if kind is Literal:
        return isinstance(value, str) and value in get_args(hint)
    if kind is float:
        return isinstance(value, float)
    if getattr(kind, "_is_protocol", False):
        return not isinstance(value, int | float | str | bytes)
    return kind is not int and isinstance(value, kind)


def _words(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return " or ".join(map(repr, get_args(hint)))
    kind = get_origin(hint) or hint
    return _MEANT.get(kind, f"a {kind.__name__}")

"""Arguments of functions: one of another kind than its annotation raises one clear error; changes inside of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache, wraps
from types import UnionType
from typing import Any, ForwardRef, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints
from typing import cast as cast_to

import numpy as np

from pdojo.build.array import Array
from pdojo.build.plain import plain_of
from pdojo.build.sizes import Open, OpenArgument, OpenExtent
from pdojo.errors import UsageError

_P = ParamSpec("_P")
_R = TypeVar("_R")
_T = TypeVar("_T")
_PLAIN: Mapping[Any, tuple[type, ...]] = {
    int: (int, np.integer),
    float: (int, float, np.integer, np.floating, np.bool_, Open),
    bool: (bool, np.bool_),
}
"""The types of Python and NumPy that stand for an annotation."""
_WORDS: Mapping[Any, str] = {
    **{int: "an integer", float: "a number", bool: "True or False", str: "a text", Literal: "a text"},
    **{Array: "a handle", Mapping: "a dictionary"},
}


def checked(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """A wrapper of `function` that raises UsageError for arguments that its annotations exclude."""
    signature, title = inspect.signature(function), function.__name__
    hints = cache(lambda: get_type_hints(function))

    @wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise UsageError(f"'{title}' cannot be called like that: {error}") from None
        bound.arguments = {name: plain_of(value) for name, value in bound.arguments.items()}
        for name, value in bound.arguments.items():
            hint: Any = hints()[name]
            if signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL:
                hint = Sequence[hint]
            if signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
                hint = Mapping[str, hint]
            if not fits(value, hint):
                raise UsageError(f"'{title}': {name} is {_words(hint)}, not {value!r:.60}")
        try:
            return function(*bound.args, **bound.kwargs)
        except OpenArgument:
            raise
        except OpenExtent as error:
            raise OpenArgument(f"'{title}': {error}", narrower=error.narrower) from None

    return call


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is of an annotated kind; texts of a `Literal` are left to the function."""
    kind, inside = get_origin(hint), get_args(hint)
    if hint in (Any, None, type(None)) or isinstance(hint, ForwardRef):
        return hint not in (None, type(None)) or value is None
    if kind in (Union, UnionType):
        return any(fits(value, each) for each in inside)
    if kind is Literal:
        return isinstance(value, str)
    if kind is tuple and inside[-1] is not ...:
        return (
            isinstance(value, Sequence)
            and len(rows := cast_to("Sequence[Any]", value)) == len(inside)
            and all(map(fits, rows, inside))
        )
    if kind in (Sequence, tuple):
        # A single integer, such as an axis, depends on no size.
        return _is_sequence(value) and all(
            fits(each, inside[0]) or (isinstance(each, Open) and inside[0] is int) for each in value
        )
    if kind is Mapping:
        return isinstance(value, Mapping) and all(
            fits(each, hint)
            for row in cast_to("Mapping[Any, Any]", value).items()
            for each, hint in zip(row, inside, strict=True)
        )
    if kind is Callable:
        return callable(value)
    wanted = cast_to("type", kind or hint)
    return isinstance(value, _PLAIN.get(wanted, (wanted,))) and not (wanted is int and isinstance(value, bool))


def _is_sequence(value: Any) -> bool:
    """Whether a value is a list, a tuple or the like; an array of NumPy is one of its rows."""
    return (isinstance(value, Sequence) and not isinstance(value, str)) or (
        isinstance(value, np.ndarray) and value.ndim > 0
    )


def _words(hint: Any) -> str:
    """A kind of argument in messages."""
    kind, inside = get_origin(hint), get_args(hint)
    if kind in (Union, UnionType):
        return " or ".join(dict.fromkeys(map(_words, inside)))
    if kind in (Sequence, tuple) and inside[0] in _WORDS:
        return f"a sequence of {_WORDS[inside[0]].split(' ', 1)[-1]}s"
    if kind is Callable:
        return "a function"
    if hint is type(None):
        return "None"
    return _WORDS.get(hint) or _WORDS.get(kind, "a sequence")


def replaced(value: Any, kind: type[_T], by: Callable[[_T], Any]) -> Any:
    """A value in which `by` replaces each instance of a class, also in lists, tuples and dictionaries."""
    if isinstance(value, kind):
        return by(value)
    if isinstance(value, Mapping):
        return {name: replaced(each, kind, by) for name, each in cast_to("Mapping[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        parts = [replaced(each, kind, by) for each in listed(value)]
        return tuple(parts) if isinstance(value, tuple) else parts
    return value


def listed(value: Any) -> list[Any]:
    """The elements of a list or a tuple, or the only value."""
    return [*cast_to("Sequence[Any]", value)] if isinstance(value, list | tuple) else [value]

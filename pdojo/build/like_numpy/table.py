"""The functions of NumPy that take handles, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, cast

from pdojo.errors import UsageError

FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""Functions by their names in NumPy: `sum`, `linalg.norm`, `add`, `add.reduce`."""
_OF_DATA = "the shape of its result would depend on data; np.where keeps the shape"
_HINTS = {
    **dict.fromkeys(("nonzero", "flatnonzero", "argwhere", "extract", "compress", "unique", "trim_zeros"), _OF_DATA),
    **dict.fromkeys(("unique_all", "unique_counts", "unique_inverse", "unique_values"), _OF_DATA),
    **dict.fromkeys(
        ("partition", "argpartition"),
        "np.sort takes handles",
    ),
    **dict.fromkeys(("put", "place", "putmask", "copyto", "put_along_axis"), "build.put_at makes a changed copy"),
    **dict.fromkeys(("histogram", "bincount", "digitize"), "build.put with accumulation='+' counts at given indices"),
}


def numpy_name(function: Any) -> str:
    """The name of a function of NumPy behind `np.`."""
    module = str(getattr(function, "__module__", "numpy")).removeprefix("numpy").strip(".")
    return f"{module}.{function.__name__}" if module else function.__name__


def _close(name: str) -> list[str]:
    """The most similar name behind the same module, or of the same ufunc."""
    head, dot, tail = name.rpartition(".")
    known = [each.rpartition(".")[2] for each in FUNCTIONS if each.rpartition(".")[0] == head]
    return [f"{head}{dot}{each}" for each in get_close_matches(tail, known, n=1, cutoff=0.7)]


def called(name: str, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """The result of a function of NumPy for handles. Raises UsageError for a function that takes none."""
    out = keywords.get("out")
    if out is not None and not (isinstance(out, tuple) and all(each is None for each in cast("tuple[Any]", out))):
        raise UsageError(f"np.{name}: no handle is written in place; leave out= away and use the result")
    function = FUNCTIONS.get(name)
    if function is None:
        hint = "build.put_at(..., accumulation='+') makes a changed copy" if name.endswith(".at") else _HINTS.get(name)
        close = _close(name)
        hint = hint or (f"did you mean 'np.{close[0]}'?" if close else "docs/build.md lists the functions that do")
        raise UsageError(f"np.{name} takes no handles; {hint}")
    return function(*arguments, **{key: value for key, value in keywords.items() if key != "out"})

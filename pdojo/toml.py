"""TOML files of users: reading, and the kinds of values, each with the words for a wrong value."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast

from pdojo.errors import UsageError
from pdojo.files import read_text

T = TypeVar("T")
Kind: TypeAlias = tuple[Callable[[object], T | None], str]
"""A function that reads a value, None if it is of another kind, and the words for the right values."""


def read_toml(path: Path, title: str) -> dict[str, Any]:
    """The tables of a file; messages call it `title`. Raises UsageError."""
    try:
        return tomllib.loads(read_text(path))
    except OSError as error:
        raise UsageError(f"cannot read the {title} '{path}': {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise UsageError(f"cannot read the {title} '{path}': it is no UTF-8 text") from None
    except ValueError as error:
        # Python, not the TOML reader, refuses numbers of thousands of digits.
        problem = "a number has thousands of digits" if "int_max_str_digits" in str(error) else error
        raise UsageError(f"{title} '{path}' is no TOML: {problem}") from None
    except RecursionError:
        raise UsageError(f"{title} '{path}': brackets are nested too deeply") from None


def listed(value: object) -> list[object] | None:
    """The items of a list; None for another value."""
    return list(cast("Iterable[object]", value)) if isinstance(value, list | tuple) else None


def table(value: object) -> dict[str, object] | None:
    """The items of a table; None for another value."""
    return cast("dict[str, object]", value) if isinstance(value, dict) else None


def word(value: object) -> str | None:
    """A text; None for another value."""
    return value if isinstance(value, str) else None


def flag(value: object) -> bool | None:
    """A truth value; None for another value."""
    return value if isinstance(value, bool) else None


def count(value: object) -> int | None:
    """A whole number of at least 0; None for another value."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def each(read: Callable[[object], T | None], value: object) -> list[T] | None:
    """A list whose items are all of one kind; None for another value."""
    rows = listed(value)
    found = [item for row in rows or () if (item := read(row)) is not None]
    return found if rows is not None and len(found) == len(rows) else None


def pairs(read: Callable[[object], T | None], value: object) -> dict[str, T] | None:
    """A table whose values are all of one kind; None for another value."""
    rows = table(value)
    found = {name: item for name, one in (rows or {}).items() if (item := read(one)) is not None}
    return found if rows is not None and len(found) == len(rows) else None


FLAG: Kind[bool] = flag, "true or false"
COUNT: Kind[int] = count, "a whole number of at least 0"

"""Schemas of stored trees; the contents of a file are checked against one before they are used.

| schema | what fits it |
| --- | --- |
| a type: `float`, `str`, `bool` | a value of the type; a `float` is finite, and may be written as an integer |
| `object` | everything |
| `range(a, b)` | an integer from `a` to `b - 1` |
| `None` | None |
| a tuple of schemas | what fits one of them |
| `[schema]` | a list of such items, of any length |
| a dictionary | a dictionary with the same keys |
| `Some`, `ListSchema` | a dictionary with some of the keys; a list that begins with some items |
| `TensorSchema`, or a tensor | a tensor of the type and shape, without infinities and NaN |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from random import Random
from typing import Any, TypeAlias, cast

from pdojo.errors import UsageError

Schema: TypeAlias = Any
"""A schema, see the module's table."""
COUNT = range(1 << 62)
"""Schema of a count."""


@dataclass(frozen=True)
class TensorSchema:
    """A tensor. A name in `shape` stands for one length throughout a schema."""

    dtype: str
    shape: tuple[int | str, ...] = ()
    least: float = -inf
    """The least allowed number."""


@dataclass(frozen=True)
class Some:
    """A dictionary with some of the given keys."""

    items: Mapping[Any, Schema]


@dataclass(frozen=True)
class ListSchema:
    """A list that begins with items of the schemas `head`; any further items fit `rest`."""

    head: tuple[Schema, ...]
    rest: Schema = ()


RANDOM = ListSchema((range(10), [range(1 << 32)], (None, float)))
"""Schema of `stored_random`."""


def stored_random(random: Random) -> list[Any]:
    """The state of a random generator, as plain data."""
    version, words, gauss = random.getstate()
    return [version, list(words), gauss]


def restore_random(random: Random, stored: Sequence[Any]) -> None:
    """Restore the state of `stored_random`, which must fit `RANDOM`. Raises UsageError for an impossible state."""
    version, words, gauss = stored
    try:
        random.setstate((version, tuple(words), gauss))
    except (ValueError, TypeError):
        raise UsageError("'random' is no state of a random generator") from None


def check(value: object, schema: Schema) -> None:
    """Raise UsageError, with the place in the tree, if a value does not fit a schema."""
    problem = next(_problems(value, schema, "", {}), None)
    if problem is not None:
        raise UsageError(problem)


def _problems(value: object, schema: Schema, place: str, lengths: dict[str, int]) -> Iterator[str]:
    """The problems of a value; `lengths` has the known lengths, keyed by name."""
    match schema:
        case dict() | Some():
            yield from _of_dictionary(value, schema, place, lengths)
        case list() | ListSchema():
            yield from _of_list(value, schema, place, lengths)
        case tuple():
            each = cast("tuple[Schema, ...]", schema)
            if all(next(_problems(value, one, place, lengths), None) for one in each):
                yield _wrong(place, "none of the allowed values")
        case TensorSchema() | None | range() | type():
            if not _fits(value, schema, lengths):
                yield _wrong(place, f"no {_meant(schema)}")
        case tensor:
            yield from _problems(value, TensorSchema(_dtype(tensor), tuple(tensor.shape)), place, lengths)


def _of_dictionary(
    value: object, schema: Some | dict[Any, Schema], place: str, lengths: dict[str, int]
) -> Iterator[str]:
    items, whole = (schema.items, False) if isinstance(schema, Some) else (schema, True)
    if not isinstance(value, dict):
        yield _wrong(place, "no dictionary")
        return
    found = cast("dict[object, object]", value)
    other = [key for key in found if key not in items]
    missing = [key for key in items if key not in found] if whole else []
    yield from (f"'{place or 'the tree'}' has the unknown entry '{key}'" for key in other)
    yield from (f"'{place or 'the tree'}' has no entry '{key}'" for key in missing)
    for key, item in found.items():
        if key in items:
            yield from _problems(item, items[key], f"{place}.{key}" if place else str(key), lengths)


def _of_list(value: object, schema: ListSchema | list[Schema], place: str, lengths: dict[str, int]) -> Iterator[str]:
    head, rest = (schema.head, schema.rest) if isinstance(schema, ListSchema) else ((), schema[0])
    found = cast("list[object]", value) if isinstance(value, list) else None
    if found is None or len(found) < len(head) or (rest == () and len(found) > len(head)):
        yield _wrong(place, f"no list of {'at least ' * (rest != ())}{len(head)} items")
        return
    for number, item in enumerate(found):
        own = head[number] if number < len(head) else rest
        yield from _problems(item, own, f"{place}[{number}]", lengths)


def _fits(value: Any, schema: Schema, lengths: dict[str, int]) -> bool:
    match schema:
        case TensorSchema():
            return _is_array(value, schema, lengths)
        case None:
            return value is None
        case range():
            return type(value) is int and value in schema
        case _ if schema is float:
            return type(value) in (int, float) and abs(value) < 1 << 1023 and isfinite(value)
        case _:
            return isinstance(value, schema)


def _is_array(value: Any, schema: TensorSchema, lengths: dict[str, int]) -> bool:
    """True for a tensor of the right type and shape with finite numbers, none below the least."""
    if not hasattr(value, "dtype") or _dtype(value) != schema.dtype or len(value.shape) != len(schema.shape):
        return False
    for length, wanted in zip(value.shape, schema.shape, strict=True):
        if length != (lengths.setdefault(wanted, length) if isinstance(wanted, str) else wanted):
            return False
    if not value.numel():
        return True
    return bool(value.isfinite().all()) and float(value.min()) >= schema.least


def _dtype(tensor: Any) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _meant(schema: Schema) -> str:
    match schema:
        case TensorSchema():
            least = f", from {schema.least:g}" if schema.least > -inf else ""
            return f"array {schema.dtype}[{', '.join(map(str, schema.shape))}] of finite numbers{least}"
        case range():
            return f"integer from {schema.start} to {schema.stop - 1}"
        case None:
            return "None"
        case _:
            return {float: "finite number", str: "text", bool: "truth value"}.get(schema, "such value")


def _wrong(place: str, what: str) -> str:
    return f"'{place}' is {what}" if place else f"it is {what}"

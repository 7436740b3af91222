"""The `[[intrinsics]]` tables of a machine file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, TypeAlias, cast

from pdojo.dialect.attributes import Numerics
from pdojo.dialect.intrinsic import FREE, LANGUAGES, Intrinsic, Stride
from pdojo.dialect.machines.pattern import pattern_of
from pdojo.dialect.plugins import BACKENDS, plugins
from pdojo.errors import UsageError

Table: TypeAlias = Mapping[str, Any]
_KEYS = ("name", "meaning", "templates", "features", "strides", "numerics", "registers", "threads", "fragments")


def read_intrinsic(value: object, *, deferred: bool, trusted: bool) -> Intrinsic:
    """The intrinsic that a table describes. Raises UsageError with the mistake, without the file's name.

    If `deferred`, the meaning is read when it is first needed. If `trusted`, the templates may be compiled.
    """
    if not isinstance(value, dict):
        raise UsageError("must be tables: begin each with [[intrinsics]]")
    table = cast("dict[str, object]", value)
    name = table.get("name")
    if not isinstance(name, str) or not name.isidentifier() or not name.isascii():
        raise UsageError("every intrinsic needs a name of letters, digits and _")
    try:
        intrinsic = replace(_checked(name, table), trusted=trusted)
        if not deferred:
            pattern_of(intrinsic)
    except UsageError as error:
        raise UsageError(f"intrinsic '{name}': {error}") from None
    return intrinsic


def _checked(name: str, table: Mapping[str, object]) -> Intrinsic:
    for key in table:
        if key not in _KEYS:
            close = get_close_matches(key, _KEYS, 1)
            hint = f"did you mean '{close[0]}'?" if close else f"known keys are {', '.join(_KEYS)}"
            raise UsageError(f"no such key '{key}'; {hint}")
    meaning = table.get("meaning")
    if not isinstance(meaning, str):
        raise UsageError("'meaning' must be a kernel in the notation, between triple quotes")
    templates = templates_in(table)
    numerics = _words("numerics", table.get("numerics", []))
    classes = [n.value for n in Numerics if n is not Numerics.EXACT]
    for word in numerics:
        if word not in classes:
            raise UsageError(f"'{word}' is no numerics class: {', '.join(classes)}")
    features = _words("features", table.get("features", []))
    registers = _count(table, "registers", "the registers that hold its operands")
    threads = _count(table, "threads", "the threads of a warp that run it together")
    fragments = texts("fragments", table.get("fragments", {}))
    strides = _strides(table.get("strides", {}))
    return Intrinsic(name, meaning, templates, features, strides, numerics, registers, threads, fragments)


def _count(table: Mapping[str, object], key: str, what: str) -> int:
    value = table.get(key, 0)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise UsageError(f"'{key}' must be a whole number, {what}")
    return value


def texts(key: str, value: object) -> dict[str, str]:
    """A table of texts. Raises UsageError with the key for any other value."""
    rows = cast("dict[str, object]", value) if isinstance(value, dict) else {"": None}
    found = {name: text for name, text in rows.items() if isinstance(text, str)}
    if len(found) < len(rows):
        raise UsageError(f"'{key}' must be a table of texts")
    return found


def _words(key: str, value: object) -> tuple[str, ...]:
    given = list(cast("list[object]", value)) if isinstance(value, list | tuple) else [None]
    words = [word for word in given if isinstance(word, str)]
    if len(words) < len(given):
        raise UsageError(f"'{key}' must be a list of texts")
    return tuple(sorted(set(words)))


def _strides(value: object) -> dict[str, tuple[Stride, ...]]:
    rows = cast("dict[str, object]", value) if isinstance(value, dict) else {"": None}
    found: dict[str, tuple[Stride, ...]] = {}
    for name, row in rows.items():
        given = list(cast("list[object]", row)) if isinstance(row, list | tuple) else [None]
        strides: list[Stride] = []
        for stride in given:
            if stride == FREE:
                strides.append(FREE)
            elif isinstance(stride, int) and not isinstance(stride, bool) and stride >= 0:
                strides.append(stride)
            else:
                raise UsageError(
                    f"'strides' must give each operand a list of whole numbers and {FREE!r}, such as a = [4, 1]"
                )
        found[name] = tuple(strides)
    return found


def intrinsic_to_json(intrinsic: Intrinsic) -> dict[str, Any]:
    """An intrinsic as a JSON object: the table that `read_intrinsic` reads."""
    warp = {"threads": intrinsic.threads, "fragments": dict(intrinsic.fragments)} if intrinsic.threads else {}
    return {
        **warp,
        "name": intrinsic.name,
        "meaning": intrinsic.meaning,
        "templates": dict(intrinsic.templates),
        "features": list(intrinsic.features),
        "strides": {name: list(strides) for name, strides in intrinsic.strides.items()},
        "numerics": list(intrinsic.numerics),
        "registers": intrinsic.registers,
    }


def templates_in(table: Mapping[str, object]) -> dict[str, str]:
    """The value of `templates`, keyed by language. Raises UsageError for one that no backend has, here or installed."""
    found = texts("templates", table.get("templates", {}))
    for language in found:
        if language not in LANGUAGES and language not in plugins(BACKENDS, ()):
            raise UsageError(f"no backend is called '{language}'; templates are for {', '.join(LANGUAGES)}")
    return found

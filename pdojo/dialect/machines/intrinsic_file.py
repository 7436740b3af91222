"""The `[[intrinsics]]` tables of a machine file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from typing import Any, TypeAlias

from pdojo.dialect.attributes import Numerics
from pdojo.dialect.intrinsic import FREE, LANGUAGES, Intrinsic, Stride
from pdojo.dialect.machines.pattern import pattern_of
from pdojo.dialect.plugins import BACKENDS, plugins
from pdojo.errors import UsageError
from pdojo.toml import count, each, pairs, table, word

Table: TypeAlias = Mapping[str, Any]
_KEYS = (
    *("name", "meaning", "templates", "features", "strides", "numerics", "registers"),
    *("threads", "warps", "fragments", "shared"),
)


def read_intrinsic(value: object, *, deferred: bool, trusted: bool) -> Intrinsic:
    """The intrinsic that a table describes. Raises UsageError with the mistake, without the file's name.

    If `deferred`, the meaning is read when it is first needed. If `trusted`, the templates may be compiled.
    """
    name, given = named_table(value, "intrinsics", "intrinsic")
    try:
        intrinsic = replace(_checked(name, given), trusted=trusted)
        if not deferred:
            pattern_of(intrinsic)
    except UsageError as error:
        raise UsageError(f"intrinsic '{name}': {error}") from None
    return intrinsic


def named_table(value: object, key: str, title: str) -> tuple[str, dict[str, object]]:
    """The name and the keys of an instruction's table under a key of the file. Raises UsageError."""
    given = table(value)
    if given is None:
        raise UsageError(f"must be tables: begin each with [[{key}]]")
    name = given.get("name")
    if not isinstance(name, str) or not name.isidentifier() or not name.isascii():
        raise UsageError(f"every {title} needs a name of letters, digits and _")
    return name, given


def check_keys(given: Iterable[str], known: Sequence[str]) -> None:
    """Raise UsageError, with a suggestion, for a key that is not known."""
    for key in given:
        if key not in known:
            close = get_close_matches(key, known, 1)
            hint = f"did you mean '{close[0]}'?" if close else f"known keys are {', '.join(known)}"
            raise UsageError(f"no such key '{key}'; {hint}")


def _checked(name: str, table: Mapping[str, object]) -> Intrinsic:
    check_keys(table, _KEYS)
    meaning = table.get("meaning")
    if not isinstance(meaning, str):
        raise UsageError("'meaning' must be a kernel in the notation, between triple quotes")
    templates = templates_in(table)
    numerics = _words("numerics", table.get("numerics", []))
    classes = [n.value for n in Numerics if n is not Numerics.EXACT]
    for one in numerics:
        if one not in classes:
            raise UsageError(f"'{one}' is no numerics class: {', '.join(classes)}")
    features = _words("features", table.get("features", []))
    registers = _count(table, "registers", "the registers that hold its operands")
    threads = _count(table, "threads", "the threads of a warp or of several, which run it together")
    warps = _count({"warps": 1, **table}, "warps", "the warps that run it together")
    fragments = texts("fragments", table.get("fragments", {}))
    strides = _strides(table.get("strides", {}))
    shared = _atoms(table.get("shared", {}))
    return Intrinsic(
        name, meaning, templates, features, strides, numerics, registers, threads, warps, fragments, shared
    )


def _atoms(value: object) -> dict[str, tuple[int, ...]]:
    found = pairs(partial(each, count), value)
    if found is None:
        raise UsageError("'shared' must give each operand three whole numbers, such as a = [8, 128, 16]")
    return {name: tuple(numbers) for name, numbers in found.items()}


def _count(table: Mapping[str, object], key: str, what: str) -> int:
    value = count(table.get(key, 0))
    if value is None:
        raise UsageError(f"'{key}' must be a whole number, {what}")
    return value


def texts(key: str, value: object) -> dict[str, str]:
    """A table of texts. Raises UsageError with the key for any other value."""
    found = pairs(word, value)
    if found is None:
        raise UsageError(f"'{key}' must be a table of texts")
    return found


def _words(key: str, value: object) -> tuple[str, ...]:
    words = each(word, value)
    if words is None:
        raise UsageError(f"'{key}' must be a list of texts")
    return tuple(sorted(set(words)))


def _strides(value: object) -> dict[str, tuple[Stride, ...]]:
    found = pairs(partial(each, _stride), value)
    if found is None:
        raise UsageError(f"'strides' must give each operand a list of whole numbers and {FREE!r}, such as a = [4, 1]")
    return {name: tuple(strides) for name, strides in found.items()}


def _stride(value: object) -> Stride | None:
    return FREE if value == FREE else count(value)


def intrinsic_to_json(intrinsic: Intrinsic) -> dict[str, Any]:
    """An intrinsic as a JSON object: the table that `read_intrinsic` reads."""
    warp: dict[str, Any] = {}
    if intrinsic.threads:
        warp |= {"threads": intrinsic.threads, "fragments": dict(intrinsic.fragments)}
    if intrinsic.warps != 1:
        warp["warps"] = intrinsic.warps
    if intrinsic.shared:
        warp["shared"] = {name: list(atom) for name, atom in intrinsic.shared.items()}
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

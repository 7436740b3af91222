"""The JSON schema of manifests, from their records, and the check of a manifest against it."""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, Literal, TypeAlias, cast, get_args, get_origin, get_type_hints

from pdojo.errors import UsageError
from pdojo.files import read_text
from pdojo.library.checking import problems
from pdojo.library.manifest import (
    FORMAT,
    MANIFEST,
    VERSION,
    Manifest,
    device_from_json,
    entry_from_json,
    model_from_json,
)
from pdojo.library.paths import inside

JSON: TypeAlias = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
LARGEST = 1 << 26
"""Most bytes of a manifest."""
_WORDS = {"string": str, "integer": int, "boolean": bool, "array": list, "object": dict}
_TYPES = {str: "string", int: "integer", range: "string", bool: "boolean"}


@cache
def schema() -> JSON:
    """The schema of a manifest, as JSON Schema 2020-12; do not modify it."""
    own = _record(Manifest)
    fixed = {"format": {"const": FORMAT}, "format_version": {"const": VERSION}}
    properties = {**fixed, **own["properties"]}
    return {"$schema": DIALECT, "title": FORMAT, **own, "properties": properties, "required": list(properties)}


def schema_text() -> str:
    """The file `manifest.schema.json`."""
    return json.dumps(schema(), indent=2) + "\n"


def _record(kind: type[Any]) -> JSON:
    """The schema of a dataclass; its docstrings become descriptions."""
    hints, notes = get_type_hints(kind), _notes(kind)
    properties: JSON = {}
    for field in fields(kind):
        note = {"description": notes[field.name]} if field.name in notes else {}
        properties[field.name] = {**_of_type(hints[field.name]), **note}
    return {
        "type": "object",
        "description": inspect.getdoc(kind),
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _notes(kind: type[Any]) -> dict[str, str]:
    """The docstrings of a class's attributes, keyed by name."""
    (definition,) = ast.parse(inspect.getsource(kind)).body
    assert isinstance(definition, ast.ClassDef)
    found: dict[str, str] = {}
    for before, after in zip(definition.body, definition.body[1:], strict=False):
        match before, after:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = inspect.cleandoc(text)
            case _:
                pass
    return found


def _of_type(hint: Any) -> JSON:
    if hint in _TYPES:
        return {"type": _TYPES[hint]}
    if is_dataclass(hint):
        return _record(cast("type[Any]", hint))
    origin, inner = get_origin(hint), get_args(hint)
    if origin is UnionType:
        return {"type": [_TYPES[each] for each in inner]}
    if origin is Literal:
        return {"enum": list(inner)}
    if origin is tuple and inner[-1] is Ellipsis:
        return {"type": "array", "items": _of_type(inner[0])}
    if origin is tuple and len(set(inner)) == 1:
        return {"type": "array", "items": _of_type(inner[0]), "minItems": len(inner), "maxItems": len(inner)}
    if origin is Mapping:
        return {"type": "object", "additionalProperties": _of_type(inner[1])}
    raise TypeError(f"no schema for {hint}")


def faults(data: object, rules: JSON | None = None, place: str = "") -> Iterator[str]:
    """The ways in which data differs from a schema (None: a manifest's), each with its place in the data.

    The check knows the words of schemas that `schema` writes, and raises KeyError for others.
    """
    rules = schema() if rules is None else rules
    where = place or "the manifest"
    if "const" in rules or "enum" in rules:
        known = rules["enum"] if "enum" in rules else [rules["const"]]
        if data not in known:
            yield f"{where} is {_shown(data)}, not {' or '.join(map(_shown, known))}"
        return
    words: list[str] = [rules["type"]] if isinstance(rules["type"], str) else rules["type"]
    if not isinstance(data, tuple(map(_WORDS.__getitem__, words))) or (isinstance(data, bool) and words != ["boolean"]):
        yield f"{where} is {_shown(data)}, which is no {' or '.join(words)}"
    elif isinstance(data, str):
        if not data.isprintable():
            yield f"{where} is {_shown(data)}, which has characters that cannot be printed"
    elif isinstance(data, list):
        items = cast("list[object]", data)
        least, most = rules.get("minItems", 0), rules.get("maxItems", len(items))
        if not least <= len(items) <= most:
            yield f"{where} has {len(items)} elements, not {least}"
        for number, item in enumerate(items):
            yield from faults(item, rules["items"], f"{place}[{number}]")
    elif isinstance(data, dict):
        yield from _members(cast("Mapping[str, object]", data), rules, place, where)


def _members(data: Mapping[str, object], rules: JSON, place: str, where: str) -> Iterator[str]:
    known, others = rules.get("properties", {}), rules["additionalProperties"]
    missing = [name for name in rules.get("required", ()) if name not in data]
    if missing:
        yield f"{where} lacks {', '.join(missing)}"
    for name, value in data.items():
        inside = f"{place}.{name}" if place else name
        if not name.isprintable():
            yield f"{where} has {_shown(name)}, which has characters that cannot be printed"
        elif name in known:
            yield from faults(value, known[name], inside)
        elif others is False:
            yield f"{where} has {_shown(name)}, which the format does not know"
        else:
            yield from faults(value, others, inside)


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a library's folder. Raises UsageError if it is missing or does not satisfy the schema."""
    path = inside(folder, MANIFEST)
    try:
        text = read_text(path, LARGEST)
    except FileNotFoundError:
        raise UsageError(f"'{folder}' is no generated library: it has no {MANIFEST}") from None
    except OSError as error:
        raise UsageError(f"cannot read '{path}': {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"cannot read '{path}': it is no UTF-8 text") from None
    return parse_manifest(text, str(path))


def parse_manifest(text: str, source: str = MANIFEST) -> Manifest:
    """A manifest from its text.

    Raises UsageError, with the place, for a text that does not satisfy the schema, or has values that no build writes.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"'{source}' is no JSON: {error}") from None
    wrong = next(faults(data), None)
    if wrong is not None:
        raise UsageError(f"'{source}' is no manifest of format {VERSION}: {wrong}")
    values = {name: value for name, value in data.items() if name not in ("format", "format_version")}
    lists = {name: tuple(values[name]) for name in ("triples", "levels")}
    devices = tuple(map(device_from_json, values["devices"]))
    try:
        entries = tuple(map(entry_from_json, values["entries"]))
        models = tuple(map(model_from_json, values["models"]))
    except UsageError as error:
        raise UsageError(f"'{source}' has values that no build writes: entries: sizes: {error}") from None
    made: dict[str, Any] = {**values, **lists, "entries": entries, "devices": devices, "models": models}
    found = Manifest(**made)
    wrong = next(problems(found), None)
    if wrong is not None:
        raise UsageError(f"'{source}' has values that no build writes: {wrong}")
    return found

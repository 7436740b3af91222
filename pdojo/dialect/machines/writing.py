"""Machine descriptions as TOML text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields
from typing import Any, cast

from pdojo.dialect.machines.machine import Cpu, Gpu, Machine, Snitch
from pdojo.dialect.machines.measured import CopyRate, ProcessorMeasurements, ReadRate


def machine_text(described: Machine, parent: Machine | None = None) -> str:
    """The text of a machine file; with a `parent`, the file inherits from it and leaves out the facts that both share.

    Intrinsics and matrix loads are the parent's.
    """
    return "\n".join(_lines(described, parent)) + "\n"


def _lines(described: Machine, parent: Machine | None) -> Iterator[str]:
    measured = described.measured
    if measured:
        yield f"# Measured on {measured.date} by `{measured.command}` on {measured.processor}. Rates are per second."
        yield ""
    yield f"name = {_value(described.name)}"
    if parent is not None:
        yield f"inherits = {_value(parent.name)}"
    parts: dict[str, Cpu | Gpu | Snitch | ProcessorMeasurements] = {}
    for each in fields(Machine):
        value = getattr(described, each.name)
        inherited = parent is not None and value == getattr(parent, each.name)
        if inherited or each.name in ("name", "intrinsics", "matrix_loads"):
            continue
        if isinstance(value, Cpu | Gpu | Snitch | ProcessorMeasurements):
            if value:
                parts[each.name] = value
        else:
            yield f"{each.name} = {_value(value)}"
    for key, part in parts.items():
        yield f"\n[{key}]"
        inherited = type(part)() if parent is None else getattr(parent, key)
        for each in fields(part):
            value = getattr(part, each.name)
            if value != getattr(inherited, each.name):
                yield f"{each.name} = {_value(value)}"


def _value(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return json.dumps(value, ensure_ascii=False)
        case int() | float():
            return repr(value)
        case CopyRate() | ReadRate():
            return _value(asdict(value))
        case Mapping():
            rows = cast("Mapping[str, Any]", value)
            return f"{{ {', '.join(f'{key} = {_value(one)}' for key, one in rows.items())} }}" if rows else "{}"
        case _:
            items = [_value(one) for one in value]
            if any(item.startswith("{") for item in items):
                return "[\n" + "".join(f"  {item},\n" for item in items) + "]"
            return f"[{', '.join(items)}]"

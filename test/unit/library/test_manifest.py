"""The schema of manifests: it follows the records, and the check names the place of a mistake."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pdojo.errors import UsageError
from pdojo.library.manifest import DeviceProgram, Manifest
from pdojo.library.model_plan import Block, Call, Copy, ModelPlan, Place, Weight
from pdojo.library.records import Array, Entry, Variant
from pdojo.library.schema import faults, parse_manifest, read_manifest, schema, schema_text


def a_manifest() -> Manifest:
    """A small manifest."""
    variant = Variant("x86-64-avx2", 64, "traces/sum_f32_4x8-x86-64-avx2.trace", "a", "1" * 64, "2" * 64, (0, 128))
    arrays = (Array("x", "f32", (4, 8), "in"), Array("y", "f32", (), "out"))
    entry = Entry(
        "sum_f32_4x8",
        "sum_f32",
        {"R": 4, "C": 8},
        arrays,
        ("contract",),
        "kernels/sum_f32_4x8.pdojo",
        (variant,),
    )
    code = replace(variant, level="snitch", trace="traces/sum_f32_4x8-snitch.trace")
    return Manifest(
        "sums",
        "1.0.0",
        "sums",
        "MIT",
        ("x86_64-unknown-linux-gnu",),
        ("x86-64-avx2",),
        {"pdojo": "1"},
        (entry,),
        {"a": "3" * 64},
        (DeviceProgram(entry.name, "snitch/snitch/sum_f32_4x8.S", code),),
        (_plan(variant),),
    )


def _plan(variant: Variant) -> ModelPlan:
    """The plan of a model of one kernel, of which one output is a copy."""
    size, name = {"N": range(1, 5)}, "net_k0_1to4"
    x, y = Array("x", "f32", ("N", 8), "in"), Array("y", "f32", ("N",), "out")
    own = replace(variant, trace=f"traces/{name}-x86-64-avx2.trace")
    arrays = (x, Array("w", "f32", (8,), "in"), y)
    kernel = Entry(name, "net_k0", size, arrays, ("contract",), f"kernels/{name}.pdojo", (own,))
    call = Call(0, (Place("input", 0, 0), Place("weight", 0, 0), Place("block", 0, "N*4")), ("N",))
    copy = Copy(0, Place("block", 0, "N*4"))
    return ModelPlan(
        "net", size, (x, y), (kernel,), (Weight(0, 32),), False, "4" * 64, (Block("N*64", ()),), (call,), (copy,)
    )


def testa_manifest_satisfies_the_schema_and_is_read_back() -> None:
    made = a_manifest()
    assert list(faults(json.loads(made.text()))) == []
    assert parse_manifest(made.text()) == made


def test_the_schema_describes_the_records() -> None:
    found = json.loads(schema_text())
    variant = found["properties"]["entries"]["items"]["properties"]["variants"]["items"]
    assert variant["required"] == list(Variant.__dataclass_fields__)
    assert variant["properties"]["align"] == {
        "type": "integer",
        "description": "Bytes to which callers align all arrays.",
    }
    sizes = found["properties"]["entries"]["items"]["properties"]["sizes"]
    assert sizes["additionalProperties"] == {"type": ["integer", "string"]}
    assert found["properties"]["format"] == {"const": "pdojo library"}


def _set(data: Any, path: tuple[str | int, ...], value: object) -> None:
    for step in path[:-1]:
        data = data[step]
    if value is None:
        del data[path[-1]]
    else:
        data[path[-1]] = value


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("format",), "other", 'format is "other", not "pdojo library"'),
        (("format_version",), 1, "format_version is 1, not 3"),
        (("name",), 3, "name is 3, which is no string"),
        (("entries",), None, "the manifest lacks entries"),
        (("extra",), 1, 'the manifest has "extra", which the format does not know'),
        (("entries", 0, "sizes", "R"), 1.5, "entries[0].sizes.R is 1.5, which is no integer or string"),
        (("entries", 0, "sizes", "R"), True, "entries[0].sizes.R is true, which is no integer or string"),
        (
            ("entries", 0, "arrays", 0, "direction"),
            "up",
            'entries[0].arrays[0].direction is "up", not "in" or "inout" or "out"',
        ),
        (
            ("entries", 0, "arrays", 1, "shape"),
            [1.5],
            "entries[0].arrays[1].shape[0] is 1.5, which is no integer or string",
        ),
        (("entries", 0, "variants", 0, "workspace"), [1], "entries[0].variants[0].workspace has 1 elements, not 2"),
        (("entries", 0, "variants", 0, "symbol"), None, "entries[0].variants[0] lacks symbol"),
    ],
)
def test_a_mistake_is_named_with_its_place(path: tuple[str | int, ...], value: object, message: str) -> None:
    data = copy.deepcopy(json.loads(a_manifest().text()))
    _set(data, path, value)
    assert list(faults(data)) == [message]
    with pytest.raises(UsageError, match="is no manifest of format 3"):
        parse_manifest(json.dumps(data))


def test_texts_that_are_no_manifest(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is no JSON"):
        parse_manifest("{")
    with pytest.raises(UsageError, match="which is no object"):
        parse_manifest("[]")
    with pytest.raises(UsageError, match="is no generated library"):
        read_manifest(tmp_path)
    (tmp_path / "manifest.json").write_bytes(b"\xff")
    with pytest.raises(UsageError, match="cannot read"):
        read_manifest(tmp_path)


def test_the_schema_is_valid_json_schema() -> None:
    """All objects are closed or have a type for their members, and say which members they need."""

    def check(rules: dict[str, Any]) -> None:
        if rules.get("type") == "object":
            assert "additionalProperties" in rules
            assert set(rules.get("required", ())) == set(rules.get("properties", ()))
            inner = [*rules.get("properties", {}).values()]
            if rules["additionalProperties"] is not False:
                inner.append(rules["additionalProperties"])
            for each in inner:
                check(each)
        if rules.get("type") == "array":
            check(rules["items"])

    check(schema())


def test_the_manifest_of_a_library_satisfies_the_schema_beside_it(built: Path) -> None:
    assert (built / "manifest.schema.json").read_text() == schema_text()
    data = json.loads((built / "manifest.json").read_text())
    assert list(faults(data, json.loads((built / "manifest.schema.json").read_text()))) == []

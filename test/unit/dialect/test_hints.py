"""Hints: each takes its own kind of value, in the notation and in MLIR."""

from __future__ import annotations

import pytest

import pdojo
from pdojo.dialect.hints import VALUES
from pdojo.dialect.notation import parse_notation, print_notation
from pdojo.errors import PdojoError

NOTATION = """kernel k(x) -> (y)
x f32 [4] heap
y f32 [4] heap
t f32 [4] heap{buffer}

4{scope} t[{{0}}] = x[{{0}}]
4 y[{{0}}]{output} = t[{{0}}]{read}
"""
MLIR = """pdojo.kernel @k(in x %x : memref<4xf32>, out y %y : memref<4xf32>) {{
  %t = pdojo.buffer t : f32[4] heap{buffer}
  pdojo.scope %i = 4{scope} {{
    pdojo.op %t[%i] = %x[%i]
  }}
  pdojo.scope %j = 4 {{
    pdojo.op %y[%j]{output} = %t[%j]{read}
  }}
}}
"""
PLACES = ("buffer", "scope", "output", "read")
TEXTS = {"": "unit", "(1)": "1 : i64", "(0)": "0 : i64", "(-1)": "-1 : i64", "(true)": "true", '("a")': '"a"',
         f"({2**63 - 1})": f"{2**63 - 1} : i64"}  # fmt: skip
"""Values of a hint in the notation, and in MLIR."""


def right(name: str) -> str:
    return "" if VALUES[name] is None else "(1)"


def in_mlir(name: str, value: str, place: str) -> str:
    return ("" if place in ("output", "read") else " hints ") + f"{{{name} = {TEXTS[value]}}}"


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", VALUES)
def test_values_of_hints(name: str, place: str) -> None:
    empty = dict.fromkeys(PLACES, "")
    line = NOTATION.format(**{**empty, place: "@"}).partition("@")[0].count("\n") + 1
    for value in TEXTS:
        text = NOTATION.format(**{**empty, place: f"!{name}{value}"})
        mlir = MLIR.format(**{**empty, place: in_mlir(name, value, place)})
        fits = value == right(name) or (name == "lane" and value == "(0)")
        if fits:
            assert print_notation(*parse_notation(text)) == text == print_notation(pdojo.parse(mlir))
            continue
        says = "has no value" if VALUES[name] is None else "takes an integer from"
        with pytest.raises(PdojoError, match=rf"^<notation>:{line}:\d+: error: hint '{name}' {says}"):
            parse_notation(text)
        with pytest.raises(PdojoError, match=f"hint '{name}' {says}"):
            pdojo.parse(mlir)


def test_hints_of_others_take_any_value() -> None:
    for value in TEXTS:
        text = NOTATION.format(**{**dict.fromkeys(PLACES, ""), "read": f"!mine{value}"})
        assert print_notation(*parse_notation(text)) == text

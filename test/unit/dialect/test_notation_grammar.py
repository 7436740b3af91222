"""The grammar on docs/notation.md lists the words of the parser."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pdojo.dialect.attributes import Mapping, Memory, Numerics
from pdojo.dialect.functions import ACCUMULATIONS, DTYPES
from pdojo.dialect.notation.spelling import PRECEDENCE

PAGE = Path(__file__).parents[3] / "docs" / "notation.md"
_RULE = re.compile(r"^(\w+) += (.*)$", re.MULTILINE)
_WORD = re.compile(r'"([^"]+)"')


def rules() -> dict[str, str]:
    return dict(_RULE.findall(PAGE.read_text().partition("## Grammar")[2].partition("## ")[0]))


@pytest.mark.parametrize(
    ("rule", "known"),
    [
        ("CLASS", {*Numerics, "none"}),
        ("DTYPE", set(DTYPES)),
        ("MEMORY", set(Memory)),
        ("MAPPING", set(Mapping) - {Mapping.SEQUENTIAL}),
        ("ACCUMULATION", {*(each.spelling for each in ACCUMULATIONS.values()), "fma", "async"}),
        ("SIGN", set(PRECEDENCE) - {"//", "%"}),
    ],
)
def test_words(rule: str, known: set[str]) -> None:
    listed = _WORD.findall(rules()[rule])
    assert sorted(listed) == sorted(map(str, known))


def test_signs_are_in_the_order_of_their_strength() -> None:
    strengths = [PRECEDENCE[sign] for sign in _WORD.findall(rules()["SIGN"])]
    assert strengths == sorted(strengths)


def test_every_name_has_a_rule() -> None:
    defined = rules()
    tokens = {"INTEGER", "FLOAT", "STRING", "FUNCTION", "MACHINE", "TERM", "NAME"}
    for rule, text in defined.items():
        if rule.islower():
            used = set(re.findall(r"[A-Za-z_]+", _WORD.sub("", text)))
            assert used <= {*defined, *tokens}, rule

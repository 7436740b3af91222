"""Refused moves made all the same: a small survey; no legal move is harmful, and the judge tells why a move is not."""

from __future__ import annotations

import json
from io import StringIO
from itertools import islice

import pytest
from rich.console import Console

from pdojo.dialect.canonical import canonicalize
from pdojo.dialect.flow.program import Program
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.transforms.move import Move
from pdojo.transforms.registry import instantiate
from qa.completeness import MACHINES, RULES, Survey, as_data, general, main, states, table
from qa.forcing import CHANGED, HARMLESS, INVALID, MALFORMED, Judge

PAIR = """kernel k(x) -> (y, z)
x f32 [8] heap
y f32 [8] heap
z f32 [8] heap
t f32 [8] heap
u f32 [8] heap

8 t[{0}] = x[{0}]
8 y[{0}] = t[7-{0}]
2:u 4 z[{0}*4+{1}] = x[{0}*4+{1}]
"""


def verdict(text: str, move: str) -> str:
    kernel = parse_notation(text)[0]
    canonicalize(kernel)
    program = Program(kernel, machine("toy"))
    wanted = instantiate(Move.parse(move))
    return Judge(program, 0).force(wanted, wanted.resolve(program, Move.parse(move).at)).kind


@pytest.mark.parametrize(
    ("move", "kind"),
    [
        ("swap_nodes@t:0", CHANGED),
        ("join_scopes@t:0", CHANGED),
        ("collapse_scopes@z:0", HARMLESS),
        ("reuse_dims@t:0", CHANGED),
        ("reuse_dims@x:0", MALFORMED),
        ("swap_nodes@y:0", HARMLESS),
        ("tile_scope@y:0{size=4}", HARMLESS),
    ],
)
def test_the_judge_says_what_a_move_does(move: str, kind: str) -> None:
    assert verdict(PAIR, move) in (kind, INVALID if kind == CHANGED else kind)


def test_a_small_survey_finds_no_harmful_legal_move() -> None:
    survey = Survey()
    for number, program in enumerate(islice(states(1, 4), 12)):
        survey.add(program, number)
    assert survey.harmful == []
    assert survey.candidates.total() > 200
    data = json.loads(json.dumps(as_data(survey)))
    assert data["states"] == 12
    assert {"candidates", "legal", "rate", "refused"} == set(data["moves"]["join_scopes"])
    console = Console(width=160, record=True, file=StringIO())
    console.print(table(survey, 1.0))
    assert "reuse_dims" in console.export_text()


def test_reasons_are_grouped() -> None:
    assert general("scope {1} of extent 512:p and scope {0} of extent 3 differ") == "scope:p and scope differ"
    assert general("'t' would take 12 bytes, at t[{0},{1}]") == "'…' would take N bytes, at …"


def test_rules_need_no_judgement() -> None:
    assert RULES.search("extent 3 is no vector length of toy for f32: 2, 4")
    assert not RULES.search("'t' would be overwritten before its last read")


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--states", "2", "--json", "--move", "tile_scope", "--machine", MACHINES[0]]) == 0
    assert set(json.loads(capsys.readouterr().out)["moves"]) == {"tile_scope"}
    assert main(["--move", "nothing"]) != 0

"""`--explain`: the evidence for or against moves, for people or as JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from pdojo_tools.outputs import json_text

from pdojo.dialect.flow.recording import Question
from pdojo.transforms.explain import Explanation, explain
from pdojo.transforms.game import Game
from pdojo.transforms.move import Move

_HOW = {
    "digits": "proved digit by digit",
    "guess": "a guess that was checked",
    "instances": "by all instances",
    "integer sets": "by integer sets",
    "commute": "without a question",
}
SHOWN = 12
"""Greatest number of lines about a place, and of remedies, in the text."""


def explain_moves(game: Game, moves: Sequence[Move], *, as_json: bool = False) -> str:
    """Explanations of moves in the state of the game. Raises IllegalMove or LocationError for an impossible move."""
    found = [explain(game.program, move) for move in moves]
    if as_json:
        return json_text([asdict(e) for e in found])
    return "\n".join("".join(f"{line}\n" for line in _lines(e)) for e in found)


def _lines(explanation: Explanation) -> Iterator[str]:
    e = explanation
    yield f"{e.move}: {'legal' if e.legal else 'refused'}"
    if not e.legal:
        yield f"  reason: {e.reason}"
        if e.witness:
            yield f"  witness: {e.witness}"
        yield f"  would help: {'; '.join(e.remedies[:SHOWN]) or 'neither one move nor fusions of scopes'}"
    yield "  place:"
    yield from (f"    {line}" for line in e.place[:SHOWN])
    if len(e.place) > SHOWN:
        yield f"    ... {len(e.place) - SHOWN} lines more"
    if e.condition:
        yield "  condition:"
        yield from (f"    {line}" for line in textwrap.wrap(" ".join(e.condition.split()), 110))
    yield "  asked:" if e.questions else "  asked: nothing; the shape of the program decides"
    yield from (f"    {_spell(question)}" for question in e.questions)
    if e.machine:
        yield f"  machine: {', '.join(f'{name} = {value}' for name, value in e.machine.items())}"
    if e.legal:
        allowed = ", ".join(e.permitted) or "nothing else"
        yield f"  rounding: {e.numerics}; the kernel permits {allowed}"
        yield f"  inverse: {e.inverse or 'none: no move leads back; undo does'}"


def _spell(question: Question) -> str:
    related = f", iterations {question.relation}" if question.relation else ""
    return f"{question.kind}: {question.about}{related}: {question.answer} [{_HOW[question.how]}]"

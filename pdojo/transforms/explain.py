"""Explanations of legal and refused moves: recorded evidence from the move's own check, and possible remedies."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import islice
from typing import Any

from pdojo.dialect.flow.program import Program
from pdojo.dialect.flow.recording import Question, Record, RecordingProgram
from pdojo.dialect.notation.printer import declaration_line, tree_lines
from pdojo.dialect.rules.conditions import conditions_of
from pdojo.dialect.view.nest import Array
from pdojo.errors import IllegalMove, LocationError
from pdojo.transforms.apply import apply, candidates
from pdojo.transforms.base import Transformation
from pdojo.transforms.document import legality_of
from pdojo.transforms.legality.judge import Legality
from pdojo.transforms.move import Move
from pdojo.transforms.registry import instantiate, transformation
from pdojo.transforms.site import Dimension, Site, identify

TRIED = 200
"""Most legal moves that are tried as a remedy."""
FUSED = 100
"""Most programs made by fusions in the search for a remedy."""
FUSION = transformation("join_scopes")


@dataclass(frozen=True)
class Explanation:
    """An explanation of a move in a state."""

    move: str
    legal: bool
    place: tuple[str, ...]
    """The declaration, or the scopes and statements, at the location, in the notation."""
    condition: str
    """The legality condition from the move's documentation."""
    questions: tuple[Question, ...]
    machine: dict[str, str]
    """The facts of the machine that the check read."""
    reason: str = ""
    witness: str = ""
    remedies: tuple[str, ...] = ()
    """Moves, each of which would make a refused move legal; or fusions, separated by commas; or other remedies."""
    numerics: str = ""
    """The effect of a legal move on rounding."""
    permitted: tuple[str, ...] = ()
    inverse: str = ""


def explain(program: Program, move: Move) -> Explanation:
    """The evidence for or against a move. Raises IllegalMove or LocationError for an unknown move or place."""
    record = Record()
    watched = RecordingProgram(program.kernel, program.machine, record)
    # The conditions of the program before the move are part of every state, so they are no evidence.
    _ = conditions_of(watched)
    record.clear()
    wanted = instantiate(move)
    site = wanted.resolve(watched, move.at)
    refusal = Legality.of(watched).ask(watched, wanted, site).refusal
    # Questions from here on are no evidence.
    questions, machine = tuple(record.questions), dict(record.machine)
    permitted = tuple(n.value for n in program.kernel.permitted)
    plain = wanted.resolve(program, move.at)
    shown = str(wanted.at(program, plain)), refusal is None, _place(program, plain), legality_of(type(wanted))
    if refusal is None:
        numerics = wanted.numerics(program, plain).value
        back = apply(program, move).inverse
        inverse = "" if back is None else str(back)
        return Explanation(*shown, questions, machine, numerics=numerics, permitted=permitted, inverse=inverse)
    remedies = _remedies(program, wanted, plain)
    return Explanation(
        *shown, questions, machine, refusal.reason, refusal.witness, tuple(remedies), permitted=permitted
    )


def _place(program: Program, site: Site) -> tuple[str, ...]:
    if isinstance(site, Array | Dimension):
        buffer = site.buffer if isinstance(site, Array) else site.array.buffer
        return (declaration_line(buffer),)
    return tuple(tree_lines([site]))


def _remedies(program: Program, wanted: Transformation[Any], site: Site) -> list[str]:
    """The remedies of a refused move: the kernel's permission, one other move, or else the fewest fusions."""
    if wanted.check(program, site) is None and not program.permits(numerics := wanted.numerics(program, site)):
        return [f"the line 'numerics {numerics.value}' in the kernel"]
    legal = (verdict.move for verdict in candidates(program) if verdict.is_legal)
    place = identify(site)
    found = [str(move) for move in islice(legal, TRIED) if _allows(_after(program, move), wanted, place)]
    return found or _fusions(program, wanted, place)


def _fusions(program: Program, wanted: Transformation[Any], place: str) -> list[str]:
    """The fewest fusions that make a move legal at a place, as one remedy; found breadth first."""
    waiting = deque[tuple[Program, tuple[Move, ...]]]([(program, ())])
    met = {program.text}
    while waiting:
        before, made = waiting.popleft()
        for site, choice in FUSION.candidates(before):
            move = choice.at(before, site)
            after = _after(before, move)
            if after is None or after.text in met:
                continue
            if _allows(after, wanted, place):
                return [",".join(map(str, (*made, move)))]
            if len(met) == FUSED:
                return []
            met.add(after.text)
            waiting.append((after, (*made, move)))
    return []


def _after(program: Program, move: Move) -> Program | None:
    """The program after a move; None if it is illegal."""
    try:
        return apply(program, move).program
    except IllegalMove:
        return None


def _allows(program: Program | None, wanted: Transformation[Any], place: str) -> bool:
    """True if a move is legal at a place."""
    try:
        if program is None:
            return False
        return Legality.of(program).ask(program, wanted, wanted.resolve(program, place)).is_legal
    except (LocationError, IllegalMove):
        return False

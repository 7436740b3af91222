"""Questions that a proposal model answers: which family, which place and parameters, which position in the trace.

A question has features of the state (the context) and of each alternative. Training and search ask the same questions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log2

import numpy

from pdojo.dialect.flow.program import Program
from pdojo.search.contract.candidates import MoveCandidate
from pdojo.search.features.structure import SIZE as PROGRAM_SIZE
from pdojo.search.features.structure import VERSION as STRUCTURE
from pdojo.search.features.structure import structure
from pdojo.search.proposals.places import SIZE as PLACE_SIZE
from pdojo.search.proposals.places import History, Row, place_rows
from pdojo.transforms.move import Move

VERSION = f"{STRUCTURE}.1"
"""Version of the features: models of another version are refused."""
FAMILY, PLACE, POSITION = "family", "place", "position"
PARTS = (FAMILY, PLACE, POSITION)
"""The questions, by name."""
_OF_FAMILY = 3
_OF_POSITION = 4


@dataclass(frozen=True, eq=False)
class Question:
    """The alternatives of a choice."""

    context: Row
    """Features that all alternatives share."""
    items: Row
    """Features of the alternatives [alternatives, features]."""


class Vocabulary:
    """The families that a model knows; others share one feature."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._columns: Mapping[str, int] = {name: column for column, name in enumerate(names)}
        self.size = len(self.names) + 1

    def column(self, name: str) -> int:
        """The column of a family."""
        return self._columns.get(name, self.size - 1)

    def one_hot(self, names: Sequence[str]) -> Row:
        """A row for each family; a row of zeros for ''."""
        rows = numpy.zeros((len(names), self.size), dtype=numpy.float32)
        known = [number for number, name in enumerate(names) if name]
        rows[known, [self.column(names[number]) for number in known]] = 1.0
        return rows

    def sizes(self, part: str) -> tuple[int, int]:
        """Numbers of features of the context, and of an alternative, of a question."""
        match part:
            case "family":
                return PROGRAM_SIZE + 1 + self.size, _OF_FAMILY + self.size
            case "place":
                return PROGRAM_SIZE + 1 + 2 * self.size, PLACE_SIZE
            case _:
                return 1, _OF_POSITION + 2 * self.size


def family_question(program: Program, history: History, names: Sequence[str], known: Vocabulary) -> Question:
    """The question which family comes next."""
    latest = [name for name, _ in (*history.latest, ("", ""), ("", ""))]
    counts = [[log2(1 + history.names[name]), name == latest[0], name == latest[1]] for name in names]
    items = numpy.concatenate([numpy.array(counts, dtype=numpy.float32), known.one_hot(names)], axis=1)
    return Question(_state(program, history, known, latest[:1]), items)


def place_question(
    program: Program, history: History, name: str, some: Sequence[MoveCandidate], known: Vocabulary
) -> Question:
    """The question which candidate of a family: where, with which parameters."""
    latest = history.latest[0][0] if history.latest else ""
    return Question(_state(program, history, known, [latest, name]), place_rows(program, some, history))


def position_question(moves: Sequence[Move], known: Vocabulary) -> Question:
    """The question where in a trace a move is inserted. Alternative k is before move k, the last one at the end."""
    names = ["", *(move.name for move in moves), ""]
    count = len(moves)
    places = [[k / max(1, count), k == count, log2(1 + count - k), log2(1 + k)] for k in range(count + 1)]
    around = known.one_hot(names)
    items = numpy.concatenate([numpy.array(places, dtype=numpy.float32), around[:-1], around[1:]], axis=1)
    return Question(numpy.array([log2(1 + count)], dtype=numpy.float32), items)


def _state(program: Program, history: History, known: Vocabulary, names: Sequence[str]) -> Row:
    """Features of the program, the length of its trace, and families."""
    vector = program.memoised("structural features", lambda: _vector(program))
    length = numpy.array([log2(1 + history.length)], dtype=numpy.float32)
    return numpy.concatenate([vector, length, known.one_hot(names).reshape(-1)])


def _vector(program: Program) -> Row:
    return numpy.array(structure(program.nest, program.machine), dtype=numpy.float32)

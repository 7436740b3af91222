"""Examples for a proposal model: questions that a lesson's moves answer."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from pdojo.dialect.machines.machine import Machine
from pdojo.errors import IllegalMove, LocationError
from pdojo.perfllm.proposals.lessons import Lesson
from pdojo.search.contract.candidates import choices
from pdojo.search.neighbourhoods.random_moves import useful
from pdojo.search.proposals.places import History
from pdojo.search.proposals.questions import (
    FAMILY,
    PLACE,
    POSITION,
    Question,
    Vocabulary,
    family_question,
    place_question,
    position_question,
)
from pdojo.transforms.move import Move
from pdojo.transforms.registry import transformation_names

MOST_ITEMS = 48
"""Greatest number of alternatives of an example: the right one, and others drawn uniformly."""
QUALITY = 1.25
"""Lessons whose program is slower than the kernel's best by more than this factor teach nothing."""


@dataclass(frozen=True, eq=False)
class Example:
    """A question with its answer."""

    part: str
    asked: Question
    answer: int
    """The number of the right alternative."""
    weight: float
    family: str
    """The family of the kernel, which is held out as a whole."""


def examples_of(lessons: Sequence[Lesson], machine: Machine, known: Vocabulary, random: Random) -> list[Example]:
    """The examples of a machine's good lessons; each kernel has the same weight, each move what is lost without it."""
    best: dict[str, float] = defaultdict(lambda: float("inf"))
    for lesson in lessons:
        best[lesson.kernel] = min(best[lesson.kernel], lesson.cost)
    good = [lesson for lesson in lessons if lesson.cost <= QUALITY * best[lesson.kernel]]
    counts = Counter(lesson.kernel for lesson in good)
    return [example for lesson in good for example in _of_lesson(lesson, machine, known, counts[lesson.kernel], random)]


def _of_lesson(lesson: Lesson, machine: Machine, known: Vocabulary, count: int, random: Random) -> Iterator[Example]:
    """The examples of a lesson, of `count` of its kernel.

    Move k is the answer to: which family comes after the first k moves, which place and parameters; and into which
    position of the trace without it does it belong.
    """
    moves = [Move.parse(text) for text in lesson.moves]
    total = sum(lesson.losses)
    if total <= 0:
        return
    game = lesson.game(machine)
    for at, move in enumerate(moves):
        weight = lesson.losses[at] / total * len(moves) / count
        if weight > 0:
            history = History(moves[:at])
            names = [name for name in transformation_names() if choices(game.program, [name])]
            if move.name in names:
                asked = family_question(game.program, history, names, known)
                yield Example(FAMILY, asked, names.index(move.name), weight, lesson.family)
            some = useful(choices(game.program, [move.name]), game.program)
            right = next((k for k, choice in enumerate(some) if choice.move == move), None)
            if right is not None and len(some) > 1:
                others = [k for k in range(len(some)) if k != right]
                drawn = [right, *random.sample(others, min(MOST_ITEMS - 1, len(others)))]
                asked = place_question(game.program, history, move.name, [some[k] for k in drawn], known)
                yield Example(PLACE, asked, 0, weight, lesson.family)
            if len(moves) > 1:
                asked = position_question([*moves[:at], *moves[at + 1 :]], known)
                yield Example(POSITION, asked, at, weight, lesson.family)
        try:
            game.apply(move)
        except (IllegalMove, LocationError):
            # The moves of this version of pdojo differ from those of the lesson.
            return

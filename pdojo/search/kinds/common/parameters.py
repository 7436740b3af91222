"""Questions that an expert pass cannot decide from the program and the machine description, with ordered answers.

The pass takes the first answer unless it is told another one. Programs of other answers are its *variants*, which
`pdojo.search.tuning.variants` races.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from pdojo.search.kinds.common.builder import Note

ParameterValues: TypeAlias = Mapping[str, str]
"""Answers by question; questions without one get the first answer."""


@dataclass(frozen=True, slots=True)
class TuningParameter:
    """A question that the pass asked."""

    question: str
    options: tuple[str, ...]
    """The answers, the pass's preference first."""
    taken: str

    @property
    def others(self) -> tuple[str, ...]:
        """The answers that were not taken, in order."""
        return tuple(option for option in self.options if option != self.taken)


@dataclass(frozen=True, slots=True)
class PassResult:
    """What an expert pass did on a game."""

    notes: list[Note]
    choices: tuple[TuningParameter, ...] = ()


class TuningParameters:
    """The decisions of one run of a pass, and the questions it has asked."""

    def __init__(self, decisions: ParameterValues | None = None) -> None:
        self._decisions = dict(decisions or {})
        self._asked: dict[str, tuple[str, ...]] = {}

    def choose(self, question: str, options: Iterable[str]) -> str:
        """The answer to a question; the first option unless another one was decided.

        A question may be asked at several places, with options of their own; it has one answer wherever that is one.
        """
        offered = tuple(dict.fromkeys(options))
        self._asked[question] = tuple(dict.fromkeys((*self._asked.get(question, ()), *offered)))
        decided = self._decisions.setdefault(question, offered[0])
        return decided if decided in offered else offered[0]

    @property
    def made(self) -> tuple[TuningParameter, ...]:
        """The questions with more than one answer, in the order in which they were asked."""
        return tuple(
            TuningParameter(question, options, self._decisions[question])
            for question, options in self._asked.items()
            if len(options) > 1
        )

"""Tuning parameters: questions that program and machine description do not decide, with ordered answers.

A pass takes the first answer unless another one is given. The programs of other answers are its *variants*, which
`pdojo.search.tuning.variants` races.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from pdojo.passes.common.builder import Note

ParameterValues: TypeAlias = Mapping[str, str]
"""Answers by question; a question without one gets the first answer."""


@dataclass(frozen=True, slots=True)
class TuningParameter:
    """A question of a pass, with its answers."""

    question: str
    options: tuple[str, ...]
    """The possible answers, the pass's preference first."""
    taken: str

    @property
    def others(self) -> tuple[str, ...]:
        """The other answers, in order."""
        return tuple(option for option in self.options if option != self.taken)


@dataclass(frozen=True, slots=True)
class PassResult:
    """The result of an expert pass on a game."""

    notes: list[Note]
    choices: tuple[TuningParameter, ...] = ()


class TuningParameters:
    """The given answers for one run of a pass, and the questions asked so far."""

    def __init__(self, decisions: ParameterValues | None = None) -> None:
        self._decisions = dict(decisions or {})
        self._asked: dict[str, tuple[str, ...]] = {}

    def choose(self, question: str, options: Iterable[str]) -> str:
        """The answer to a question: the given one, else the first option.

        A pass may ask a question at several places with different options; the given answer applies wherever it is an
        option.
        """
        offered = tuple(dict.fromkeys(options))
        self._asked[question] = tuple(dict.fromkeys((*self._asked.get(question, ()), *offered)))
        decided = self._decisions.setdefault(question, offered[0])
        return decided if decided in offered else offered[0]

    @property
    def made(self) -> tuple[TuningParameter, ...]:
        """The questions with more than one answer, in the order of asking."""
        return tuple(
            TuningParameter(question, options, self._decisions[question])
            for question, options in self._asked.items()
            if len(options) > 1
        )

"""Memo of answers, keyed by the content of their questions, shared by all states of a game."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar, cast

from pdojo.dialect.flow.content import Content
from pdojo.dialect.flow.shortcut import is_used

MOST_PARTS = 256
"""Most parts of programs in the memo; they hold their operations."""

MOST_VERDICTS = 1 << 16
"""Most answers about buffers in the memo."""

Verdicts: TypeAlias = dict[Hashable, object]
"""Answers about one content, keyed by question."""

AnswerT = TypeVar("AnswerT")


@dataclass(slots=True)
class ProgramPart:
    """A part of programs, identified by its content."""

    verdicts: Verdicts = field(default_factory=dict[Hashable, object])
    """Answers about the part."""
    program: object | None = None
    """The part as a program of its own; None until a question needs it."""

    def alone(self, cut_out: Callable[[], AnswerT]) -> AnswerT:
        """The part as a program of its own, cut out on first use."""
        if self.program is None:
            self.program = cut_out()
        return cast(AnswerT, self.program)


class Remembered:
    """The most recent parts of programs with their verdicts, and the answers to questions about buffers."""

    def __init__(self) -> None:
        self._parts: OrderedDict[Content, ProgramPart] = OrderedDict()
        self._verdicts: OrderedDict[Hashable, object] = OrderedDict()

    def verdict(self, question: Hashable, decide: Callable[[], AnswerT]) -> AnswerT:
        """The answer to a question; the question includes all data that the answer depends on."""
        if not is_used("memo"):
            return decide()
        if question not in self._verdicts:
            self._verdicts[question] = decide()
            if len(self._verdicts) > MOST_VERDICTS:
                self._verdicts.popitem(last=False)
        return cast(AnswerT, self._verdicts[question])

    def part(self, content: Content) -> ProgramPart:
        """The memoised part of a program with this content."""
        if not is_used("memo"):
            return ProgramPart()
        part = self._parts.setdefault(content, ProgramPart())
        self._parts.move_to_end(content)
        if len(self._parts) > MOST_PARTS:
            self._parts.popitem(last=False)
        return part

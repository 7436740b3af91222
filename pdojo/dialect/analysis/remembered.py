"""Answers by the content of their questions, shared by all states of a game."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TypeAlias, TypeVar, cast

MOST_PARTS = 256
"""Parts of programs that are remembered; they hold their operations."""

MOST_VERDICTS = 1 << 16
"""Answers about buffers that are remembered."""

Content: TypeAlias = bytes
"""Digest of all that something depends on: the text of a nest is kilobytes, and thousands of them are remembered."""

Verdicts: TypeAlias = dict[Hashable, object]
"""Answers about one content, by question."""

AnswerT = TypeVar("AnswerT")


class Remembered:
    """The most recent parts of programs, with what was decided about them, and answers to questions about buffers."""

    def __init__(self) -> None:
        self._parts: OrderedDict[Content, tuple[object | None, Verdicts]] = OrderedDict()
        self._verdicts: OrderedDict[Hashable, object] = OrderedDict()

    def verdict(self, question: Hashable, decide: Callable[[], AnswerT]) -> AnswerT:
        """The answer to a question that holds all it depends on."""
        if question not in self._verdicts:
            self._verdicts[question] = decide()
            if len(self._verdicts) > MOST_VERDICTS:
                self._verdicts.popitem(last=False)
        return cast(AnswerT, self._verdicts[question])

    def part(self, content: Content, make: Callable[[], AnswerT | None]) -> tuple[AnswerT | None, Verdicts]:
        """The part of a program with this content, and what was decided about it; None for all of a program.

        All of a program is not kept: whoever asks has it, and may change its kernel afterwards.
        """
        part, verdicts = self._parts.get(content, (None, {}))
        if part is None:
            part = make()
        self._parts[content] = part, verdicts
        self._parts.move_to_end(content)
        if len(self._parts) > MOST_PARTS:
            self._parts.popitem(last=False)
        return cast("AnswerT | None", part), verdicts

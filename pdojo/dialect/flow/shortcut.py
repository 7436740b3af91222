"""Shortcuts: faster ways to answers that this folder and `rules` give exactly (the list is `pdojo.dialect.shortcuts`).

A question has an exact answer (`Question.exact`). A shortcut for that kind of question gives the same answer, or None.
Other shortcuts are switches: they choose the program that is asked, keep answers, or ask once instead of often, so they
have no answer of their own. Without any shortcut all verdicts are the same; only time differs.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Generic, Protocol, TypeVar

from pdojo.errors import UnknownSize, UsageError

AnswerT = TypeVar("AnswerT")
AnswerT_co = TypeVar("AnswerT_co", covariant=True)


class Question(Protocol[AnswerT_co]):
    """A question with an exact answer."""

    def exact(self) -> AnswerT_co:
        """The answer by integer sets, without shortcuts. Raises Undecided beyond their budget."""
        ...


@dataclass(frozen=True, slots=True)
class Answer(Generic[AnswerT]):
    """The answer of a shortcut."""

    value: AnswerT
    how: str = "digits"
    """The method, for explanations: `digits`, `guess`, `instances` or `integer sets`."""


@dataclass(frozen=True, slots=True)
class Shortcut:
    """An entry of the list."""

    name: str
    kind: str = ""
    """The kind of question that it answers; empty for a switch."""
    home: str = ""
    """Its function, as `module:function`; imported when it is first asked."""

    def answer(self, question: Question[AnswerT]) -> Answer[AnswerT] | None:
        """The answer to a question of this kind; None if it is unknown, or depends on the value of a size."""
        try:
            return _function(self.home)(question)
        except UnknownSize:
            return None


@cache
def _function(home: str) -> Callable[[Question[Any]], Answer[Any] | None]:
    module, _, name = home.partition(":")
    return getattr(import_module(module), name)


_registered: list[Shortcut] = []
"""All shortcuts; those for one kind of question are asked in this order."""
_used: dict[str, list[Shortcut]] = {}
"""The shortcuts in use, keyed by kind of question."""
_switched_on: set[str] = set()
"""The names of the shortcuts in use."""


def _use(shortcuts: tuple[Shortcut, ...]) -> None:
    _used.clear()
    _switched_on.clear()
    for shortcut in shortcuts:
        _used.setdefault(shortcut.kind, []).append(shortcut)
        _switched_on.add(shortcut.name)


def register(shortcuts: tuple[Shortcut, ...]) -> None:
    """Register the shortcuts and use them."""
    _registered[:] = shortcuts
    _use(shortcuts)


def answered(kind: str, question: Question[AnswerT]) -> Answer[AnswerT] | None:
    """The answer of the first shortcut that knows it; None if none does."""
    for shortcut in _used.get(kind, ()):
        found = shortcut.answer(question)
        if found is not None:
            return found
    return None


def decided(kind: str, question: Question[AnswerT]) -> AnswerT:
    """The answer of a shortcut if one knows it, else the exact one."""
    found = answered(kind, question)
    return question.exact() if found is None else found.value


def is_used(name: str) -> bool:
    """Whether a switch of the list is on."""
    return name in _switched_on


def shortcut_names() -> tuple[str, ...]:
    """The names of all shortcuts."""
    return tuple(shortcut.name for shortcut in _registered)


@contextmanager
def without(*names: str) -> Generator[None]:
    """A context without some shortcuts, for tests and measurements; `without(*shortcut_names())` empties the list.

    Programs built before the context may hold answers of shortcuts.
    """
    known = shortcut_names()
    if unknown := set(names) - set(known):
        raise UsageError(f"there is no shortcut '{min(unknown)}'; there are {', '.join(known)}")
    before = tuple(shortcut for shortcut in _registered if shortcut.name in _switched_on)
    _use(tuple(shortcut for shortcut in before if shortcut.name not in names))
    try:
        yield
    finally:
        _use(before)

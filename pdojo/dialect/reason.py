"""A reason against a program or a move: the one answer of all questions of legality."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reason:
    """A sentence, and its witness: accesses, elements or iterations."""

    text: str
    witness: str = ""
    about: str = ""
    """Identifies the problem when a move changes the wording; empty if `text` does."""
    is_open: bool = False
    """Whether the question is open: integer sets have not settled it."""

    @property
    def subject(self) -> str:
        """What the reason is about: equal for one problem before and after a move."""
        return self.about or self.text

    def __str__(self) -> str:
        return self.text

"""A reason against a program or a move: the answer to every question of legality."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason in one sentence, with a witness: accesses, elements or iterations."""

    text: str
    witness: str = ""
    about: str = ""
    """A key of the problem if moves change its wording; empty if `text` is the key."""
    is_open: bool = False
    """Whether the question is open, because integer sets did not settle it."""

    @property
    def key(self) -> str:
        """The key of the problem, equal before and after a move."""
        return self.about or self.text

    def __str__(self) -> str:
        return self.text

"""Why something may not be: the one answer that all questions of legality give."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reason:
    """A sentence, and the witness that shows it: accesses, elements or iterations."""

    text: str
    witness: str = ""
    about: str = ""
    """What stays the same where a move changes the wording; `text` if it is empty."""
    is_open: bool = False
    """Whether integer sets have not settled it."""

    def __str__(self) -> str:
        return self.text

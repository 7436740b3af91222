"""Choice among hundreds of moves: filtering by typed words, grouping by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pdojo.transforms.legality.judge import Refusal
from pdojo.transforms.move import Move


@dataclass(frozen=True)
class ListedMove:
    """A candidate: a legal move, or a refused one with its refusal."""

    move: Move
    refusal: Refusal | None = None

    @property
    def label(self) -> str:
        """The text in the list, under the move's name."""
        text = str(self.move).partition("@")[2]
        return text if self.refusal is None else f"{text}: {self.refusal.reason}"

    @property
    def searched(self) -> str:
        """The text that the filter searches, in lower case."""
        reason = "" if self.refusal is None else f" {self.refusal.reason}"
        return f"{self.move}{reason}".lower()


def filtered(entries: Sequence[ListedMove], wanted: str) -> list[ListedMove]:
    """The entries whose text contains every word of `wanted`, ignoring case.

    If there are none, the entries that contain the letters of `wanted` in order.
    """
    words = wanted.lower().split()
    if not words:
        return list(entries)
    found = [e for e in entries if all(word in e.searched for word in words)]
    return found or [e for e in entries if _has_in_order(e.searched, "".join(words))]


def _has_in_order(text: str, letters: str) -> bool:
    rest = iter(text)
    return all(letter in rest for letter in letters)


def grouped(entries: Sequence[ListedMove]) -> dict[str, list[ListedMove]]:
    """The entries by the name of their move, in alphabetical order."""
    groups: dict[str, list[ListedMove]] = {}
    for entry in entries:
        groups.setdefault(entry.move.name, []).append(entry)
    return {name: groups[name] for name in sorted(groups)}

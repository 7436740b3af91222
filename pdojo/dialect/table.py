"""Tables: constant integers that index expressions may look up (docs/notation.md)."""

from __future__ import annotations

from enum import Enum
from functools import cached_property

MOST_ENTRIES = 4096
"""Most entries of a table: integer sets represent it by as many points."""


class Table:
    """A name and its entries; equal tables have both equal.

    Outside of its entries, a table continues with its first and last one. Verification refuses programs that look
    there; analyses may ask about iterations that do not run.
    """

    def __init__(self, name: str, entries: tuple[int, ...]) -> None:
        self.name, self.entries = name, entries
        self._hash = hash((name, entries))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Table) and (self.name, self.entries) == (other.name, other.entries)

    def __repr__(self) -> str:
        return f"<table {self.name} of {len(self.entries)}>"

    @property
    def known(self) -> Table:
        """The table itself, whose entries are known."""
        return self

    def at(self, place: int) -> int:
        """The entry at a place."""
        return self.entries[min(max(place, 0), len(self.entries) - 1)]

    def bounds(self, first: int, last: int) -> tuple[int, int]:
        """Least and greatest entry at the places from `first` to `last`."""
        end = len(self.entries) - 1
        found = self.entries[min(max(first, 0), end) : min(max(last, 0), end) + 1]
        return min(found), max(found)

    @cached_property
    def runs(self) -> list[tuple[int, int, int]]:
        """First place, its entry, and the step of each run of equal steps; the first and the last entry are alone."""
        found = [(0, self.entries[0], 0)]
        place, end = 1, len(self.entries) - 1
        while place < end:
            step = self.entries[place + 1] - self.entries[place] if place + 1 < end else 0
            found.append((place, self.entries[place], step))
            place += 1
            while place < end and self.entries[place] == found[-1][1] + step * (place - found[-1][0]):
                place += 1
        return found if end == 0 else [*found, (end, self.entries[end], 0)]

    @cached_property
    def is_injective(self) -> bool:
        """Whether all entries differ."""
        return len(set(self.entries)) == len(self.entries)


class Outside(Enum):
    """The meaning of an index outside of its range."""

    REFUSED = ""
    """The call is refused before anything is computed."""
    CLAMP = "clamp"
    """The nearest index of the range."""
    WRAP = "wrap"
    """Negative ones count from the end of the range, -1 is the last index; the call is refused for others."""

    @property
    def is_checked(self) -> bool:
        """Whether a call may be refused for an index."""
        return self is not Outside.CLAMP

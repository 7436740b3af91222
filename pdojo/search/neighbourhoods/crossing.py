"""Crosses of two traces."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from random import Random

from pdojo.transforms.move import Move


def cross(first: Sequence[Move], second: Sequence[Move], random: Random) -> list[Move]:
    """The first trace up to a random point, and the second trace from there on.

    The traces are aligned by their common moves, and the point is one of their differences. Common moves occur once,
    earlier differences come from the first trace, later ones from the second.
    """
    pieces = SequenceMatcher(None, first, second, autojunk=False).get_opcodes()
    differences = [k for k, (kind, *_) in enumerate(pieces) if kind != "equal"]
    if not differences:
        return list(first)
    cut = random.choice(differences)
    moves: list[Move] = []
    for k, (_, low, high, other_low, other_high) in enumerate(pieces):
        moves += first[low:high] if k <= cut else second[other_low:other_high]
    return moves

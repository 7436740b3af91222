"""Limits on the length of programs: long ones are slow to check and to compile, and run no faster."""

from __future__ import annotations

from pdojo.search.dojo import Dojo

STATEMENTS = 64
"""Most statements in the text. Splitting moves could go on forever; the expert pass's programs have up to about 50."""
COPIES = 256
"""Most statements in the code, with unrolled copies: instruction caches hold no more."""


def is_too_long(near: Dojo, dojo: Dojo) -> bool:
    """True if a neighbour exceeds a limit and is longer than the state itself."""
    (texts, copies), (old_texts, old_copies) = lengths(near), lengths(dojo)
    return texts > max(STATEMENTS, old_texts) or copies > max(COPIES, old_copies)


def lengths(dojo: Dojo) -> tuple[int, int]:
    """Number of statements in the text, and in the code."""
    leaves = dojo.game.program.nest.leaves
    return len(leaves), sum(leaf.copies for leaf in leaves)

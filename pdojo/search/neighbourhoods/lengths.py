"""How long programs may be: long ones take the longest to judge and compile, and are not fast."""

from __future__ import annotations

from pdojo.search.dojo import Dojo

STATEMENTS = 64
"""In the text. Moves that part loops can go on for ever; the expert pass's programs have up to about 50."""
COPIES = 256
"""In the code, where those in unrolled scopes are several: caches of instructions hold no more."""


def is_too_long(near: Dojo, dojo: Dojo) -> bool:
    """Whether a neighbour of a state exceeds a limit; where the state does so too, it may be as long as that."""
    (texts, copies), (old_texts, old_copies) = lengths(near), lengths(dojo)
    return texts > max(STATEMENTS, old_texts) or copies > max(COPIES, old_copies)


def lengths(dojo: Dojo) -> tuple[int, int]:
    """Statements in the text, and in the code."""
    leaves = dojo.game.program.nest.leaves
    return len(leaves), sum(leaf.copies for leaf in leaves)

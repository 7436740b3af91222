"""A program and the moves that led to it, as HTML for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from pdojo.transforms.move import Move


def html_of(title: str, program: str, moves: Sequence[Move]) -> str:
    """The title, the program in the notation, and the moves, in order."""
    count = f"{len(moves)} move{'s' * (len(moves) != 1)}"
    made = "".join(f"<li><code>{escape(str(move))}</code></li>" for move in moves)
    return (
        f"<div><p>{escape(title)}</p><pre>{escape(program)}</pre>"
        f"<details><summary>{count} made</summary><ol start='0'>{made}</ol></details></div>"
    )

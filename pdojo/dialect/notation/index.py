"""Index expressions on their own: the texts by which moves restore an access."""

from __future__ import annotations

from collections.abc import Sequence

from pdojo.dialect.affine import Expr
from pdojo.dialect.notation.expressions import Expressions
from pdojo.dialect.notation.lexer import Cursor, tokenize
from pdojo.dialect.notation.source import Source


def parse_index(text: str, extents: Sequence[int]) -> tuple[Expr, ...]:
    """Parse `{0},{1}*16+{2}` over scopes of the given extents, outermost first. Raises NotationError."""
    source = Source(text, "<index>")
    cursor = Cursor(source, tokenize(source, 0))
    expressions = Expressions(cursor, {}, extents)
    index = [expressions.guard_side()]
    while cursor.at(","):
        cursor.advance()
        index.append(expressions.guard_side())
    if not cursor.at_end:
        raise cursor.error("expected ',' or the end of the index")
    return tuple(index)

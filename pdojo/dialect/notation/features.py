"""Features that the notation excludes (the paper's Table 2), each refused by its name.

Dependent iteration is not a matter of syntax; verification refuses it (`dialect/flow/dependent.py`).
"""

from __future__ import annotations

from pdojo.dialect.notation.lexer import Cursor, TokenKind
from pdojo.dialect.notation.source import Span
from pdojo.errors import NotationError

CONTROL_FLOW = frozenset("while if else for do switch break continue return goto call".split())
"""Words that begin control flow in other languages."""


def indirection(cursor: Cursor, span: Span, array: str) -> NotationError:
    """The error for an index that reads an array."""
    return cursor.error(
        f"indirection is not supported: an index may not read an array (here '{array}')",
        f"entries of tables may be indices, and those of integer inputs with a range: {array} i64 [8] heap in 0..99",
        span,
    )


def control_flow(cursor: Cursor, span: Span, what: str) -> NotationError:
    """The error for a loop or a branch whose course depends on data."""
    return cursor.error(
        f"general control flow is not supported: {what}",
        "iterate with scopes of fixed extent, restrict them with 'where (...)', choose values with select(c, a, b)",
        span,
    )


def data_dependent_range(cursor: Cursor, span: Span, array: str) -> NotationError:
    """The error for a scope whose extent is read from an array."""
    return cursor.error(
        f"data-dependent range is not supported: an extent may not read an array (here '{array}')",
        "extents are integers",
        span,
    )


def access_instead_of_extent(cursor: Cursor) -> Span | None:
    """The access at the cursor if it stands in place of an extent, that is, without an assignment after it."""
    if cursor.token.kind is not TokenKind.WORD or not cursor.at("[", 1):
        return None
    level, ahead = 0, 1
    while cursor.peek(ahead).kind is not TokenKind.END:
        level += cursor.at("[", ahead) - cursor.at("]", ahead)
        if level == 0:
            break
        ahead += 1
    follows = cursor.peek(ahead + 1)
    extent = follows.kind is TokenKind.INTEGER or (follows.kind is TokenKind.WORD and not cursor.at("=", ahead + 2))
    if not extent or cursor.peek(ahead).kind is TokenKind.END:
        return None
    return cursor.token.span.to(cursor.peek(ahead).span)

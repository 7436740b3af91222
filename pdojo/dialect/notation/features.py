"""What the notation leaves out on purpose (the paper's Table 2, excluded rows), each refused by its name."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from pdojo.dialect.affine import Expr
from pdojo.dialect.notation.lexer import Cursor, Kind
from pdojo.dialect.notation.source import Span
from pdojo.errors import NotationError

Index = tuple[Expr, ...]

CONTROL_FLOW = frozenset("while if else for do switch break continue return goto call".split())
"""Words that begin control flow in other languages."""


def indirection(cursor: Cursor, span: Span, array: str) -> NotationError:
    """An index that reads an array."""
    return cursor.error(
        f"indirection is not supported: an index may not read an array (here '{array}')",
        "an index is made of iterations {k}, integers, + - * // and %",
        span,
    )


def control_flow(cursor: Cursor, span: Span, what: str) -> NotationError:
    """A loop or a branch whose course depends on data."""
    return cursor.error(
        f"general control flow is not supported: {what}",
        "iterate with scopes of fixed extent, restrict them with 'where (...)', choose values with select(c, a, b)",
        span,
    )


def data_dependent_range(cursor: Cursor, span: Span, array: str) -> NotationError:
    """A scope whose extent is read from an array."""
    return cursor.error(
        f"data-dependent range is not supported: an extent may not read an array (here '{array}')",
        "extents are integers",
        span,
    )


def dependent_iteration(cursor: Cursor, span: Span, array: str) -> NotationError:
    """A statement that reads what it wrote in another iteration."""
    return cursor.error(
        f"dependent iteration is not supported: the statement reads '{array}' where another iteration writes it",
        "accumulate with += *= max= ..., or write the result to another array",
        span,
    )


def access_instead_of_extent(cursor: Cursor) -> Span | None:
    """The access at the cursor if it stands where an extent must: no assignment follows it."""
    if cursor.token.kind is not Kind.WORD or not cursor.at("[", 1):
        return None
    level, ahead = 0, 1
    while cursor.peek(ahead).kind is not Kind.END:
        level += cursor.at("[", ahead) - cursor.at("]", ahead)
        if level == 0:
            break
        ahead += 1
    follows = cursor.peek(ahead + 1)
    extent = follows.kind is Kind.INTEGER or (follows.kind is Kind.WORD and not cursor.at("=", ahead + 2))
    if not extent or cursor.peek(ahead).kind is Kind.END:
        return None
    return cursor.token.span.to(cursor.peek(ahead).span)


def may_meet(written: Index, read: Index, extents: Sequence[int]) -> bool:
    """Whether a statement may read an element that another iteration of it writes.

    Reading the very element that is written is no such dependence. Elements are surely different where in one
    dimension the ranges are disjoint, or where no integers i, j solve `written(i) = read(j)` (greatest common divisor).
    """
    if written == read:
        return False
    for left, right in zip(written, read, strict=True):
        low, high = left.bounds(extents)
        first, last = right.bounds(extents)
        if high < first or last < low:
            return False
        divisor = gcd(*(c for _, c in (*left.terms, *right.terms)))
        if divisor and (left.constant - right.constant) % divisor:
            return False
    return True

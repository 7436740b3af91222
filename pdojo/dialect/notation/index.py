"""Single index expressions, constraints and constants: the texts by which moves restore or name them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pdojo.dialect.affine import Expr, IndexArray, Size
from pdojo.dialect.notation.expressions import Expressions
from pdojo.dialect.notation.lexer import Cursor, tokenize
from pdojo.dialect.notation.literals import constant_attr
from pdojo.dialect.notation.source import Source
from pdojo.dialect.notation.statements import parse_constraint
from pdojo.dialect.notation.values import ConstantValue
from pdojo.dialect.table import Table
from pdojo.dialect.view.nest import Constant


def parse_index(
    text: str, extents: Sequence[int], names: Mapping[str, Table | IndexArray | Size] | None = None
) -> tuple[Expr, ...]:
    """Parse `{0},{1}*16+{2}` over scopes of the given extents, outermost first.

    `names` are tables, arrays of indices and sizes. Raises NotationError.
    """
    cursor = _cursor(text, "<index>")
    expressions = Expressions(cursor, names or {}, extents)
    index = [expressions.index_side()]
    while cursor.at(","):
        cursor.advance()
        index.append(expressions.index_side())
    if not cursor.at_end:
        raise cursor.error("expected ',' or the end of the index")
    return tuple(index)


def parse_guard(
    text: str, extents: Sequence[int], names: Mapping[str, Size | IndexArray] | None = None
) -> tuple[Expr, ...]:
    """Parse one comparison, `{0}*16+{1} < 500`, as `e >= 0` for each expression. Raises NotationError."""
    cursor = _cursor(text, "<guard>")
    found = parse_constraint(cursor, Expressions(cursor, names or {}, extents))
    if not cursor.at_end:
        raise cursor.error("expected the end of the constraint")
    return tuple(found)


def parse_constant(text: str, dtype: str) -> Constant:
    """Parse a constant of an element type: `0`, `-inf`, `true`. Raises NotationError."""
    cursor = _cursor(text, "<constant>")
    value = Expressions(cursor, {}, ()).value()
    if not cursor.at_end or not isinstance(value, ConstantValue) or value.dtype not in (None, dtype):
        raise cursor.error(f"expected a constant of type {dtype}")
    try:
        return Constant(constant_attr(value.value, dtype).value.data, dtype)
    except ValueError as error:
        raise cursor.error(str(error)) from None


def _cursor(text: str, name: str) -> Cursor:
    source = Source(text, name)
    cursor = Cursor(source, tokenize(source, 0))
    if len(source.lines) > 1:
        raise cursor.error("expected one line")
    return cursor

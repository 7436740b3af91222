"""Hints in the notation: `!nontemporal!prefetch(4096)` after an access, a mapping or a memory."""

from __future__ import annotations

import re

from xdsl.dialects.builtin import BoolAttr, DictionaryAttr, IntegerAttr, StringAttr, UnitAttr, i64
from xdsl.ir import Attribute

from pdojo.dialect.hints import hint_problem
from pdojo.dialect.notation.lexer import Cursor, TokenKind
from pdojo.errors import NotationError


def parse_hints(cursor: Cursor) -> DictionaryAttr:
    """The hints at the cursor, none or several."""
    hints: dict[str, Attribute] = {}
    while cursor.accept("!"):
        name = cursor.expect_kind(TokenKind.WORD, "the name of a hint after '!'")
        if name.text in hints:
            raise cursor.error(f"hint '{name.text}' is given twice", span=name.span)
        hints[name.text] = _parse_value(cursor) if cursor.accept("(") else UnitAttr()
        problem = hint_problem(name.text, hints[name.text])
        if problem is not None:
            raise cursor.error(problem, span=name.span)
    return DictionaryAttr(hints)


def _parse_value(cursor: Cursor) -> Attribute:
    value: Attribute
    negative = cursor.accept("-")
    if cursor.token.kind is TokenKind.INTEGER:
        number = -int(cursor.token.text) if negative else int(cursor.token.text)
        if not -(1 << 63) <= number < 1 << 63:
            raise cursor.error("the integer of a hint has 64 bits")
        cursor.advance()
        value = IntegerAttr(number, i64)
    elif cursor.token.kind is TokenKind.STRING and not negative:
        value = StringAttr(cursor.advance().text)
    elif not negative and (cursor.at_word("true") or cursor.at_word("false")):
        value = BoolAttr.from_bool(cursor.advance().text == "true")
    else:
        raise cursor.error('the value of a hint is an integer, a "string", true or false')
    cursor.expect(")", "after the value of a hint")
    return value


def spell_hints(hints: DictionaryAttr) -> str:
    """The text that `parse_hints` reads. Raises NotationError for a value without a text."""
    if not hints.data:
        return ""
    return "".join(f"!{name}{_spell_value(name, value)}" for name, value in hints.data.items())


def _spell_value(name: str, value: Attribute) -> str:
    match value:
        case UnitAttr():
            return ""
        case StringAttr():
            return '("' + re.sub(r'(["\\])', r"\\\1", value.data) + '")'
        case IntegerAttr() if value.type == i64:
            return f"({value.value.data})"
        case IntegerAttr() if value == BoolAttr.from_bool(bool(value.value.data)):
            return "(true)" if value.value.data else "(false)"
        case _:
            raise NotationError(f"hint '{name}' has value {value}; the notation writes flags, i64, i1 and strings")

"""Parsing of index expressions, accesses and the right sides of statements.

Signs bind as in Python. `+ - * // %` between iterations and integers alone form an index expression; any other sign is
the one function that a statement applies.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from pdojo.dialect.affine import MOST_ATOMS, Expr, IndexArray, Size, const, floordiv, lookup, modulo, var
from pdojo.dialect.functions import DTYPES
from pdojo.dialect.notation import features
from pdojo.dialect.notation.hints import parse_hints
from pdojo.dialect.notation.lexer import Cursor, Token, TokenKind
from pdojo.dialect.notation.source import Span, did_you_mean, element_type_hint
from pdojo.dialect.notation.spelling import INFIX, PRECEDENCE, PREFIX, call_candidates, call_names
from pdojo.dialect.notation.values import (
    AccessValue,
    Application,
    ArrayName,
    ConstantValue,
    IndexValue,
    InputValue,
    Named,
    Value,
)
from pdojo.dialect.table import Table
from pdojo.dialect.text_limits import MOST_NESTED
from pdojo.errors import NotationError

ReadT = TypeVar("ReadT")

_ARITHMETIC = PRECEDENCE["+"]
_WORDS: dict[str, ConstantValue] = {
    "inf": ConstantValue(math.inf, None, Span(0, 0, 0)),
    "nan": ConstantValue(math.nan, None, Span(0, 0, 0)),
    "true": ConstantValue(-1, "i1", Span(0, 0, 0)),
    "false": ConstantValue(0, "i1", Span(0, 0, 0)),
}


class Expressions:
    """Reads expressions at a cursor, in the scopes of given extents (outermost first)."""

    def __init__(self, cursor: Cursor, arrays: Mapping[str, Named], extents: Sequence[int]) -> None:
        self.cursor = cursor
        self.arrays = arrays
        self.extents = extents
        self.context = "value"
        """The kind of expression being read: 'value', 'index' or 'guard'."""
        self.depth = 0
        """Number of open parentheses and signs."""

    def value(self) -> Value:
        """A whole right side: an input or one function application."""
        return self._binary(1)

    def guard_side(self) -> Expr:
        """One side of a comparison in a guard."""
        self.context = "guard"
        return self._index_expression("a guard")

    def index_side(self) -> Expr:
        """One index expression, without an array around it."""
        self.context = "index"
        return self._index_expression("an index")

    def access(self) -> AccessValue:
        """`name[index, ...]` with hints."""
        cursor = self.cursor
        name = cursor.expect_kind(TokenKind.WORD, "an array access")
        array = self.arrays.get(name.text)
        if array is None:
            raise cursor.error(f"unknown array '{name.text}'", did_you_mean(name.text, self.arrays), name.span)
        if isinstance(array, Table):
            raise cursor.error(f"table '{name.text}' is constant: statements write arrays", span=name.span)
        if not isinstance(array, ArrayName):
            raise cursor.error(f"'{name.text}' is a size, no array", span=name.span)
        cursor.expect("[", f"after array '{name.text}'")
        outer, self.context = self.context, "index"
        index: list[Expr] = []
        while not cursor.at("]"):
            if index:
                cursor.expect(",", "or ']' in an index")
            index.append(self._index_expression(f"an index of '{name.text}'"))
        closing = cursor.advance()
        self.context = outer
        span = name.span.to(closing.span)
        if len(index) != len(array.shape):
            rank = len(array.shape)
            plural = "s" * (rank != 1)
            raise cursor.error(f"array '{name.text}' has {rank} dimension{plural}, not {len(index)}", span=span)
        return AccessValue(array, tuple(index), parse_hints(self.cursor), span)

    def _index_expression(self, what: str) -> Expr:
        value = self._binary(_ARITHMETIC)
        expression = _as_index(value)
        if expression is None:
            raise self.cursor.error(f"{what} is made of iterations {{k}}, integers, + - * // and %", span=value.span)
        return expression

    def _binary(self, level: int) -> Value:
        cursor = self.cursor
        left = self._unary()
        while True:
            sign = cursor.token
            strength = PRECEDENCE.get(sign.text, 0) if sign.kind is TokenKind.SIGN else 0
            if strength < level:
                return left
            cursor.advance()
            right = self._binary(strength + 1)
            left = self._combine(sign, left, right)

    def _combine(self, sign: Token, left: Value, right: Value) -> Value:
        a, b = _as_index(left), _as_index(right)
        span = left.span.to(right.span)
        if sign.text in ("+", "-", "*", "//", "%"):
            if a is not None and b is not None:
                expression = self._arithmetic(sign, a, b, span)
                if expression.size > MOST_ATOMS:
                    raise self.cursor.error("the index expression is too large", span=span)
                if _is_integer(left) and _is_integer(right):
                    return ConstantValue(expression.constant, None, span)
                return IndexValue(expression, None, span)
            if sign.text in ("//", "%"):
                hint = "on values write floordiv(a, b), rem(a, b) or urem(a, b)"
                raise self.cursor.error(f"'{sign.text}' is for index expressions only", hint, sign.span)
        return Application(sign.text, INFIX[sign.text], (self._input(left, sign), self._input(right, sign)), span)

    def _arithmetic(self, sign: Token, a: Expr, b: Expr, span: Span) -> Expr:
        match sign.text:
            case "+":
                return a + b
            case "-":
                return a - b
            case "*":
                if b.is_constant:
                    return a * b.constant
                if a.is_constant:
                    return b * a.constant
                hint = (
                    "an index times an index is not quasi-affine; on values write arith.muli(a, b) or arith.mulf(a, b)"
                )
                raise self.cursor.error("one side of '*' must be an integer", hint, span)
            case _:
                if not b.is_constant or b.constant <= 0:
                    raise self.cursor.error(f"'{sign.text}' needs a positive integer on its right", span=span)
                divide = floordiv if sign.text == "//" else modulo
                return divide(a, b.constant, self.extents)

    def _input(self, value: Value, at: Token) -> InputValue:
        """The value as an input. Raises NotationError for a function application: a statement has only one function."""
        if isinstance(value, Application):
            hint = "put the inner one into a temporary array; index expressions beside a sign need parentheses"
            raise self.cursor.error("a statement applies one function", hint, at.span)
        return value

    def _unary(self) -> Value:
        sign = self.cursor.token
        if not self.cursor.accept("-"):
            return self._typed(self._primary())
        value = self._inside(self._unary)
        span = sign.span.to(value.span)
        match value:
            case ConstantValue():
                return replace(value, value=-value.value, span=span)
            case IndexValue():
                return replace(value, expression=-value.expression, span=span)
            case _:
                return Application("-", PREFIX["-"], (self._input(value, sign),), span)

    def _inside(self, read: Callable[[], ReadT]) -> ReadT:
        """The result of `read`, which runs at a nesting depth one higher."""
        self.depth += 1
        if self.depth > MOST_NESTED:
            raise self.cursor.error(f"parentheses and signs are nested more than {MOST_NESTED} deep")
        value = read()
        self.depth -= 1
        return value

    def _typed(self, value: Value) -> Value:
        """An optional `:dtype` after a constant or an index value."""
        cursor = self.cursor
        if not isinstance(value, ConstantValue | IndexValue) or not cursor.accept(":"):
            return value
        name = cursor.expect_kind(TokenKind.WORD, "an element type after ':'")
        if name.text not in DTYPES:
            raise cursor.error(f"unknown element type '{name.text}'", element_type_hint(name.text), name.span)
        return replace(value, dtype=name.text, span=value.span.to(name.span))

    def _primary(self) -> Value:
        cursor = self.cursor
        token = cursor.token
        match token.kind:
            case TokenKind.INTEGER | TokenKind.FLOAT:
                cursor.advance()
                number = int(token.text) if token.kind is TokenKind.INTEGER else float(token.text)
                if number == math.inf:
                    raise cursor.error(f"{token.text} is too large for a number", span=token.span)
                return ConstantValue(number, None, token.span)
            case TokenKind.ITERATION:
                return self._iteration()
            case TokenKind.WORD:
                return self._word()
            case _:
                pass
        if not cursor.accept("("):
            raise cursor.error(f"expected {self._expected()}")
        inner = self._inside(lambda: self._binary(1 if self.context == "value" else _ARITHMETIC))
        closing = cursor.expect(")", "to close the parenthesis")
        return replace(inner, span=token.span.to(closing.span))

    def _expected(self) -> str:
        if self.context == "value":
            return "an array access, a constant, an index expression or a function"
        return "an iteration {k}, an integer or '('"

    def _iteration(self) -> IndexValue:
        token = self.cursor.advance()
        depth = int(token.text)
        if depth >= len(self.extents):
            inside = f"only {len(self.extents)} scope{'s' * (len(self.extents) != 1)}" if self.extents else "no scope"
            raise self.cursor.error(f"there is {inside} around this: {{{depth}}} means nothing", span=token.span)
        return IndexValue(var(depth), None, token.span)

    def _word(self) -> Value:
        cursor = self.cursor
        word = cursor.token
        if cursor.at("[", 1):
            named = self.arrays.get(word.text)
            table = named.indices if isinstance(named, ArrayName) and self.context != "value" else named
            if isinstance(table, IndexArray) or (isinstance(table, Table) and self.context != "guard"):
                return self._lookup(table)
            if self.context == "index":
                raise features.indirection(cursor, word.span, word.text)
            if self.context == "guard":
                raise features.control_flow(cursor, word.span, f"a guard may not read an array (here '{word.text}')")
            return self.access()
        size = self.arrays.get(word.text)
        if isinstance(size, Size):
            cursor.advance()
            return IndexValue(size.expression, None, word.span)
        if self.context == "value":
            if cursor.at("(", 1):
                return self._call()
            if word.text in _WORDS:
                cursor.advance()
                return replace(_WORDS[word.text], span=word.span)
        raise self._no_value(word)

    def _lookup(self, table: Table | IndexArray) -> IndexValue:
        """`table[place]`, or `indices[place, ...]`."""
        cursor = self.cursor
        name = cursor.advance()
        cursor.advance()
        what = f"{'table' if isinstance(table, Table) else 'array'} '{table.name}'"
        outer, self.context = self.context, "index"
        place: list[Expr] = []
        while not cursor.at("]"):
            if place:
                cursor.expect(",", f"or ']' after the place in {what}")
            place.append(self._inside(lambda: self._index_expression(f"the place in {what}")))
        self.context = outer
        span = name.span.to(cursor.advance().span)
        rank = 1 if isinstance(table, Table) else len(table.extents)
        if len(place) != rank:
            raise cursor.error(f"{what} has {rank} dimension{'s' * (rank != 1)}, not {len(place)}", span=span)
        if isinstance(table, Table) and place[0].is_constant and not 0 <= place[0].constant < len(table.entries):
            raise cursor.error(f"table '{table.name}' has no entry {place[0].constant}", span=span)
        return IndexValue(lookup(table, place, self.extents), None, span)

    def _no_value(self, word: Token) -> NotationError:
        if word.text in self.arrays:
            return self.cursor.error(f"array '{word.text}' needs an index: {word.text}[...]", span=word.span)
        hint = "constants are numbers, iterations are written {k}"
        return self.cursor.error(f"'{word.text}' is neither an array nor a number", hint, word.span)

    def _call(self) -> Value:
        cursor = self.cursor
        name = cursor.advance()
        cursor.advance()
        if name.text == "index":
            outer, self.context = self.context, "index"
            expression = self._index_expression("index(...)")
            self.context = outer
            closing = cursor.expect(")", "after index(...")
            return IndexValue(expression, None, name.span.to(closing.span))
        candidates = call_candidates(name.text)
        if candidates is None:
            raise cursor.error(f"unknown function '{name.text}'", did_you_mean(name.text, call_names()), name.span)
        inputs: list[InputValue] = []
        while not cursor.at(")"):
            if inputs:
                cursor.expect(",", f"or ')' among the inputs of '{name.text}'")
            start = cursor.token
            inputs.append(self._input(self._inside(lambda: self._binary(1)), start))
        closing = cursor.advance()
        return Application(name.text, candidates, tuple(inputs), name.span.to(closing.span))


def _is_integer(value: Value) -> bool:
    return isinstance(value, ConstantValue) and isinstance(value.value, int) and value.dtype is None


def _as_index(value: Value) -> Expr | None:
    """The value as an index expression; None if it is none."""
    match value:
        case IndexValue(expression, None):
            return expression
        case ConstantValue(int(number), None):
            return const(number)
        case _:
            return None

"""Named sizes, numbers and element types of a text: one program for any shape.

    size R = 4096
    size P = 1
    size H = R + 2 * P
    number EPS = 1e-5
    type T = f32
    type A = wide(T)

The lines stand above a kernel and hold for all kernels below. Each use of a name is replaced by its value, so the
parser sees plain numbers. A name whose right side is a literal is a parameter: callers of the parser may give it
another value, and names computed from it follow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias, TypeVar

from pdojo.dialect.affine import Size
from pdojo.dialect.element_types import ELEMENT_TYPES, WIDE
from pdojo.dialect.notation.lexer import Cursor, Token, TokenKind, tokenize
from pdojo.dialect.notation.source import Source, did_you_mean, element_type_hint
from pdojo.dialect.sizes import value_problem
from pdojo.dialect.text_limits import MOST_DIGITS, MOST_NESTED
from pdojo.errors import UsageError

KEYWORDS = ("size", "number", "type")
"""First words of the lines that define names."""

_WIDE = {**WIDE, "i8": "i32"}
"""`wide(T)`: the type in which values of a short type are computed and summed; other types are wide enough."""

LARGEST = 10**MOST_DIGITS
"""Largest integer value of a name."""

ValueT = TypeVar("ValueT", float, str)
Value: TypeAlias = float | str
"""An integer, another number, or the name of an element type."""
Given: TypeAlias = Mapping[str, Value]
"""Values for parameters: integers for sizes, numbers, names of element types."""


@dataclass
class Names:
    """The names of a text and their values."""

    given: Given = field(default_factory=dict[str, Value])
    values: dict[str, Value] = field(default_factory=dict[str, Value])
    """Values, keyed by name, in the order of definition."""
    parameters: list[str] = field(default_factory=list[str])
    """Names to which callers may give a value."""
    of_kernel: list[str] = field(default_factory=list[str])
    """The given sizes of the present kernel."""
    depth: int = 0
    """Number of open parentheses, signs and calls."""

    def is_definition(self, cursor: Cursor) -> bool:
        """Whether a line defines a name."""
        named = cursor.peek(1).kind is TokenKind.WORD and cursor.at("=", 2)
        return named and cursor.token.kind is TokenKind.WORD and cursor.token.text in KEYWORDS

    def define(self, cursor: Cursor) -> None:
        """Read a definition, a line whose names are not replaced yet."""
        keyword, name = cursor.advance().text, cursor.advance()
        cursor.advance()
        if name.text in self.values:
            raise cursor.error(f"'{name.text}' is defined twice", span=name.span)
        if name.text in ELEMENT_TYPES:
            raise cursor.error(f"'{name.text}' is an element type", span=name.span)
        literal = _is_literal(cursor)
        start = cursor.token
        value = self._value(cursor, keyword)
        cursor.expect_end(f"after the {keyword}")
        if literal:
            self.parameters.append(name.text)
            value = self._given(name.text, keyword, value)
        if isinstance(value, int) and abs(value) > LARGEST:
            raise cursor.error(f"'{name.text}' is too large for a number", span=start.span.to(cursor.previous.span))
        if keyword == "size" and isinstance(value, int) and value < 0:
            span = start.span.to(cursor.previous.span)
            raise cursor.error(f"the size {name.text} is {value}, less than 0{self._stated()}", span=span)
        self.values[name.text] = value

    def give(self, size: Size) -> bool:
        """Whether the value of a kernel's size is given; its name then stands for the value until the kernel ends.

        Raises UsageError for a value outside of the range.
        """
        if size.name not in self.given:
            return False
        value = self._given(size.name, "size", 0)
        if (problem := value_problem(size, value)) is not None:
            raise UsageError(problem)
        self.values[size.name] = value
        self.parameters.append(size.name)
        self.of_kernel.append(size.name)
        return True

    def end_kernel(self) -> None:
        """Forget the values of the kernel's sizes."""
        for name in self.of_kernel:
            del self.values[name]
        self.of_kernel.clear()

    def put(self, cursor: Cursor) -> Cursor:
        """The line with values in place of names. A word after a colon is a mapping or a reuse flag, not a size."""
        if not self.values:
            return cursor
        tokens = list(cursor.tokens)
        for position, token in enumerate(tokens):
            if token.kind is TokenKind.WORD and token.text in self.values:
                value = self.values[token.text]
                behind_colon = position > 0 and tokens[position - 1].text == ":"
                if isinstance(value, str) or not behind_colon:
                    tokens[position] = _token(token, value)
        return Cursor(cursor.source, tokens)

    def check_given(self) -> None:
        """Check that the text defines every given name; raises UsageError."""
        for name in self.given:
            if name in self.values and name not in self.parameters:
                raise UsageError(f"'{name}' follows from other sizes and cannot be given")
            if name not in self.parameters:
                raise UsageError(f"there is no size '{name}'; {did_you_mean(name, self.parameters)}")

    def _given(self, name: str, keyword: str, default: Value) -> Value:
        value = self.given.get(name, default)
        if keyword == "type" and value not in ELEMENT_TYPES:
            raise UsageError(f"unknown element type '{value}' for '{name}'; {element_type_hint(str(value))}")
        if keyword == "size" and (not isinstance(value, int) or value < 0):
            raise UsageError(f"the size '{name}' is an integer of at least 0, not {value}")
        if keyword == "number" and isinstance(value, str):
            raise UsageError(f"'{name}' is a number, not '{value}'")
        return value

    def _stated(self) -> str:
        """The parameters so far, for messages."""
        stated = ", ".join(f"{n} = {self.values[n]}" for n in self.parameters)
        return f" for {stated}" if stated else ""

    def _value(self, cursor: Cursor, keyword: str) -> Value:
        if keyword == "type":
            return self._type(cursor)
        value = self._sum(cursor)
        if keyword == "size" and not isinstance(value, int):
            raise cursor.error("a size is an integer", span=cursor.previous.span)
        return value

    def _type(self, cursor: Cursor) -> str:
        """An element type, a name for an element type, or `wide(T)`."""
        word = cursor.expect_kind(TokenKind.WORD, "an element type or wide(...)")
        if word.text == "wide" and cursor.accept("("):
            inner = self._inside(cursor, self._type)
            cursor.expect(")", "after the type that is widened")
            return _WIDE.get(inner, inner)
        found = self.values.get(word.text, word.text)
        if not isinstance(found, str) or found not in ELEMENT_TYPES:
            raise cursor.error(f"unknown element type '{word.text}'", element_type_hint(word.text), word.span)
        return found

    def _inside(self, cursor: Cursor, read: Callable[[Cursor], ValueT]) -> ValueT:
        """The result of `read`, which runs at a nesting depth one higher."""
        self.depth += 1
        if self.depth > MOST_NESTED:
            raise cursor.error(f"parentheses and signs are nested more than {MOST_NESTED} deep")
        value = read(cursor)
        self.depth -= 1
        return value

    def _sum(self, cursor: Cursor) -> float:
        value = self._product(cursor)
        while cursor.at("+") or cursor.at("-"):
            sign = cursor.advance().text
            other = self._product(cursor)
            value = value + other if sign == "+" else value - other
        return value

    def _product(self, cursor: Cursor) -> float:
        value = self._factor(cursor)
        while any(cursor.at(sign) for sign in ("*", "/", "//", "%")):
            sign = cursor.advance()
            other = self._factor(cursor)
            if sign.text == "*":
                value = value * other
            elif other == 0:
                raise cursor.error("division by zero", span=sign.span)
            elif sign.text == "//":
                value = value // other
            elif sign.text == "%":
                value = value % other
            elif isinstance(value, int) and isinstance(other, int):
                # Sizes must divide without a remainder; rounding would change the program.
                if value % other:
                    hint = "// rounds down"
                    raise cursor.error(f"{value} is no multiple of {other}{self._stated()}", hint, sign.span)
                value = value // other
            else:
                value = value / other
        return value

    def _factor(self, cursor: Cursor) -> float:
        if cursor.accept("-"):
            return -self._inside(cursor, self._factor)
        if cursor.accept("("):
            value = self._inside(cursor, self._sum)
            cursor.expect(")", "to close the parenthesis")
            return value
        token = cursor.token
        match token.kind:
            case TokenKind.INTEGER:
                return int(cursor.advance().text)
            case TokenKind.FLOAT:
                return float(cursor.advance().text)
            case TokenKind.WORD if isinstance(self.values.get(token.text), int | float):
                value = self.values[cursor.advance().text]
                assert not isinstance(value, str)
                return value
            case _:
                numbers = [name for name, value in self.values.items() if not isinstance(value, str)]
                raise cursor.error("expected a number or the name of one", did_you_mean(token.text, numbers))


def names_of(source: Source, given: Given | None = None) -> Names:
    """The names that a text defines. Raises NotationError if a definition is wrong."""
    names = Names(given or {})
    for line in range(len(source.lines)):
        cursor = Cursor(source, tokenize(source, line))
        if names.is_definition(cursor):
            names.define(cursor)
    return names


def sizes_of(text: str) -> dict[str, int]:
    """The parameters of a text that are sizes, in its order."""
    names = names_of(Source(text, "<notation>"))
    values = {name: names.values[name] for name in names.parameters}
    return {name: value for name, value in values.items() if isinstance(value, int)}


def _is_literal(cursor: Cursor) -> bool:
    """Whether the rest of the line is one number, with or without a sign, or one element type."""
    behind = 1 if cursor.at("-") else 0
    token = cursor.peek(behind)
    plain = token.kind in (TokenKind.INTEGER, TokenKind.FLOAT) or (
        token.kind is TokenKind.WORD and token.text in ELEMENT_TYPES
    )
    return plain and cursor.peek(behind + 1).kind is TokenKind.END


def _token(token: Token, value: Value) -> Token:
    """A token for a value in place of its name."""
    if isinstance(value, str):
        return replace(token, text=value)
    return replace(token, kind=TokenKind.INTEGER if isinstance(value, int) else TokenKind.FLOAT, text=repr(value))

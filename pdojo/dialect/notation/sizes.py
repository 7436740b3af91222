"""Named sizes, numbers and element types of a text: one program for any shape.

    size R = 4096
    size P = 1
    size H = R + 2 * P
    number EPS = 1e-5
    type T = f32
    type A = wide(T)

The lines stand above a kernel and hold for all kernels below. Each use of a name is replaced by its value, so the
parser sees plain numbers. A name whose right side is a literal is a parameter: callers of the parser may give it
another value, and names computed from it follow. A size for which they give a range stays a name, that of a size known
at run time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias, TypeVar

from pdojo.dialect.affine import Expr, Size, const, floordiv, modulo
from pdojo.dialect.element_types import ELEMENT_TYPES, WIDE
from pdojo.dialect.lookups import sizes_in
from pdojo.dialect.notation.lexer import Cursor, Token, TokenKind, tokenize
from pdojo.dialect.notation.source import Source, did_you_mean, element_type_hint
from pdojo.dialect.sizes import size_problem, value_problem
from pdojo.dialect.text_limits import MOST_DIGITS, MOST_NESTED
from pdojo.errors import UsageError

KEYWORDS = ("size", "number", "type")
"""First words of the lines that define names."""

_WIDE = {**WIDE, "i8": "i32"}
"""`wide(T)`: the type in which values of a short type are computed and summed; other types are wide enough."""

LARGEST = 10**MOST_DIGITS
"""Largest integer value of a name."""

ValueT = TypeVar("ValueT", "float | Expr", str)
Number: TypeAlias = float | Expr
"""An integer, another number, or an expression of sizes that are known at run time."""
Value: TypeAlias = Number | str
"""A number, or the name of an element type."""
Given: TypeAlias = Mapping[str, float | str | range]
"""Values for parameters: integers or ranges for sizes, numbers, names of element types.

A size is known at run time if its range is given: `range(8, 2049, 8)` is `in 8..2048 multiple 8`.
"""


@dataclass
class Names:
    """The names of a text and their values."""

    given: Given = field(default_factory=dict[str, float | str | range])
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
        if isinstance(value, Expr):
            self._check_expression(cursor, keyword, name.text, value)
        if isinstance(value, int) and abs(value) > LARGEST:
            raise cursor.error(f"'{name.text}' is too large for a number", span=start.span.to(cursor.previous.span))
        if keyword == "size" and isinstance(value, int) and value < 0:
            span = start.span.to(cursor.previous.span)
            raise cursor.error(f"the size {name.text} is {value}, less than 0{self._stated()}", span=span)
        self.values[name.text] = value

    def _check_expression(self, cursor: Cursor, keyword: str, name: str, value: Expr) -> None:
        """Check a name that depends on sizes known at run time; raises NotationError."""
        if keyword != "size":
            raise cursor.error(f"the {keyword} '{name}' depends on {sizes_in([value])[0].name}, known at run time only")
        if value.bounds(())[0] < 0:
            raise cursor.error(f"the size {name} may be {value.bounds(())[0]}, less than 0")

    @property
    def ranges(self) -> dict[str, Size]:
        """The sizes for which a range is given, keyed by name."""
        found = {
            size.name: size for value in self.values.values() if isinstance(value, Expr) for size in sizes_in([value])
        }
        return {name: found[name] for name in self.parameters if name in found}

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
        found = [[token] for token in tokens]
        for position, token in enumerate(tokens):
            if token.kind is TokenKind.WORD and token.text in self.values:
                value = self.values[token.text]
                behind_colon = position > 0 and tokens[position - 1].text == ":"
                if isinstance(value, str) or not behind_colon:
                    found[position] = _tokens(token, value)
        return Cursor(cursor.source, [each for new in found for each in new])

    def check_given(self) -> None:
        """Check that the text defines every given name; raises UsageError."""
        for name in self.given:
            if name in self.values and name not in self.parameters:
                raise UsageError(f"'{name}' follows from other sizes and cannot be given")
            if name not in self.parameters:
                raise UsageError(f"there is no size '{name}'; {did_you_mean(name, self.parameters)}")

    def _given(self, name: str, keyword: str, default: Value) -> Value:
        value = self.given.get(name, default)
        if isinstance(value, range):
            return self._range(name, keyword, value)
        if keyword == "type" and value not in ELEMENT_TYPES:
            raise UsageError(f"unknown element type '{value}' for '{name}'; {element_type_hint(str(value))}")
        if keyword == "size" and (not isinstance(value, int) or value < 0):
            raise UsageError(f"the size '{name}' is an integer of at least 0, not {value}")
        if keyword == "number" and isinstance(value, str):
            raise UsageError(f"'{name}' is a number, not '{value}'")
        return value

    def _range(self, name: str, keyword: str, given: range) -> Expr:
        """The size of a given range. Raises UsageError if it is not one of a size."""
        if keyword != "size" or not given or given.step < 1:
            raise UsageError(f"'{name}' cannot be {given}: a size has an ascending range with a value")
        size = Size(name, given[0], given[-1], given.step)
        if (problem := size_problem(size)) is not None:
            raise UsageError(f"'{name}' cannot be {given}: {problem}")
        return size.expression

    def _stated(self) -> str:
        """The parameters so far, for messages."""
        plain = {n: self.values[n] for n in self.parameters if not isinstance(self.values[n], Expr)}
        stated = ", ".join(f"{n} = {value}" for n, value in plain.items())
        return f" for {stated}" if stated else ""

    def _value(self, cursor: Cursor, keyword: str) -> Value:
        if keyword == "type":
            return self._type(cursor)
        value = self._sum(cursor)
        if keyword == "size" and not isinstance(value, int | Expr):
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

    def _sum(self, cursor: Cursor) -> Number:
        value = self._product(cursor)
        while cursor.at("+") or cursor.at("-"):
            sign = cursor.advance()
            other = self._product(cursor)
            value = self._joined(cursor, sign, value, other)
        return value

    def _product(self, cursor: Cursor) -> Number:
        value = self._factor(cursor)
        while any(cursor.at(sign) for sign in ("*", "/", "//", "%")):
            sign = cursor.advance()
            other = self._factor(cursor)
            if sign.text != "*" and other in (0, const(0)):
                raise cursor.error("division by zero", span=sign.span)
            value = self._joined(cursor, sign, value, other)
        return value

    def _joined(self, cursor: Cursor, sign: Token, value: Number, other: Number) -> Number:
        """The result of an operation."""
        if isinstance(value, Expr) or isinstance(other, Expr):
            return self._joined_sizes(cursor, sign, _expression(value), _expression(other))
        match sign.text:
            case "+":
                return value + other
            case "-":
                return value - other
            case "*":
                return value * other
            case "//":
                return value // other
            case "%":
                return value % other
            case _ if isinstance(value, int) and isinstance(other, int):
                # Sizes must divide without a remainder; rounding would change the program.
                if value % other:
                    hint = "// rounds down"
                    raise cursor.error(f"{value} is no multiple of {other}{self._stated()}", hint, sign.span)
                return value // other
            case _:
                return value / other

    def _joined_sizes(self, cursor: Cursor, sign: Token, value: Expr | None, other: Expr | None) -> Expr:
        """The result of an operation on expressions of sizes known at run time; None stands for a broken number."""
        if value is None or other is None:
            raise cursor.error("a size known at run time is no part of a broken number", span=sign.span)
        if sign.text in "+-":
            return value + other if sign.text == "+" else value - other
        if sign.text == "*" and value.is_constant:
            value, other = other, value
        if not other.is_constant or (sign.text != "*" and other.constant < 1):
            raise cursor.error(f"the result of '{sign.text}' is not linear in sizes known at run time", span=sign.span)
        number = other.constant
        if sign.text == "*":
            return value * number
        if sign.text == "/" and modulo(value, number, ()) != const(0):
            raise cursor.error(
                f"{value.render(str)} is no multiple of {number} for all sizes", "// rounds down", sign.span
            )
        return modulo(value, number, ()) if sign.text == "%" else floordiv(value, number, ())

    def _factor(self, cursor: Cursor) -> Number:
        if cursor.accept("-"):
            return self._inside(cursor, self._factor) * -1
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
            case TokenKind.WORD if isinstance(self.values.get(token.text), int | float | Expr):
                value = self.values[cursor.advance().text]
                assert not isinstance(value, str)
                return value
            case _:
                numbers = [name for name, value in self.values.items() if not isinstance(value, str)]
                raise cursor.error("expected a number or the name of one", did_you_mean(token.text, numbers))


def _expression(value: Number) -> Expr | None:
    """A number as an expression of sizes; None for a number that is no integer."""
    if isinstance(value, Expr):
        return value
    return const(value) if isinstance(value, int) else None


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


def _tokens(token: Token, value: Value) -> list[Token]:
    """The tokens for a value in place of its name."""
    if isinstance(value, str):
        return [replace(token, text=value)]
    if isinstance(value, Expr):
        if value.is_primary:
            return [replace(token, text=value.render(str))]
        text = Source(f"({value.render(str)})", "")
        return [replace(each, span=token.span) for each in tokenize(text, 0) if each.kind is not TokenKind.END]
    return [replace(token, kind=TokenKind.INTEGER if isinstance(value, int) else TokenKind.FLOAT, text=repr(value))]

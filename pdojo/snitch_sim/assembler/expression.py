"""Constant expressions of assembly text, with the operators and the precedence of GNU as.

Operators by precedence, the tightest first: `-` `~` `+` before a value; `*` `/` `%` `<<` `>>`; `|` `&` `^`; `+` `-`.
Unlike in C, `1 + 2 | 4` is `1 + (2 | 4)`. Numbers are signed 64-bit integers; divisions round towards zero.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from pdojo.errors import AssemblyError

Symbols = Callable[[str], int | None]
"""A function from a symbol to its value; None if it has no value."""

_TOKEN = re.compile(
    r"\s*(?P<token>0[xX][0-9a-fA-F]+(?![\w.$])|0[bB][01]+(?![\w.$])|\d+[bf](?![\w.$])|\d+(?![\w.$])"
    r"|%hi|%lo|[A-Za-z_.$][\w.$]*|<<|>>|[-+*/%|&^~()])"
)
_LEVELS = (("+", "-"), ("|", "&", "^"), ("*", "/", "%", "<<", ">>"))
"""Operators between two values, the loosest level first."""
_DEEPEST = 64
"""Largest nesting depth of signs and parentheses."""
_DIGITS = 70
"""Longest number in characters; 64 bits need fewer."""
_LEAST, _MOST = -(1 << 63), (1 << 64) - 1


def evaluate(text: str, symbols: Symbols, error: Callable[[str], AssemblyError]) -> int:
    """The value of an expression: numbers, symbols, `%hi(...)`, `%lo(...)`, and operators.

    Raises `error(message)` for malformed text, symbols without a value, divisions by zero, shifts by less than 0 or
    more than 63 bits, right shifts of negative numbers, and values that do not fit 64 bits.
    """
    return _ExpressionParser(text, symbols, error).whole()


def number(text: str) -> int | None:
    """The value of an expression without symbols; None for an expression with symbols, or malformed text."""
    try:
        return evaluate(text, lambda _: None, AssemblyError)
    except AssemblyError:
        return None


@dataclass
class _ExpressionParser:
    text: str
    symbols: Symbols
    error: Callable[[str], AssemblyError]

    def __post_init__(self) -> None:
        self.at = 0
        self.depth = 0
        self.token = ""
        self._next()

    def whole(self) -> int:
        value = self._level(0)
        if self.token == ")":
            raise self.error(f"'{self._shown}' has a ')' without '('")
        if self.token:
            raise self.error(f"an operator is missing before '{self.token}' in '{self._shown}'")
        return value

    @property
    def _shown(self) -> str:
        text = self.text.strip()
        return text if len(text) <= 60 else f"{text[:57]}..."

    def _next(self) -> None:
        """Move to the next token; at the end it is empty."""
        match = _TOKEN.match(self.text, self.at)
        if match is None:
            rest = self.text[self.at :].strip()
            if rest:
                raise self.error(f"'{self._shown}' is no number, symbol or expression of these")
            self.token = ""
            return
        self.token, self.at = match["token"], match.end()

    def _level(self, level: int) -> int:
        """The value of operands joined by a level's operators, from left to right."""
        if level == len(_LEVELS):
            return self._signed()
        value = self._level(level + 1)
        while self.token in _LEVELS[level]:
            operator = self.token
            self._next()
            value = self._checked(self._joined(operator, value, self._level(level + 1)))
        return value

    def _joined(self, operator: str, a: int, b: int) -> int:
        if operator in ("/", "%"):
            if b == 0:
                raise self.error(f"'{self._shown}' divides by zero")
            quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
            return quotient if operator == "/" else a - b * quotient
        if operator in ("<<", ">>"):
            if not 0 <= b < 64:
                raise self.error(f"'{self._shown}' shifts by {b} bits, not by 0 to 63")
            if operator == ">>" and a < 0:
                raise self.error(f"'{self._shown}' shifts the negative number {a} to the right")
            return a << b if operator == "<<" else a >> b
        return _JOINED[operator](a, b)

    def _signed(self) -> int:
        """The value of an operand with any number of signs."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.error(f"'{self._shown}' has more than {_DEEPEST} signs and parentheses inside each other")
        token = self.token
        if token in ("-", "+", "~"):
            self._next()
            value = self._signed()
            value = self._checked(-value if token == "-" else ~value if token == "~" else value)
        else:
            value = self._value()
        self.depth -= 1
        return value

    def _value(self) -> int:
        token = self.token
        if not token or token in (")", *(o for level in _LEVELS for o in level)):
            found = f"'{token}'" if token else "the end"
            raise self.error(f"a number or symbol is missing before {found} in '{self._shown}'")
        self._next()
        if token == "(":
            return self._parenthesised()
        if token in ("%hi", "%lo"):
            return self._part(token)
        if (token[0].isdigit() and token[-1] not in "bf") or (token[:2].lower() in ("0x", "0b") and len(token) > 2):
            return self._number(token)
        value = self.symbols(token)
        if value is None:
            raise self.error(f"there is no label '{token}'")
        return value

    def _parenthesised(self) -> int:
        """The value up to the closing parenthesis."""
        value = self._level(0)
        if self.token != ")":
            raise self.error(f"'{self._shown}' lacks a ')'")
        self._next()
        return value

    def _part(self, which: str) -> int:
        if self.token != "(":
            raise self.error(f"'{which}' stands before parentheses")
        self._next()
        whole = self._parenthesised()
        low = (whole + 0x800 & 0xFFF) - 0x800
        return low if which == "%lo" else (whole - low) >> 12 & 0xFFFFF

    def _number(self, token: str) -> int:
        if len(token) > _DIGITS:
            raise self.error(f"a number of {len(token)} digits does not fit 64 bits")
        if token.isdigit():
            if token[0] == "0" and token.strip("0"):
                raise self.error(f"'{token}' is octal for other assemblers; write it without the 0")
            return self._checked(int(token))
        return self._checked(int(token, 0))

    def _checked(self, value: int) -> int:
        if not _LEAST <= value <= _MOST:
            raise self.error(f"'{self._shown}' does not fit 64 bits")
        return value


_JOINED: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "|": lambda a, b: a | b,
    "&": lambda a, b: a & b,
    "^": lambda a, b: a ^ b,
}

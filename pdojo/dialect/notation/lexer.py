"""Tokens of the notation, line by line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto

from pdojo.dialect.notation.source import Source, Span
from pdojo.dialect.text_limits import MOST_DIGITS
from pdojo.errors import NotationError


class TokenKind(Enum):
    """Kinds of tokens."""

    INTEGER = auto()
    FLOAT = auto()
    WORD = auto()
    """A name or a keyword; dots are allowed inside, as in `arith.addf`."""
    ITERATION = auto()
    """`{k}`."""
    STRING = auto()
    SIGN = auto()
    END = auto()
    """The end of the line."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token; `text` of a string is its content."""

    kind: TokenKind
    text: str
    span: Span


_TOKEN = re.compile(
    r"""
      (?P<BLANK>\s+|\#.*)
    | (?P<FLOAT>\d+\.(?!\.)\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)
    | (?P<INTEGER>\d+)
    | (?P<WORD>[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*)
    | (?P<ITERATION>\{\s*\d+\s*\})
    | (?P<STRING>"(?:[^"\\]|\\.)*+")
    | (?P<SIGN>->|\.\.|<<|>>|<=|>=|==|!=|//|[-+*/%&|^<>=()\[\],:!?])
    """,
    re.VERBOSE | re.ASCII,
)


def tokenize(source: Source, line: int) -> list[Token]:
    """The tokens of one line without comments; the last one is the end. Raises NotationError."""
    text = source.lines[line]
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _no_token(source, line, position)
        kind, span = match.lastgroup, Span(line, position, match.end() - position)
        position = match.end()
        if kind == "BLANK":
            continue
        tokens.append(Token(TokenKind[kind or ""], _content(kind, match.group()), span))
        if kind in ("INTEGER", "FLOAT", "ITERATION"):
            _check_number(source, tokens[-1], text)
    tokens.append(Token(TokenKind.END, "", Span(line, len(text.rstrip()), 1)))
    return tokens


def _content(kind: str | None, text: str) -> str:
    if kind == "STRING":
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    if kind == "ITERATION":
        return text[1:-1].strip()
    return text


def _check_number(source: Source, token: Token, line: str) -> None:
    """Check that Python can read the digits of a number, and that no word follows it directly: `16v` is no scope."""
    if len(token.text) > MOST_DIGITS:
        raise source.error(token.span, f"a number has at most {MOST_DIGITS} digits, not {len(token.text)}")
    if token.kind is TokenKind.ITERATION:
        return
    rest = re.match(r"[A-Za-z0-9_.]+", line[token.span.column + token.span.width :])
    if rest is None or rest.group().startswith(".."):
        return
    span = Span(token.span.line, token.span.column, token.span.width + len(rest.group()))
    hint = f"a mapping follows a colon: {token.text}:{rest.group()}" if len(rest.group()) == 1 else ""
    raise source.error(span, f"'{token.text}{rest.group()}' is no number", hint)


def _no_token(source: Source, line: int, position: int) -> NotationError:
    text = source.lines[line]
    span = Span(line, position, 1)
    if text[position] == '"':
        return source.error(span, "the string is not closed")
    if text[position] == "{":
        end = text.find("}", position)
        span = Span(line, position, (end if end >= 0 else len(text) - 1) - position + 1)
        hint = "{0} is the iteration of the outermost scope, {1} of the next one"
        return source.error(span, "an iteration is written {k} with the depth k of its scope", hint)
    return source.error(span, f"unexpected character '{text[position]}'")


class Cursor:
    """A position in the tokens of one line."""

    def __init__(self, source: Source, tokens: list[Token]) -> None:
        self.source = source
        self.tokens = tokens
        self.position = 0

    @property
    def token(self) -> Token:
        """The next token."""
        return self.tokens[self.position]

    @property
    def previous(self) -> Token:
        """The last token read."""
        return self.tokens[max(0, self.position - 1)]

    @property
    def at_end(self) -> bool:
        """Whether the whole line has been read."""
        return self.token.kind is TokenKind.END

    def peek(self, ahead: int) -> Token:
        """The token `ahead` places after the next one; the end of the line if there is none."""
        return self.tokens[min(self.position + ahead, len(self.tokens) - 1)]

    def at(self, sign: str, ahead: int = 0) -> bool:
        """Whether the token is the sign."""
        token = self.peek(ahead)
        return token.kind is TokenKind.SIGN and token.text == sign

    def at_word(self, word: str, ahead: int = 0) -> bool:
        """Whether the token is the word."""
        token = self.peek(ahead)
        return token.kind is TokenKind.WORD and token.text == word

    def advance(self) -> Token:
        """Read the next token."""
        token = self.token
        if token.kind is not TokenKind.END:
            self.position += 1
        return token

    def accept(self, sign: str) -> bool:
        """Read the sign if it is next."""
        if not self.at(sign):
            return False
        self.position += 1
        return True

    def expect(self, sign: str, context: str) -> Token:
        """Read the sign; `context` says where it belongs."""
        if not self.at(sign):
            raise self.error(f"expected '{sign}' {context}")
        return self.advance()

    def expect_kind(self, kind: TokenKind, what: str) -> Token:
        """Read a token of a kind; `what` names it in the error."""
        if self.token.kind is not kind:
            raise self.error(f"expected {what}")
        return self.advance()

    def expect_end(self, context: str) -> None:
        """Check that the line ends here."""
        if not self.at_end:
            raise self.error(f"unexpected '{self.token.text}' {context}")

    def error(self, message: str, hint: str = "", span: Span | None = None) -> NotationError:
        """An error at the next token, or at `span`."""
        return self.source.error(span or self.token.span, message, hint)

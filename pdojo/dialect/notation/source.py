"""Text of a notation file with positions, and the errors that point into it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from pdojo.dialect.functions import DTYPES, is_float
from pdojo.errors import NotationError


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of one line; `line` and `column` count from 0."""

    line: int
    column: int
    width: int

    def to(self, last: Span) -> Span:
        """From the start of this piece to the end of `last`, which is on the same line."""
        return Span(self.line, self.column, max(1, last.column + last.width - self.column))


class Source:
    """A text and the name under which errors report it."""

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        self.lines = text.splitlines() or [""]

    def piece(self, span: Span) -> str:
        """The text of a span."""
        return self.lines[span.line][span.column : span.column + span.width]

    def error(self, span: Span, message: str, hint: str = "") -> NotationError:
        """The error `name:line:column: error: message` with the line, a caret and a hint."""
        line = self.lines[span.line] if span.line < len(self.lines) else ""
        number = str(span.line + 1)
        # Characters that could steer a terminal are not shown; tabs stay tabs, so that the caret is below its place.
        line = "".join(c if c.isprintable() or c == "\t" else "\ufffd" for c in line)
        padding = "".join("\t" if c == "\t" else " " for c in line[: span.column])
        parts = [
            f"{self.name}:{number}:{span.column + 1}: error: {message}",
            f"  {number} | {line}",
            f"  {' ' * len(number)} | {padding}{'^' * span.width}",
        ]
        if hint:
            parts.append(f"hint: {hint}")
        return NotationError("\n".join(parts))


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`did you mean 'x'?` for the closest known word, else `known: a, b, c`; empty if nothing is known.

    The word itself is never suggested: if it is known, something else is wrong with it.
    """
    names = [name for name in known if name != word]
    close = get_close_matches(word, names, n=1, cutoff=0.5)
    if close:
        return f"did you mean '{close[0]}'?"
    return f"known: {', '.join(names)}" if names else ""


def element_type_hint(word: str) -> str:
    """`did_you_mean` for an element type: a word with the first letters of a kind of numbers is one of that kind."""
    kinds = {"f": is_float, "bf": is_float, "i": _is_integer, "u": _is_integer}
    of_kind = next((kind for first, kind in kinds.items() if word.startswith(first)), None)
    return did_you_mean(word, filter(of_kind, DTYPES) if of_kind is not None else DTYPES)


def _is_integer(dtype: str) -> bool:
    return not is_float(dtype)

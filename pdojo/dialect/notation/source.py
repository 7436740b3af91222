"""Text of a notation file with positions, and the errors that point into it."""

from __future__ import annotations

from dataclasses import dataclass

from pdojo.dialect.element_types import ELEMENT_TYPES, is_float
from pdojo.errors import NotationError, did_you_mean


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
        # Control characters are not shown, because they could steer a terminal; tabs stay tabs to align the caret.
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


def element_type_hint(word: str) -> str:
    """`did_you_mean` for an element type: a word that starts like a kind of numbers gets a type of that kind."""
    kinds = {"f": is_float, "bf": is_float, "i": _is_integer, "u": _is_integer}
    of_kind = next((kind for first, kind in kinds.items() if word.startswith(first)), None)
    return did_you_mean(word, filter(of_kind, ELEMENT_TYPES) if of_kind is not None else ELEMENT_TYPES)


def _is_integer(dtype: str) -> bool:
    return not is_float(dtype)

"""Programs and differences as lines in the terminal's sixteen colours; no meaning depends on colour alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeAlias

from pdojo_tools.playing.page import Changes, Marks, Page
from rich.text import Text

Painter: TypeAlias = Callable[[int], Text]
"""Returns the line with the given number."""

_TOKEN = re.compile(
    r"(?P<keyword>^(?:kernel|arguments|numerics|machine)\b|\bwhere\b)"
    r"|(?P<iteration>\{\d+\})"
    r"|(?P<mapping>(?<=\d):[A-Za-z]\w*(?:\([^)]*\))?)"
    r"|(?P<type>\b(?:[iu]\d+|b?f\d+|f8\w+)\b)"
    r"|(?P<memory>\b(?:heap|stack|shared|register)\b)"
    r"|(?P<function>\b[A-Za-z_][\w.]*(?=\())"
    r"|(?P<array>\b[A-Za-z_]\w*(?=\[))"
    r"|(?P<bar>\|)"
)
_STYLES = {
    "keyword": "bold",
    "iteration": "cyan",
    "mapping": "bold magenta",
    "type": "green",
    "memory": "green",
    "function": "yellow",
    "array": "bold",
    "bar": "bright_black",
}


def notation(line: str) -> Text:
    """A line of the notation in colours."""
    text = Text(line)
    for match in _TOKEN.finditer(line):
        text.stylize(_STYLES[str(match.lastgroup)], *match.span())
    return text


def program_painter(page: Page, changes: Changes, marks: Marks) -> Painter:
    """A painter of programs with marks before the lines.

    `+` marks a changed line, `-` deleted lines above, `>` the move's location, `:` its inside or uses.
    """

    def paint(number: int) -> Text:
        change = "+" if number in changes.changed else "-" if number in changes.below_gap else " "
        mark = ">" if number in marks.head else ":" if number in marks.part else " "
        line = Text.assemble((change, "bold green"), (mark, "bold yellow"), " ", notation(page.lines[number]))
        if mark != " ":
            line.stylize("reverse" if mark == ">" else "underline", 3)
        return line

    return paint


def difference_painter(lines: Sequence[str]) -> Painter:
    """A painter of a difference."""

    def paint(number: int) -> Text:
        line = lines[number]
        style = {"+": "green", "-": "red"}.get(line[:1], "")
        return Text(line, style)

    return paint


def plain_painter(lines: Sequence[str]) -> Painter:
    """A painter without colours."""
    return lambda number: Text(lines[number])

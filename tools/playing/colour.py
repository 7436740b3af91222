"""Programs and differences as lines in the terminal's own sixteen colours; nothing is said by colour alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeAlias

from pdojo_tools.playing.page import Changes, Marks, Page
from rich.text import Text

Painter: TypeAlias = Callable[[int], Text]
"""The line with that number."""

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
    """A line of a program in the notation."""
    text = Text(line)
    for match in _TOKEN.finditer(line):
        text.stylize(_STYLES[str(match.lastgroup)], *match.span())
    return text


def program_painter(page: Page, changes: Changes, marks: Marks) -> Painter:
    """A program with marks before its lines.

    `+` is changed, `-` has lost lines above it, `>` is what a move names, `:` is part of that or uses it.
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
    """Lines of a diff."""

    def paint(number: int) -> Text:
        line = lines[number]
        style = {"+": "green", "-": "red"}.get(line[:1], "")
        return Text(line, style)

    return paint


def plain_painter(lines: Sequence[str]) -> Painter:
    """Lines as they are."""
    return lambda number: Text(lines[number])

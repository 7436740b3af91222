"""Assembly text as statements: labels, a mnemonic or directive, operands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from pdojo.errors import AssemblyError

_LABEL = re.compile(r"\s*([A-Za-z_.$][\w.$]*|\d+)\s*:")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_BLOCK = re.compile(r"/\*.*?\*/", re.DOTALL)
_LONG_NUMBER = re.compile(r"[0-9a-fA-F]{401}")


@dataclass(frozen=True, slots=True)
class Statement:
    """A line, or one statement of a line."""

    source: str
    """The name of the text in messages."""
    line: int
    text: str
    labels: tuple[str, ...]
    name: str
    """Mnemonic or directive in lower case; empty if the line has only labels."""
    operands: tuple[str, ...]

    def error(self, message: str) -> AssemblyError:
        """An error at this line."""
        return AssemblyError(f"{self.source}:{self.line}:1: error: {message}\n  {self.text}")


def statements(text: str, source: str) -> Iterator[Statement]:
    """The statements of a text, in order. Comments begin with `#` or `//`, or are enclosed in `/*` and `*/`.

    Raises AssemblyError for a number that is too long.
    """
    text = _BLOCK.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)
    for number, line in enumerate(text.splitlines(), 1):
        if _LONG_NUMBER.search(line):
            raise AssemblyError(f"{source}:{number}:1: error: a number has more than 400 digits")
        for part in _parts(line):
            labels: list[str] = []
            rest = part
            while match := _LABEL.match(rest):
                labels.append(match.group(1))
                rest = rest[match.end() :]
            name, _, operands = rest.strip().partition(" ") if "\t" not in rest.strip() else _at_blank(rest.strip())
            if name or labels:
                yield Statement(source, number, part.strip(), tuple(labels), name.lower(), _split(operands))


def _at_blank(text: str) -> tuple[str, str, str]:
    head, *tail = re.split(r"\s+", text, maxsplit=1)
    return head, " ", tail[0] if tail else ""


def _parts(line: str) -> Iterator[str]:
    """The statements of a line without its comments, split at `;` outside of quotes."""
    masked = _QUOTED.sub(lambda m: '"' * len(m.group()), line)
    for mark in ("#", "//"):
        at = masked.find(mark)
        if at >= 0:
            masked, line = masked[:at], line[:at]
    start = 0
    for match in re.finditer(";|$", masked):
        yield line[start : match.start()]
        start = match.end()


def _split(operands: str) -> tuple[str, ...]:
    if not operands.strip():
        return ()
    masked = _QUOTED.sub(lambda m: '"' * len(m.group()), operands)
    cuts = [-1, *(m.start() for m in re.finditer(",", masked)), len(operands)]
    return tuple(operands[a + 1 : b].strip() for a, b in pairwise(cuts))

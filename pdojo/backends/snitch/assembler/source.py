"""Assembly text as statements: labels, a mnemonic or directive, operands. And expressions over labels."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from pdojo.errors import AssemblyError

_LABEL = re.compile(r"\s*([A-Za-z_.$][\w.$]*|\d+)\s*:")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_BLOCK = re.compile(r"/\*.*?\*/", re.DOTALL)
_TERM = re.compile(
    r"\s*(?:(?P<number>0[xX][0-9a-fA-F]+|0[bB][01]+(?![\w.$])|\d+(?![\w.$]))"
    r"|(?P<part>%hi|%lo)\s*\(|(?P<symbol>[A-Za-z_.$][\w.$]*|\d+[bf]))"
)


@dataclass(frozen=True, slots=True)
class Statement:
    """A line, or a part of one."""

    source: str
    """What the text is called in messages."""
    line: int
    text: str
    labels: tuple[str, ...]
    name: str
    """Mnemonic or directive in lower case; empty where there are only labels."""
    operands: tuple[str, ...]

    def error(self, message: str) -> AssemblyError:
        """An error at this line."""
        return AssemblyError(f"{self.source}:{self.line}:1: error: {message}\n  {self.text}")


def statements(text: str, source: str) -> Iterator[Statement]:
    """The statements of a text, in order. Comments begin with `#` or `//`, or stand between `/*` and `*/`."""
    text = _BLOCK.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)
    for number, line in enumerate(text.splitlines(), 1):
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
    """The statements of one line: without comments, parted at `;`. Quoted text stays whole."""
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


def number(text: str) -> int | None:
    """The value of a number as written; None where it is none."""
    match = re.fullmatch(r"([+-]?)\s*(0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)", text.strip())
    if match is None:
        return None
    value = int(match.group(2), 0) if not match.group(2).isdigit() else int(match.group(2))
    return -value if match.group(1) == "-" else value


def evaluate(text: str, symbols: Callable[[str], int | None], error: Callable[[str], AssemblyError]) -> int:
    """The value of an expression: numbers, symbols, `%hi(...)`, `%lo(...)`, added and subtracted."""
    value, at, sign = 0, 0, 1
    stripped = text.strip()
    if stripped[:1] in "+-" and stripped:
        sign, at = (-1 if stripped[0] == "-" else 1), 1
    while True:
        match = _TERM.match(stripped, at)
        if match is None:
            raise error(f"'{text}' is no number, symbol or sum of these")
        at = match.end()
        if match["number"] is not None:
            term = int(match["number"], 0) if not match["number"].isdigit() else int(match["number"])
        elif match["part"] is not None:
            close = stripped.find(")", at)
            if close < 0:
                raise error(f"'{text}' lacks a ')'")
            whole = evaluate(stripped[at:close], symbols, error)
            low = (whole + 0x800 & 0xFFF) - 0x800
            term = low if match["part"] == "%lo" else (whole - low) >> 12 & 0xFFFFF
            at = close + 1
        else:
            found = symbols(match["symbol"])
            if found is None:
                raise error(f"there is no label '{match['symbol']}'")
            term = found
        value += sign * term
        rest = stripped[at:].lstrip()
        if not rest:
            return value
        if rest[0] not in "+-":
            raise error(f"'{text}' is no number, symbol or sum of these")
        sign = -1 if rest[0] == "-" else 1
        at = len(stripped) - len(rest) + 1


def lookup(tables: Mapping[str, int]) -> Callable[[str], int | None]:
    """Symbols from a table."""
    return tables.get

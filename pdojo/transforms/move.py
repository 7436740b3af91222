"""Moves as data: a transformation's name, a location and parameters; they parse, print, hash and sort."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from pdojo.errors import IllegalMove

Param: TypeAlias = int | str
"""Value of a move's parameter."""

_QUOTED = r"\"(?:[^\"\\]|\\.)*+\""
"""A quoted text; a backslash precedes each quote or backslash in it, and `\\n` is a line break."""
_MOVE = re.compile(
    rf"\s*(?P<name>[a-z_]\w*)\s*@\s*(?P<at>[^\s{{,]+)\s*(?:\{{(?P<params>(?:[^{{}}\"]|{_QUOTED})*)\}})?\s*", re.DOTALL
)
_PARAM = re.compile(rf"\s*(?P<key>[a-z_]\w*)\s*=\s*(?:(?P<text>{_QUOTED})|(?P<word>[^\s,\"]+))\s*,?", re.DOTALL)
_PIECE = re.compile(rf"{_QUOTED}|.", re.DOTALL)
_NUMBER = re.compile(r"-?[0-9]{1,18}")
_WORD = re.compile(r"[^\s,{}\"]+")
_FORM = "name@location or name@location{parameter=value ...}, for example tile_scope@t#1:0{size=16}"


@dataclass(frozen=True, order=True, slots=True)
class Move:
    """One transformation at one location."""

    name: str
    at: str
    """A location (`pdojo.dialect.view.locations`): `t:0`, `s#1:0`, `t`, or `%id` for a node by its identifier."""
    params: tuple[tuple[str, Param], ...] = ()
    """Parameters in declaration order, defaults left out."""

    def __str__(self) -> str:
        if not self.params:
            return f"{self.name}@{self.at}"
        return f"{self.name}@{self.at}{{{' '.join(f'{k}={_spell(v)}' for k, v in self.params)}}}"

    @staticmethod
    def parse(text: str) -> Move:
        """Parse one move. Raises IllegalMove with the position if the text is malformed."""
        match = _MOVE.fullmatch(text)
        if match is None:
            raise IllegalMove(f"'{text.strip()}' is not a move; write {_FORM}")
        return Move(match["name"], match["at"], tuple(_parse_params(text, match["params"] or "")))

    def moved_to(self, at: str) -> Move:
        """The same move at another location."""
        return replace(self, at=at)


def _spell(value: Param) -> str:
    if isinstance(value, str) and (not _WORD.fullmatch(value) or _NUMBER.fullmatch(value)):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return f'"{escaped}"'
    return str(value)


def _parse_params(move: str, text: str) -> Iterator[tuple[str, Param]]:
    position = 0
    seen: set[str] = set()
    while position < len(text.rstrip()):
        match = _PARAM.match(text, position)
        if match is None:
            raise IllegalMove(
                f"'{move.strip()}': cannot read the parameters at '{text[position:].strip()}'; write {_FORM}"
            )
        if match["key"] in seen:
            raise IllegalMove(f"'{move.strip()}': parameter '{match['key']}' is given twice")
        seen.add(match["key"])
        yield match["key"], _value(match["word"], match["text"])
        position = match.end()


def _value(word: str | None, text: str) -> Param:
    """The value of a bare word, or of a quoted text if `word` is None."""
    if word is None:
        return re.sub(r"\\(.)", lambda match: "\n" if match[1] == "n" else match[1], text[1:-1], flags=re.DOTALL)
    return int(word) if _NUMBER.fullmatch(word) else word


def parse_moves(text: str) -> list[Move]:
    """Parse a comma-separated list of moves; commas inside braces or quotes do not separate."""
    return [Move.parse(piece) for piece in split_outside(text, ",")]


def split_outside(text: str, separator: str) -> list[str]:
    """Split a text at a character outside of braces and quotes. Raises IllegalMove for a quote that is not closed."""
    pieces = [""]
    depth = 0
    for match in _PIECE.finditer(text):
        piece = match.group()
        if piece == '"':
            raise IllegalMove(f"a quote is not closed: {text[match.start() :][:60]}")
        depth += (piece == "{") - (piece == "}")
        if piece == separator and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += piece
    return pieces

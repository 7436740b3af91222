"""Tokens of programs for `text-small`: those of the notation, with names, numbers and rare words made general.

| in the text | tokens |
| --- | --- |
| the name of the kernel | none |
| the name of an array | `@k`: the k-th name of the program, by first appearance |
| an integer up to 64 | the integer |
| a larger one | its power of two, then its odd part: 24576 is `2^13*` `3`, 4096 is `2^12` |
| an odd part above 64, any other number | `digits` or `number`, and its characters |
| an iteration | `{k}` |
| a sign, a bar, a word of the notation | itself |
| any other word, a string | `word` or `string`, and its bytes |

So equal programs with other names have equal tokens, and programs that differ otherwise do not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import TypeAlias

from pdojo.dialect.analysis.hints import ACCESS_HINTS, BUFFER_HINTS, SCOPE_HINTS
from pdojo.dialect.attributes import Mapping, Memory, Numerics
from pdojo.dialect.functions import DTYPES
from pdojo.dialect.notation.lexer import Kind, Token, tokenize
from pdojo.dialect.notation.source import Source
from pdojo.dialect.notation.spelling import call_names

Line: TypeAlias = tuple[int, ...]
"""The tokens of a line, as numbers."""

MOST = 64
"""Largest integer, and number of names, that have tokens of their own."""
DEEPEST = 32
"""Number of iterations that have tokens of their own."""
KEYWORDS = "kernel arguments numerics machine align where index none inf nan true false async N"
SIGNS = "-> << >> <= >= == != // - + * / % & | ^ < > = ( ) [ ] , : !"
_MARKS = ("digits", "number", "word", "string", "name", "iteration")

_Part: TypeAlias = int | str
"""A token's number, or the name of an array."""


@lru_cache(maxsize=1)
def vocabulary() -> dict[str, int]:
    """All tokens with their numbers. Number 0 is padding, and in no line."""
    words = [
        *KEYWORDS.split(), *DTYPES, *Mapping, *Memory, *Numerics,
        *ACCESS_HINTS, *SCOPE_HINTS, *BUFFER_HINTS, *call_names(),
    ]  # fmt: skip
    tokens = [
        "padding",
        *(f"mark {mark}" for mark in _MARKS),
        *(f"byte {value}" for value in range(256)),
        *map(str, range(MOST + 1)),
        *(f"2^{power}{more}" for power in range(1, MOST) for more in ("", "*")),
        *(f"@{k}" for k in range(MOST)),
        *(f"{{{k}}}" for k in range(DEEPEST)),
        *SIGNS.split(),
        *(f"word {word}" for word in dict.fromkeys(map(str, words))),
    ]
    return {token: number for number, token in enumerate(tokens)}


@lru_cache(maxsize=1)
def vocabulary_digest() -> str:
    """Identifies the tokens and their numbers, which depend on the functions that the dialect has."""
    return sha256("\n".join(vocabulary()).encode()).hexdigest()[:16]


def lines_of(text: str) -> list[Line]:
    """The tokens of a program in canonical notation, line by line without empty ones. Raises NotationError."""
    names: dict[str, int] = {}
    found: list[Line] = []
    for line in text.splitlines():
        parts = _parts(line)
        if parts:
            found.append(tuple(n for part in parts for n in _numbers(part, names)))
    return found


def _numbers(part: _Part, names: dict[str, int]) -> Sequence[int]:
    return (part,) if isinstance(part, int) else _name(names.setdefault(part, len(names)))


@lru_cache(maxsize=1024)
def _name(number: int) -> tuple[int, ...]:
    if number < MOST:
        return (vocabulary()[f"@{number}"],)
    return (vocabulary()["mark name"], *_integer(number))


@lru_cache(maxsize=1 << 14)
def _parts(line: str) -> tuple[_Part, ...]:
    """The line's tokens; names of arrays are left to the program."""
    tokens = tokenize(Source(line, "program"), 0)[:-1] if line.strip() else []
    words = [token.text for token in tokens]
    if words[:1] == ["kernel"] and words[2:3] == ["("]:
        del tokens[1]
        names = set(range(1, len(tokens)))
    elif words[:1] == ["arguments"] and words[2:3] != ["["]:
        names = set(range(1, len(words)))
    elif len(words) > 2 and words[2] == "[" and tokens[0].kind is Kind.WORD and tokens[1].kind is Kind.WORD:
        # A declaration: a name, its type, extents, and perhaps more names behind an arrow.
        arrow = words.index("->") if "->" in words else len(words)
        names = {0, *range(arrow, len(words))}
    else:
        names = {k for k in range(len(words) - 1) if words[k + 1] == "["}
    parts: list[_Part] = []
    for k, token in enumerate(tokens):
        if k in names and token.kind is Kind.WORD:
            parts.append(token.text)
        else:
            parts.extend(_known(token))
    return tuple(parts)


def _known(token: Token) -> Iterator[int]:
    """The numbers of a token that is no array."""
    known, text = vocabulary(), token.text
    match token.kind:
        case Kind.INTEGER:
            yield from _integer(int(text))
        case Kind.FLOAT:
            yield from _spelled("number", text)
        case Kind.ITERATION:
            if int(text) < DEEPEST:
                yield known[f"{{{int(text)}}}"]
            else:
                yield known["mark iteration"]
                yield from _integer(int(text))
        case Kind.STRING:
            yield from _spelled("string", text)
        case Kind.WORD if f"word {text}" in known:
            yield known[f"word {text}"]
        case Kind.WORD:
            yield from _spelled("word", text)
        case _:
            yield known[text]


def _integer(value: int) -> Iterator[int]:
    known = vocabulary()
    if value <= MOST:
        yield known[str(value)]
        return
    power = min(MOST - 1, (value & -value).bit_length() - 1)
    odd = value >> power
    if power:
        yield known[f"2^{power}" + "*" * (odd != 1)]
    if 1 < odd <= MOST:
        yield known[str(odd)]
    elif odd > MOST:
        yield from _spelled("digits", str(odd))


def _spelled(mark: str, text: str) -> Iterator[int]:
    yield vocabulary()[f"mark {mark}"]
    yield from (vocabulary()[f"byte {value}"] for value in text.encode())

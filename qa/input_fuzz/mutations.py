"""Mistakes in texts: tokens or bytes deleted, doubled, exchanged or inserted."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random
from typing import TypeAlias

MOST = 20_000
"""Greatest number of characters of a mutated text."""
_TOKEN = re.compile(r"\s+|[A-Za-z_][\w.]*|\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|\"[^\"\n]*\"|.", re.DOTALL)
_NUMBERS = (
    *"0 1 -1 2 3 7 63 64 65 255 4096 2147483647 4294967296 4611686018427387904 9223372036854775807".split(),
    *"9223372036854775808 18446744073709551616 0x10 1e400 1e-400 1.5 .5 1. 007 nan inf -inf 1e39 65520".split(),
    *("1" * 30, "9" * 4400),
)
_SIGNS = ("- ", "\0", "\ufeff", "\r", "\x0c", "\u2028", "é", "¼", "٣", "\U0001f600", "\x1b[31m", " " * 50, "\n")
_PIECES = (
    *_SIGNS,
    *"( ) [ ] { } < > \" ' $x ~ .. \\ - | : ; @ % ^ ! # // {0} {9} {-1} -> ^bb1: module unit none :N :N0 :N4".split(),
    *"where machine numerics arguments kernel size type number fma async max index cast f32 i1 bf16 heap".split(),
    *"in 1..9 multiple wrap clamp versions //8 %8".split(),
    *":u :v :p :g :m(f) :f !prefetch(1) attributes memref<?xf32> memref<0xf32> f128 tensor<4xf32> dense<1>".split(),
    *"%lo( %hi( .word .space .align .incbin lw frep.o inherits true [[intrinsics]] name register loc(unknown)".split(),
    *("align 3", "affine_map<(d0) -> (d0)>", "memref<4xf32, strided<[2]>>", "#pdojo<mapping v>"),
    '"pdojo.op"() : () -> ()',
)

Mutation: TypeAlias = Callable[[str, Random, Sequence[str]], str]


def mutated(text: str, random: Random, others: Sequence[str]) -> bytes:
    """A text with one or several mistakes; `others` are texts of the same form."""
    for _ in range(random.choice((1, 1, 1, 1, 1, 2, 3))):
        text = random.choice(_MUTATIONS)(text, random, others)[:MOST]
    data = text.encode("utf-8", "surrogatepass")
    return damaged_bytes(data, random) if random.random() < 0.15 else data


def damaged_bytes(data: bytes, random: Random) -> bytes:
    """Bytes changed, deleted, inserted, copied or cut off."""
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 16))):
        at = random.randrange(len(changed) + 1)
        match random.randrange(6):
            case 0 if at < len(changed):
                changed[at] ^= 1 << random.randrange(8)
            case 1:
                changed[at : at + 1] = bytes((random.choice((0, 1, 0x7F, 0x80, 0xFF)),))
            case 2:
                del changed[at : at + random.choice((1, 1, 8, 100))]
            case 3:
                changed[at:at] = random.choice((b"-", b"9" * 30, b"nan", b'"', b"[" * 2000, b"\xff", b"\n"))
            case 4:
                other = random.randrange(len(changed) + 1)
                changed[at : at + 100] = changed[other : other + 100]
            case _ if random.random() < 0.3:
                del changed[at:]
            case _:
                changed[at : at + 8] = random.randbytes(8)
    return bytes(changed)


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(text)


def _on_tokens(change: Callable[[list[str], int, Random], None]) -> Mutation:
    """A mutation of the tokens at a random place."""

    def mutate(text: str, random: Random, others: Sequence[str]) -> str:
        del others
        tokens = _tokens(text)
        solid = [k for k, token in enumerate(tokens) if not token.isspace()]
        if solid:
            change(tokens, random.choice(solid), random)
        return "".join(tokens)

    return mutate


def _leave_out(tokens: list[str], at: int, random: Random) -> None:
    del tokens[at : at + random.choice((1, 1, 1, 2, 5))]


def _double(tokens: list[str], at: int, random: Random) -> None:
    piece = tokens[at : at + random.choice((1, 1, 2, 3, 8))]
    tokens[at:at] = piece * random.choice((1, 1, 1, 2, 10, 300))


def _exchange(tokens: list[str], at: int, random: Random) -> None:
    other = random.randrange(len(tokens))
    tokens[at], tokens[other] = tokens[other], tokens[at]


def _replace(tokens: list[str], at: int, random: Random) -> None:
    tokens[at] = random.choice((*_NUMBERS, *_PIECES, random.choice(tokens)))


def _insert(tokens: list[str], at: int, random: Random) -> None:
    tokens.insert(at, random.choice((*_NUMBERS, *_PIECES, random.choice(tokens))))


def _renumber(tokens: list[str], at: int, random: Random) -> None:
    numbers = [k for k, token in enumerate(tokens) if token[0].isdigit()]
    tokens[random.choice(numbers or [at])] = random.choice(_NUMBERS)


def _nest(tokens: list[str], at: int, random: Random) -> None:
    """Nest something, or repeat a sign, many times."""
    opening, closing = random.choice(
        (("(", ")"), ("[", "]"), ("{", "}"), ("-", ""), ("- ", ""), ("4 ", ""), ("1 ", ""), ("| ", ""))
    )
    times = random.choice((2, 40, 400, 3000))
    tokens[at] = opening * times + tokens[at] + closing * times


def _chain(tokens: list[str], at: int, random: Random) -> None:
    """Append an operator with its operand many times."""
    piece = random.choice(
        ("+{0}", "%7+{0}", "//3*2", " % 5", "+1", "*2", ",1", " floordiv 3", " mod 5 + %i0", "-x[{0}]")
    )
    tokens[at] += piece * random.choice((1, 2, 30, 300, 2000))


def _lines(text: str, random: Random, others: Sequence[str]) -> str:
    """Delete, double, exchange or join lines."""
    del others
    lines = text.splitlines(keepends=True)
    if not lines:
        return text
    one, other = random.randrange(len(lines)), random.randrange(len(lines))
    match random.randrange(4):
        case 0:
            del lines[one]
        case 1:
            lines[one:one] = [lines[other]] * random.choice((1, 2, 50))
        case 2:
            lines[one], lines[other] = lines[other], lines[one]
        case _:
            lines[one] = lines[one].rstrip("\n")
    return "".join(lines)


def _splice(text: str, random: Random, others: Sequence[str]) -> str:
    """Join the beginning of a text and the end of another one."""
    other = random.choice(others)
    return text[: random.randrange(len(text) + 1)] + other[random.randrange(len(other) + 1) :]


def _cut(text: str, random: Random, others: Sequence[str]) -> str:
    """Keep only the beginning."""
    del others
    return text[: random.randrange(len(text) + 1)]


_MUTATIONS: tuple[Mutation, ...] = (
    *map(_on_tokens, (_leave_out, _double, _exchange, _replace, _insert, _renumber) * 2),
    *map(_on_tokens, (_nest, _chain)),
    _lines,
    _splice,
    _cut,
)

"""One kernel for all sizes, from kernels at two: numbers of their texts that differ become expressions of sizes.

A frontend that makes a kernel for each shape makes the same text with other numbers. Extents of interface arrays
that differ are sizes; every other number that differs is a multiple of one of them plus a constant, or there is no such
kernel. What was guessed from two texts may be wrong at a third size, where the frontend makes another text. So a
kernel with sizes stands for those texts only that it has for some values (`SizedText.values`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import NamedTuple

from pdojo.dialect.canonical import canonicalize
from pdojo.dialect.flow.program import Program
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation, print_notation
from pdojo.dialect.rules.validate import validate
from pdojo.errors import PdojoError

STEEPEST = 64
"""Greatest factor of a size in a number."""
DIVISORS = (2, 3, 4, 8, 16, 32)
"""Divisors of sizes in numbers: the steps of windows, and the scopes of several of them."""
LEAST = (2, 3, 4, 8)
"""Values at which ranges are tried to begin. Arrays of one element have other kernels."""
ROOM = 2
"""The end of a range as a multiple of the greatest known value."""
_NUMBER = re.compile(r"(?<![\w.{])\d+(?![\w.}])")
"""A number of the text that is no part of a name, of an iteration `{0}`, or of a number with a point."""


class _Pair(NamedTuple):
    """The same number in two texts."""

    first: int
    second: int


class _Term(NamedTuple):
    """`(factor * size + offset) // divisor`; a number if the factor is 0."""

    offset: int
    factor: int = 0
    size: str = ""
    divisor: int = 1

    def at(self, values: Mapping[str, int]) -> int:
        value = self.offset + self.factor * values[self.size] if self.factor else self.offset
        return value // self.divisor

    def __str__(self) -> str:
        product = self.size if self.factor == 1 else f"{self.size}*{self.factor}"
        if not self.factor:
            return str(self.offset)
        total = f"({product}{self.offset:+})" if self.offset else f"({product})" if self.factor != 1 else product
        return total if self.divisor == 1 else f"({total}//{self.divisor})"


@dataclass(frozen=True)
class SizedText:
    """The text of a kernel with sizes, and of the kernels at their values."""

    skeleton: str
    """The text of every kernel, with `#` in place of numbers."""
    numbers: tuple[_Term, ...]
    """The numbers, in order."""
    ranges: Mapping[str, range]
    """The values of sizes, keyed by name."""

    @property
    def text(self) -> str:
        """The kernel with sizes."""
        rows = [f"size {name} in {each.start}..{each.stop - 1}" for name, each in self.ranges.items()]
        first, *lines = _filled(self.skeleton, self.numbers).split("\n")
        return "\n".join([first, *rows, *lines])

    def values(self, text: str) -> dict[str, int] | None:
        """The values of sizes for which a printed text is the kernel at them; None if there are none."""
        skeleton, numbers = _parts(text)
        if skeleton != self.skeleton:
            return None
        found: dict[str, int] = {}
        for term, number in zip(self.numbers, numbers, strict=True):
            if term[1:] == (1, term.size, 1) and not term.offset:
                found.setdefault(term.size, number)
        if any(found[name] not in each for name, each in self.ranges.items()):
            return None
        return found if all(map(lambda term, number: term.at(found) == number, self.numbers, numbers)) else None


def generalised(first: str, second: str) -> SizedText | None:
    """The kernel with sizes that has two printed texts for some values; None if there is none.

    A range ends at twice the greater value, and begins at the least of `LEAST` for which the kernel is valid, or at the
    smaller value.
    """
    (skeleton, one), (other_skeleton, other) = _parts(first), _parts(second)
    pairs = [_Pair(*numbers) for numbers in zip(one, other, strict=False)]
    if skeleton != other_skeleton or one == other:
        return None
    places = _interface(skeleton)
    pairs_of = [[pairs[place] for place in found] for found in places]
    given, made = ([pair for pair in found if pair.first != pair.second] for found in pairs_of)
    # Extents of inputs are sizes of their own, or else as few as possible are, by which the others are written.
    for own in dict.fromkeys((tuple(dict.fromkeys(given)), _independent([*given, *made]))):
        sizes = _named(own, skeleton)
        if (found := _with_sizes(skeleton, pairs, sizes, (first, second))) is not None:
            return found
    return None


def _with_sizes(
    skeleton: str, pairs: Sequence[_Pair], sizes: Mapping[_Pair, str], texts: tuple[str, str]
) -> SizedText | None:
    """The valid kernel with these sizes that has two texts for some values; None if there is none."""
    numbers = [_term(pair, sizes) for pair in pairs]
    known = tuple([term for term in numbers if term is not None])
    if not sizes or len(known) < len(numbers):
        return None
    for low in (*LEAST, None):
        ranges = {n: range(min(p) if low is None else min(low, *p), ROOM * max(p) + 1) for p, n in sizes.items()}
        found = SizedText(skeleton, known, ranges)
        if _is_valid(found.text) and None not in map(found.values, texts):
            return found
    return None


def _independent(pairs: Sequence[_Pair]) -> tuple[_Pair, ...]:
    """The pairs that are no expressions of those before them."""
    found: dict[_Pair, str] = {}
    for pair in pairs:
        if _term(pair, found) is None:
            found[pair] = "size"
    return tuple(found)


def _parts(text: str) -> tuple[str, list[int]]:
    """A text with `#` in place of its numbers, and these."""
    return _NUMBER.sub("#", text), [int(number) for number in _NUMBER.findall(text)]


def _filled(skeleton: str, numbers: Sequence[object]) -> str:
    """A skeleton with its numbers."""
    pieces = skeleton.split("#")
    return "".join(part for pair in zip(pieces, (*map(str, numbers), ""), strict=True) for part in pair)


def _interface(skeleton: str) -> tuple[list[int], list[int]]:
    """The places among a skeleton's numbers of the extents of inputs, and of those of outputs."""
    first, *lines = skeleton.split("\n")
    inputs, outputs = ({*re.findall(r"\w+", part)} for part in first.split("(", 1)[1].split("->"))
    found: tuple[list[int], list[int]] = ([], [])
    place = first.count("#")
    for line in lines[: lines.index("")]:
        name, count = line.split(" ", 1)[0], line.count("#")
        if name in inputs or name in outputs:
            found[name not in inputs].extend(range(place, place + count))
        place += count
    return found


def _named(pairs: Sequence[_Pair], skeleton: str) -> dict[_Pair, str]:
    """A size for each pair of extents, with a name that the text does not have."""
    taken = set(re.findall(r"\w+", skeleton))
    free = dict.fromkeys(name for name in ("M", "L", "K", *ascii_uppercase) if name not in taken)
    return dict(zip(pairs, free, strict=False))


def _term(pair: _Pair, sizes: Mapping[_Pair, str]) -> _Term | None:
    """A number by sizes; None if it is no expression of one.

    It is the size itself, or else a multiple of one plus a constant, with the least factor and constant, or else a sum
    divided.
    """
    if pair.first == pair.second:
        return _Term(pair.first)
    if pair in sizes:
        return _Term(0, 1, sizes[pair])
    found: list[_Term] = []
    for known, name in sizes.items():
        factor, rest = divmod(pair.second - pair.first, known.second - known.first)
        if not rest and 0 < abs(factor) <= STEEPEST:
            found.append(_Term(pair.first - factor * known.first, factor, name))
        for divisor in DIVISORS:
            # Of the offsets that give the one value, and those that give the other, the least that gives both.
            low = max(divisor * pair.first - known.first, divisor * pair.second - known.second)
            high = min(divisor * pair.first - known.first, divisor * pair.second - known.second) + divisor - 1
            if low <= high:
                found.append(_Term(min(max(low, 0), high), 1, name, divisor))
    return min(found, key=lambda term: (term.divisor, abs(term.factor), abs(term.offset)), default=None)


def _is_valid(text: str) -> bool:
    """True if a kernel with sizes has a meaning for all of them."""
    try:
        (kernel,) = parse_notation(text)
        canonicalize(kernel)
        validate(Program(kernel, machine("toy")))
        return bool(print_notation(kernel))
    except PdojoError:
        return False

"""One kernel for all sizes, from kernels at some: numbers of their texts that differ become expressions of sizes.

A frontend that makes a kernel for each shape makes the same text with other numbers. Extents of interface arrays
that differ are sizes; every other number that differs is a multiple of one of them plus a constant, or there is no such
kernel. What was guessed from some texts may be wrong at other sizes, where the frontend makes another text. So a kernel
with sizes stands for those texts only that it has for some values (`SizedText.values`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from string import ascii_uppercase
from typing import NamedTuple, TypeAlias

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


_Row: TypeAlias = tuple[int, ...]
"""The same number in all texts."""


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

    @cached_property
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


def generalised(*texts: str) -> SizedText | None:
    """The kernel with sizes that has printed texts for some values; None if there is none.

    A range ends at twice the greatest value. It begins at the least of `LEAST` for which the kernel is valid, or at the
    smallest value.
    """
    parts = [_parts(text) for text in texts]
    skeleton = parts[0][0]
    if any(other != skeleton for other, _ in parts):
        return None
    rows = [*zip(*(numbers for _, numbers in parts), strict=True)]
    given, made = ([rows[place] for place in found if len({*rows[place]}) > 1] for found in _interface(skeleton))
    # Extents of inputs are sizes of their own, or else as few as possible are, by which the others are written.
    for own in dict.fromkeys((tuple(dict.fromkeys(given)), _independent([*given, *made]))):
        sizes = _named(own, skeleton)
        if (found := _with_sizes(skeleton, rows, sizes, texts)) is not None:
            return found
    return None


def _with_sizes(
    skeleton: str, rows: Sequence[_Row], sizes: Mapping[_Row, str], texts: Sequence[str]
) -> SizedText | None:
    """The valid kernel with these sizes that has all texts for some values; None if there is none."""
    numbers = [_term(row, sizes) for row in rows]
    known = tuple([term for term in numbers if term is not None])
    if not sizes or len(known) < len(numbers):
        return None
    for low in (*LEAST, None):
        ranges = {n: range(min(r) if low is None else min(low, *r), ROOM * max(r) + 1) for r, n in sizes.items()}
        found = SizedText(skeleton, known, ranges)
        if _is_valid(found.text) and None not in map(found.values, texts):
            return found
    return None


def _independent(rows: Sequence[_Row]) -> tuple[_Row, ...]:
    """The rows that are no expressions of those before them."""
    found: dict[_Row, str] = {}
    for row in rows:
        if _term(row, found) is None:
            found[row] = "size"
    return tuple(found)


def skeleton_of(text: str) -> str:
    """A text with `#` in place of its numbers."""
    return _NUMBER.sub("#", text)


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


def _named(rows: Sequence[_Row], skeleton: str) -> dict[_Row, str]:
    """A size for each row of extents, with a name that the text does not have."""
    taken = set(re.findall(r"\w+", skeleton))
    free = dict.fromkeys(name for name in ("M", "L", "K", *ascii_uppercase) if name not in taken)
    return dict(zip(rows, free, strict=False))


def _term(row: _Row, sizes: Mapping[_Row, str]) -> _Term | None:
    """A number by sizes; None if it is no expression of one.

    It is the size itself, or else a multiple of one plus a constant, with the least factor and constant, or else a sum
    divided.
    """
    if len({*row}) == 1:
        return _Term(row[0])
    if row in sizes:
        return _Term(0, 1, sizes[row])
    found: list[_Term] = []
    for known, name in sizes.items():
        least, most = known.index(min(known)), known.index(max(known))
        factor, rest = divmod(row[most] - row[least], known[most] - known[least])
        offset = row[least] - factor * known[least]
        is_linear = all(number == factor * value + offset for number, value in zip(row, known, strict=True))
        if not rest and 0 < abs(factor) <= STEEPEST and is_linear:
            found.append(_Term(offset, factor, name))
        for divisor in DIVISORS:
            # Each value has `divisor` offsets that give its number: the least one that all of them have.
            offsets = [divisor * number - value for number, value in zip(row, known, strict=True)]
            low, high = max(offsets), min(offsets) + divisor - 1
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

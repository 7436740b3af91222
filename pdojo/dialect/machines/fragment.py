"""Fragments: how the threads of a warp hold an operand of an instruction, each element in a register of a thread.

A fragment is two quasi-affine expressions over the operand's indices, `lane, slot`, that number the elements without
gaps: each pair of a lane and a slot holds one element.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod

from pdojo.dialect.affine import Expr, const, floordiv, modulo, var
from pdojo.errors import NotationError, UsageError

MOST_ELEMENTS = 1 << 16
"""Most elements of an operand: its fragment lists them."""


@dataclass(frozen=True)
class Fragment:
    """The elements of an operand in the registers of a warp."""

    shape: tuple[int, ...]
    """Extents of the operand."""
    threads: int
    """Threads of the warp."""
    lane: Expr
    """The thread that holds an element, as an expression over the operand's indices."""
    slot: Expr
    """The place of an element among the elements of its thread."""
    places: tuple[tuple[tuple[int, ...], ...], ...]
    """The element in each slot (inner index) of each lane (outer index)."""
    bits: tuple[tuple[int, ...], ...]
    """Per bit of a lane's number, lowest first, the step that it adds to each index of the lane's elements."""

    @property
    def slots(self) -> int:
        """Elements of each thread."""
        return prod(self.shape) // self.threads

    def thread_of(self, index: Sequence[Expr], extents: Sequence[int]) -> Expr:
        """The lane of the element at `index`, whose expressions are over scopes of `extents`."""
        return self.lane.substitute(dict(enumerate(index)), extents)

    def place_of(self, index: Sequence[Expr], extents: Sequence[int]) -> Expr:
        """The slot of the element at `index`, whose expressions are over scopes of `extents`."""
        return self.slot.substitute(dict(enumerate(index)), extents)

    def element(self, slot: int, lane: int, extents: Sequence[int]) -> tuple[Expr, ...]:
        """The index of the element in a slot; the variable at depth `lane` is the number of the thread."""
        return element_of(self.places[0][slot], self.bits, lane, extents)


def element_of(
    first: Sequence[int], bits: Sequence[Sequence[int]], lane: int, extents: Sequence[int]
) -> tuple[Expr, ...]:
    """The index `first` plus the steps of the bits of the variable at depth `lane`."""
    return tuple(const(origin) + _by_bits([step[d] for step in bits], lane, extents) for d, origin in enumerate(first))


def steps_of(elements: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...] | None:
    """Per bit of an element's number, lowest first, its step in each index; None if elements are no sums of steps."""
    bits = [_apart(elements[0], elements[1 << k]) for k in range(len(elements).bit_length() - 1)]
    for number, element in enumerate(elements):
        set_bits = [step for k, step in enumerate(bits) if number >> k & 1]
        if _apart(elements[0], element) != tuple(sum(step[d] for step in set_bits) for d in range(len(element))):
            return None
    return tuple(bits)


def _apart(one: Sequence[int], other: Sequence[int]) -> tuple[int, ...]:
    return tuple(b - a for a, b in zip(one, other, strict=True))


def _by_bits(steps: Sequence[int], lane: int, extents: Sequence[int]) -> Expr:
    """The sum of the steps of a variable's set bits; bits with successively doubled steps are one digit."""
    total, low = const(0), 0
    while low < len(steps):
        high = low + 1
        while high < len(steps) and steps[high] == 2 * steps[high - 1] != 0:
            high += 1
        digit = modulo(floordiv(var(lane), 1 << low, extents), 1 << (high - low), extents)
        total = total + digit * steps[low]
        low = high
    return total


@lru_cache(maxsize=1024)
def fragment(text: str, shape: tuple[int, ...], threads: int) -> Fragment:
    """The fragment of an operand from its text, `lane, slot` over the operand's indices {0}, {1} ...

    Raises UsageError with the mistake: no such expressions, two elements in one place, or elements of a lane that are
    not sums of one step per bit of its number.
    """
    # The parser takes long to import, and most programs have no fragments.
    from pdojo.dialect.notation.index import parse_index

    try:
        index = parse_index(text, shape)
    except NotationError as error:
        raise UsageError(f"'{text}' is no fragment: {error.args[0]}") from None
    if len(index) != 2:
        raise UsageError(f"'{text}' is no fragment: write two expressions, 'lane, slot'")
    count = prod(shape)
    if count > MOST_ELEMENTS:
        raise UsageError(f"{count} elements are too many for a fragment; operands have at most {MOST_ELEMENTS}")
    slots, rest = divmod(count, threads)
    if rest:
        raise UsageError(f"{count} elements cannot be shared equally by {threads} threads")
    found: dict[tuple[int, int], tuple[int, ...]] = {}
    for element in product(*map(range, shape)):
        place = index[0].evaluate(element), index[1].evaluate(element)
        if not (0 <= place[0] < threads and 0 <= place[1] < slots):
            raise UsageError(
                f"element {list(element)} would be in lane {place[0]}, slot {place[1]}: there are {threads} lanes of "
                f"{slots} slots"
            )
        if place in found:
            raise UsageError(
                f"elements {list(found[place])} and {list(element)} would both be in lane {place[0]}, slot {place[1]}"
            )
        found[place] = element
    places = tuple(tuple(found[lane, slot] for slot in range(slots)) for lane in range(threads))
    return Fragment(shape, threads, index[0], index[1], places, _bits(places))


def _bits(places: Sequence[Sequence[tuple[int, ...]]]) -> tuple[tuple[int, ...], ...]:
    bits = [_apart(places[0][0], places[1 << k][0]) for k in range(len(places).bit_length() - 1)]
    for lane, held in enumerate(places):
        wanted = tuple(sum(step[d] for k, step in enumerate(bits) if lane >> k & 1) for d in range(len(places[0][0])))
        for slot in range(len(held)):
            if _apart(places[0][slot], held[slot]) != wanted:
                raise UsageError(
                    f"lane {lane}, slot {slot} has element {list(held[slot])}; the elements must be linear in "
                    "the bits of the lane's number"
                )
    return tuple(bits)

"""Instructions with which the threads of a warp load small matrices from shared memory into their registers.

The instruction loads one or several matrices. Each row is one contiguous piece of memory, aligned to its size; thread
`matrix * rows + row` gives the address of a row. So rows may lie anywhere: they may be padded or swizzled. A machine
description declares the instruction as data; the operands that it fits follow from their fragments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from pdojo.dialect.affine import Expr
from pdojo.dialect.machines.fragment import Fragment, element_of, fragment, steps_of
from pdojo.dialect.templates import template_of


@dataclass(frozen=True, repr=False)
class MatrixLoad:
    """An instruction that loads matrices from shared memory."""

    name: str
    shape: tuple[int, int]
    """Rows of a matrix, and elements of a row; an element of an operand may take several elements of a row."""
    element_bytes: int
    matrices: tuple[int, ...]
    """Numbers of matrices that one instruction may load, ascending."""
    threads: int
    """Threads of a warp, which run it together."""
    fragment: str
    """`lane, slot` over row and element: the thread that gets an element of a matrix, and its place in the thread."""
    templates: Mapping[str, str]
    """The code, keyed by language: a function template over the number of matrices (docs/machines.md)."""
    trusted: bool = True
    """Whether the templates may be compiled; those of a machine file need the user's trust."""

    def __repr__(self) -> str:
        return self.name

    @property
    def row_bytes(self) -> int:
        """Bytes of a row; its address must be a multiple of them."""
        return self.shape[1] * self.element_bytes

    @property
    def form(self) -> Fragment:
        """The fragment of a matrix in the threads. Raises UsageError if the text is no fragment."""
        return fragment(self.fragment, self.shape, self.threads)

    def template(self, language: str) -> str:
        """The code for a language. Raises LoweringError (its text follows the name) if it is missing or not trusted."""
        return template_of(self.templates, language, trusted=self.trusted)


@dataclass(frozen=True)
class Rows:
    """The rows of matrices that hold some elements of an operand."""

    slots: int
    """The elements of each thread."""
    first: tuple[int, ...]
    """The first element of row 0."""
    bits: tuple[tuple[int, ...], ...]
    """Per bit of a row's number, lowest first, the step that it adds to each index of the row's first element."""
    offsets: tuple[tuple[int, ...], ...]
    """Per element of a row, in order, its distance from the first one in each index."""

    def elements(self, lane: int, extents: Sequence[int]) -> list[tuple[Expr, ...]]:
        """The indices of the elements in a thread's row; the thread's number is the variable at depth `lane`."""
        return [
            element_of([a + b for a, b in zip(self.first, offset, strict=True)], self.bits, lane, extents)
            for offset in self.offsets
        ]


def rows_of(load: MatrixLoad, held: Fragment, width: int, slot: int, matrices: int) -> Rows | None:
    """The rows of the matrices that give the threads of a warp their elements of an operand, from a slot on.

    `width` is the size of an element in bytes. None if the instruction would give some thread other elements.
    """
    return _rows(load.form, width, load.element_bytes, held, slot, matrices)


@lru_cache(maxsize=1024)
def _rows(form: Fragment, width: int, part: int, held: Fragment, slot: int, matrices: int) -> Rows | None:
    places = _places(form, width, part)
    if places is None or form.threads != held.threads:
        return None
    each = len(places[0])
    if slot + matrices * each > held.slots:
        return None
    elements: dict[tuple[int, int], tuple[int, ...]] = {}
    for lane, wanted in enumerate(places):
        for matrix in range(matrices):
            for number, (row, column) in enumerate(wanted):
                place = matrix * form.shape[0] + row, column
                elements[place] = held.places[lane][slot + matrix * each + number]
    count, columns = matrices * form.shape[0], form.shape[1] * part // width
    first = [elements[row, 0] for row in range(count)]
    bits = steps_of(first)
    offsets = [tuple(_apart(elements[row, 0], elements[row, c]) for c in range(columns)) for row in range(count)]
    if bits is None or any(one != offsets[0] for one in offsets):
        return None
    return Rows(matrices * each, first[0], bits, offsets[0])


def _places(form: Fragment, width: int, part: int) -> list[list[tuple[int, int]]] | None:
    """For each thread, rows and columns of its elements of `width` bytes, in order; a matrix has smaller parts.

    None if the parts of such an element are not neighbours that one thread gets in order.
    """
    parts, rest = divmod(width, part)
    if rest or not parts or form.slots % parts or form.shape[1] % parts:
        return None
    found: list[list[tuple[int, int]]] = []
    for held in form.places:
        first = held[::parts]
        if any(
            column % parts or held[number * parts + k] != (row, column + k)
            for number, (row, column) in enumerate(first)
            for k in range(parts)
        ):
            return None
        found.append([(row, column // parts) for row, column in first])
    return found


def _apart(one: Sequence[int], other: Sequence[int]) -> tuple[int, ...]:
    return tuple(b - a for a, b in zip(one, other, strict=True))

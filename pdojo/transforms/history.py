"""The programs of a game; only some are kept, the others are recomputed from their moves on demand.

A program takes more memory than the rest of a search's state, and making a legal move takes a fraction of the time of
checking it. So a program is kept only every few moves, and searches can store more states.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import overload

from pdojo.dialect.flow.content import Content, form_of_program
from pdojo.dialect.flow.program import Program
from pdojo.dialect.view.nest import Array, Scope
from pdojo.dialect.view.storage import accesses_of
from pdojo.transforms.legality.trials import perform
from pdojo.transforms.move import Move
from pdojo.transforms.registry import instantiate
from pdojo.transforms.site import Dimension, Site

STRIDE = 8
"""Number of moves from one kept program to the next, if programs between are recomputed."""


@dataclass(frozen=True, slots=True)
class Place:
    """Facts about a move's site; they outlive the program before the move."""

    extent: int = 0
    """Extent of the scope or the dimension; 0 for other sites."""
    loop: str = ""
    """Identifier of the site's scope, or of a scope that indexes the site's dimension in a write."""
    following: str = ""
    """Identifier of the next node in the same scope; '' if there is none."""


def place_of(program: Program, site: Site) -> Place:
    """The place of a site."""
    if isinstance(site, Array):
        return Place()
    if isinstance(site, Dimension):
        extent = site.array.shape[site.index]
        for leaf, access in accesses_of(program.nest, site.array.buffer):
            variables = access.index[site.index].variables()
            if access.array is site.array and access is leaf.output and variables:
                return Place(extent, leaf.chain[min(variables)].id)
        return Place(extent)
    after = program.nest.next_sibling(site)
    following = "" if after is None else after.id
    return Place(site.extent, site.id, following) if isinstance(site, Scope) else Place(following=following)


@dataclass(slots=True, eq=False)
class Position:
    """A program of a game and the move that led there, shared by forks of the game."""

    move: Move
    """The move, located by identifier."""
    place: Place
    """The place of the move."""
    program: Program | None
    """The program, whose kernel is never changed; None if it is not kept."""
    form: Content
    """The form of the program; equal for equal texts."""


class History(Sequence[Program]):
    """The program before the first move and after each."""

    def __init__(self, initial: Program) -> None:
        self.initial = initial
        self.positions: list[Position] = []
        """Positions after each move."""

    def __len__(self) -> int:
        return 1 + len(self.positions)

    @property
    def latest(self) -> Program:
        """The program after the last move."""
        kept = self.positions[-1].program if self.positions else self.initial
        return self[-1] if kept is None else kept

    @overload
    def __getitem__(self, index: int) -> Program: ...
    @overload
    def __getitem__(self, index: slice) -> list[Program]: ...
    def __getitem__(self, index: int | slice) -> Program | list[Program]:
        if isinstance(index, slice):
            numbers = range(len(self))[index]
            first = min(numbers, default=0)
            found = list(islice(self._since(first), len(numbers) and max(numbers) - first + 1))
            return [found[k - first] for k in numbers]
        number = range(len(self))[index]
        kept = self._kept(number)
        if kept is None:
            kept = self.copy(number)
            if number == len(self.positions):
                self.positions[-1].program = kept
        return kept

    def __iter__(self) -> Iterator[Program]:
        return self._since(0)

    def _since(self, number: int) -> Iterator[Program]:
        program = self[number]
        yield program
        for position in self.positions[number:]:
            program = position.program or make(program.copy(), position.move)
            yield program

    def forms(self) -> list[Content]:
        """The form of each program; equal for equal texts."""
        return [form_of_program(self.initial.nest), *(position.form for position in self.positions)]

    def copy(self, number: int) -> Program:
        """A copy of a program, which may be changed."""
        start = number
        while (kept := self._kept(start)) is None:
            start -= 1
        program = kept.copy()
        for k in range(start, number):
            program = make(program, self.positions[k].move)
            if (k + 1) % STRIDE == 0:
                self.positions[k].program = program.copy()
        return program

    def fork(self) -> History:
        """An independent history with the same beginning."""
        other = History(self.initial)
        other.positions = self.positions.copy()
        return other

    def is_near(self) -> bool:
        """Whether a few moves from an earlier program recompute the last one."""
        number = len(self.positions)
        return any(self._kept(before) is not None for before in range(max(number - STRIDE, 0), number))

    def kept(self) -> Iterator[Program]:
        """The programs in memory."""
        yield self.initial
        yield from (position.program for position in self.positions if position.program is not None)

    def _kept(self, number: int) -> Program | None:
        return self.positions[number - 1].program if number else self.initial


def make(program: Program, move: Move) -> Program:
    """The program after a legal move; invalidates `program`."""
    wanted = instantiate(move)
    return perform(wanted, program, wanted.resolve(program, move.at))

"""The dojo: a state of the search, which is a kernel and the moves made on it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import islice
from random import Random

from pdojo.dialect.flow.program import Program
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.search.contract.candidates import legal_candidates
from pdojo.transforms.game import Game, Skipped
from pdojo.transforms.move import Move
from pdojo.transforms.trace import Trace


@dataclass(frozen=True)
class Successor:
    """A legal move and the program after it, to choose among many; `Dojo.step` makes the move."""

    move: Move
    """The move, by identifier."""
    program: Program
    """The program after the move; do not modify its kernel. The game's rules are checked when the move is made."""

    @cached_property
    def text(self) -> str:
        """The program in canonical notation, without identifiers."""
        return self.program.text

    @cached_property
    def fingerprint(self) -> str:
        """The fingerprint of the state after the move."""
        return fingerprint_of(self.text)

    @cached_property
    def features(self) -> list[float]:
        """Numbers that describe the program, for cost models (`search.features`)."""
        from pdojo.search.features.program import features

        return features(self.program.nest, self.program.machine)


class Dojo:
    """A kernel, the moves made on it, and the legal moves. Raises InvalidKernel for an invalid kernel.

    States are equal iff their fingerprints are, regardless of their moves.
    """

    def __init__(self, kernel: KernelOp, machine: Machine) -> None:
        self._game = Game(kernel, machine)

    @classmethod
    def of(cls, game: Game) -> Dojo:
        """An independent state with the moves of a game."""
        dojo = cls.__new__(cls)
        dojo._game = game.fork()
        return dojo

    @property
    def machine(self) -> Machine:
        """The machine that the kernel is tuned for."""
        return self._game.machine

    @property
    def kernel(self) -> KernelOp:
        """The kernel now; do not modify it."""
        return self._game.kernel

    @property
    def plain(self) -> KernelOp:
        """The kernel before the first move, in canonical form."""
        return self._game.initial.kernel

    @property
    def game(self) -> Game:
        """The game of this state, for passes and neighbourhoods."""
        return self._game

    @property
    def trace(self) -> Trace:
        """The moves made."""
        return self._game.trace

    @property
    def text(self) -> str:
        """The program in canonical notation, without identifiers."""
        return self._game.program.text

    @property
    def fingerprint(self) -> str:
        """Hexadecimal SHA-256 of the canonical text: equal for equal programs, regardless of the moves."""
        return fingerprint_of(self.text)

    def moves(self) -> list[Move]:
        """The legal moves."""
        return self._game.moves()

    def draw(self, count: int, random: Random) -> list[Move]:
        """At most `count` different legal moves, by identifier; all sets of them are equally likely.

        Only drawn candidates are checked for legality.
        """
        return [choice.move for choice in islice(legal_candidates(self._game.program, random), count)]

    def successors(self, count: int, random: Random) -> Iterator[Successor]:
        """The moves of `draw` with the programs after them, which are made one by one on demand.

        No states are made: nothing is verified again, and the game stays unchanged.
        """
        program = self._game.program
        for choice in islice(legal_candidates(program, random), count):
            yield Successor(choice.move, choice.transformation.rehearse(program, choice.site))

    def step(self, move: Move | str) -> None:
        """Make a move. Raises LocationError or IllegalMove, and then leaves the state unchanged."""
        self._game.apply(move)

    def undo(self, index: int = -1) -> list[Skipped]:
        """Take back the move at `index` of the trace and replay the later ones; returns the later moves that do not
        apply.
        """
        return self._game.undo(index)

    def fork(self) -> Dojo:
        """An independent state with the same moves."""
        return Dojo.of(self._game)

    def become(self, moves: Iterable[Move]) -> list[Skipped]:
        """Replace the trace by `moves`, given by identifier; skips and returns the moves that do not apply."""
        return self._game.become(moves)

    def __str__(self) -> str:
        return self.text


def fingerprint_of(text: str) -> str:
    """Hexadecimal SHA-256 of a program's canonical text."""
    return sha256(text.encode()).hexdigest()

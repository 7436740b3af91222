"""A game without its screen: making, undoing and storing moves.

Programs compute facts lazily, so one thread uses everything here; the screen receives immutable `GameView`s.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from threading import Event

from pdojo_tools.explaining import explain_moves
from pdojo_tools.outputs import write_output
from pdojo_tools.playing.choice import ListedMove
from pdojo_tools.playing.page import Changes, Page, difference

from pdojo.dialect.flow.program import Program
from pdojo.errors import UsageError
from pdojo.transforms.apply import apply, candidates
from pdojo.transforms.game import Game, Skipped, fingerprint_of
from pdojo.transforms.move import Move
from pdojo.transforms.trace import Step


@dataclass(frozen=True)
class State:
    """A program of the game, from the first to the current one."""

    program: Program
    page: Page
    fingerprint: str

    @staticmethod
    def of(program: Program) -> State:
        """The state with that program."""
        page = Page.of(program.nest)
        return State(program, page, fingerprint_of(page.text))


@dataclass(frozen=True)
class GameView:
    """A snapshot of the game."""

    number: int
    """A number that grows with every change; results computed for another number are outdated."""
    states: tuple[State, ...]
    """The state before the first move and after each move."""
    steps: tuple[Step, ...]
    changes: Changes
    """Changes by the last move or undo."""
    unsaved: bool

    @property
    def now(self) -> State:
        """The program now."""
        return self.states[-1]


def spell_count(moves: int) -> str:
    """`1 move`, `2 moves`."""
    return f"{moves} move{'s' * (moves != 1)}"


def preview(state: State, move: Move) -> list[str]:
    """The change by a move. Raises LocationError or IllegalMove."""
    after = apply(state.program, move).program
    return difference(state.page.lines, Page.of(after.nest).lines)


def find_candidates(state: State, stopped: Event) -> list[ListedMove] | None:
    """All candidates, legal and refused; None if `stopped` was set before the end."""
    found: list[ListedMove] = []
    for verdict in candidates(state.program):
        if stopped.is_set():
            return None
        found.append(ListedMove(verdict.move, verdict.refusal))
    return found


class PlaySession:
    """A game. Its first moves count as stored."""

    def __init__(self, game: Game) -> None:
        self.game = game
        self._number = 0
        self._states: list[State] = []
        self._moves: list[Move] = []
        """The moves between the states."""
        self._stored = self._steps()
        self._before: list[tuple[Step, ...]] = []
        """Traces before each undo since the last move."""
        self.view = self._viewed()

    def make(self, move: Move) -> GameView:
        """Make a move. Raises LocationError or IllegalMove, and then changes nothing."""
        self.game.apply(move)
        self._before.clear()
        return self._moved()

    def undo(self, index: int = -1) -> tuple[GameView, list[Skipped]]:
        """Undo a move; returns the later moves that no longer apply, which are lost. Raises UsageError."""
        before = self._steps()
        skipped = self.game.undo(index)
        self._before.append(before)
        return self._moved(), skipped

    def redo(self) -> GameView:
        """Undo the last undo. Raises UsageError if there is none."""
        if not self._before:
            raise UsageError("there is no undo to take back")
        steps = self._before.pop()
        skipped = self.game.become(step.resolved for step in steps)
        assert not skipped, "this trace was made before"
        return self._moved()

    def save(self, path: str) -> GameView:
        """Store the trace. Raises UsageError if that fails."""
        write_output(self.game.trace.dump(), path)
        self._stored = self._steps()
        return self._viewed()

    def explain(self, move: Move) -> list[str]:
        """The explanation of a move. Raises LocationError or IllegalMove for an impossible move."""
        return explain_moves(self.game, [move]).splitlines()

    def _steps(self) -> tuple[Step, ...]:
        return tuple(self.game.trace.steps)

    def _moved(self) -> GameView:
        before = self.view.now.page.lines
        self._number += 1
        return self._viewed(before)

    def _viewed(self, before: tuple[str, ...] | None = None) -> GameView:
        moves = [step.resolved for step in self._steps()]
        pairs = zip(moves, self._moves, strict=False)
        alike = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        kept = min(1 + alike, len(self._states))
        self._states[kept:] = [State.of(program) for program in self.game.programs[kept:]]
        self._moves = moves
        now = self._states[-1].page.lines
        changes = Changes() if before is None else Changes.between(before, now)
        steps = self._steps()
        self.view = GameView(self._number, tuple(self._states), steps, changes, steps != self._stored)
        return self.view

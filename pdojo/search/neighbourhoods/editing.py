"""Random edits of a trace: insertion, deletion or change of moves anywhere, and replay of later moves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from pdojo.dialect.flow.program import Program
from pdojo.search.contract.candidates import choices, shuffled
from pdojo.search.neighbourhoods.composed import CLASSICAL, legal
from pdojo.search.neighbourhoods.drawing import UNIFORM, Drawing, each_legal, first_legal
from pdojo.search.neighbourhoods.lengths import LengthLimits
from pdojo.search.neighbourhoods.random_moves import choices_at, draw_from, is_legal, step_if_legal
from pdojo.search.neighbourhoods.remapping import mapped_anew, pairs
from pdojo.transforms.game import Game
from pdojo.transforms.move import Move
from pdojo.transforms.registry import transformation, transformation_names

INSERT, DELETE, CHANGE = "insert", "delete", "change"
ONCE, AGAIN, EVERYWHERE = "once", "again", "everywhere"
MOST = 12
"""Greatest number of moves of one insertion."""
COMPOSED = 0.25
"""Probability that an insertion is a classical transformation of several moves."""


class _TooLongError(Exception):
    """A move would unroll a scope into more copies than the limits allow."""


class Editor:
    """Edits the trace of a state. It gives up when a move would unroll a scope into too many copies.

    Nearly all such edits would end in programs that are too long, after many more moves.
    """

    def __init__(
        self,
        game: Game,
        limits: LengthLimits,
        random: Random,
        drawn: Callable[[Random], Drawing] = lambda _: UNIFORM,
    ) -> None:
        self.game = game
        self._limits = limits
        self._random = random
        self._drawn = drawn
        """Draws how an edit draws."""
        self._drawing: Drawing = UNIFORM
        self._exhausted: dict[Move, Program] = {}
        """Moves without their places, and the latest program in which they are legal nowhere."""

    def edit(self) -> bool:
        """Draw an edit, and make it if possible.

        Returns False if the program would be too long; the state is then undefined.
        """
        try:
            self._edit()
        except _TooLongError:
            return False
        return not self._limits.exceeded_by(self.game)

    @property
    def _moves(self) -> list[Move]:
        return [step.resolved for step in self.game.trace.steps]

    def _edit(self) -> None:
        random = self._random
        self._drawing = self._drawn(random)
        moves = self._moves
        (kind,) = random.choices((INSERT, DELETE, CHANGE), (2, 1, 1)) if moves else [INSERT]
        if kind == INSERT:
            at = self._drawing.position(moves, random)
            self.game.become(moves[:at])
            self._insert()
            if self._limits.exceeded_by(self.game):
                raise _TooLongError
            self._continue(moves[at:])
        elif kind == DELETE:
            at = random.randrange(len(moves))
            gone = moves[at].name if random.random() < 0.5 else None
            self.game.become(moves[:at])
            self._continue([move for move in moves[at + 1 :] if move.name != gone])
        elif random.random() < 0.5:
            self._change_parameters(moves)
        else:
            self._change_family(moves)

    def drop_detours(self) -> None:
        """Drop moves between two equal programs, which only hide the other moves from edits."""
        game = self.game
        moves = self._moves
        forms = game.programs.forms()
        latest = {form: number for number, form in enumerate(forms)}
        kept: list[Move] = []
        at = latest[forms[0]]
        while at < len(moves):
            kept.append(moves[at])
            at = latest[forms[at + 1]]
        if len(kept) < len(moves):
            game.become(kept)
            # Moves fail to replay if the shorter trace names their nodes differently.
            if game.programs.forms()[-1] != forms[-1]:
                game.become(moves)

    # Insertions

    def _insert(self) -> None:
        """Insert a move once or several times, or a classical transformation, at the end."""
        if self._random.random() < COMPOSED:
            self._insert_composed()
            return
        legal_moves = each_legal(self._drawing, self.game.program, self._moves, self._random)
        choice = next(legal_moves, None)
        if choice is None:
            return
        drawn = choice.move
        self._step(drawn)
        (mode,) = self._random.choices((ONCE, AGAIN, EVERYWHERE), (2, 1, 1))
        if mode == AGAIN:
            self.game.at_once(lambda: self._make_again(drawn))
        elif mode == EVERYWHERE:
            self._at_once(lambda: self._make_everywhere(drawn))

    def _make_again(self, move: Move) -> None:
        """Repeat a move until it is illegal or leads to a program met before, from which it would repeat for ever."""
        met = {self.game.text}
        for _ in range(MOST):
            if not self._make(move) or self.game.text in met:
                break
            met.add(self.game.text)

    def _insert_composed(self) -> None:
        """Make a random classical transformation, or remap two scopes."""
        transformations = self._random.choice((*CLASSICAL, None))
        if transformations is None:
            self._map_two()
            return
        drawn = next(legal(transformations(self.game), self.game.program, self._random), None)
        if drawn is not None:
            drawn.make(self.game)

    def _map_two(self) -> None:
        """Remap a scope and a scope inside it."""
        nested = pairs(self.game)
        if nested:
            mapped = next(mapped_anew(self.game, self._random.choice(nested), self._random))
            self.game.become([step.resolved for step in mapped.trace.steps])

    # Later moves

    def _continue(self, moves: Sequence[Move]) -> None:
        """Replay the later moves of a trace by identifier; half of the time as a policy instead.

        By identifier, half of the moves that do not apply are made at another place. As a policy, finishing moves are
        made at all other legal places too, so that new parts of the program get registers, streams and so on like the
        old ones.
        """
        as_policy = self._random.random() < 0.5
        if moves:
            self._at_once(lambda: self._replay(moves, as_policy))

    def _replay(self, moves: Sequence[Move], as_policy: bool) -> None:
        for move in moves:
            is_made = self._make(move)
            if as_policy and transformation(move.name).finishes:
                self._make_everywhere(move)
            elif not is_made and self._random.random() < 0.5:
                self._make_elsewhere(move)

    def _at_once(self, plan: Callable[[], None]) -> None:
        """Make the moves of a plan at once, or one by one with the same random numbers."""
        numbers = self._random.getstate()

        def planned() -> None:
            self._random.setstate(numbers)
            self._exhausted.clear()
            plan()

        self.game.at_once(planned)

    def _make(self, move: Move) -> bool:
        """Make a move unless it is illegal; returns True if it was made."""
        program = self.game.program
        if not self._limits.forbid(program, move):
            return step_if_legal(self.game, move)
        if is_legal(program, move):
            raise _TooLongError
        return False

    def _step(self, move: Move) -> None:
        if self._limits.forbid(self.game.program, move):
            raise _TooLongError
        self.game.apply(move)

    def _make_everywhere(self, move: Move) -> None:
        """Make a move at all legal places."""
        for _ in range(MOST):
            if not self._make_elsewhere(move):
                return

    def _make_elsewhere(self, move: Move) -> bool:
        """Make a move with the same parameters at any legal place; returns False if there is none."""
        program, wanted = self.game.program, Move(move.name, "", move.params)
        if self._exhausted.get(wanted) is program:
            return False
        alike = [choice for choice in choices(program, [move.name]) if choice.move.params == move.params]
        drawn = draw_from(alike, program, self._random)
        if drawn is None:
            self._exhausted[wanted] = program
            return False
        self._step(drawn)
        return True

    # Changes

    def _change_parameters(self, moves: Sequence[Move]) -> None:
        """Give a move of the trace other legal parameters."""
        for at in shuffled([k for k, move in enumerate(moves) if move.params], self._random):
            move, program = moves[at], self.game.programs[at]
            others = [choice for choice in choices_at(program, [move.name], move.at) if choice.move != move]
            drawn = first_legal(self._drawing, others, program, moves[:at], self._random)
            if drawn is not None:
                self.game.become([*moves[:at], drawn])
                self._continue(moves[at + 1 :])
                return

    def _change_family(self, moves: Sequence[Move]) -> None:
        """Replace a move by one of another family at the same location, in its place or at the end."""
        at = self._random.randrange(len(moves))
        self.game.become(moves[:at])
        at_the_end = self._random.random() < 0.5
        if at_the_end:
            self._continue(moves[at + 1 :])
        program = self.game.program
        names = [name for name in transformation_names() if name != moves[at].name and not transformation(name).undoes]
        others = choices_at(program, names, moves[at].at)
        drawn = first_legal(self._drawing, others, program, self._moves, self._random)
        if drawn is not None:
            self._step(drawn)
        if not at_the_end:
            self._continue(moves[at + 1 :])

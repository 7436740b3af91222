"""The game: a kernel, the moves made so far, the legal moves, and undo of any earlier move."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TypeVar

from pdojo.dialect.canonical import canonicalize
from pdojo.dialect.flow.content import form_of_program
from pdojo.dialect.flow.program import Program
from pdojo.dialect.flow.shortcut import is_used
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.rules.conditions import Conditions, conditions_of
from pdojo.dialect.rules.special_mappings import check_tensor_scopes
from pdojo.dialect.rules.validate import validate
from pdojo.dialect.verification.verify import verify_nest
from pdojo.errors import IllegalMove, LocationError, Undecided, UsageError
from pdojo.transforms.apply import checked, legal, legal_moves, refused_moves
from pdojo.transforms.history import History, Place, Position, place_of
from pdojo.transforms.legality.faults import malformed
from pdojo.transforms.legality.judge import Legality, Refusal, Verdict
from pdojo.transforms.move import Move
from pdojo.transforms.shown import html_of
from pdojo.transforms.site import identify
from pdojo.transforms.trace import Step, Trace

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Skipped:
    """A later move that no longer applies after the trace was edited."""

    move: Move
    why: str

    def __str__(self) -> str:
        return f"skipped {self.move}: {self.why}"


@dataclass(frozen=True, slots=True)
class InPlace:
    """The state of moves made in place."""

    draft: Program | None
    """The present program if it is not shared; None: the next move copies it."""
    conditions: Conditions
    """Conditions of the latest program that was checked; later programs keep them by proof."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A state to return to."""

    length: int
    """Number of moves."""
    in_place: InPlace | None
    """The state of moves in place; None if moves were not made in place."""


class Game:
    """A state of the game: the initial kernel, the program now, and the trace between them.

    States are equal iff their fingerprints are, regardless of their moves. The given kernel is copied and brought into
    canonical form; it is never changed. Raises InvalidKernel for a kernel
    that is not valid, because no move could keep its meaning. `pdojo.game` also takes a text, a path or the name of a
    library kernel.

    >>> import pdojo
    >>> game = pdojo.Game(pdojo.load("softmax:4x8"), pdojo.machine("x86-64-avx2"))
    >>> game.apply("join_scopes@m:0")
    >>> [str(move) for move in game.trace.moves]
    ['join_scopes@m:0']
    """

    def __init__(self, kernel: KernelOp, machine: Machine) -> None:
        if not (isinstance(kernel, KernelOp) and isinstance(machine, Machine)):
            raise UsageError("Game takes a KernelOp and a Machine; pdojo.game also takes texts, paths and names")
        initial = kernel.clone()
        canonicalize(initial)
        self.legality = Legality()
        """The judge of all moves; the games forked from this one share it."""
        self.programs = History(Program(initial, machine, self.legality.known))
        """The programs before the first move and after each move; most of them are recomputed on demand."""
        validate(self.program)
        # Nodes accepted here are not verified again after a move.
        verify_nest(self.program.nest)
        check_tensor_scopes(self.program)
        self.trace = Trace.of(initial, machine.name)
        self._in_place: InPlace | None = None

    @property
    def program(self) -> Program:
        """The present program."""
        return self.programs.latest

    @property
    def initial(self) -> Program:
        """The program before the first move."""
        return self.programs.initial

    @property
    def places(self) -> list[Place]:
        """The place of each move."""
        return [position.place for position in self.programs.positions]

    @property
    def kernel(self) -> KernelOp:
        """The present kernel; do not modify it."""
        return self.program.kernel

    @property
    def plain(self) -> KernelOp:
        """The kernel before the first move, in canonical form."""
        return self.initial.kernel

    @property
    def machine(self) -> Machine:
        """The machine of the game."""
        return self.program.machine

    @property
    def text(self) -> str:
        """The present program in canonical notation, without identifiers."""
        return self.program.text

    @property
    def fingerprint(self) -> str:
        """Hexadecimal SHA-256 of `text`."""
        return fingerprint_of(self.text)

    def moves(self, family: str = "", at: str = "") -> list[Move]:
        """The legal moves; `family` and `at` restrict them to one family or one location."""
        return legal_moves(self.program, family, at)

    def refused(self, family: str = "", at: str = "") -> list[Refusal]:
        """The refused candidates, with reasons; `family` and `at` restrict them as in `moves`."""
        return refused_moves(self.program, family, at)

    def apply(self, move: Move | str) -> None:
        """Make a move. Raises LocationError or IllegalMove, with the state unchanged."""
        if self._in_place is not None:
            self._rewrite(Move.parse(move) if isinstance(move, str) else move, self._in_place)
            return
        verdict = checked(self.program, Move.parse(move) if isinstance(move, str) else move)
        after, _ = self.legality.make(verdict)
        self._add(*_described(verdict), after)

    @contextmanager
    def in_place(self) -> Generator[Callable[[], bool]]:
        """A context in which moves rewrite the present program in place, in a fraction of the time.

        All moves are checked as usual, but a program is invalid after the next move, unless `mark` keeps it. That the
        program is well-formed, and conditions that checks have proved, is verified once, by the function that the
        context yields. If it returns False, some move is wrong; making the moves again one by one finds it.
        """
        before = conditions_of(self.program)
        self._in_place = InPlace(None, before)
        try:
            yield lambda: self._is_sound(before)
        finally:
            self._in_place = None

    def at_once(self, plan: Callable[[], T]) -> T:
        """Make the moves of a plan in place, and return its result.

        If the check of a move proves wrong, or a move raises IllegalMove (because a move before it may have been
        wrong), the moves are taken back, and the plan makes them one by one.
        """
        mark = self.mark()
        with self.in_place() as is_sound, suppress(IllegalMove):
            result = plan()
            if is_sound():
                return result
        self.rewind(mark)
        return plan()

    def _is_sound(self, before: Conditions) -> bool:
        try:
            is_kept = malformed(self.program) is None
            return is_kept and before.broken(conditions_of(self.program), proved=True) is None
        except Undecided:
            return False

    def mark(self, *, keeps: bool = True) -> Mark:
        """The present state, to which `rewind` returns: at once if its program is kept, else by making moves again.

        Keeping the program costs a copy, on which the next move is made in place.
        """
        state = self._in_place
        lasting = None if state is None else replace(state, draft=None)
        if keeps:
            self._in_place = lasting
        return Mark(len(self.trace.steps), state if keeps else lasting)

    def rewind(self, mark: Mark) -> None:
        """Take back the moves since the mark, which is used up; marks made after it are invalid."""
        self._cut(mark.length)
        if self._in_place is not None:
            self._in_place = mark.in_place or InPlace(None, conditions_of(self.program))

    def _rewrite(self, move: Move, state: InPlace) -> None:
        """Make a move in place, on a copy if the present program may be shared."""
        verdict = legal(self.program, move, foresees=False, remembers=False)
        step, place = _described(verdict)
        is_draft = verdict.program is state.draft
        if is_draft:
            self.programs.positions[-1].program = None
        self._in_place = InPlace(None, state.conditions)
        after, conditions = self.legality.make(verdict, state.conditions, in_place=is_draft, releases=False)
        self._add(step, place, after)
        self._in_place = InPlace(after, conditions)

    def apply_all(self, moves: Iterable[Move | str]) -> None:
        """Make moves in order."""
        for move in moves:
            self.apply(move)

    def replay(self, steps: Iterable[Step]) -> list[Skipped]:
        """Make moves by identifier; moves that do not apply are skipped and reported, never applied elsewhere.

        All moves are checked as usual, but intermediate programs are not kept. That the program is well-formed, and
        conditions that checks have proved, is verified once, after the last move.
        """
        wanted, length = list(steps), len(self.trace.steps)
        if not wanted:
            return []
        start = self.programs.copy(length)
        before = conditions_of(start)
        skipped = self._replay(wanted, start, before)
        if is_used("deferred conditions") and len(self.trace.steps) > length and not self._is_sound(before):
            # The check of a move is wrong; verification after every move finds it.
            self._cut(length)
            skipped = self._replay(wanted, self.programs.copy(length), None)
        return skipped

    def _replay(self, steps: Iterable[Step], start: Program, conditions: Conditions | None) -> list[Skipped]:
        """Make moves in place; without `conditions`, those of every program are checked."""
        skipped: list[Skipped] = []
        before = len(self.programs)
        program: Program | None = start
        for step in steps:
            program = program or self.programs.copy(len(self.programs) - 1)
            try:
                verdict = checked(program, step.resolved)
            except (LocationError, IllegalMove) as error:
                skipped.append(Skipped(step.move, str(error)))
                continue
            made, place = _described(verdict)
            try:
                program, latest = self.legality.make(verdict, conditions, in_place=True)
            except IllegalMove as error:
                skipped.append(Skipped(step.move, str(error)))
                program = None  # its kernel was rewritten in place
                continue
            conditions = None if conditions is None else latest
            self._add(made, place, program, keeps=False)
        if program is not None and len(self.programs) > before:
            self.programs.positions[-1].program = program
        return skipped

    def fork(self) -> Game:
        """An independent game in the same state: neither sees the moves of the other."""
        other = Game.__new__(Game)
        other.legality = self.legality
        other.programs = self.programs.fork()
        other._in_place = None
        self.mark()
        other.trace = replace(self.trace, steps=self.trace.steps.copy())
        return other

    def become(self, moves: Iterable[Move]) -> list[Skipped]:
        """Replace the trace by these moves, located by identifier; moves that do not apply are skipped and reported.

        The common beginning of both traces is not replayed.
        """
        wanted = list(moves)
        alike = 0
        for step, move in zip(self.trace.steps, wanted, strict=False):
            if step.resolved != move:
                break
            alike += 1
        self._cut(alike)
        return self.replay(Step(move, move) for move in wanted[alike:])

    def undo(self, index: int = -1) -> list[Skipped]:
        """Remove the move at `index` of the trace (default: the last one); later moves that still apply are kept.

        Returns the later moves that no longer apply. Raises UsageError for an index that does not exist.
        """
        count = len(self.trace.steps)
        if not -count <= index < count:
            raise UsageError(f"cannot undo move {index}: the trace has {count} moves, numbered from 0")
        index %= count
        later = self.trace.steps[index + 1 :]
        self._cut(index)
        return self.replay(later)

    def __repr__(self) -> str:
        count = len(self.trace.steps)
        return f"<Game {self.kernel.sym_name.data} on {self.machine.name}: {count} move{'s' * (count != 1)} made>"

    def _repr_html_(self) -> str:
        title = f"{self.kernel.sym_name.data} on {self.machine.name}: {len(self.moves())} legal moves"
        return html_of(title, self.program.text, self.trace.moves)

    def _add(self, step: Step, place: Place, program: Program, *, keeps: bool = True) -> None:
        form = form_of_program(program.nest)
        self.programs.positions.append(Position(step.resolved, place, program if keeps else None, form))
        self.trace.steps.append(step)

    def _cut(self, length: int) -> None:
        del self.programs.positions[length:], self.trace.steps[length:]


def fingerprint_of(text: str) -> str:
    """Hexadecimal SHA-256 of a program's canonical text."""
    return sha256(text.encode()).hexdigest()


def _described(verdict: Verdict) -> tuple[Step, Place]:
    """A move as written in a trace, and its place."""
    resolved = verdict.transformation.as_move(identify(verdict.site))
    return Step(verdict.move, resolved), place_of(verdict.program, verdict.site)

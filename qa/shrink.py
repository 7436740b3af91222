"""Shrinks a failed walk, and prints it as a lit test."""

from __future__ import annotations

from collections.abc import Sequence

from pdojo.dialect.canonical import canonicalize
from pdojo.dialect.notation import parse_notation, print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.build import assign_ids, nest_of
from pdojo.errors import PdojoError
from pdojo.transforms.apply import apply
from pdojo.transforms.game import Game
from pdojo.transforms.trace import Step
from qa.walks import Check, FailedWalk, Failure, Referee, play

ATTEMPTS = 400
"""Greatest number of replays for one shrinking."""


def shrunk(failed: FailedWalk, check: Check | None = None) -> FailedWalk:
    """The failure with as few moves and statements as possible: none of them can be left out alone."""
    return Shrinker(failed, check).run()


class Shrinker:
    """Removes moves and statements while the same promise is broken."""

    keeps_last = True
    """True if the last move is the judged one."""

    def __init__(self, failed: FailedWalk, check: Check | None) -> None:
        self.best = failed
        self.check = check
        self.sets_every = int(failed.failure.promise == "integer sets")
        self.attempts = 0

    def run(self) -> FailedWalk:
        """The smallest failure found."""
        progress = True
        while progress and self.attempts < ATTEMPTS:
            progress = self._without_moves() or self._without_statements()
        return self.best

    def _without_moves(self) -> bool:
        progress = False
        last = int(self.keeps_last)
        size = max(1, (len(self.best.steps) - last) // 2)
        while size:
            start = len(self.best.steps) - last - size
            while start >= 0:
                steps = [*self.best.steps[:start], *self.best.steps[start + size :]]
                progress |= self._fails(self.best.kernel, steps)
                start -= size
            size //= 2
        return progress

    def _without_statements(self) -> bool:
        """Remove one top-level node if the rest is a valid kernel that still fails."""
        kernel = _with_ids(self.best.kernel)
        count = len(nest_of(kernel).children)
        for position in range(count - 1, -1, -1):
            smaller = kernel.clone()
            children = nest_of(smaller).children
            if len(children) > 1:
                children[position].op.detach()
                children[position].op.erase()
                if self._fails(smaller, self.best.steps):
                    return True
        return False

    def _fails(self, kernel: KernelOp, steps: Sequence[Step]) -> bool:
        """True if the last move still breaks the same promise; moves that do not apply are left out."""
        self.attempts += 1
        if self.attempts > ATTEMPTS:
            return False
        try:
            found = self.judged(kernel, steps)
        except PdojoError:
            return False
        if found is None:
            return False
        self.best = FailedWalk(kernel, self.best.machine, self.best.seed, *found)
        return True

    def judged(self, kernel: KernelOp, steps: Sequence[Step]) -> tuple[list[Step], Failure] | None:
        """The steps that apply, and the broken promise; None if it is not the same as before."""
        game = Game(kernel, self.best.machine)
        game.replay(steps[:-1])
        kept = list(game.trace.steps)
        referee = Referee(game.programs[0], self.best.seed, schedules=8, check=self.check, sets_every=self.sets_every)
        failure = play(game, steps[-1].resolved, referee, 0)
        if failure is None or failure.promise != self.best.failure.promise:
            return None
        last = game.trace.steps[-1] if len(game.trace.steps) > len(kept) else steps[-1]
        return [*kept, last], failure


def _with_ids(kernel: KernelOp) -> KernelOp:
    """A copy whose nodes have the identifiers of a game."""
    copy = kernel.clone()
    assign_ids(copy)
    canonicalize(copy)
    return copy


def lit_test(failed: FailedWalk) -> str:
    """A lit test of the failure: it refuses an illegal move, or checks the promise of a legal one."""
    moves = [str(step.move) for step in failed.steps]
    note = "\n".join(f"# {line}" for line in f"{failed.failure.promise}: {failed.failure.detail}".splitlines())
    if failed.failure.promise in ("meaning", "integer sets"):
        runs = [f"# RUN: not {command(failed, moves)} 2>&1 | filecheck %s", f"# CHECK: {moves[-1]} is refused"]
    elif failed.failure.promise == "inverse":
        runs = [
            f"# RUN: {command(failed, moves[:-1])} -t notation > %t",
            f"# RUN: {command(failed, [*moves, _inverse(failed)])} -t notation | diff %t -",
        ]
    else:
        runs = [f"# RUN: {command(failed, moves)} --verify -t notation | pdojo-opt --input-format=notation"]
    return "\n".join([*runs, note, print_notation(failed.kernel)])


def command(failed: FailedWalk, moves: Sequence[str]) -> str:
    """The command line that makes the moves on the failed walk's machine."""
    return " ".join([f"pdojo-opt %s --machine {failed.machine.name}", *(f"--apply='{move}'" for move in moves)])


def _inverse(failed: FailedWalk) -> str:
    """The inverse of the last move, with the identifiers of the printed kernel."""
    (kernel,) = parse_notation(print_notation(failed.kernel))
    game = Game(kernel, failed.machine)
    *moves, last = (step.move for step in failed.steps)
    game.apply_all(moves)
    made = apply(game.program, last, verify=False)
    return str(made.transformation.inverse(made.before, made.site))

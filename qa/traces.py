"""Checks of random traces: exact undo, edits in the middle, replay from the text.

For a trace of legal moves: undoing restores the text and all identifiers of every state. The printed trace, parsed,
gives the same program, by identifier and by location. Undoing one move in the middle keeps the later moves that still
apply, and the result verifies, is valid and means the same.
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from random import Random

from xdsl.utils.exceptions import DiagnosticException

from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.notation import print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.rules.validate import validate
from pdojo.dialect.semantics.oracle import equivalent
from pdojo.errors import PdojoError
from pdojo.transforms.apply import apply
from pdojo.transforms.game import Game
from pdojo.transforms.trace import Step, Trace
from qa.shrink import Shrinker, command
from qa.walks import Announce, Counts, FailedWalk, Failure, draw, fingerprint, silently

MEANING = 8
"""One edited trace in this many is executed exactly; all are verified and validated."""

REPLAY = 3
"""One trace in this many is replayed from its text, by identifier or by location."""


def draw_trace(
    kernel: KernelOp, machine: Machine, random: Random, longest: int, counts: Counts, announce: Announce = silently
) -> Game:
    """A game of 1 to `longest` random legal moves, each announced before it is made. Raises InvalidKernel."""
    game = Game(kernel, machine)
    for _ in range(random.randint(1, longest)):
        move = draw(game.program, random, Counts())
        if move is None:
            break
        announce(move)
        game.apply(move)
        counts["moves", move.name] += 1
    counts["traces", ""] += 1
    counts["lengths", str(len(game.trace.steps))] += 1
    return game


def check_trace(game: Game, random: Random, counts: Counts) -> Failure | None:
    """The first promise that the trace breaks."""
    if not game.trace.steps:
        return None
    index = random.randrange(len(game.trace.steps))
    execute = random.randrange(MEANING) == 0
    ways = [random.random() < 0.5] if random.randrange(REPLAY) == 0 else []
    return _broken(game, index, ways, counts, execute=execute)


def _broken(game: Game, index: int, ways: Sequence[bool], counts: Counts, *, execute: bool) -> Failure | None:
    """The first broken promise; `ways` are those of replaying: by location, or by identifier."""
    counts["replayed", ""] += len(ways)
    try:
        replays = (replayed(game, by_location=each) for each in ways)
        return undone(game, index) or next(filter(None, replays), None) or edited(game, index, counts, execute=execute)
    except (PdojoError, DiagnosticException) as error:
        return Failure("trace", str(error))
    except Exception:  # noqa: BLE001  # a crash is a finding like any other
        return Failure("no crash", traceback.format_exc(limit=-4))


def undone(game: Game, length: int) -> Failure | None:
    """Undoing all but the first `length` moves gives the program of these moves alone, with its identifiers."""
    back = game.fork()
    while len(back.trace.steps) > length:
        back.undo()
    alone = Game(game.initial.kernel, game.machine)
    alone.apply_all(step.resolved for step in game.trace.steps[:length])
    if fingerprint(back.kernel) != fingerprint(alone.kernel):
        return Failure("undo all", f"undoing to {length} moves gives another program:\n{print_notation(back.kernel)}")
    return None


def replayed(game: Game, *, by_location: bool) -> Failure | None:
    """The printed trace, parsed, gives the same program, by identifier or by location."""
    program = game.programs[0]
    for step in Trace.parse(game.trace.dump()).steps:
        program = apply(program, step.move if by_location else step.resolved, verify=False).program
    if fingerprint(program.kernel) != fingerprint(game.kernel):
        how = "location" if by_location else "identifier"
        return Failure("replay", f"by {how}, the trace gives another program:\n{print_notation(program.kernel)}")
    return None


def edited(game: Game, index: int, counts: Counts, *, execute: bool) -> Failure | None:
    """After undoing one move, the remaining program verifies, is valid and means the same."""
    length = len(game.trace.steps)
    skipped = game.undo(index)
    counts["edited", ""] += 1
    counts["skipped", ""] += len(skipped)
    counts["kept", ""] += length - index - 1 - len(skipped)
    try:
        game.kernel.verify()
        validate(game.program)
    except (PdojoError, DiagnosticException) as error:
        return Failure(f"undo {index}", f"what is left is not valid: {error}\n{print_notation(game.kernel)}")
    if execute:
        counts["executed", ""] += 1
        difference = equivalent(game.programs[0].nest, game.program.nest)
        if difference is not None:
            return Failure(f"undo {index}", str(difference))
    return None


class _TraceShrinker(Shrinker):
    keeps_last = False

    def judged(self, kernel: KernelOp, steps: Sequence[Step]) -> tuple[list[Step], Failure] | None:
        """The steps that apply, and the broken promise; None if none is broken."""
        game = Game(kernel, self.best.machine)
        game.replay(steps)
        kept = list(game.trace.steps)
        wanted = self.best.failure.promise
        for index in range(len(kept)):
            if index:
                game = Game(kernel, self.best.machine)
                game.replay(kept)
            failure = _broken(game, index, (False, True), Counts(), execute=True)
            if failure is not None and _kind(failure.promise) == _kind(wanted):
                return kept, failure
        return None


def _kind(promise: str) -> str:
    """The promise without its number, so that `undo 3` and `undo 4` are equal."""
    return promise.rstrip("0123456789")


def shrunk_trace(failed: FailedWalk) -> FailedWalk:
    """The failing trace with as few moves and statements as possible."""
    return _TraceShrinker(failed, None).run()


def trace_lit_test(failed: FailedWalk) -> str:
    """A lit test that makes the moves and undoes all or one of them."""
    moves = [str(step.move) for step in failed.steps]
    note = "\n".join(f"# {line}" for line in f"{failed.failure.promise}: {failed.failure.detail}".splitlines())
    if failed.failure.promise.startswith("undo ") and failed.failure.promise != "undo all":
        index = failed.failure.promise.split()[1]
        runs = [f"# RUN: {command(failed, moves)} --skip-illegal --undo={index} --verify -t notation"]
    else:
        back = " ".join(f"--undo={number}" for number in reversed(range(len(moves))))
        runs = [
            f"# RUN: {command(failed, [])} -t notation > %t",
            f"# RUN: {command(failed, moves)} {back} -t notation | diff %t -",
        ]
    return "\n".join([*runs, note, print_notation(failed.kernel)])

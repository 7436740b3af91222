"""Checkpoints of a search's strategy: when they are saved, and how a search goes on from one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from time import perf_counter

from pdojo.backends.common.source_digest import whole_digest
from pdojo.backends.measure import MeasuredProgram
from pdojo.errors import NotationError, UsageError
from pdojo.search.contract.evaluation import Candidate
from pdojo.search.contract.node import LoggedProposal, Node, Proposal
from pdojo.search.contract.strategy import OutdatedState, Saved, Strategy
from pdojo.search.database.checkpoints import Checkpoint
from pdojo.search.engine.record import Asked, SearchRecord
from pdojo.transforms.game import Game
from pdojo.transforms.trace import Trace

SAVE_EVERY = 1.0
"""Seconds between two checkpoints of a strategy that has them; more if a checkpoint takes long."""
SAVE_SHARE = 0.02
"""Most of the time that checkpoints may take."""
MOVES = ("dialect/**/*.py", "transforms/**/*.py")
"""Files that decide where moves lead."""


class OldCheckpoint(Exception):
    """pdojo has changed, so that a checkpoint does not fit: traces of the log, or states of the strategy."""


class Checkpoints:
    """Checkpoints of a strategy in the log of a search."""

    def __init__(self, strategy: Strategy, start: Game, record: SearchRecord) -> None:
        self.strategy, self.start, self.record = strategy, start, record
        self.can_save = isinstance(strategy, Saved) and record.log.keeps_checkpoints
        """True if the strategy has checkpoints, and the database outlives the process."""
        self.batches: list[int] = []
        """Number of new programs in each batch so far, without the root."""
        self._due = perf_counter() + SAVE_EVERY

    def is_due(self) -> bool:
        """Whether it is time for the next checkpoint."""
        return perf_counter() >= self._due

    def save(self, stale: int) -> None:
        """Save the strategy as it was after the last batch; nothing happens if it has no checkpoints."""
        if not self.can_save:
            return
        assert isinstance(self.strategy, Saved)
        began = perf_counter()
        with self.record.times.of("store"):
            told, state = len(self.record.known), self.strategy.save()
            checkpoint = Checkpoint(whole_digest(*MOVES), told, tuple(self.batches), self.record.repeated, stale, state)
            self.record.log.keep_checkpoint(checkpoint)
        now = perf_counter()
        self._due = now + max(SAVE_EVERY, (now - began) / SAVE_SHARE)

    def saved(self) -> Checkpoint | None:
        """The last checkpoint of an earlier process; None if there is none."""
        return self.record.log.checkpoint() if isinstance(self.strategy, Saved) else None

    def logged(self, saved: Checkpoint) -> Iterator[list[Asked]]:
        """The batches until a checkpoint, as the log has them.

        Moves of the log are made again only if pdojo has changed since. Raises OldCheckpoint if they lead elsewhere.
        """
        is_known = saved.code == whole_digest(*MOVES)
        logged = iter(self.record.log.proposals(saved.told)[1:])
        for size in saved.batches:
            asked: list[Asked] = []
            for fingerprint, text, trace, parent in islice(logged, size):
                near = self.record.known.get(parent or "", self.record.root)
                if is_known:
                    program = MeasuredProgram(text, self.start.machine)
                    asked.append(LoggedProposal(Candidate(program, fingerprint), trace, near))
                else:
                    asked.append(Proposal(_made_again(near, trace, fingerprint), near))
            yield asked

    def restore(self, saved: Checkpoint) -> None:
        """Give the strategy its state. Raises OldCheckpoint if it was saved by a pdojo that saves other things."""
        assert isinstance(self.strategy, Saved)
        try:
            self.strategy.restore(saved.data, {node.number: node for node in self.record.known.values()})
        except (OutdatedState, UsageError, NotationError):
            # The file is as it was saved (`database.checkpoints`).
            raise OldCheckpoint from None


def _made_again(near: Node, trace: Trace, fingerprint: str) -> Game:
    """The state of a trace, made from one nearby. Raises OldCheckpoint if it has another fingerprint."""
    game = near.game.fork()
    if game.become([step.resolved for step in trace.steps]) or game.fingerprint != fingerprint:
        raise OldCheckpoint
    return game

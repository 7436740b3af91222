"""Children of states: neighbours of a state, or of a cross of two states; computed in this process or in several."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import current_process
from pathlib import Path
from random import Random
from time import perf_counter

from pdojo.backends.common.processes import Pool, needs_main
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.notation import parse_notation, print_notation
from pdojo.dialect.view.build import assign_ids, ids_of
from pdojo.errors import UsageError
from pdojo.search.contract.neighbourhood import Neighbourhood, near_after
from pdojo.search.contract.strategy import Parents, ProposalExecutor
from pdojo.search.neighbourhoods.crossing import cross
from pdojo.transforms.game import Game
from pdojo.transforms.move import Move

ALONE = 5.0
"""Seconds for which this process proposes children alone before it starts other processes; many searches end sooner."""
KEPT = 16
"""Number of states that a process keeps to make others from."""


def seed_of(random: Random) -> int:
    """A seed for a child."""
    return random.getrandbits(64)


def child(
    first: Game, second: Sequence[Move] | None, known: Sequence[str], near: Neighbourhood, seed: int
) -> Game | None:
    """A neighbour of `first`, or of its cross with the moves `second`; half of the time the cross itself.

    The moves of a cross apply as far as they are legal. `known` are the fingerprints of the parents: a cross equal to a
    parent is no child.
    """
    random = Random(seed)
    base = first
    if second is not None:
        base = first.fork()
        base.become(cross([step.resolved for step in first.trace.steps], second, random))
        if base.fingerprint not in known and random.random() < 0.5:
            return base
    return near.neighbour(base, random)


class LocalExecutor:
    """Makes children one by one, on demand."""

    def __init__(self, near: Neighbourhood) -> None:
        self._near = near

    def of(self, wanted: Iterable[Parents]) -> Iterator[Game | None]:
        """The children, lazily."""
        return (self.one(parents) for parents in wanted)

    def rest(self) -> None:
        """Return at once: no child is made ahead."""

    def one(self, parents: Parents) -> Game | None:
        """The child of `parents`."""
        near = near_after(self._near, parents.evaluations)
        return child(parents.first.game, *_second(parents), near, parents.seed)


class ProcessExecutor:
    """Proposes children in this process, and after `alone` seconds of it in other processes too.

    The children do not depend on the process: other processes send moves, which this one replays. Raises UsageError if
    the neighbourhood cannot be pickled, or if this process may not start others.
    """

    def __init__(self, near: Neighbourhood, start: Game, count: int, alone: float) -> None:
        _check(near)
        self._here = LocalExecutor(near)
        self._left = alone
        ids = ids_of(start.plain)
        self.pool = Pool(count, _begin, print_notation(start.plain), ids, start.machine, near)

    def of(self, wanted: Iterable[Parents]) -> Iterator[Game | None]:
        """The children, several at once."""
        orders = list(wanted)
        if self._left > 0:
            return self._alone(orders)
        return self._made(orders, self.pool.map(_make, [_order(parents) for parents in orders]))

    def rest(self) -> None:
        """Wait for the processes."""
        self.pool.rest()

    def _alone(self, orders: Sequence[Parents]) -> Iterator[Game | None]:
        for parents in orders:
            began = perf_counter()
            made = self._here.one(parents)
            self._left -= perf_counter() - began
            yield made

    def _made(self, orders: Sequence[Parents], answers: Iterator[_Answer | None]) -> Iterator[Game | None]:
        for parents, answer in zip(orders, answers, strict=True):
            yield None if answer is None else answer.played(parents.first.game)


def _check(near: Neighbourhood) -> None:
    """Raise UsageError if the neighbourhood cannot be sent to other processes."""
    if current_process().daemon:
        raise UsageError("a daemonic process cannot start other processes; leave out the proposers")
    try:
        pickle.loads(pickle.dumps(near))
    except Exception as error:  # noqa: BLE001  # whatever the class raises
        raise UsageError(
            f"the neighbourhood '{near.name}' cannot be sent to other processes: {error}; leave out the proposers"
        ) from None
    main = sys.modules["__main__"]
    is_file = main.__spec__ is not None or Path(getattr(main, "__file__", None) or "").is_file()
    if needs_main(near) and not is_file:
        raise UsageError(
            f"the neighbourhood '{near.name}' is not defined in a file, so that other processes cannot import it; "
            "move it to a module, or leave out the proposers"
        )


@contextmanager
def proposal_executor(near: Neighbourhood, start: Game, proposers: int) -> Generator[ProposalExecutor]:
    """An executor with `proposers` processes, for children of states that come from `start`. Raises UsageError."""
    if proposers == 1:
        yield LocalExecutor(near)
        return
    others = ProcessExecutor(near, start, proposers, ALONE)
    try:
        yield others
    finally:
        others.pool.close()


# Messages between processes


@dataclass(frozen=True)
class _ChildOrder:
    """Parents as plain data."""

    first: tuple[Move, ...]
    second: tuple[Move, ...] | None
    known: tuple[str, ...]
    seed: int
    evaluations: int

    def __str__(self) -> str:
        return f"the child of a trace of {len(self.first)} moves by seed {self.seed}"


@dataclass(frozen=True)
class _Answer:
    """A child as plain data."""

    moves: tuple[Move, ...]
    fingerprint: str

    def played(self, near: Game) -> Game:
        """The child. `near` is a state that may share its first moves."""
        game = near.fork()
        skipped = game.become(self.moves)
        assert not skipped, f"a child does not apply in this process: {skipped[0]}"
        assert game.fingerprint == self.fingerprint, "a child is another program in this process"
        return game


def _second(parents: Parents) -> tuple[tuple[Move, ...] | None, tuple[str, ...]]:
    first, second = parents.first, parents.second
    return (None, ()) if second is None else (second.moves, (first.fingerprint, second.fingerprint))


def _order(parents: Parents) -> _ChildOrder:
    return _ChildOrder(parents.first.moves, *_second(parents), parents.seed, parents.evaluations)


class _Maker:
    """Makes children for another process, from the states that it keeps."""

    def __init__(self, start: Game, near: Neighbourhood) -> None:
        self._near = near
        self._kept: dict[tuple[Move, ...], Game] = {(): start}
        """States by their moves, the latest used last."""

    def make(self, order: _ChildOrder) -> _Answer | None:
        near = near_after(self._near, order.evaluations)
        made = child(self._state(order.first), order.second, order.known, near, order.seed)
        return None if made is None else _Answer(tuple(step.resolved for step in made.trace.steps), made.fingerprint)

    def _state(self, moves: tuple[Move, ...]) -> Game:
        found = self._kept.pop(moves, None)
        if found is None:
            found = self._kept[max(self._kept, key=lambda kept: _common(kept, moves))].fork()
            skipped = found.become(moves)
            assert not skipped, f"a trace does not apply in this process: {skipped[0]}"
        self._kept[moves] = found
        if len(self._kept) > KEPT:
            del self._kept[next(iter(self._kept))]
        return found


def _common(one: Sequence[Move], other: Sequence[Move]) -> int:
    """Number of first moves that two traces share."""
    return next((k for k, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


_maker: _Maker | None = None


def _begin(plain: str, ids: Sequence[str], machine: Machine, near: Neighbourhood) -> None:
    global _maker  # a process makes the children of one kernel
    kernel = parse_notation(plain)[0]
    assign_ids(kernel, ids)
    _maker = _Maker(Game(kernel, machine), near)


def _make(order: _ChildOrder) -> _Answer | None:
    assert _maker is not None
    return _maker.make(order)

"""The choice among plans of a pass by the cycles of their programs on the simulator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.measure.arrays import random_inputs
from pdojo.backends.snitch.executable import load
from pdojo.errors import CycleLimit, LoweringError
from pdojo.passes.common.builder import PassBuilder
from pdojo.transforms.move import Move

T = TypeVar("T")
Plan = Callable[[PassBuilder], None]
"""Makes moves on a game."""
CYCLES = 20_000
"""Most cycles of a simulation: longer kernels, whose simulations take seconds, get the first plan."""
SEED = 0
"""The seed of the inputs."""


class _Tried(NamedTuple):
    """A plan's moves, and the cycles of the program that they make."""

    cycles: int | None
    """None if there are more than the limit, or the core cannot run the program."""
    moves: list[tuple[Move, str]]
    """The moves, each with the reason for it."""


def cheapest(
    builder: PassBuilder,
    prepare: Callable[[PassBuilder], T],
    plans: Sequence[Callable[[PassBuilder, T], None]],
    other: Plan,
) -> None:
    """Make the moves of the plan whose program takes the fewest cycles; of the first one if its cycles are not known.

    `prepare` makes the moves that all `plans` begin with, and returns what they need; `other` is one more plan, by
    itself. Programs with sizes known at run time, and programs that the core cannot run, have no cycles.
    """
    best: _Tried | None = None

    def tried() -> bool:
        nonlocal best
        start = _Place.of(builder)
        known = prepare(builder)
        first = start.moves(builder)
        found = _tried(builder, lambda b: plans[0](b, known), CYCLES)
        if found is not None:
            for plan in plans[1:]:
                found = _cheaper(builder, found, lambda b, plan=plan: plan(b, known))
            best = found._replace(moves=[*first, *found.moves])
        return False

    builder.transact(tried)
    if best is None:
        plans[0](builder, prepare(builder))
        return
    for move, why in _cheaper(builder, best, other).moves:
        builder.make(move.name, move.at, why, **dict(move.params))


def _cheaper(builder: PassBuilder, best: _Tried, plan: Plan) -> _Tried:
    """A plan's program if it takes fewer cycles than the best one, else that one; also if its cycles are not known."""
    if best.cycles is None:
        return best
    found = _tried(builder, plan, best.cycles)
    return best if found is None or found.cycles is None or found.cycles >= best.cycles else found


class _Place(NamedTuple):
    """Numbers of moves and of notes so far."""

    steps: int
    notes: int

    @staticmethod
    def of(builder: PassBuilder) -> _Place:
        return _Place(len(builder.game.trace.steps), len(builder.notes))

    def moves(self, builder: PassBuilder) -> list[tuple[Move, str]]:
        """The moves since then, each with the reason for it."""
        moves = [step.resolved for step in builder.game.trace.steps[self.steps :]]
        return list(zip(moves, [note.why for note in builder.notes[self.notes :]], strict=True))


def _tried(builder: PassBuilder, plan: Plan, limit: int) -> _Tried | None:
    """The moves that a plan makes, of which none remains, and the cycles of its program; None if a move is refused."""
    before = _Place.of(builder)
    found: list[_Tried] = []

    def tried() -> bool:
        plan(builder)
        found.append(_Tried(_cycles(builder, limit), before.moves(builder)))
        return False

    builder.transact(tried)
    return found[0] if found else None


def _cycles(builder: PassBuilder, limit: int) -> int | None:
    """The cycles of the present program; None if there are more than `limit`, or the core cannot run it."""
    nest = builder.nest
    if nest.sizes or builder.interface_bytes() > builder.game.machine.cache_bytes[-1]:
        return None
    try:
        inputs = random_inputs(parameters_of(nest), SEED)
        return load(builder.game.kernel, builder.game.machine).run(inputs, limit=limit).result.cycles
    except (LoweringError, CycleLimit):
        return None

"""The choice among plans of a pass by the cycles of their programs on the simulator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.measure.arrays import random_inputs
from pdojo.backends.snitch.executable import load
from pdojo.errors import CycleLimit, LoweringError
from pdojo.passes.common.builder import PassBuilder
from pdojo.transforms.move import Move

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


def cheapest(builder: PassBuilder, plans: Sequence[Plan]) -> None:
    """Make the moves of the plan whose program takes the fewest cycles; of the first one if its cycles are not known.

    Programs with sizes known at run time, and programs that the core cannot run, have no cycles.
    """
    best = _tried(builder, plans[0], CYCLES)
    if best is None:
        plans[0](builder)
        return
    for plan in plans[1:]:
        if best.cycles is None:
            break
        found = _tried(builder, plan, best.cycles)
        if found is not None and found.cycles is not None and found.cycles < best.cycles:
            best = found
    for move, why in best.moves:
        builder.make(move.name, move.at, why, **dict(move.params))


def _tried(builder: PassBuilder, plan: Plan, limit: int) -> _Tried | None:
    """The moves that a plan makes, of which none remains, and the cycles of its program; None if a move is refused."""
    before, noted = len(builder.game.trace.steps), len(builder.notes)
    found: list[_Tried] = []

    def tried() -> bool:
        plan(builder)
        moves = [step.resolved for step in builder.game.trace.steps[before:]]
        reasons = [note.why for note in builder.notes[noted:]]
        found.append(_Tried(_cycles(builder, limit), list(zip(moves, reasons, strict=True))))
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

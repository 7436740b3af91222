"""The choice among plans of a pass by the cycles of their programs on the simulator."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.measure.arrays import random_inputs
from pdojo.backends.snitch.executable import load
from pdojo.errors import PdojoError
from pdojo.passes.common.builder import PassBuilder

Plan = Callable[[PassBuilder], None]
"""Makes moves on a game."""
CYCLES = 20_000
"""Most cycles of a simulation: longer kernels, whose simulations take seconds, get the first plan."""
SEED = 0
"""The seed of the inputs."""


def cheapest(builder: PassBuilder, plans: Sequence[Plan]) -> None:
    """Make the moves of the plan whose program takes the fewest cycles; of the first one if its cycles are not known.

    Programs with sizes known at run time, and programs that the core cannot run, have no cycles.
    """
    least, best = cycles(builder, plans[0], CYCLES), plans[0]
    if least is not None:
        for plan in plans[1:]:
            found = cycles(builder, plan, least)
            if found is not None and found < least:
                least, best = found, plan
    best(builder)


def cycles(builder: PassBuilder, plan: Plan, limit: int) -> int | None:
    """The cycles of the program that a plan makes, of which nothing remains; None if there are more than `limit`."""
    found: list[int | None] = []

    def tried() -> bool:
        plan(builder)
        found.append(_simulated(builder, limit))
        return False

    builder.transact(tried)
    return found[0] if found else None


def _simulated(builder: PassBuilder, limit: int) -> int | None:
    """The cycles of the present program; None if there are more than `limit`, or the core cannot run it."""
    nest = builder.nest
    if nest.sizes:
        return None
    try:
        inputs = random_inputs(parameters_of(nest), SEED)
        return load(builder.game.kernel, builder.game.machine).run(inputs, limit=limit).result.cycles
    except PdojoError:
        return None

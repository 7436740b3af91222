"""Validation: comparison of a program's results with the plain kernel's on fresh random inputs."""

from __future__ import annotations

from dataclasses import dataclass
from secrets import randbelow

from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.measure import KernelReference, MeasuredProgram, Options
from pdojo.backends.measure.arrays import random_inputs
from pdojo.backends.measure.check import Rounding, compare_all
from pdojo.backends.measure.outcome import Success
from pdojo.backends.registry import backend_of
from pdojo.dialect.notation import print_notation
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.view.build import nest_of
from pdojo.errors import LoweringError
from pdojo.search.environment.reward_model import OK
from pdojo.transforms.game import Game

LARGEST_SEED = 1 << 62
"""Exclusive upper bound of fresh seeds."""


@dataclass(frozen=True)
class Validation:
    """The comparison of a program with the plain kernel."""

    status: str
    """`Ok`, or the kind of the failure: `WrongResult`, `Crash` ..."""
    summary: str
    """One line for people."""
    seed: int
    """The seed of the inputs."""
    ran: bool
    """True if the machine's code ran; False if the interpreter ran, because this computer cannot run the code."""

    @property
    def is_ok(self) -> bool:
        """True if the results agree."""
        return self.status == OK


def validate(game: Game, seed: int | None = None) -> Validation:
    """Run a state's program and the plain kernel on random inputs of a seed (None: a fresh one), and compare.

    The program's code runs in its own process if this computer can run it; else the reference interpreter runs it, with
    the memory and a schedule of a compiled program. Raises MeasurementError if the plain kernel has no result.
    """
    chosen = randbelow(LARGEST_SEED) if seed is None else seed
    backend = backend_of(game.machine)
    try:
        backend.check_runs_here(game.machine)
    except LoweringError:
        return _interpreted(game, chosen)
    options = Options(threads=game.machine.threads, seed=chosen, samples=1)
    reference = KernelReference(print_notation(game.plain), compiled=not backend.is_simulated)
    with backend.runs() as runs:
        (outcome,) = runs.compare([MeasuredProgram.of(game.kernel, game.machine)], options, reference)
    status = OK if isinstance(outcome, Success) else type(outcome).__name__
    return Validation(status, outcome.summary, chosen, ran=True)


def _interpreted(game: Game, seed: int) -> Validation:
    nest, plain = game.program.nest, nest_of(game.plain)
    parameters = parameters_of(plain)
    inputs = random_inputs(parameters, seed)
    results = interpret(nest, inputs, seed=seed, storage="cells")
    references = interpret(plain, inputs)
    rounding = Rounding.of(nest) | Rounding.of(plain)
    _, wrong = compare_all(parameters, results, references, rounding)
    return Validation(
        OK if wrong is None else "WrongResult", wrong or "the interpreter's results agree", seed, ran=False
    )

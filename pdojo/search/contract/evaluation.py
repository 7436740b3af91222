"""Evaluations of programs: costs and failures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, Protocol, TypeAlias, runtime_checkable

from pdojo.backends.measure import MeasuredProgram
from pdojo.backends.measure.outcome import JSON, outcome_from_json
from pdojo.dialect.view.nest import Nest
from pdojo.transforms.game import Game, fingerprint_of


@dataclass(frozen=True)
class Candidate:
    """A program to evaluate."""

    program: MeasuredProgram
    fingerprint: str
    """Fingerprint of the program's canonical text."""
    nest: Nest | None = field(default=None, compare=False, repr=False)
    """The parsed program; None if only its text is known."""

    @staticmethod
    def of(game: Game) -> Candidate:
        """The program of a state."""
        text = game.text
        return Candidate(MeasuredProgram(text, game.machine), fingerprint_of(text), game.program.nest)


@dataclass(frozen=True)
class Evaluation:
    """A cost, or a failure."""

    cost: float
    """Less is better, in the evaluator's unit; infinite after a failure."""
    failure: str = ""
    """Kind of the failure: the name of an outcome, such as `Timeout`; '' if there is none."""
    detail: JSON = field(default_factory=dict[str, Any], compare=False)
    """Further facts: the outcome of a measurement, the parts of a model."""
    seconds: Mapping[str, float] = field(default_factory=dict[str, float], compare=False)
    """Seconds of each phase: `lower`, `compile`, `run`, `check`."""

    @staticmethod
    def failed(kind: str, detail: JSON, seconds: Mapping[str, float] | None = None) -> Evaluation:
        """The evaluation of a program that failed."""
        return Evaluation(inf, kind, detail, seconds or {})

    @property
    def is_ok(self) -> bool:
        """True if there is a cost."""
        return not self.failure


def reason(evaluation: Evaluation) -> str:
    """The reason for a failure, on one line."""
    try:
        text = outcome_from_json(evaluation.detail).summary
    except ValueError:
        text = str(evaluation.detail.get("message", evaluation.failure))
    return text.splitlines()[0] if text else evaluation.failure


Listener: TypeAlias = Callable[[str], None]
"""Receives the evaluator's current activity, in a few words, for progress displays."""


class Evaluator(Protocol):
    """Computes costs of programs.

    It is either `Computing`, with deterministic costs (a simulator, a model), or `Timing`
    (`pdojo.search.contract.racing`), with measured, noisy costs.
    """

    name: str
    """The name for users, such as `runtime`, `analytical` or `cycles`."""
    unit: str
    """Unit of costs: `s`, `cycles`, or '' for a model's number."""

    @property
    def settings(self) -> JSON:
        """Everything except the program that costs depend on: machine, options, tool chain."""
        ...

    def expect(self, candidate: Candidate) -> None:
        """Announce a program of the next batch: preparations may begin in the background."""
        ...

    def close(self) -> None:
        """End all processes of the evaluator."""
        ...


@runtime_checkable
class Computing(Evaluator, Protocol):
    """An evaluator with deterministic costs."""

    def evaluate(self, candidates: Sequence[Candidate], listener: Listener | None = None) -> Iterable[Evaluation]:
        """The cost of each program, in order; the caller stores each cost before the next is computed."""
        ...

    def check(self, candidate: Candidate) -> Evaluation:
        """Evaluate a program on fresh inputs."""
        ...

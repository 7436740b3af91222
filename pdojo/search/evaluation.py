"""What a search wants to know of programs: their cost, or how they failed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, Protocol, TypeAlias, runtime_checkable

from pdojo.backends.measure import Program
from pdojo.dialect.nest import Nest
from pdojo.search.dojo import Dojo, fingerprint_of

JSON: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Candidate:
    """A program to evaluate."""

    program: Program
    fingerprint: str
    """Of the program's canonical text."""
    nest: Nest | None = field(default=None, compare=False, repr=False)
    """The program as it is in this process; None if only its text is known."""

    @staticmethod
    def of(dojo: Dojo) -> Candidate:
        """The program of a state."""
        text = dojo.text
        return Candidate(Program(text, dojo.machine), fingerprint_of(text), dojo.game.program.nest)


@dataclass(frozen=True)
class Evaluation:
    """A cost, or the way in which a program failed."""

    cost: float
    """Less is better, in the evaluator's unit; infinite where the program failed."""
    failure: str = ""
    """Kind of the failure: the name of an outcome, such as `Timeout`; '' if there is none."""
    detail: JSON = field(default_factory=dict[str, Any], compare=False)
    """What else is known: the outcome of a measurement, the parts of a model."""
    seconds: Mapping[str, float] = field(default_factory=dict[str, float], compare=False)
    """Where the time went: `lower`, `compile`, `run`, `check`."""

    @staticmethod
    def failed(kind: str, detail: JSON, seconds: Mapping[str, float] | None = None) -> Evaluation:
        """The evaluation of a program that failed."""
        return Evaluation(inf, kind, detail, seconds or {})

    @property
    def is_ok(self) -> bool:
        """Whether there is a cost."""
        return not self.failure


Listener: TypeAlias = Callable[[str], None]
"""Is told what an evaluator does now, in a few words, for progress displays."""


class Evaluator(Protocol):
    """Gives programs their cost. It is `Computing`, or `Timing` (`pdojo.search.racing`)."""

    name: str
    """`runtime`, `analytical`, `cycles`."""
    unit: str
    """Of costs: `s`, `cycles`, or '' for a model's number."""

    @property
    def settings(self) -> JSON:
        """Everything that costs depend on beside the program: machine, options, tool chain; equal ones share costs."""
        ...

    def expect(self, candidate: Candidate) -> None:
        """The program will be among the next ones to evaluate: what may be done beside other work may begin."""
        ...

    def close(self) -> None:
        """End what was started."""
        ...


@runtime_checkable
class Computing(Evaluator, Protocol):
    """An evaluator by which a program always has the same cost."""

    def evaluate(self, candidates: Sequence[Candidate], listener: Listener | None = None) -> Iterable[Evaluation]:
        """The cost of each program, in order, each as soon as it is known: it is stored before the next is awaited."""
        ...

    def check(self, candidate: Candidate) -> Evaluation:
        """How a program does on inputs that no cost was computed on."""
        ...

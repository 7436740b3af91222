"""How edits draw moves, and positions for them: uniformly, or from a learned proposal model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log
from random import Random
from typing import Protocol

import numpy

from pdojo.budget import EVALUATIONS
from pdojo.dialect.flow.program import Program
from pdojo.search.contract.candidates import MoveCandidate, choices, shuffled
from pdojo.search.contract.evaluation import JSON
from pdojo.search.neighbourhoods.random_moves import family_weight, interleaved, useful
from pdojo.search.proposals.model import ProposalModel
from pdojo.search.proposals.places import History, Row
from pdojo.transforms.move import Move
from pdojo.transforms.registry import transformation_names


class Drawing(Protocol):
    """Draws moves for a program, to which the moves `before` led, and positions in a trace."""

    def position(self, moves: Sequence[Move], random: Random) -> int:
        """The number of moves before an insertion."""
        ...

    def families(self, program: Program, before: Sequence[Move]) -> Mapping[str, float]:
        """The relative weight of each family."""
        ...

    def ordered(
        self, some: Sequence[MoveCandidate], program: Program, before: Sequence[Move], random: Random
    ) -> Iterator[MoveCandidate]:
        """Candidates drawn without replacement."""
        ...


class Uniform:
    """Each family, and each candidate of a family, is equally likely. Half of the insertions continue the trace."""

    def position(self, moves: Sequence[Move], random: Random) -> int:
        """The number of moves before an insertion."""
        return len(moves) if random.random() < 0.5 else random.randrange(len(moves) + 1)

    def families(self, program: Program, before: Sequence[Move]) -> Mapping[str, float]:
        """Families that only take back other moves are drawn rarely: leaving out the other move has the same effect."""
        return {name: family_weight(name) for name in transformation_names()}

    def ordered(
        self, some: Sequence[MoveCandidate], program: Program, before: Sequence[Move], random: Random
    ) -> Iterator[MoveCandidate]:
        """Candidates in random order."""
        return shuffled(some, random)


UNIFORM = Uniform()


@dataclass(frozen=True, eq=False)
class Learned:
    """Families, candidates and positions are drawn with the probabilities of a model."""

    model: ProposalModel

    def position(self, moves: Sequence[Move], random: Random) -> int:
        """The number of moves before an insertion."""
        weights = _weights(self.model.positions(moves))
        return random.choices(range(len(weights)), weights)[0]

    def families(self, program: Program, before: Sequence[Move]) -> Mapping[str, float]:
        """The probability of each family as the next move."""
        names = transformation_names()
        return dict(zip(names, _weights(self.model.families(program, History(before), names)), strict=True))

    def ordered(
        self, some: Sequence[MoveCandidate], program: Program, before: Sequence[Move], random: Random
    ) -> Iterator[MoveCandidate]:
        """Candidates drawn without replacement: scores with Gumbel noise, the greatest first."""
        if len(some) < 2:
            return iter(some)
        history, scores = History(before), numpy.zeros(len(some), dtype=numpy.float32)
        groups: dict[str, list[int]] = {}
        for number, choice in enumerate(some):
            groups.setdefault(choice.transformation.name, []).append(number)
        for name, numbers in groups.items():
            scores[numbers] = self.model.places(program, history, name, [some[k] for k in numbers])
        noise = [-log(random.expovariate(1.0)) for _ in some]
        order: list[int] = numpy.argsort(-(scores + numpy.array(noise)), kind="stable").tolist()
        return (some[k] for k in order)


def _weights(scores: Row) -> list[float]:
    """The softmax of scores up to a factor; none is zero."""
    weights: list[float] = numpy.exp(numpy.maximum(scores - scores.max(), -LEAST)).tolist()
    return weights


LEAST = 30.0
"""Greatest difference of two scores: weights stay positive."""


@dataclass(frozen=True, eq=False)
class Mixture:
    """Edits drawn by a model, among uniformly drawn ones. The model's share falls with the number of evaluations.

    A model errs about kernels that it has not seen. Uniform draws reach what it rules out, more often the longer its
    proposals have been tried.
    """

    model: ProposalModel
    steps: int = EVALUATIONS
    """Number of evaluations over which the share falls."""
    first: float = 0.8
    """The share of edits that the model draws at the beginning."""
    last: float = 0.2
    """The share at the end."""

    @property
    def settings(self) -> JSON:
        """Everything that draws depend on."""
        return {"model": self.model.identity, "steps": self.steps, "first": self.first, "last": self.last}

    def share(self, evaluations: int) -> float:
        """The share of edits that the model draws after so many evaluations."""
        return self.first + (self.last - self.first) * min(1.0, evaluations / max(1, self.steps))


def each_legal(drawing: Drawing, program: Program, before: Sequence[Move], random: Random) -> Iterator[MoveCandidate]:
    """All legal candidates, each drawn from a random family with legal candidates left.

    Moves on arrays that no statement accesses are excluded, as they do not change the code.
    """
    families = drawing.families(program, before)
    return interleaved(
        {_of_family(drawing, program, before, name, random): weight for name, weight in families.items()}, random
    )


def _of_family(
    drawing: Drawing, program: Program, before: Sequence[Move], name: str, random: Random
) -> Iterator[MoveCandidate]:
    # Candidates are collected when the first one is needed.
    some = useful(choices(program, [name]), program)
    yield from (choice for choice in drawing.ordered(some, program, before, random) if choice.is_legal(program))


def first_legal(
    drawing: Drawing, some: Sequence[MoveCandidate], program: Program, before: Sequence[Move], random: Random
) -> Move | None:
    """The first legal move in the drawn order; None if there is none."""
    ordered = drawing.ordered(some, program, before, random)
    return next((choice.move for choice in ordered if choice.is_legal(program)), None)

"""Pre-training of `text-small` on program states, without any measurement.

Three tasks, which a search needs and which cost nothing, are learned at once:

- the structural features of a program from its vector, by a linear map: what the text means, in loops and bytes;
- by the same map, what a move changes of them, from the difference of two vectors. Differences between kernels would
  hide those between programs of one kernel, which a search ranks;
- the family of the move that leads from one program to the next, from both vectors, which the agent's network also has.

Masked tokens are not among them: a canonical text follows a grammar, and most of its tokens tell nothing about speed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy
from numpy.typing import NDArray

from pdojo.search.perfllm.learner import import_torch, one_thread, optimizer_schema, restore_optimizer
from pdojo.search.perfllm.schema import RANDOM, Array, Row, Schema, restore_random, stored_random
from pdojo.search.perfllm.text.model import Shape, TextModel
from pdojo.search.perfllm.text.states import Walk
from pdojo.search.perfllm.text.tokens import Line, lines_of
from pdojo.transforms.registry import transformation_names

LEARNING_RATE = 1e-3
"""Of AdamW, after the part `WARM` of the steps, in which it rises; then it falls linearly to nothing."""
WARM = 0.05
CLIP = 1.0
"""Largest norm of a gradient."""
SMALLEST = 1e-6
"""Deviations below count as 1."""
SEGMENTS = 6
"""Walks of a batch."""
SEGMENT = 8
"""Consecutive programs of each: their lines are mostly the same, and are read once."""


@dataclass(frozen=True)
class Losses:
    """Mean losses; 1 is about what the mean feature and the mean change would reach."""

    features: float
    changes: float
    families: float
    """Cross entropy in nats."""

    @property
    def total(self) -> float:
        """What is minimised."""
        return self.features + self.changes + self.families


@dataclass(frozen=True)
class Segment:
    """Consecutive programs of a walk."""

    programs: list[list[Line]]
    features: NDArray[numpy.float32]
    """[programs, features], unscaled."""
    families: list[int]


def segments_of(walks: Sequence[Walk]) -> list[Segment]:
    """The walks in segments; walks without a move are left out."""
    numbers = {name: k for k, name in enumerate(transformation_names())}
    found: list[Segment] = []
    for walk in walks:
        programs = [lines_of(text) for text in walk.texts]
        features = numpy.array(walk.features, dtype=numpy.float32)
        families = [numbers[name] for name in walk.families]
        for start in range(0, len(families), SEGMENT - 1):
            part = slice(start, start + SEGMENT)
            found.append(Segment(programs[part], features[part], families[start : start + SEGMENT - 1]))
    return found


class Pretraining:
    """A model that learns from segments. `state` and `restore` let it go on later."""

    def __init__(self, model: TextModel, segments: Sequence[Segment], steps: int, seed: int) -> None:
        self._torch = torch = import_torch()
        self.model, self._segments, self.steps = model, segments, steps
        self.done = 0
        """Steps so far."""
        self._random = Random(seed)
        features = numpy.concatenate([segment.features for segment in segments])
        changes = numpy.concatenate([numpy.diff(segment.features, axis=0) for segment in segments])
        self._mean = torch.from_numpy(features.mean(0))
        self._scale = torch.from_numpy(_deviation(features))
        self._change = torch.from_numpy(_deviation(changes))
        width = model.shape.width
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self._heads = torch.nn.ModuleDict(
                {
                    "features": torch.nn.Linear(width, features.shape[1]),
                    "family": torch.nn.Sequential(
                        torch.nn.Linear(2 * width, width),
                        torch.nn.ReLU(),
                        torch.nn.Linear(width, len(transformation_names())),
                    ),
                }
            )
        self._parameters = [*model.parts.parameters(), *self._heads.parameters()]
        self._optimizer = torch.optim.AdamW(self._parameters, lr=LEARNING_RATE, weight_decay=0.01)

    def step(self) -> Losses:
        """Learn from one batch."""
        self.model.parts.train()
        batch = [self._segments[self._random.randrange(len(self._segments))] for _ in range(SEGMENTS)]
        with one_thread():
            return self._learn(batch)

    def _learn(self, batch: Sequence[Segment]) -> Losses:
        parts = self._losses(batch)
        for group in self._optimizer.param_groups:
            group["lr"] = LEARNING_RATE * min((self.done + 1) / (WARM * self.steps), 1 - self.done / self.steps)
        self._optimizer.zero_grad()
        self._torch.stack(parts).sum().backward()
        self._torch.nn.utils.clip_grad_norm_(self._parameters, CLIP)
        self._optimizer.step()
        self.done += 1
        return Losses(*(float(part.detach()) for part in parts))

    def losses(self, segments: Sequence[Segment]) -> Losses:
        """The mean losses on other segments."""
        self.model.parts.eval()
        with one_thread(), self._torch.no_grad():
            rows = [
                [float(part) for part in self._losses(segments[k : k + SEGMENTS])]
                for k in range(0, len(segments), SEGMENTS)
            ]
        return Losses(*numpy.mean(rows, axis=0).tolist())

    def _losses(self, batch: Sequence[Segment]) -> list[Any]:
        torch, functional = self._torch, self._torch.nn.functional
        numbers: dict[Line, int] = {}
        programs = [
            [numbers.setdefault(line, len(numbers)) for line in program] for part in batch for program in part.programs
        ]
        vectors = self.model.of_programs(self.model.of_lines(list(numbers)), programs)
        features = torch.from_numpy(numpy.concatenate([part.features for part in batch]))
        first = torch.tensor([k for k, follows in enumerate(_has_next(batch)) if follows])
        before, change = vectors[first], vectors[first + 1] - vectors[first]
        head = self._heads["features"]
        changed = change @ head.weight.T * (self._scale / self._change)
        family = self._heads["family"](torch.cat([before, change], dim=1))
        return [
            2 * functional.huber_loss(head(vectors), (features - self._mean) / self._scale),
            2 * functional.huber_loss(changed, (features[first + 1] - features[first]) / self._change),
            functional.cross_entropy(family, torch.tensor([k for part in batch for k in part.families])),
        ]

    def state(self) -> dict[str, Any]:
        """Everything that `restore` needs, as plain data and tensors."""
        return {
            "parts": self.model.parts.state_dict(),
            "heads": self._heads.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "scales": [self._mean, self._scale, self._change],
            "random": stored_random(self._random),
            "done": self.done,
        }

    def schema(self) -> Schema:
        """The schema of `state`."""
        deviations = Array("float32", tuple(self._scale.shape), least=SMALLEST)
        return {
            "parts": self.model.parts.state_dict(),
            "heads": self._heads.state_dict(),
            "optimizer": optimizer_schema(self._parameters),
            "scales": Row((self._mean, deviations, deviations)),
            "random": RANDOM,
            "done": range(self.steps + 1),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Become the pre-training that `state` was taken from; it fits `schema`. Raises UsageError."""
        self.model.parts.load_state_dict(state["parts"])
        self._heads.load_state_dict(state["heads"])
        restore_optimizer(self._optimizer, state["optimizer"])
        self._mean, self._scale, self._change = state["scales"]
        restore_random(self._random, state["random"])
        self.done = state["done"]


def fresh(shape: Shape, segments: Sequence[Segment], steps: int, seed: int) -> Pretraining:
    """The pre-training of a model with random weights."""
    return Pretraining(TextModel(shape, seed), segments, steps, seed)


def _deviation(values: NDArray[numpy.float32]) -> NDArray[numpy.float32]:
    """The standard deviation of each column; 1 for columns that do not change."""
    found = values.std(0)
    return numpy.where(found > SMALLEST, found, 1.0).astype(numpy.float32)


def _has_next(batch: Sequence[Segment]) -> list[bool]:
    """For each program of a batch, whether the next one follows from it by a move."""
    return [k < len(part.programs) - 1 for part in batch for k in range(len(part.programs))]

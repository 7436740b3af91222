"""A cost model over many kernels, which selects an agent's offers from a larger draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from pdojo.errors import UsageError
from pdojo.perfllm.learner import Vector
from pdojo.perfllm.ranking import Ranking
from pdojo.perfllm.storing import load_stamped, read_stamped
from pdojo.search.environment.actions import Action
from pdojo.search.features.structure import SIZE, VERSION

KIND = "pdojo cost model 1"
AT_RANDOM = 0.25
"""Fraction of the offers that are chosen at random instead of by the model."""


class Screen:
    """A ranking of programs by predicted cost. Raises UsageError for a file of another kind or version."""

    def __init__(self, path: str) -> None:
        data, stamp = read_stamped(path, "cost model", KIND)
        if stamp.get("features") != str(VERSION):
            raise UsageError(
                f"'{path}' knows version {stamp.get('features')} of the features, and this pdojo has version {VERSION}:"
                " train it again with pdojo-train costs"
            )
        remedy = "train it again with pdojo-train costs"
        self.ranking = Ranking.from_state(load_stamped(data, Ranking.schema(SIZE), path, remedy))

    def kept(self, drawn: Sequence[Action], vectors: Mapping[str, Vector], count: int, random: Random) -> list[Action]:
        """The stop, and at most `count` other offers: the predicted fastest, and some at random."""
        stop, *others = drawn
        if len(others) <= count:
            return list(drawn)
        predicted = self.ranking.costs([vectors[one.fingerprint] for one in others])
        ranked = sorted(range(len(others)), key=lambda k: (predicted[k], k))
        best = ranked[: count - round(AT_RANDOM * count)]
        rest = random.sample(ranked[len(best) :], count - len(best))
        return [stop, *(others[k] for k in sorted({*best, *rest}))]

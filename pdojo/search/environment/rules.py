"""The rules of episodes: which actions are offered, what is rewarded and when, how long an episode is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import inf
from typing import TYPE_CHECKING, Any

from pdojo.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from pdojo.search.contract.evaluation import JSON

GRANULARITIES = ("single", "everywhere", "both", "edits")
"""Names of the granularities."""
REWARDS = ("step", "end")
"""Names of the moments of rewards."""


@dataclass(frozen=True)
class Rules:
    """The rules of episodes. Raises UsageError for values that make no sense."""

    offered: int | None = 32
    """Most actions beside the stop, sampled with the seed; None offers all legal ones."""
    granularity: str = "single"
    """What an action is.

    `single`: one move, as in the paper. `everywhere`: one family with one set of parameters at all places where it is
    legal, a run of moves. `both`: moves, and runs of families that have several places. `edits`: moves inserted,
    deleted or changed anywhere in the trace (`neighbourhoods.mutate`), which cannot be offered all.
    """
    reward: str = "step"
    """`step` rewards every action by the program that it leads to; `end` only the last one of an episode."""
    horizon: int = 64
    """Most actions of an episode; then it is truncated."""
    scale: float | None = None
    """The constant c of the reward c/T, in the evaluator's unit; None is the cost of the start: r is the speed-up."""

    def __post_init__(self) -> None:
        for what, value, known in (
            ("granularity", self.granularity, GRANULARITIES),
            ("reward", self.reward, REWARDS),
        ):
            if value not in known:
                raise UsageError(f"unknown {what} '{value}'; {did_you_mean(str(value), known)}")
        for what, value in (("offered", self.offered), ("horizon", self.horizon)):
            if value is not None and value < 1:
                raise UsageError(f"an episode needs '{what}' of at least 1, not {value}")
        if self.granularity == "edits" and self.offered is None:
            raise UsageError("edits of a trace cannot be offered all: give 'offered' a number")
        if self.scale is not None and not 0 < self.scale < inf:
            raise UsageError(f"the scale of rewards is a positive number, not {self.scale:g}")

    def to_json(self) -> JSON:
        """As plain data."""
        return asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Rules:
        """The inverse of `to_json`. Raises UsageError for other data."""
        try:
            return Rules(**data)
        except TypeError:
            raise UsageError(f"these are no rules of episodes: {', '.join(map(str, data))[:200]}") from None

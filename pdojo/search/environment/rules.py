"""The rules of episodes: offered actions, rewards and their moments, length of an episode."""

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
    """The rules of episodes. Raises UsageError for invalid values."""

    offered: int | None = 32
    """Greatest number of actions, not counting the stop, sampled with the seed; None offers all legal ones."""
    granularity: str = "single"
    """The kind of the actions.

    `single`: one move, as in the paper. `everywhere`: a run, that is one family with one set of parameters at all legal
    places. `both`: moves, and runs of families with several places. `edits`: moves inserted, deleted or changed
    anywhere in the trace (`neighbourhoods.mutate`); these cannot all be offered.
    """
    reward: str = "step"
    """`step` rewards every action by the program after it; `end` rewards only the last action of an episode."""
    horizon: int = 64
    """Greatest number of actions of an episode, which is then truncated."""
    scale: float | None = None
    """The constant c of the reward c/T, in the evaluator's unit; None is the start's cost, so that rewards are
    speed-ups.
    """

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
            raise UsageError("not all edits of a trace can be offered: give 'offered' a number")
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

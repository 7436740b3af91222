"""Episodes of the game for learning agents: offered actions, rewards, ends. Plain Python, without gymnasium."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from random import Random
from typing import Any, NamedTuple

from pdojo.dialect.notation import print_notation
from pdojo.errors import IllegalMove, LocationError, UsageError
from pdojo.search.contract.evaluation import JSON, reason
from pdojo.search.environment.actions import Action, actions_of
from pdojo.search.environment.reward_model import HARMLESS, OK, RewardModel
from pdojo.search.environment.rules import Rules
from pdojo.search.environment.validation import Validation, validate
from pdojo.transforms.game import Game, fingerprint_of
from pdojo.transforms.trace import Trace

FORMAT = 1
"""Version of stored episodes."""
UNMEASURED = "unmeasured"
"""Status of a program that was not evaluated because it has no reward."""


class Price(NamedTuple):
    """The known facts about a program's cost."""

    reward: float
    runtime: float
    """The cost in the evaluator's unit; infinite if there is none."""
    status: str
    """`Ok`, `unmeasured`, or the kind of the failure."""
    why: str = ""
    """The reason for a failure, on one line."""


@dataclass(frozen=True)
class Transition:
    """The result of an action."""

    reward: float
    terminated: bool
    """True after the stop, and after a program that is wrong or crashes."""
    truncated: bool
    """True if the horizon ended the episode."""
    price: Price
    """Price of the program after the action."""
    illegal: bool = False
    """True if the index was no offered action; nothing changed, and the reward is 0."""


class Episode:
    """A state of the game, the actions offered in it, and the rules for rewards and ends.

    Episodes are reproducible: the seed, the number of the episode and the number of actions made determine the draws,
    so the same actions lead to the same offers in every process. `start` is copied. Forks share `prices`, which the
    caller closes.
    """

    def __init__(self, start: Game, prices: RewardModel, rules: Rules | None = None, seed: int = 0) -> None:
        self.rules = rules or Rules()
        self.prices = prices
        self.start = start.fork()
        """The initial state of episodes."""
        self._begin(start.fork(), seed, 0)

    def _begin(self, state: Game, seed: int, number: int) -> None:
        self.game = state
        """The state; do not change it."""
        self.seed = seed
        """The seed of the episodes since the last `reset` with a seed."""
        self.number = number
        """Number of episodes since that reset."""
        self.steps = 0
        """Number of actions taken, including illegal ones."""
        self._made = 0
        self.is_over = False
        """True after the last action."""
        self._offers: list[Action] | None = None

    @property
    def offers(self) -> list[Action]:
        """The offered actions; number 0 is the stop."""
        if self._offers is None:
            self._offers = actions_of(self.game, self.rules, Random(f"{self.seed} {self.number} {self._made}"))
        return self._offers

    @property
    def price(self) -> Price:
        """Cost and reward of the current program, evaluated unless known."""
        found = self.prices.cost(self.game)
        reward = self.prices.reward(found, self.rules.scale)
        if found.is_ok:
            return Price(reward, found.cost, OK)
        return Price(reward, inf, found.failure, reason(found))

    def reset(self, seed: int | None = None, trace: Trace | None = None) -> None:
        """Begin the next episode, after the moves of `trace`; with a seed, restart at episode 0.

        Raises UsageError for a negative seed, IllegalMove or LocationError for a trace that does not apply.
        """
        if seed is not None and seed < 0:
            raise UsageError(f"a seed must be at least 0, not {seed}")
        state = self.start.fork()
        if trace is not None:
            _replay(state, trace)
        self._begin(state, self.seed if seed is None else seed, self.number + 1 if seed is None else 0)

    def step(self, action: int) -> Transition:
        """Take the offered action number `action`. Raises UsageError after the end of the episode."""
        if self.is_over:
            raise UsageError("the episode is over: reset first")
        self.steps += 1
        at_end = self.steps >= self.rules.horizon
        if not 0 <= action < len(self.offers):
            self.is_over = at_end
            return Transition(0.0, False, at_end, Price(0.0, inf, UNMEASURED), illegal=True)
        offer = self.offers[action]
        if not offer.is_stop:
            self.game = offer.state()
            self._made += 1
            self._offers = None
        is_rewarded = self.rules.reward == "step" or offer.is_stop or at_end
        price = self.price if is_rewarded else Price(0.0, inf, UNMEASURED)
        is_fatal = price.status not in (OK, UNMEASURED, *HARMLESS)
        terminated = offer.is_stop or is_fatal
        self.is_over = terminated or at_end
        return Transition(price.reward, terminated, at_end and not terminated, price)

    def fork(self) -> Episode:
        """An independent episode in the same state, with the same offers now and after the same actions."""
        other = Episode.__new__(Episode)
        other.__dict__.update(self.__dict__)
        other.game = self.game.fork()
        return other

    def copy(self) -> Episode:
        """A fork with its own prices, which must be closed separately."""
        other = self.fork()
        other.prices = self.prices.copy()
        other._offers = None  # drawn again from the copy's own state
        return other

    def validate(self, seed: int | None = None) -> Validation:
        """Compare the program's results with the plain kernel's on random inputs, by default on fresh ones."""
        return validate(self.game, seed)

    def replay(self, trace: Trace) -> Price:
        """Begin the next episode in the state after a trace from the plain kernel; returns its price.

        Raises IllegalMove or LocationError, with the number of the move, for a trace that does not apply; the episode
        is then unchanged.
        """
        state = Game(self.start.plain, self.start.machine)
        _replay(state, trace)
        self._begin(state, self.seed, self.number + 1)
        return self.price

    def to_json(self) -> JSON:
        """The episode as plain data: rules, seed, counts, moves, and identities of kernel, machine and offers."""
        return {
            "format": FORMAT,
            "kernel": _identity(self.start),
            "machine": self.start.machine.name,
            "rules": self.rules.to_json(),
            "seed": self.seed,
            "number": self.number,
            "steps": self.steps,
            "made": self._made,
            "over": self.is_over,
            "trace": self.game.trace.dump(),
            "offers": [offer.label for offer in self.offers],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], start: Game, prices: RewardModel) -> Episode:
        """The stored episode of the same start. Raises UsageError for other data, another start or other offers.

        Costs are not stored: a database keeps them (`RewardModel`).
        """
        try:
            if data["format"] != FORMAT:
                raise UsageError(f"the stored episode has format {data['format']}; this pdojo reads format {FORMAT}")
            episode = cls(start, prices, Rules.from_json(data["rules"]))
            if (data["kernel"], data["machine"]) != (_identity(start), start.machine.name):
                raise UsageError("the stored episode is one of another kernel or machine")
            state = Game(start.plain, start.machine)
            _replay(state, Trace.parse(data["trace"], "the stored episode"))
            episode._begin(state, int(data["seed"]), int(data["number"]))
            episode.steps, episode._made = int(data["steps"]), int(data["made"])
            episode.is_over = bool(data["over"])
            offered = data["offers"]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UsageError(f"this is no stored episode: {type(error).__name__}: {error}") from None
        if [offer.label for offer in episode.offers] != offered:
            raise UsageError("the stored episode was offered other actions: it was stored by another version of pdojo")
        return episode


def _replay(state: Game, trace: Trace) -> None:
    for number, step in enumerate(trace.steps):
        try:
            state.apply(step.resolved)
        except (IllegalMove, LocationError) as error:
            differs = trace.missing(state.plain)
            raise type(error)(f"move {number} of the trace, {step.move}: {error}{differs}") from None


def _identity(start: Game) -> str:
    """Digest that identifies the plain kernel and the moves before an episode."""
    return fingerprint_of(f"{print_notation(start.plain)}\n{start.trace.dump()}")

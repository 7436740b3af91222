"""Episodes played by other processes than the learner: orders and results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from random import Random
from time import perf_counter
from typing import Any

from pdojo.errors import UsageError
from pdojo.perfllm.agent import Agent, Moment
from pdojo.perfllm.encoders import Encoder, encoder
from pdojo.perfllm.learner import policy_schema
from pdojo.perfllm.memory import packed
from pdojo.perfllm.replay import STOP, Replay, ReplayedAction
from pdojo.perfllm.screening import Screen
from pdojo.perfllm.settings import Settings
from pdojo.perfllm.storing import load
from pdojo.perfllm.training.kernels import TrainingKernel
from pdojo.search.environment.reward_model import HARMLESS, RewardModel
from pdojo.transforms.game import Game
from pdojo.transforms.move import Move


@dataclass(frozen=True)
class EpisodeOrder:
    """An episode to play. Order and policy determine its result, regardless of the worker."""

    number: int
    """The number of the episode, from 0."""
    kernel: int
    """The number of the kernel."""
    way: tuple[tuple[str, ...], ...]
    """The path to the initial state: the moves of each state on it, located by identifier, the initial state last. ()
    for the plain kernel.
    """
    shown: tuple[str, ...]
    """The moves of a demonstration; () if the agent chooses."""
    epsilon: float
    """The probability of a random action."""


@dataclass(frozen=True)
class EpisodeAction:
    """The result of an action."""

    moves: tuple[str, ...]
    """All moves of the state afterwards, located by identifier."""
    fingerprint: str
    """Fingerprint of the program afterwards."""
    cost: float
    """Cost of the program afterwards, in the evaluator's unit; infinite after a failure."""
    failure: str
    reward: float
    """c / T; c is the cost of the plain kernel."""
    predicted: float
    """The value that the policy of the episode gives the action."""


@dataclass(frozen=True)
class Played:
    """The result of an episode."""

    order: EpisodeOrder
    plain: float
    """The cost of the plain kernel."""
    actions: tuple[EpisodeAction, ...]
    memory: dict[str, Any]
    """The transitions and the vectors of their programs (`memory.packed`)."""
    drawing: float
    """Seconds spent on offers: moves, programs and vectors."""
    evaluating: float
    """Seconds spent on costs."""


class Player:
    """Plays episodes of some kernels; not safe for concurrent use from several threads."""

    def __init__(self, kernels: Sequence[TrainingKernel], settings: Settings, seed: int) -> None:
        self._kernels = kernels
        self._settings = settings
        self._seed = seed
        self._screen = Screen(settings.screen) if settings.screen else None
        self._prices: dict[int, RewardModel] = {}

    def play(self, order: EpisodeOrder, policy: bytes | None) -> Played:
        """Play an episode. `policy` is a tree of `Learner.policy` as bytes, None for new networks."""
        kernel = self._kernels[order.kernel]
        reader: Encoder = encoder(self._settings.encoder, kernel.machine)
        networks = None if policy is None else load(policy, policy_schema(self._settings, reader.size))
        agent = Agent(self._settings, reader, Random(f"{self._seed} {order.number}"), networks, self._screen)
        return _Episode(agent, self._prices_of(order.kernel), order).played(kernel.game())

    def _prices_of(self, number: int) -> RewardModel:
        if number not in self._prices:
            self._prices[number] = self._kernels[number].prices()
        return self._prices[number]

    def close(self) -> None:
        """End the evaluators."""
        for prices in self._prices.values():
            prices.close()
        self._prices.clear()


class _Episode:
    """The state of one call of `Player.play`."""

    def __init__(self, agent: Agent, prices: RewardModel, order: EpisodeOrder) -> None:
        self._agent, self._prices, self._order = agent, prices, order
        self._drawing = self._evaluating = 0.0
        self._transitions: list[ReplayedAction] = []
        self._actions: list[EpisodeAction] = []

    def played(self, state: Game) -> Played:
        """Play from the plain kernel's state, which is modified."""
        plain, _, _ = self._cost(state)
        start = self._order.way[-1] if self._order.way else ()
        skipped = state.become(map(Move.parse, start))
        if skipped:
            raise UsageError(f"moves of an earlier episode do not apply: {skipped[0]}")
        self._go(state)
        replay = Replay(max(1, len(self._transitions)))
        for transition in self._transitions:
            replay.add(transition)
        memory = packed(replay, self._agent.vectors)
        return Played(self._order, plain, tuple(self._actions), memory, self._drawing, self._evaluating)

    def _go(self, state: Game) -> None:
        shown = [Move.parse(text) for text in self._order.shown]
        limit = len(shown) or self._agent.settings.horizon
        moment = self._look(state, shown)
        for step in range(limit):
            if shown and moment.shown is None:
                return
            values = self._agent.values(moment)
            action = moment.shown if moment.shown is not None else self._agent.choose(moment, self._order.epsilon)
            offer = moment.offers[action]
            after = state if action == STOP else offer.state()
            cost, failure, reward = self._cost(after)
            moves = tuple(str(step.resolved) for step in after.trace.steps)
            self._actions.append(EpisodeAction(moves, after.fingerprint, cost, failure, reward, values[action]))
            goes_on = action != STOP and failure in ("", *HARMLESS)
            following = self._look(after, shown[step + 1 :]) if goes_on else None
            visit = None if following is None else following.visit
            self._transitions.append(ReplayedAction(moment.visit, action, reward, visit))
            if following is None:
                return
            state, moment = after, following

    def _look(self, state: Game, shown: Sequence[Move]) -> Moment:
        began = perf_counter()
        found = self._agent.look(state, shown=shown[0] if shown else None)
        self._drawing += perf_counter() - began
        return found

    def _cost(self, state: Game) -> tuple[float, str, float]:
        """The cost of a state's program, its failure, and its reward."""
        began = perf_counter()
        found = self._prices.cost(state)
        self._evaluating += perf_counter() - began
        return (found.cost if found.is_ok else inf), found.failure, self._prices.reward(found)

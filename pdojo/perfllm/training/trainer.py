"""The trainer: orders episodes of all kernels in turn, learns from them in order, and can stop at any time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from random import Random
from statistics import mean
from time import perf_counter
from typing import Any

from pdojo.perfllm.agent import Agent
from pdojo.perfllm.archive import Archive
from pdojo.perfllm.encoders import encoder
from pdojo.perfllm.memory import unpacked
from pdojo.perfllm.policy import load_policy, policy_of
from pdojo.perfllm.replay import Replay
from pdojo.perfllm.schema import ListSchema as Items
from pdojo.perfllm.schema import Schema
from pdojo.perfllm.settings import Settings
from pdojo.perfllm.storing import dump, load
from pdojo.perfllm.training.episodes import EpisodeAction, EpisodeOrder, Played
from pdojo.perfllm.training.kernels import TrainingKernel
from pdojo.perfllm.training.players import Players


@dataclass(frozen=True)
class EpisodeRow:
    """An episode in the log of a training."""

    episode: int
    kernel: str
    is_shown: bool
    """True for a demonstration."""
    epsilon: float
    actions: int
    speedup: float
    """Best speed-up of the episode: cost of the plain kernel divided by the least cost."""
    best: float
    """Best speed-up of the kernel so far."""
    cost: float
    """Cost of the kernel's best program, in the evaluator's unit."""
    programs: int
    """Number of different programs of the kernel so far."""
    loss: float
    """Mean loss of the updates after the episode."""
    predicted: float
    """Mean predicted value of the episode's actions."""
    came: float
    """Mean training target of the episode's actions: the best later reward, the sum of later rewards, or their own."""
    failures: int
    drawing: float
    """Seconds spent on offers: moves, programs and vectors."""
    evaluating: float
    """Seconds spent on costs."""
    learning: float
    """Seconds spent on updates of the networks."""


class Trainer:
    """An agent and its training data. Settings, kernels, seed and `parallel` determine the result.

    Each policy plays `parallel` episodes, on any player and any number at once. `shown` are demonstrations, as
    moves by identifier for each kernel; they are the first episodes.
    """

    def __init__(
        self,
        kernels: Sequence[TrainingKernel],
        settings: Settings,
        seed: int,
        episodes: int,
        parallel: int = 1,
        shown: Sequence[Sequence[tuple[str, ...]]] = (),
    ) -> None:
        self.kernels = kernels
        self.settings = settings
        self.episodes = episodes
        """Number of episodes, over which exploration decreases."""
        self.parallel = parallel
        self._seed = seed
        self._encoder = encoder(settings.encoder, kernels[0].machine)
        policy = None
        if settings.policy:
            policy = load_policy(settings.policy, settings, self._encoder.name, self._encoder.size)
        self.agent = Agent(settings, self._encoder, Random(seed), policy)
        self._shown = [(number, moves) for number, each in enumerate(shown) for moves in each if moves]
        self.done = 0
        """Number of episodes learned from."""
        self.archives: list[Archive[tuple[str, ...]]] = [Archive(settings.elites) for _ in kernels]
        """The best programs of each kernel, with paths of moves by identifier."""
        self._met: list[set[str]] = [set() for _ in kernels]

    # Playing

    @property
    def is_between_rounds(self) -> bool:
        """True if all episodes of the current policy were learned from, so that `save` may be called."""
        return self.done % self.parallel == 0 or self.done == self.episodes

    def run(self, players: Players) -> Iterator[EpisodeRow]:
        """Play and learn until all episodes are done; a row after each."""
        while self.done < self.episodes:
            last = min(self.episodes, self.done + self.parallel)
            orders = [self._order(number) for number in range(self.done, last)]
            for played in players.play(orders, self._policy()):
                yield self._learn(played)

    def _order(self, number: int) -> EpisodeOrder:
        if number < len(self._shown):
            kernel, moves = self._shown[number]
            return EpisodeOrder(number, kernel, (), moves, 0.0)
        random = Random(f"{self._seed} start {number}")
        kernel = number % len(self.kernels)
        way: tuple[tuple[str, ...], ...] = ()
        if random.random() < self.settings.resume_best:
            way = self.archives[kernel].prefix(random)
        return EpisodeOrder(number, kernel, way, (), self.agent.epsilon(number / self.episodes))

    def _policy(self) -> bytes | None:
        return dump(self.agent.learner.policy()) if self.agent.has_learned else None

    # Learning

    def _learn(self, played: Played) -> EpisodeRow:
        began = perf_counter()
        replay = Replay(max(1, len(played.actions)))
        self.agent.remember(unpacked(replay, played.memory))
        losses: list[float] = []
        for transition in replay.transitions():
            self.agent.absorb(transition)
            losses.append(self.agent.loss)
        self.agent.forget()
        self._archive(played)
        self.done = played.order.number + 1
        return self._row(played, losses, perf_counter() - began)

    def _archive(self, played: Played) -> None:
        kernel = played.order.kernel
        self._met[kernel] |= {action.fingerprint for action in played.actions}
        path = list(played.order.way)
        for action in played.actions:
            path.append(action.moves)
            if action.cost < played.plain:
                self.archives[kernel].add(action.cost, action.fingerprint, path)

    def _row(self, played: Played, losses: Sequence[float], learning: float) -> EpisodeRow:
        order, actions = played.order, played.actions
        elites = self.archives[order.kernel].elites
        best = elites[0].cost if elites else inf
        own = min((action.cost for action in actions), default=inf)
        return EpisodeRow(
            episode=order.number,
            kernel=self.kernels[order.kernel].title,
            is_shown=bool(order.shown),
            epsilon=order.epsilon,
            actions=len(actions),
            speedup=0.0 if own == inf else played.plain / own,
            best=1.0 if best == inf else played.plain / best,
            cost=min(best, played.plain),
            programs=len(self._met[order.kernel]),
            loss=mean(losses) if losses else 0.0,
            predicted=mean(action.predicted for action in actions) if actions else 0.0,
            came=mean(came(actions, self.settings)) if actions else 0.0,
            failures=sum(bool(action.failure) for action in actions),
            drawing=played.drawing,
            evaluating=played.evaluating,
            learning=learning,
        )

    # Keeping

    def policy(self, facts: Mapping[str, str]) -> bytes:
        """The policy as a file. `facts` are texts for people."""
        return policy_of(self.agent.learner, self._encoder.name, facts)

    def save(self) -> bytes:
        """Everything that `restore` needs. Valid between two rounds of `parallel` episodes."""
        return dump(
            {
                "done": self.done,
                "agent": self.agent.state(),
                "elites": [
                    [[one.cost, one.fingerprint, *map(list, one.path)] for one in each.elites] for each in self.archives
                ],
                "met": ["".join(sorted(each)) for each in self._met],
            }
        )

    def _schema(self) -> Schema:
        return {
            "done": range(self.episodes + 1),
            "agent": self.agent.schema(),
            "elites": Items(([Items((float, str), [str])],) * len(self.kernels)),
            "met": Items((str,) * len(self.kernels)),
        }

    def restore(self, data: bytes) -> None:
        """Restore a trainer from `save`. Raises UsageError for other data."""
        state: dict[str, Any] = load(data, self._schema())
        self.done = state["done"]
        self.agent.restore(state["agent"])
        for archive, stored in zip(self.archives, state["elites"], strict=True):
            for cost, fingerprint, *path in stored:
                archive.add(cost, fingerprint, [tuple(moves) for moves in path])
        self._met = [{each[k : k + 64] for k in range(0, len(each), 64)} for each in state["met"]]


def came(actions: Sequence[EpisodeAction], settings: Settings) -> list[float]:
    """Training target of each action of an episode."""
    found: list[float] = []
    later = 0.0
    for action in reversed(actions):
        match settings.target:
            case "max":
                later = max(action.reward, settings.discount * later)
            case "sum":
                later = action.reward + settings.discount * later
            case "one-step":
                later = action.reward
        found.append(later)
    return found[::-1]

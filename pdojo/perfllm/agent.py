"""The agent: draws actions, chooses one, and stores the transition. It knows neither drivers nor clocks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any

from pdojo.errors import IllegalMove, LocationError
from pdojo.perfllm.encoders import Encoder
from pdojo.perfllm.learner import Learner, Vector, learner_schema
from pdojo.perfllm.memory import memory_schema, packed, unpacked
from pdojo.perfllm.replay import STOP, Replay, ReplayedAction, Visit
from pdojo.perfllm.schema import COUNT, RANDOM, Schema, restore_random, stored_random
from pdojo.perfllm.screening import Screen
from pdojo.perfllm.settings import Settings
from pdojo.search.environment.actions import Action, action_of_move, actions_of
from pdojo.search.environment.rules import Rules
from pdojo.search.neighbourhoods.mutate import Mutate
from pdojo.transforms.game import Game
from pdojo.transforms.move import Move

MOST_VECTORS = 4
"""Vectors are dropped when there are this many times as many as the replay's transitions can name."""


@dataclass(frozen=True)
class Moment:
    """A state with the actions offered in it."""

    visit: Visit
    offers: tuple[Action, ...]
    """Offered actions in order; number 0 is the stop."""
    look: int
    """Number of the call of `Agent.look` that drew the offers."""
    shown: int | None
    """The action of a demonstration; None without one, or if its move is illegal."""


class Agent:
    """Action values over any number of kernels, a decreasing exploration, and the memory of both.

    All random numbers come from `random`. `policy` are initial networks (`policy.load_policy`), None for new ones.
    `screen` chooses among more drawn actions than are offered; None offers all drawn ones.
    """

    def __init__(
        self,
        settings: Settings,
        encoder: Encoder,
        random: Random,
        policy: Mapping[str, Any] | None = None,
        screen: Screen | None = None,
    ) -> None:
        self.settings = settings
        self.encoder = encoder
        self.random = random
        self._policy = policy
        self._screen = screen
        drawn = settings.successors * (1 if screen is None else settings.screened)
        self._rules = Rules(drawn, settings.granularity)
        self.replay = Replay(settings.replay)
        self.vectors: dict[str, Vector] = {}
        """Vectors of the programs in transitions, keyed by fingerprint."""
        self._learner: Learner | None = None
        self._seed = random.randrange(2**63)
        self._looks = 0
        self.loss = 0.0
        """The latest mean loss."""

    @property
    def learner(self) -> Learner:
        """The networks, which exist after the first state was seen."""
        assert self._learner is not None
        return self._learner

    @property
    def has_learned(self) -> bool:
        """True if the networks exist."""
        return self._learner is not None

    def look(
        self,
        game: Game,
        *,
        shown: Move | None = None,
        mates: Sequence[Sequence[Move]] = (),
        again: int | None = None,
        near: Mutate | None = None,
    ) -> Moment:
        """Draw the offers of a state, and encode them.

        `shown` is a move that is always offered. `mates` are traces whose moves edits may use. `again` repeats an
        earlier look at the same state with the same mates. Moves are drawn as by `near`; None is uniformly.
        """
        if again is None:
            self._looks += 1
        number = self._looks if again is None else again
        random = Random(f"{self._seed} {number}")
        drawn = actions_of(game, self._rules, random, mates, near)
        vectors = self._encoded(drawn)
        if self._screen is not None:
            drawn = self._screen.kept(drawn, vectors, self.settings.successors, random)
        action: int | None = None
        if shown is not None:
            with suppress(IllegalMove, LocationError):
                drawn = [*drawn, action_of_move(game, shown)]
                action = len(drawn) - 1
                vectors |= self._encoded(drawn[-1:])
        self.remember({one.fingerprint: vectors[one.fingerprint] for one in drawn})
        own, *others = (one.fingerprint for one in drawn)
        return Moment(Visit(own, tuple(others)), tuple(drawn), number, action)

    def _encoded(self, programs: Sequence[Action]) -> dict[str, Vector]:
        """The vectors of programs, keyed by fingerprint."""
        found = {one.fingerprint: self.vectors.get(one.fingerprint) for one in programs}
        new = list({one.fingerprint: one for one in programs if found[one.fingerprint] is None}.values())
        made = {one.fingerprint: vector for one, vector in zip(new, self.encoder.encode(new), strict=True)}
        return {name: made[name] if vector is None else vector for name, vector in found.items()}

    def remember(self, vectors: Mapping[str, Vector]) -> None:
        """Keep vectors of programs, keyed by fingerprint; new ones count for the scale of the inputs."""
        for fingerprint, vector in vectors.items():
            if fingerprint not in self.vectors:
                self._made(len(vector)).saw(vector)
                self.vectors[fingerprint] = vector

    def _made(self, size: int) -> Learner:
        if self._learner is None:
            self._learner = Learner(self.settings, size, self._seed)
            if self._policy is not None:
                self._learner.adopt(self._policy)
        return self._learner

    def epsilon(self, progress: float) -> float:
        """The probability of a random action after a fraction `progress` of the budget."""
        first, last = self.settings.epsilon_first, self.settings.epsilon_last
        return first + (last - first) * min(1.0, progress / max(self.settings.epsilon_decay, 1e-9))

    def choose(self, moment: Moment, epsilon: float, actions: Sequence[int] | None = None) -> int:
        """An action: 0 is the stop, k is the k-th other offer. A random action is the stop only if nothing else is
        allowed.

        `actions` are the allowed actions, None for all.
        """
        allowed = range(1 + len(moment.visit.offers)) if actions is None else actions
        going = [action for action in allowed if action != STOP]
        if going and self.random.random() < epsilon:
            return going[self.random.randrange(len(going))]
        values = self.values(moment)
        return max(allowed, key=values.__getitem__)

    def values(self, moment: Moment) -> list[float]:
        """The value of each action, the stop first."""
        return self.learner.values(moment.visit, self.vectors)

    def observe(
        self, moment: Moment, action: int, reward: float, following: Moment | None, beside: Iterable[Visit] = ()
    ) -> None:
        """Store a transition, and learn. `beside` has further states whose offers may be chosen later."""
        after = None if following is None or action == STOP else following.visit
        self.absorb(ReplayedAction(moment.visit, action, reward, after))
        self.forget([moment.visit, *(() if following is None else (following.visit,)), *beside])

    def absorb(self, transition: ReplayedAction) -> None:
        """Store a transition between programs with known vectors, and learn."""
        self.replay.add(transition)
        self.learner.best = max(self.learner.best, transition.reward)
        self.loss = self.learner.learn(self.replay, self.vectors, self.random)

    def forget(self, visits: Iterable[Visit] = ()) -> None:
        """If there are many vectors, keep only the ones used by a transition or by one of the `visits`."""
        if len(self.vectors) < MOST_VECTORS * self.settings.successors * self.settings.replay:
            return
        used = self.replay.in_use()
        for visit in visits:
            used.update((visit.state, *visit.offers))
        self.vectors = {fingerprint: vector for fingerprint, vector in self.vectors.items() if fingerprint in used}

    # Keeping

    def state(self) -> dict[str, Any]:
        """Everything that `restore` needs, as plain data and tensors."""
        return {
            "random": stored_random(self.random),
            "seed": self._seed,
            "looks": self._looks,
            "loss": self.loss,
            "learner": self.learner.state(),
            "memory": packed(self.replay, self.vectors),
        }

    def schema(self) -> Schema:
        """The schema of `state`."""
        return {
            "random": RANDOM,
            "seed": range(2**63),
            "looks": COUNT,
            "loss": float,
            "learner": learner_schema(self.settings, self.encoder.size),
            "memory": memory_schema(self.encoder.size),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore an agent from its `state`, which must fit `schema`. Raises UsageError."""
        restore_random(self.random, state["random"])
        self._seed, self._looks, self.loss = state["seed"], state["looks"], state["loss"]
        self.vectors = unpacked(self.replay, state["memory"])
        self._learner = Learner(self.settings, self.encoder.size, self._seed)
        self._learner.restore(state["learner"])

"""The gymnasium environment of a kernel."""

from __future__ import annotations

import copy
import string
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, SupportsInt

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.error import CustomSpaceError
from gymnasium.vector.utils import create_shared_memory  # pyright: ignore[reportUnknownVariableType]

from pdojo.errors import UsageError
from pdojo.search.contract.evaluation import JSON
from pdojo.search.environment.actions import Action
from pdojo.search.environment.episode import Episode, Price
from pdojo.search.environment.reward_model import RewardModel
from pdojo.search.environment.rules import Rules
from pdojo.search.environment.validation import Validation
from pdojo.search.features.program import features
from pdojo.transforms.game import Game
from pdojo.transforms.move import Move
from pdojo.transforms.shown import html_of
from pdojo.transforms.trace import Trace

Observation = dict[str, Any]
"""An observation: arrays and the text, keyed by name."""
BOUND = 1e9
"""Bound of the features."""
MOST_ACTIONS = 1 << 20
LONGEST = 1 << 24
"""Bounds of the arrays and texts of an observation."""
SEEDS = 1 << 62
"""Exclusive upper bound of the seeds drawn for environments without a given seed."""


class ProgramText(spaces.Text):
    """The space of programs: texts, which vector environments must not keep in shared memory.

    `AsyncVectorEnv` reads texts from shared memory only once, at the beginning, so that observations would never change
    (gymnasium 1.4). For this space it raises a ValueError that names the remedy.
    """


@create_shared_memory.register(ProgramText)
def _refuse_shared_memory(space: ProgramText, n: int = 1, ctx: Any = None) -> Any:
    raise CustomSpaceError("programs are texts, which gymnasium reads from shared memory only once")


class KernelEnv(gymnasium.Env[Observation, np.int64]):
    """The game of a kernel: an action is the number of an offered action, 0 is the stop.

    `capacity` is the number of actions, not counting the stop. `longest` is the number of characters of an observed
    program. With `successors`, observations include the features of the program after each action. `close` closes
    `prices`. See docs/environment.md for observations and `info`.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi", "html"], "render_fps": 1}  # pyright: ignore[reportIncompatibleVariableOverride]  # as all environments do

    def __init__(
        self,
        start: Game,
        prices: RewardModel,
        rules: Rules,
        *,
        capacity: int,
        longest: int,
        successors: bool,
        render_mode: str | None = None,
    ) -> None:
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise UsageError(f"unknown render mode '{render_mode}'; known are ansi, html")
        for what, value, most in (("capacity", capacity, MOST_ACTIONS), ("longest", longest, LONGEST)):
            if value < 1:
                raise UsageError(f"an environment needs '{what}' of at least 1, not {value}")
            if value > most:
                raise UsageError(f"an environment has '{what}' of at most {most}, not {value}")
        self.episode = Episode(start, prices, rules)
        """The episode, for agents that inspect successors themselves."""
        self.render_mode = render_mode
        self._capacity, self._longest, self._successors = capacity, longest, successors
        self._width = len(features(start.program.nest, start.machine))
        self._owns = True
        self._begun = False
        size = capacity + 1
        self.action_space = spaces.Discrete(size)
        observed: dict[str, spaces.Space[Any]] = {
            "program": ProgramText(longest, min_length=1, charset=string.printable),
            "features": spaces.Box(-BOUND, BOUND, (self._width,), np.float32),
            "action_mask": spaces.MultiBinary(size),
        }
        if successors:
            observed["successors"] = spaces.Box(-BOUND, BOUND, (size, self._width), np.float32)
        self.observation_space = spaces.Dict(observed)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin the next episode. `options` may have a `trace`, whose moves are made first.

        Raises UsageError for other options, MeasurementError if the start cannot run, and the errors of
        `Episode.reset`.
        """
        super().reset(seed=seed)
        if options is not None and not isinstance(options, Mapping):
            raise UsageError(f"options of reset are a dictionary, not {options!r:.60}")
        given = dict(options or {})
        trace = given.pop("trace", None)
        if given:
            raise UsageError(f"unknown option '{next(iter(given))}' of reset; known is trace")
        if seed is None and not self._begun:
            # By gymnasium's convention, an environment without a seed is random.
            seed = int(self.np_random.integers(SEEDS))
        self.episode.reset(seed, None if trace is None else trace_of(trace))
        self._begun = True
        return self._observation(), self._info(self.episode.price)

    def step(self, action: SupportsInt) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Take an action. An index that is not offered has the reward 0 and sets `info["illegal"]`."""
        try:
            wanted = int(action)
        except (TypeError, ValueError, OverflowError):
            raise UsageError(f"an action is a whole number, not {action!r:.60}") from None
        number = wanted if 0 <= wanted < len(self._actions) else -1
        made = self._actions[number] if number >= 0 else None
        found = self.episode.step(number)
        info = self._info(found.price)
        info |= {"illegal": found.illegal, "move": "" if made is None else made.label}
        return self._observation(), found.reward, found.terminated, found.truncated, info

    def render(self) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]  # frames are texts
        """The program and the moves, as text or HTML. Raises UsageError if no render mode was chosen."""
        game, moves = self.episode.game, self.episode.game.trace.moves
        title = f"{game.kernel.sym_name.data} on {game.machine.name}: {self.episode.steps} actions taken"
        match self.render_mode:
            case "ansi":
                made = "".join(f"  {move}\n" for move in moves)
                return f"{title}\n\n{game.text.rstrip()}\n\n{len(moves)} moves made\n{made}"
            case "html":
                return html_of(title, game.text, moves)
            case _:
                raise UsageError("make the environment with render_mode='ansi' or 'html' to render it")

    def fork(self) -> KernelEnv:
        """An independent environment in the same state; it shares the known costs, and the original closes them."""
        other = copy.copy(self)
        other.episode = self.episode.fork()
        other._owns = False
        other.np_random = copy.deepcopy(self.np_random)
        for name in ("action_space", "observation_space"):
            setattr(other, name, copy.deepcopy(getattr(self, name)))
        return other

    def __deepcopy__(self, memo: dict[int, Any]) -> KernelEnv:
        """An independent environment in the same state, which must be closed separately.

        Copies share only the evaluator's processes and the database, which end with the last copy.
        """
        other = copy.copy(self)
        memo[id(self)] = other
        # The arguments of the environment never change; evaluators and databases cannot be copied.
        memo |= {id(given): given for given in (self.spec.kwargs.values() if self.spec is not None else ())}
        for name, value in vars(self).items():
            setattr(other, name, self.episode.copy() if name == "episode" else copy.deepcopy(value, memo))
        other._owns = True
        return other

    def validate(self, seed: int | None = None) -> Validation:
        """Compare the program's results with the plain kernel's on random inputs, by default fresh ones."""
        return self.episode.validate(seed)

    def replay(self, trace: Trace | str | Path | Sequence[Move | str]) -> tuple[Observation, dict[str, Any]]:
        """Begin the next episode in the state after a trace from the plain kernel.

        `trace` is a trace, a path of one, or moves in order. Raises UsageError for a file that is no trace, IllegalMove
        or LocationError for moves that do not apply.
        """
        price = self.episode.replay(trace_of(trace))
        return self._observation(), self._info(price)

    def to_json(self) -> JSON:
        """The state of episode and random numbers, as plain data; `restore` reads it."""
        return {**self.episode.to_json(), "numbers": self.np_random.bit_generator.state, "begun": self._begun}

    def restore(self, data: Mapping[str, Any]) -> tuple[Observation, dict[str, Any]]:
        """Continue from the data of `to_json`. Raises UsageError if its environment had other settings."""
        if not isinstance(data, Mapping):
            raise UsageError(f"a stored environment is a dictionary, not {data!r:.60}")
        if data.get("rules") != self.episode.rules.to_json():
            raise UsageError("the stored episode has other rules than this environment")
        episode = Episode.from_json(data, self.episode.start, self.episode.prices)
        try:
            generator = np.random.default_rng()
            generator.bit_generator.state = data["numbers"]
            self._begun = bool(data["begun"])
        except (KeyError, TypeError, ValueError):
            raise UsageError("the stored environment has no state of random numbers") from None
        self.np_random, self.episode = generator, episode
        return self._observation(), self._info(episode.price)

    def close(self) -> None:
        """End the evaluator's processes; a fork leaves them to its original."""
        if self._owns:
            self.episode.prices.close()

    @property
    def _actions(self) -> list[Action]:
        return self.episode.offers[: self._capacity + 1]

    def _observation(self) -> Observation:
        text = self.episode.game.text
        nest = self.episode.game.program.nest
        mask = np.zeros(self._capacity + 1, np.int8)
        mask[: len(self._actions)] = 1
        found: Observation = {
            "program": text[: self._longest],
            "features": _bounded(features(nest, self.episode.game.machine)),
            "action_mask": mask,
        }
        if self._successors:
            rows = np.zeros((len(mask), self._width), np.float32)
            rows[: len(self._actions)] = [_bounded(offer.features) for offer in self._actions]
            found["successors"] = rows
        return found

    def _info(self, price: Price) -> dict[str, Any]:
        episode = self.episode
        return {
            "moves": [offer.label for offer in self._actions],
            "locations": [offer.location for offer in self._actions],
            "runtime": price.runtime,
            "status": price.status,
            "why": price.why,
            "unit": episode.prices.unit,
            "fingerprint": episode.game.fingerprint,
            "trace": [str(move) for move in episode.game.trace.moves],
            "left_out": len(episode.offers) - len(self._actions),
            "is_cut": len(episode.game.text) > self._longest,
            "illegal": False,
            "move": "",
        }


def trace_of(given: Trace | str | Path | Sequence[Move | str]) -> Trace:
    """A trace as given, from a file, or from moves. Raises UsageError and IllegalMove."""
    if isinstance(given, Trace):
        return given
    if isinstance(given, str | Path):
        return Trace.load(given)
    trace = Trace()
    trace.extend(Move.parse(move) if isinstance(move, str) else move for move in given)
    return trace


def _bounded(values: Sequence[float]) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.clip(np.array(values, np.float32), -BOUND, BOUND)

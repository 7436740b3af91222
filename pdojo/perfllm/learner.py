"""The value network and its training (paper 3.2 and 3.3).

PyTorch is imported only when a learner is made.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from functools import lru_cache
from random import Random
from typing import Any, TypeAlias

import numpy
from numpy.typing import NDArray

from pdojo.errors import UsageError
from pdojo.perfllm.replay import STOP, Replay, ReplayedAction, Visit
from pdojo.perfllm.schema import COUNT, Schema, Some, TensorSchema
from pdojo.perfllm.settings import Settings

Vector: TypeAlias = NDArray[numpy.float32]
"""The encoding of a program."""
Vectors: TypeAlias = Mapping[str, Vector]
"""Encodings, keyed by the program's fingerprint."""


def import_torch() -> Any:
    """PyTorch. Raises UsageError if it is not installed."""
    try:
        import torch
    except ImportError:
        raise UsageError("the agent needs PyTorch: pip install 'pdojo[learn]', or use the strategy 'evolve'") from None
    return torch


@contextmanager
def one_thread() -> Generator[None]:
    """A context of one thread, which is faster for networks of this size and keeps the order of sums fixed."""
    torch = import_torch()
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class Learner:
    """Q-values of actions, learned from transitions.

    An action is the program before and the program after (paper 3.1), here E(s) and E(s') - E(s), and a bit for the
    stop. Rewards are positive; a value estimates the best reward that the action leads to (target `max`).
    """

    def __init__(self, settings: Settings, size: int, seed: int) -> None:
        self.settings = settings
        self.size = size
        """Length of a program's vector."""
        self._torch = import_torch()
        self._scale = Scale(size)
        self._net = _network(settings, size, seed)
        self._frozen = _network(settings, size, seed)
        self._optimizer = self._torch.optim.Adam(
            [p for part in self._net.values() for p in part.parameters()], lr=settings.learning_rate
        )
        self.best = 0.0
        """The best reward so far: no target exceeds it."""
        self.steps = 0
        """Number of calls of `learn`."""

    # Values

    def values(self, visit: Visit, vectors: Vectors) -> list[float]:
        """The value of each action in a state, the stop first."""
        return self.values_of([visit], vectors)[0]

    def values_of(self, visits: Sequence[Visit], vectors: Vectors) -> list[list[float]]:
        """The values of each action in some states."""
        return self._floats(self._net, visits, vectors)

    def values_of_copy(self, visit: Visit, vectors: Vectors) -> list[float]:
        """The values that the target network gives (`Settings.sync`), for diagnosis."""
        return self._floats(self._frozen, [visit], vectors)[0]

    def _floats(self, net: dict[str, Any], visits: Sequence[Visit], vectors: Vectors) -> list[list[float]]:
        with one_thread(), self._torch.no_grad():
            rows = self._values(net, visits, vectors).tolist()
        return [row[: 1 + len(visit.offers)] for row, visit in zip(rows, visits, strict=True)]

    def _values(self, net: dict[str, Any], visits: Sequence[Visit], vectors: Vectors) -> Any:
        """Values [visits, actions]; -inf for missing actions of a shorter visit."""
        torch = self._torch
        most = 1 + max(len(visit.offers) for visit in visits)
        rows = [[vectors[visit.after(k)] for k in range(1 + len(visit.offers))] for visit in visits]
        present = torch.tensor([[k < len(row) for k in range(most)] for row in rows])
        flat = self._scale(numpy.stack([vector for row in rows for vector in row]))
        after = torch.zeros(len(visits), most, self.size)
        after[present] = torch.from_numpy(flat)
        before = after[:, STOP]
        stops = torch.zeros(len(visits), most, 1)
        stops[:, STOP] = 1
        around = before[:, None].expand_as(after)
        advantage = net["advantage"](torch.cat([around, after - around, stops], dim=2))[:, :, 0]
        if self.settings.dueling:
            mean = (advantage * present).sum(1, keepdim=True) / present.sum(1, keepdim=True)
            advantage = advantage - mean + net["value"](before)
        return advantage.masked_fill(~present, -torch.inf)

    # Learning

    def learn(self, replay: Replay, vectors: Vectors, random: Random) -> float:
        """Make the updates after one step; returns the mean loss, 0 with too few transitions."""
        self.steps += 1
        if len(replay) < self.settings.batch:
            return 0.0
        batches = [replay.sample(self.settings.batch, random) for _ in range(self.settings.updates)]
        with one_thread():
            losses = [self._update(batch, vectors) for batch in batches]
        if self.steps % self.settings.sync == 0:
            for name, part in self._net.items():
                self._frozen[name].load_state_dict(part.state_dict())
        return sum(losses) / max(1, len(losses))

    def saw(self, vector: Vector) -> None:
        """Count a program for the scale of the inputs."""
        self._scale.saw(vector)

    def _update(self, batch: Sequence[ReplayedAction], vectors: Vectors) -> float:
        torch = self._torch
        targets = self.targets(batch, vectors)
        values = self._values(self._net, [one.visit for one in batch], vectors)
        chosen = values[torch.arange(len(batch)), torch.tensor([one.action for one in batch])]
        loss = torch.nn.functional.huber_loss(chosen, targets)
        self._optimizer.zero_grad()
        loss.backward()
        parameters = [p for group in self._optimizer.param_groups for p in group["params"]]
        torch.nn.utils.clip_grad_norm_(parameters, self.settings.clip)
        self._optimizer.step()
        return float(loss.detach())

    def targets(self, batch: Sequence[ReplayedAction], vectors: Vectors) -> Any:
        """Training targets of the actions, [transitions]: paper equations 3, 4 and 6.

        `max` is max(r, gamma max Q(s', a')), `sum` is r + gamma max Q(s', a'), and `one-step` is r. With `double` the
        network chooses a', and the target network gives its value.
        """
        torch, settings = self._torch, self.settings
        rewards = torch.tensor([one.reward for one in batch])
        going_on = [k for k, one in enumerate(batch) if one.following is not None]
        if settings.target == "one-step" or not going_on:
            return rewards
        following = [visit for one in batch if (visit := one.following) is not None]
        with torch.no_grad():
            later = self._values(self._frozen, following, vectors)
            choosing = self._values(self._net, following, vectors) if settings.double else later
            best = later[torch.arange(len(following)), choosing.argmax(1)]
        ahead = torch.zeros(len(batch))
        ahead[going_on] = settings.discount * best
        if settings.target == "sum":
            return rewards + ahead
        # Values above the best reward are errors, which the maximum would spread.
        return torch.maximum(rewards, ahead.clamp(max=max(self.best, float(rewards.max()))))

    # Keeping

    def policy(self) -> dict[str, Any]:
        """The network and the scale of its inputs."""
        return deepcopy({"net": _weights(self._net), "scale": self._scale.state()})

    def adopt(self, policy: Mapping[str, Any]) -> None:
        """Copy the network of a policy, also into the target network; the policy must fit `policy_schema`."""
        for name, part in self._net.items():
            part.load_state_dict(policy["net"][name])
            self._frozen[name].load_state_dict(policy["net"][name])
        self._scale.restore(policy["scale"])

    def state(self) -> dict[str, Any]:
        """A copy of everything that `restore` needs, as plain data, arrays and tensors."""
        return deepcopy(
            {
                "net": _weights(self._net),
                "frozen": _weights(self._frozen),
                "optimizer": self._optimizer.state_dict(),
                "scale": self._scale.state(),
                "best": self.best,
                "steps": self.steps,
            }
        )

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore a learner from its `state`, which must fit `learner_schema`."""
        for name, part in self._net.items():
            part.load_state_dict(state["net"][name])
            self._frozen[name].load_state_dict(state["frozen"][name])
        restore_optimizer(self._optimizer, state["optimizer"])
        self._scale.restore(state["scale"])
        self.best, self.steps = state["best"], state["steps"]


def _network(settings: Settings, size: int, seed: int) -> dict[str, Any]:
    torch, width = import_torch(), settings.width
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)

        def layers(size: int) -> Any:
            return torch.nn.Sequential(
                torch.nn.Linear(size, width),
                torch.nn.ReLU(),
                torch.nn.Linear(width, width),
                torch.nn.ReLU(),
                torch.nn.Linear(width, 1),
            )

        # With one head, the advantage is the value of the action.
        return {"value": layers(size), "advantage": layers(2 * size + 1)}


def _weights(net: Mapping[str, Any]) -> dict[str, Any]:
    return {name: part.state_dict() for name, part in net.items()}


@lru_cache(maxsize=4)
def policy_schema(settings: Settings, size: int) -> Schema:
    """The schema of `Learner.policy` for vectors of a size."""
    with import_torch().device("meta"):
        return {"net": _weights(_network(settings, size, 0)), "scale": Scale.schema(size)}


def learner_schema(settings: Settings, size: int) -> Schema:
    """The schema of `Learner.state` for vectors of a size."""
    with import_torch().device("meta"):
        net = _network(settings, size, 0)
    parameters = [p for part in net.values() for p in part.parameters()]
    return {
        **dict.fromkeys(("net", "frozen"), _weights(net)),
        "optimizer": optimizer_schema(parameters),
        "scale": Scale.schema(size),
        "best": float,
        "steps": COUNT,
    }


def optimizer_schema(parameters: Sequence[Any]) -> Schema:
    """The schema of Adam's state; parameters without a gradient have none."""
    moments: dict[int, Schema] = {}
    for number, parameter in enumerate(parameters):
        squares = TensorSchema("float32", tuple(parameter.shape), least=0)
        moments[number] = {"step": TensorSchema("float32", least=0), "exp_avg": parameter, "exp_avg_sq": squares}
    return {"state": Some(moments), "param_groups": object}


def restore_optimizer(optimizer: Any, state: Mapping[str, Any]) -> None:
    """Restore moments. Learning rates come from the settings, not from the file."""
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": state["state"], "param_groups": groups})


class Scale:
    """Normalises the network's inputs to mean 0 and deviation 1 over the programs seen; the least deviation is 0.1."""

    def __init__(self, size: int) -> None:
        self._count = 0
        self._mean = numpy.zeros(size)
        self._squares = numpy.zeros(size)

    def saw(self, vector: Vector) -> None:
        """Count a program."""
        self._count += 1
        distance = vector - self._mean
        self._mean = self._mean + distance / self._count
        self._squares = self._squares + distance * (vector - self._mean)

    def __call__(self, vectors: NDArray[numpy.float32]) -> NDArray[numpy.float32]:
        """The scaled vectors [programs, size], clipped at 8 deviations."""
        deviation = numpy.sqrt(self._squares / max(1, self._count))
        scaled = (vectors - self._mean) / numpy.maximum(deviation, 0.1)
        return numpy.clip(scaled, -8, 8).astype(numpy.float32)

    def state(self) -> dict[str, Any]:
        """Everything that `restore` needs."""
        return {"count": self._count, "mean": self._mean, "squares": self._squares}

    @staticmethod
    def schema(size: int) -> Schema:
        """The schema of `state` for vectors of a size."""
        return {
            "count": COUNT,
            "mean": TensorSchema("float64", (size,)),
            "squares": TensorSchema("float64", (size,), least=0),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore a scale from its `state`."""
        self._count = state["count"]
        self._mean, self._squares = numpy.asarray(state["mean"]), numpy.asarray(state["squares"])
